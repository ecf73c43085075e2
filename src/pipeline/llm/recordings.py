"""Answers of language models, kept under content keys in one file that can be committed or shipped.

A line holds one answer. It is written at once and synced, so that a killed run has lost no answer that it received; a
line that was cut off by a kill is passed over. The newest answer of a key counts.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pipeline.llm.answers import Answer

log = logging.getLogger(__name__)


class Recording:
    """The answers of one file, by key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._answers: dict[str, Answer] = {}
        self._read_to = 0
        self.refresh()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: str) -> Answer | None:
        """Return the answer of this key, or None."""
        return self._answers.get(key)

    def refresh(self) -> None:
        """Read what other processes have added since."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read_to)
            for line in file:
                if line.endswith(b"\n"):
                    self._read_to += len(line)
                    self._take(line)
                else:  # still in the writing, cut off, or whole without its line break
                    self._take(line, is_whole=False)

    def _take(self, line: bytes, *, is_whole: bool = True) -> None:
        if not line.strip():
            return
        try:
            answer = Answer(**json.loads(line))
            self._answers[answer.key] = answer
        except (ValueError, TypeError):
            if is_whole:
                log.warning("%s: a damaged line was passed over: %.60r", self.path, line)

    def add(self, answer: Answer) -> None:
        """Store an answer; it is on disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            if file.tell() and not _ends_a_line(file):
                file.write(b"\n")  # after a line that a kill cut off
            given = {name: value for name, value in asdict(answer).items() if value is not None}
            file.write(json.dumps(given | {"content": answer.content}, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._answers[answer.key] = answer

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from asking for the same answers: they wait, and find them here."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))
        try:
            lock.acquire(timeout=1)
        except Timeout:
            log.info("waiting for another process that records to %s", self.path)
            lock.acquire()
        try:
            self.refresh()
            yield
        finally:
            lock.release()


def _ends_a_line(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")
