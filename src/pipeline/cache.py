"""Content keys to stored vectors, in one SQLite file that several processes may use and that survives kill -9."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.errors import UserError

_ROWS_A_QUERY = 500  # below SQLite's limit of host parameters in every build


def content_key(*parts: object) -> bytes:
    """Return the sha256 of everything that a stored result depends on."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False, sort_keys=True).encode()).digest()


@dataclass(frozen=True)
class Encoded:
    """What a model made of one text: float32 values, and whether the text was longer than the model's window."""

    values: npt.NDArray[np.float32]
    is_truncated: bool


class VectorStore:
    """Vectors by content key. A key is written once; writing it again changes nothing."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        with self._open() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, truncated INTEGER, vector BLOB)"
            )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=60)) as connection, connection:
                yield connection
        except sqlite3.DatabaseError as error:
            raise UserError(f"vector store {self._path}: {error}; if it is damaged, delete it") from error

    def read(self, keys: Iterable[bytes]) -> dict[bytes, Encoded]:
        """Return what is stored under these keys; keys without an entry are left out."""
        wanted, found = list(dict.fromkeys(keys)), {}
        with self._open() as connection:
            for start in range(0, len(wanted), _ROWS_A_QUERY):
                some = wanted[start : start + _ROWS_A_QUERY]
                marks = ",".join("?" * len(some))
                rows = connection.execute(
                    f"SELECT key, truncated, vector FROM vectors WHERE key IN ({marks})",  # noqa: S608 (only marks)
                    some,
                )
                for key, is_truncated, vector in rows:
                    found[key] = Encoded(self._values(vector), bool(is_truncated))
        return found

    def _values(self, stored: object) -> npt.NDArray[np.float32]:
        values = np.frombuffer(stored, dtype="<f4") if isinstance(stored, bytes) and len(stored) % 4 == 0 else None
        if values is None or not values.size or not np.isfinite(values).all():
            raise UserError(f"vector store {self._path}: a stored vector is damaged; delete the file")
        return values

    def write(self, entries: Mapping[bytes, Encoded]) -> None:
        """Store these entries, all or none."""
        rows = [(key, entry.is_truncated, entry.values.astype("<f4").tobytes()) for key, entry in entries.items()]
        with self._open() as connection:
            connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)
