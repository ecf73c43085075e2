"""What the metrics could be: papers that the model failed on might have any grade.

Such a paper keeps its place by its initial category. The interval of a metric spans what it would be if the model had
graded it: every grade is tried. Papers of a query that have the same judgment are moved together, which keeps this at
256 cases a query at most.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.judgments import GRADES
from experiments.metrics import Depths, Unjudged, Values, grade_ranking, measure_query
from pipeline.candidates import Candidates
from pipeline.grading import grading_order
from pipeline.papers import CATEGORIES


class Bounds(NamedTuple):
    """The least and the greatest values of the metrics of one query."""

    low: Values
    high: Values


def bounds(table: Candidates, judgments: Mapping[str, int], unjudged: Unjudged, depths: Depths) -> Bounds | None:
    """Return the bounds of every metric over the grades that ungraded papers might have; None where there are none."""
    failed = ungraded_positions(table)
    if not failed:
        return None
    groups: dict[int | None, list[int]] = {}
    for position in failed:
        groups.setdefault(judgments.get(table.papers[position].paper_id), []).append(position)
    cases = [table] + [
        _with_grades(table, dict(zip(groups, grades, strict=True)), groups)
        for grades in itertools.product(GRADES, repeat=len(groups))
    ]
    measured = [measure_query(grade_ranking(case, judgments, unjudged), depths) for case in cases]
    known = {name: [v for values in measured if (v := values[name]) is not None] for name in measured[0]}
    return Bounds(
        low={name: min(values, default=None) for name, values in known.items()},
        high={name: max(values, default=None) for name, values in known.items()},
    )


def ungraded_positions(table: Candidates) -> list[int]:
    """Return where the papers are that the model was asked about and gave no category to."""
    if "outcome" not in table.columns:
        return []
    pairs = zip(table.columns["outcome"], table.columns["category"], strict=True)
    return [i for i, (outcome, category) in enumerate(pairs) if outcome is not None and category is None]


def _with_grades(
    table: Candidates, grades: Mapping[int | None, int], groups: Mapping[int | None, Sequence[int]]
) -> Candidates:
    """Return the table as if the model had given these grades, in the order that follows."""
    category = table.columns["category"].copy()
    expected = table.columns.get("expected_grade", np.full(len(table), np.nan)).copy()
    for judgment, grade in grades.items():
        for position in groups[judgment]:
            category[position], expected[position] = CATEGORIES[grade], float(grade)
    changed = {"category": category} | ({"expected_grade": expected} if "expected_grade" in table.columns else {})
    table = table.with_columns(**changed)
    return table.take(grading_order(table))
