"""The types a value in a collection may have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A type of values: its name in errors, how to tell it, how to take a value over, and what null counts as."""

    expected: str
    is_kind: Callable[[Any], bool]
    convert: Callable[[Any], T]
    unknown: T


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def _is_whole_number(value: Any) -> bool:
    return _is_number(value) and value == int(value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_object_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, str) for entry in value.values())


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and value != "" and not any(character.isspace() for character in value)


def _stripped(texts: list[str]) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, texts)))


TEXT: Kind[str | None] = Kind("a text", _is_text, lambda text: text.strip() or None, None)
TEXTS: Kind[tuple[str, ...]] = Kind("a list of texts", _is_list_of_texts, _stripped, ())
WHOLE_NUMBER: Kind[int | None] = Kind("a whole number", _is_whole_number, int, None)
NUMBER: Kind[float | None] = Kind("a number", _is_number, float, None)
FLAG: Kind[bool | None] = Kind("true or false", _is_flag, bool, None)
OBJECT_OF_TEXTS: Kind[Mapping[str, str]] = Kind("an object of texts", _is_object_of_texts, dict, {})
OBJECT: Kind[Mapping[str, Any]] = Kind("an object", _is_object, dict, {})
#: Run files and qrels are split at blanks, so an id has none.
IDENTIFIER: Kind[str | None] = Kind("a text without blanks", _is_id, str, None)
IDENTIFIERS: Kind[tuple[str, ...]] = Kind("a list of paper ids", _is_list_of_texts, tuple, ())
