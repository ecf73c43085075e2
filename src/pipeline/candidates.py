"""The table that flows through an arm: the candidates of one query, in rank order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.papers import Paper, Query

Column = npt.NDArray[Any]  # float scores (NaN: no value), text or flags; one entry a paper


@dataclass(frozen=True)
class Candidates:
    """The papers of one query in rank order, and the columns that the stages have added.

    A stage never changes a table: it returns a new one with more columns, fewer papers or another order.
    """

    query: Query
    papers: tuple[Paper, ...]
    columns: Mapping[str, Column] = field(default_factory=dict)
    corpus: tuple[Paper, ...] | None = None  #: what word statistics are taken from; None: from ``papers``

    def __len__(self) -> int:
        return len(self.papers)

    def with_columns(self, **columns: Column) -> Candidates:
        """Return the table with these columns added or replaced; each has one entry a paper."""
        for name, values in columns.items():
            if len(values) != len(self):
                raise ValueError(f"column {name} has {len(values)} entries for {len(self)} papers")
        return replace(self, columns={**self.columns, **columns})

    def take(self, positions: Sequence[int] | npt.NDArray[np.intp]) -> Candidates:
        """Return the papers at these positions, in this order."""
        index = np.asarray(positions, dtype=np.intp)
        return replace(
            self,
            papers=tuple(self.papers[i] for i in index),
            columns={name: values[index] for name, values in self.columns.items()},
        )

    def ranked_by(self, column: str) -> Candidates:
        """Return the table with the highest values first; ties keep their order, so that reruns are identical."""
        return self.take(np.argsort(-self.columns[column], kind="stable"))

    def rows(self) -> list[dict[str, Any]]:
        """Return one plain dict a paper, for JSON: floats rounded to 9 decimals, ``None`` where there is no value."""
        columns = {name: [_plain(value) for value in values.tolist()] for name, values in self.columns.items()}
        return [
            {
                "query_id": self.query.query_id,
                "rank": i + 1,
                "paper_id": paper.paper_id,
                "title": paper.title,
                **{name: values[i] for name, values in columns.items()},
            }
            for i, paper in enumerate(self.papers)
        ]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if np.isnan(value) else round(value, 9)
    return value
