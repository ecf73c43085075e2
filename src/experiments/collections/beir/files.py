"""The files of a collection: found plain or gzipped, read once, and named with the line in every error."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UserError

#: How much of a wrong value, and how many names of a folder, an error shows.
SHOWN_CHARACTERS = 60
SHOWN_NAMES = 20


@dataclass(frozen=True)
class TextFile:
    """One file of a collection with its content, already decompressed."""

    name: str  #: as in the layout, without ``.gz``: the same for a plain and a gzipped file
    path: Path
    content: bytes

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield every line that is not blank with its number, from 1."""
        # Not str.splitlines: it also splits at characters such as U+2028, which abstracts contain.
        for number, line in enumerate(self._text().split("\n"), start=1):
            if line and not line.isspace():
                yield number, line.rstrip("\r")

    def error(self, line: int, fault: str) -> UserError:
        """Return the error for a fault on this line."""
        return UserError(f"{self.path}:{line}: {fault}")

    def _text(self) -> str:
        try:
            return self.content.decode("utf-8-sig")  # editors on Windows write a byte order mark
        except UnicodeDecodeError as error:
            line = self.content[: error.start].count(b"\n") + 1
            byte = self.content[error.start]
            raise self.error(line, f"byte 0x{byte:02x} is not UTF-8; expected a file saved as UTF-8") from None


def open_file(folder: Path, name: str) -> TextFile:
    """Read a file that every collection has."""
    file = open_optional(folder, name)
    if file is None:
        parent = (folder / name).parent
        raise UserError(f"{folder}: no {name}; expected {name} or {name}.gz; {_contents(parent)}")
    return file


def open_optional(folder: Path, name: str) -> TextFile | None:
    """Read a file that a collection may have; ``None`` where there is none."""
    found = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
    if len(found) == 2:
        raise UserError(f"{folder}: both {name} and {name}.gz are there; expected one of them, remove the other")
    return open_path(found[0], name) if found else None


def open_path(path: Path, name: str) -> TextFile:
    """Read the file at this path."""
    content = _read(path)
    if not content.removeprefix(codecs.BOM_UTF8).strip():
        raise UserError(f"{path}:1: the file is empty; expected at least one line")
    return TextFile(name, path, content)


def check_folder(folder: Path) -> None:
    """Raise unless this is a folder."""
    if folder.is_file():
        raise UserError(f"{folder}: this is a file; expected the folder of a collection")
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; expected the folder of a collection; {_contents(folder.parent)}")


def fingerprint(files: Iterable[TextFile]) -> str:
    """Return the sha256 over names and content; the length between them keeps content from passing for a name."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{len(file.content)}\0".encode())
        digest.update(file.content)
    return digest.hexdigest()


def shown(value: object) -> str:
    """Return a value for an error: on one line, and cut where it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: broken or truncated gzip ({error}); expected a whole gzip file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); expected a readable file") from None


def _contents(folder: Path) -> str:
    """Say what a folder holds, or how far up the path still exists."""
    if not folder.is_dir():
        return f"there is no {folder} either"
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return f"{folder} holds {', '.join(names[:SHOWN_NAMES]) or 'nothing'}{more}"
