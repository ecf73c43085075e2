"""What the metrics could be: papers that the model failed on might have any grade.

Such a paper keeps its place by its initial category. The interval of a metric spans what it would be if the model had
graded it: every category is tried, with expected grades at the top and at the bottom of each. Where a query has so many
of these papers that there would be more than 256 cases, those with the same judgment are moved together, which can
make the interval a little too narrow.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.metrics import Depths, Unjudged, Values, grade_ranking, measure_query
from pipeline.candidates import Candidates
from pipeline.grading import grading_order
from pipeline.papers import CATEGORIES

_MOST_CASES = 256  # a query

#: A category, and where papers have expected grades the end of the category at which the paper would stand.
Verdict = tuple[str, float | None]


class Bounds(NamedTuple):
    """The least and the greatest values of the metrics of one query."""

    low: Values
    high: Values


def bounds(table: Candidates, judgments: Mapping[str, int], unjudged: Unjudged, depths: Depths) -> Bounds | None:
    """Return the bounds of every metric over the grades that ungraded papers might have; None where there are none."""
    failed = ungraded_positions(table)
    if not failed:
        return None
    cases = [table, *_possible_tables(table, failed, judgments)]
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


def _possible_tables(table: Candidates, failed: Sequence[int], judgments: Mapping[str, int]) -> Iterator[Candidates]:
    """Yield the table as it would be with every verdict on the papers at these positions."""
    verdicts: list[Verdict] = [(category, None) for category in CATEGORIES]
    if "expected_grade" in table.columns:
        verdicts = [(category, end) for category in CATEGORIES for end in (-np.inf, np.inf)]
    groups = [[position] for position in failed]
    if len(verdicts) ** len(groups) > _MOST_CASES:
        groups = _by_judgment(table, failed, judgments)
        verdicts = verdicts[: len(verdicts) : len(verdicts) // len(CATEGORIES)]  # one for each category
    for chosen in itertools.product(verdicts, repeat=len(groups)):
        yield _with_verdicts(table, [(i, v) for group, v in zip(groups, chosen, strict=True) for i in group])


def _by_judgment(table: Candidates, positions: Sequence[int], judgments: Mapping[str, int]) -> list[list[int]]:
    groups: dict[int | None, list[int]] = {}
    for position in positions:
        groups.setdefault(judgments.get(table.papers[position].paper_id), []).append(position)
    return list(groups.values())


def _with_verdicts(table: Candidates, given: Iterable[tuple[int, Verdict]]) -> Candidates:
    """Return the table as if the model had said this, in the order that follows."""
    columns = {name: table.columns[name].copy() for name in ("category", "expected_grade") if name in table.columns}
    for position, (category, expected) in given:
        columns["category"][position] = category
        if expected is not None:
            columns["expected_grade"][position] = expected
    changed = table.with_columns(**columns)
    return changed.take(grading_order(changed))
