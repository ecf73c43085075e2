"""Rank by a cross-encoder that reads query and paper together (the paper, section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from pipeline.candidates import Candidates
from pipeline.encoding import Encoder
from pipeline.pair_scoring import score_pairs


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Stage:
    """Score the expanded query against title and abstract.

    The score is the raw logit. It is no similarity between 0 and 1, so it gives an order but no category.
    """

    encoder: Encoder

    def __call__(self, tables: Sequence[Candidates]) -> list[Candidates]:
        """Return the tables ranked, with columns score and text_truncated."""
        pairs = [(t.query.expanded, f"{paper.title}. {paper.abstract}") for t in tables for paper in t.papers]
        scored = iter(score_pairs(pairs, self.encoder))
        ranked = []
        for table in tables:
            entries = [next(scored) for _ in table.papers]
            ranked.append(
                table.with_columns(
                    score=np.array([entry.values[0] for entry in entries], dtype=np.float64),
                    text_truncated=np.array([entry.is_truncated for entry in entries], dtype=bool),
                ).ranked_by("score")
            )
        return ranked
