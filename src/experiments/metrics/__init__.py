"""Metrics hold rankings against judgments. Every module in this folder is a family of metrics.

A family is a function ``measure(ranking: GradedRanking, depths: Depths) -> dict[str, float | None]`` for one query; a
new file in this folder adds its metrics to every run. Names are legal in MLflow (``ndcg_at_10``, never ``@``).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pipeline.candidates import Candidates
from pipeline.errors import UserError
from pipeline.papers import CATEGORIES

#: What an unjudged paper counts for: nothing (left out of the list), grade 0, or an error.
Unjudged = Literal["skip", "low", "error"]

#: Metric name -> value; None where the metric has no value, which is never the same as 0.
#: Settings that say what a metric of one name is: where they differ, it is not the same.
DEFINING_METRICS = ("metrics.", "cutoffs.evaluate.")

Values = Mapping[str, float | None]


@dataclass(frozen=True)
class Depths:
    """Where lists are cut for measuring."""

    evaluate: int  #: the top of the list that people look at (the paper: 10)
    recall: tuple[int, ...]  #: depths for recall and precision, ascending
    min_grade: int = 1  #: a paper of at least this grade is relevant, for binary measures


@dataclass(frozen=True)
class GradedRanking:
    """One query's ranking, held against its judgments."""

    grades: npt.NDArray[np.int64]  #: grade of each ranked paper in rank order, shape (n,), after the unjudged rule
    is_judged: npt.NDArray[np.bool_]  #: whether the ranked paper has a judgment at all, shape (m,), before that rule
    categories: npt.NDArray[np.float64] | None  #: the arm's category of each paper in ``grades`` as a grade (NaN: none)
    judged: npt.NDArray[np.int64]  #: every grade that the query has, ranked or not, descending
    samples: npt.NDArray[np.float64] | None = None  #: grades of a model asked several times, shape (n, samples)


@dataclass(frozen=True)
class Scores:
    """Values per query, and their summaries as the paper makes them (tables 9, 15 and 16)."""

    queries: Mapping[str, Values]
    areas: Mapping[str, Values]  #: mean over the area's queries
    areas_sd: Mapping[str, Values]  #: sample standard deviation over the area's queries; None for fewer than two
    macro: Values  #: mean of the area means
    sd: Values  #: mean of the area standard deviations; None where an area with a mean has none

    def mean_and_sd(self, area: str | None, name: str) -> tuple[float | None, float | None]:
        """Return mean and standard deviation of a metric in an area, or of the average for ``None``."""
        means, sds = (self.macro, self.sd) if area is None else (self.areas[area], self.areas_sd[area])
        return means[name], sds[name]


def grade_ranking(candidates: Candidates, judgments: Mapping[str, int], unjudged: Unjudged) -> GradedRanking:
    """Hold one query's ranking against its judgments (paper id -> grade).

    The arm's category is the column ``category``, for a paper that no model was asked about ``initial_category``; an
    arm that has neither column has no categories. A paper that a model failed on has none: its rank counts, its initial
    category is not the model's. An empty table that has the column has empty categories.
    """
    paper_ids = [paper.paper_id for paper in candidates.papers]
    is_judged = np.array([paper_id in judgments for paper_id in paper_ids], dtype=np.bool_)
    if unjudged == "error" and not is_judged.all():
        raise UserError(
            f"query {candidates.query.query_id}: paper {paper_ids[int(np.argmin(is_judged))]} is ranked but not judged;"
            " judge it, or set metrics.unjudged to low (grade 0) or skip (left out)"
        )
    kept = is_judged if unjudged == "skip" else np.ones_like(is_judged)
    grades = np.array([judgments.get(paper_id, 0) for paper_id in paper_ids], dtype=np.int64)
    categories, samples = _categories(candidates), _samples(candidates)
    return GradedRanking(
        grades=grades[kept],
        is_judged=is_judged,
        categories=None if categories is None else categories[kept],
        judged=np.array(sorted(judgments.values(), reverse=True), dtype=np.int64),
        samples=None if samples is None else samples[kept],
    )


