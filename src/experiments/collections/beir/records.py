"""JSON lines: objects that know their file and line, and hand out their values by type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from experiments.collections.beir.files import TextFile, shown
from experiments.collections.beir.kinds import IDENTIFIER, OBJECT, TEXT, Kind
from pipeline.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True)
class Record:
    """One JSON object and where it stands."""

    file: TextFile
    line: int
    values: Mapping[str, Any]
    prefix: str = ""  #: path to a nested object, for errors

    def error(self, fault: str) -> UserError:
        """Return the error for a fault in this object."""
        return self.file.error(self.line, fault)

    def get(self, key: str, kind: Kind[T]) -> T:
        """Return a value that may be missing or null."""
        value = self.values.get(key)
        if value is None:
            return kind.unknown
        if not kind.is_kind(value):
            raise self.error(f"{self.prefix}{key} is {shown(value)}; expected {kind.expected}")
        return kind.convert(value)

    def require(self, key: str, kind: Kind[T]) -> T:
        """Return a value whose key must be there; null is unknown."""
        if key not in self.values:
            raise self.error(f"no key {key!r} among {shown(list(self.values))}; expected {key!r}, {kind.expected}")
        return self.get(key, kind)

    def text(self, key: str) -> str:
        """Return a required text without outer blanks; null is an empty text."""
        return self.require(key, TEXT) or ""

    def identifier(self, key: str) -> str:
        """Return a required id, which is taken as it is."""
        value = self.require(key, IDENTIFIER)
        if value is None:
            raise self.error(f"{key} is null; expected {IDENTIFIER.expected}")
        return value

    def metadata(self) -> Record:
        """Return the object under ``metadata``; an empty one where it is missing or null."""
        return Record(self.file, self.line, self.get("metadata", OBJECT), "metadata.")


def read_records(file: TextFile, key: str) -> dict[str, Record]:
    """Return the object of every line by the id under ``key``, in the order of the file."""
    records: dict[str, Record] = {}
    for line, text in file.lines():
        record = Record(file, line, _parse(file, line, text))
        identifier = record.identifier(key)
        if identifier in records:
            first = records[identifier].line
            raise record.error(f"{key} {shown(identifier)} is already on line {first}; expected every {key} once")
        records[identifier] = record
    return records


def _parse(file: TextFile, line: int, text: str) -> Mapping[str, Any]:
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise file.error(line, f"not JSON ({error.msg} at column {error.colno}); expected one object a line") from None
    except (ValueError, RecursionError) as error:
        raise file.error(line, f"not JSON ({error}); expected one object a line") from None
    if not isinstance(value, dict):
        raise file.error(line, f"{shown(value)} is not an object; expected one object a line")
    if "\\ud" in text or "\\uD" in text:
        _check_surrogates(file, line, value)
    return value


def _check_surrogates(file: TextFile, line: int, value: Mapping[str, Any]) -> None:
    """Refuse half a character, as a text cut inside an emoji leaves it: nothing could write it to a file later."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise file.error(line, "half of a surrogate pair (\\ud...); expected whole Unicode characters") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


#: Python's own decoder would take NaN and Infinity.
_DECODER = json.JSONDecoder(parse_constant=_refuse)
