"""Relevance judgments: the only place where labels live.

``pipeline`` cannot import this module (a test checks the imports), so no judgment can reach a stage, a prompt or a
cache key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Every grade there is, in order: 0 low, 1 somewhat, 2 moderately, 3 highly relevant.
GRADES = (0, 1, 2, 3)


@dataclass(frozen=True)
class Judgments:
    """Consensus grades: query id -> paper id -> grade 0..3. A pair that is not listed is unjudged."""

    grades: Mapping[str, Mapping[str, int]]

    def __getitem__(self, query_id: str) -> Mapping[str, int]:
        return self.grades[query_id]