def _categories(candidates: Candidates) -> npt.NDArray[np.float64] | None:
    columns = [candidates.columns[name] for name in ("category", "initial_category") if name in candidates.columns]
    if not columns:
        return None
    given = [next((text for text in texts if text is not None), None) for texts in zip(*columns, strict=True)]
    if "outcome" in candidates.columns:
        asked = candidates.columns["outcome"] != np.array(None)
        given = [c if a else g for g, c, a in zip(given, candidates.columns["category"], asked, strict=True)]
    return np.array([np.nan if text is None else _grade_of(text) for text in given], dtype=np.float64)


def _samples(candidates: Candidates) -> npt.NDArray[np.float64] | None:
    """Return the grades of every sample; papers that the model was not asked about have none."""
    if "samples" not in candidates.columns:
        return None
    given = [entry or [] for entry in candidates.columns["samples"]]
    n_samples = max((len(entry) for entry in given), default=0)
    table = np.full((len(given), n_samples), np.nan)
    for row, entry in zip(table, given, strict=True):
        row[: len(entry)] = [np.nan if text is None else _grade_of(text) for text in entry]
    return table


def _grade_of(category: str) -> int:
    if category not in CATEGORIES:
        raise ValueError(f"unknown category {category!r}; expected one of {', '.join(CATEGORIES)}")
    return CATEGORIES.index(category)


def measure_query(ranking: GradedRanking, depths: Depths) -> dict[str, float | None]:
    """Return the metrics of every family in this folder, families in the order of their file names."""
    values: dict[str, float | None] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        measure: Callable[[GradedRanking, Depths], dict[str, float | None]]
        measure = importlib.import_module(f"{__name__}.{name}").measure
        found = measure(ranking, depths)
        if again := sorted(values.keys() & found.keys()):
            raise ValueError(f"metrics/{name}.py measures {', '.join(again)}, which another family measures already")
        values |= found
    return values


def metric_names(depths: Depths) -> list[str]:
    """Return the names of the metrics that any run with these depths has."""
    nothing = np.array([], dtype=np.int64)
    empty = GradedRanking(nothing, nothing.astype(np.bool_), categories=None, judged=nothing)
    return list(measure_query(empty, depths))


def aggregate(per_query: Mapping[str, Values], area_of: Mapping[str, str]) -> Scores:
    """Summarize query -> metrics per area and over all areas, where every area counts the same (the paper, 5.2.2).

    Every query that is given counts; a metric that is None for some queries is summarized over the others.
    """
    names = dict.fromkeys(name for values in per_query.values() for name in values)
    members: dict[str, list[Values]] = {}
    for query_id, values in per_query.items():
        members.setdefault(area_of[query_id], []).append(values)
    areas = {area: _summarize(rows, names, _mean) for area, rows in members.items()}
    areas_sd = {area: _summarize(rows, names, _sd) for area, rows in members.items()}
    return Scores(
        queries=dict(per_query),
        areas=areas,
        areas_sd=areas_sd,
        macro=_summarize(areas.values(), names, _mean),
        sd={name: _mean_sd(name, areas, areas_sd) for name in names},
    )


def _summarize(
    rows: Iterable[Values], names: Iterable[str], summary: Callable[[list[float]], float | None]
) -> dict[str, float | None]:
    table = list(rows)
    return {name: summary([value for row in table if (value := row.get(name)) is not None]) for name in names}


def _mean_sd(name: str, areas: Mapping[str, Values], areas_sd: Mapping[str, Values]) -> float | None:
    sds = [areas_sd[area][name] for area, means in areas.items() if means[name] is not None]
    known = [sd for sd in sds if sd is not None]
    return _mean(known) if len(known) == len(sds) else None


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _sd(values: list[float]) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None
