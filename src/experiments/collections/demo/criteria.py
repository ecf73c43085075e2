"""How a grade follows from the five relevance criteria (the paper, sections 3.3 and 5.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Criteria:
    """How a paper compares with a query."""

    domain: Literal["same", "related", "different"]
    field: Literal["same", "related", "different"]
    topic: Literal["same", "related", "unrelated"]
    focus: Literal["same", "narrower", "broader", "different"]
    method: Literal["similar", "partial", "different"]


def grade_from_criteria(criteria: Criteria) -> int:
    """Return the grade, 0 to 3; a ``ValueError`` where the rules name no category for the combination."""
    if criteria.domain == "different" or criteria.field == "different" or criteria.topic == "unrelated":
        return 0  # whatever the method: "similar research methods alone are not sufficient"
    if criteria.topic == "related" and criteria.focus == "broader":
        return 1
    if criteria.domain == criteria.field == criteria.topic == "same":
        if criteria.focus == "narrower" and criteria.method in ("similar", "partial"):
            return 2
        if criteria.focus == "same" and criteria.method == "similar":
            return 3
    raise ValueError(f"no relevance category for {criteria}")
