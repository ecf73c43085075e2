"""Keep the first papers of each table."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ConfigDict, PositiveInt
from pydantic.dataclasses import dataclass

from pipeline.candidates import Candidates


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Stage:
    """Keep the first ``keep`` papers; a shorter table stays as it is."""

    keep: PositiveInt

    def __call__(self, tables: Sequence[Candidates]) -> list[Candidates]:
        """Return the cut tables."""
        return [table.take(range(min(self.keep, len(table)))) for table in tables]
