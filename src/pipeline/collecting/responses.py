"""What sources answered, kept as it came: one SQLite file from which a snapshot can be made again without network.

Answers stand under the walk that they belong to (a query at a source, or look-ups of one kind) and a key in it. An
answer is on disk before it is used, so that a killed collection asks for no finished page again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pipeline.collecting.reports import Report
from pipeline.errors import UserError, first_line

_TABLES = """
CREATE TABLE IF NOT EXISTS responses (
    walk TEXT, key TEXT, request TEXT, status INTEGER, body BLOB, PRIMARY KEY (walk, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Response:
    """An answer and the request that it is for, without secrets."""

    request: str
    status: int
    body: bytes


class Responses:
    """The answers and facts of one collection. A key is written once; writing it again changes nothing."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self.path, self._is_read_only = path, is_read_only
        try:
            if is_read_only:
                self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
                self._connection.execute("SELECT 1 FROM responses LIMIT 1")
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._connection = sqlite3.connect(path)
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.executescript(_TABLES)
        except (sqlite3.Error, OSError) as error:
            raise self._fault(error) from error

    def close(self) -> None:
        """Leave one file behind, which a folder that cannot be written to can hold."""
        if not self._is_read_only:
            with suppress(sqlite3.OperationalError):  # locked: somebody looks into it, and all is on disk anyway
                self._connection.execute("PRAGMA journal_mode=DELETE")
        self._connection.close()

    def get(self, walk: str, key: str) -> Response | None:
        """Return the answer under this key, or None."""
        with self._told():
            row = self._connection.execute(
                "SELECT request, status, body FROM responses WHERE walk = ? AND key = ?", (walk, key)
            ).fetchone()
            return None if row is None else Response(row[0], row[1], zlib.decompress(row[2]))

    def count(self, walk: str) -> int:
        """Return how many answers of a walk are kept."""
        with self._told():
            row = self._connection.execute("SELECT count(*) FROM responses WHERE walk = ?", (walk,)).fetchone()
            return int(row[0])

    def add(self, walk: str, key: str, response: Response) -> None:
        """Keep an answer; it is on disk when this returns."""
        row = (walk, key, response.request, response.status, zlib.compress(response.body))
        with self._told(), self._connection:
            self._connection.execute("INSERT OR IGNORE INTO responses VALUES (?, ?, ?, ?, ?)", row)

    def fact(self, name: str) -> Any:
        """Return a fact about the collection (a value of JSON), or None."""
        with self._told():
            row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
            return None if row is None else json.loads(row[0])

    def facts(self, prefix: str) -> dict[str, Any]:
        """Return every fact whose name starts like this."""
        with self._told():
            rows = self._connection.execute(
                "SELECT name, value FROM facts WHERE substr(name, 1, ?) = ? ORDER BY name", (len(prefix), prefix)
            ).fetchall()
        return {name: json.loads(value) for name, value in rows}

    def set_fact(self, name: str, value: Any) -> None:
        """Keep a fact, in place of an earlier one of this name."""
        with self._told(), self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value, ensure_ascii=False))
            )

    def report(self, walk: str) -> Report | None:
        """Return what became of a walk or of look-ups, None where it is not known."""
        return next(iter(self.reports(f"{walk}/")), None)

    def reports(self, prefix: str) -> list[Report]:
        """Return the reports of all walks whose name, a slash behind it, starts like this."""
        facts = self.facts(f"report/{prefix}")
        with self._told():
            return TypeAdapter(list[Report]).validate_python(list(facts.values()))

    def set_report(self, walk: str, report: Report) -> None:
        """Keep what became of a walk or of look-ups."""
        self.set_fact(f"report/{walk}/", asdict(report))

    def forget_reports(self, prefix: str) -> None:
        """Drop the reports of all walks whose name, a slash behind it, starts like this."""
        self.forget_facts(f"report/{prefix}")

    def unfinished(self) -> UserError:
        """Return the error for a collection that was stopped, where only a finished one will do."""
        return UserError(f"{self.path.parent}: not collected to the end; run it again without sources.mode=replay")

    def incomplete(self, what: str) -> UserError:
        """Return the error for answers that were here and are gone."""
        return UserError(f"{self.path}: {what} are gone; take an undamaged copy, or collect into a new snapshot")

    def forget_facts(self, prefix: str) -> None:
        """Drop every fact whose name starts like this."""
        with self._told(), self._connection:
            self._connection.execute("DELETE FROM facts WHERE substr(name, 1, ?) = ?", (len(prefix), prefix))

    def fingerprint(self) -> str:
        """Return the sha256 over all requests and answers, however SQLite lays them out."""
        digest = hashlib.sha256()
        with self._told():
            rows = self._connection.execute("SELECT walk, key, request, status, body FROM responses ORDER BY walk, key")
            for walk, key, request, status, body in rows:
                content = zlib.decompress(body)
                digest.update(json.dumps([walk, key, request, status, len(content)]).encode())
                digest.update(content)
        return digest.hexdigest()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise UserError(f"{self.path}: {error}; is there room on the disk, and may it be written to?") from error
        except (sqlite3.Error, zlib.error, ValueError, TypeError) as error:
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> UserError:
        return UserError(f"{self.path}: {first_line(error)}; expected the recorded responses of a snapshot")
