"""Categories of expected grades, cut at thresholds that are learned from the judgments of other queries only.

Cross-fitting: the queries are dealt into folds, and the thresholds for the queries of a fold are learned on those of
all others. No judgment of a query has a say in its own categories, and no judgment has one in any order of papers: an
expected grade orders papers whatever the thresholds are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from experiments.judgments import GRADES, Judgments
from pipeline.candidates import Candidates
from pipeline.grading import Thresholds, category_of


@dataclass(frozen=True)
class Calibrated:
    """Rankings with their categories renewed, and the thresholds that did it."""

    rankings: list[Candidates]
    thresholds: Mapping[str, Thresholds]  #: query id -> thresholds; empty where no expected grades are


def cross_fit(rankings: Sequence[Candidates], judgments: Judgments, n_folds: int) -> Calibrated:
    """Return the rankings with ``category`` from learned thresholds, for papers that have an expected grade.

    Query i is in fold i modulo ``n_folds``. The stage's own categories stay where ``n_folds`` is 0, and where the other
    folds hold no judged paper.
    """
    renewed = list(rankings)
    learned: dict[str, Thresholds] = {}
    for fold in range(n_folds):
        others = [table for i, table in enumerate(rankings) if i % n_folds != fold]
        expected, grades = _judged_pairs(others, judgments)
        if not len(grades):
            continue
        thresholds = learn_thresholds(expected, grades)
        for i in range(fold, len(rankings), n_folds):
            if "expected_grade" in rankings[i].columns:
                renewed[i] = _categorized(rankings[i], thresholds)
                learned[rankings[i].query.query_id] = thresholds
    return Calibrated(renewed, {q: learned[q] for table in rankings if (q := table.query.query_id) in learned})


def _judged_pairs(
    tables: Sequence[Candidates], judgments: Judgments
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    pairs = [
        (expected, judgments[table.query.query_id][paper.paper_id])
        for table in tables
        if "expected_grade" in table.columns
        for paper, expected in zip(table.papers, table.columns["expected_grade"], strict=True)
        if not np.isnan(expected) and paper.paper_id in judgments[table.query.query_id]
    ]
    expected, grades = zip(*pairs, strict=True) if pairs else ((), ())
    return np.array(expected, dtype=np.float64), np.array(grades, dtype=np.int64)


def learn_thresholds(expected: npt.NDArray[np.float64], grades: npt.NDArray[np.int64]) -> Thresholds:
    """Return the thresholds with the least sum of |category - grade|, the distance that AC2's linear weights count.

    Both arrays have shape (n,), n > 0. A threshold lies halfway between two neighbouring values; of equally good ones
    the lowest is taken.
    """
    values = np.unique(expected)
    cuts = np.array([0.0, *(values[:-1] + values[1:]) / 2, values[-1] + 1])  # below all, between, above all
    # loss[k, g]: what it costs to call everything in [cuts[k], cuts[k + 1]) grade g
    bins = np.searchsorted(values, expected)
    loss = np.zeros((len(values), len(GRADES)))
    np.add.at(loss, bins, np.abs(np.array(GRADES) - grades[:, None]))
    below = np.vstack([np.zeros(len(GRADES)), loss.cumsum(axis=0)])  # of everything below cuts[k]
    best, chosen = below[:, 0], []
    for grade in GRADES[1:]:  # best[k]: the least cost of everything below cuts[k] with categories up to grade
        gain = best - below[:, grade]
        lowest = np.minimum.accumulate(gain)
        is_new = np.r_[True, lowest[1:] < lowest[:-1]]  # where each lowest value is reached for the first time
        chosen.append(np.maximum.accumulate(np.where(is_new, np.arange(len(gain)), 0)))
        best = lowest + below[:, grade]
    ends = [len(values)]
    for starts in reversed(chosen):
        ends.append(int(starts[ends[-1]]))
    somewhat, moderately, highly = (float(cuts[k]) for k in reversed(ends[1:]))
    return somewhat, moderately, highly


def _categorized(table: Candidates, thresholds: Thresholds) -> Candidates:
    categories = [
        category if np.isnan(expected) else category_of(expected, thresholds)
        for category, expected in zip(table.columns["category"], table.columns["expected_grade"], strict=True)
    ]
    return table.with_columns(category=np.array(categories, dtype=object))
