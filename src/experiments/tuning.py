"""Honest tuning: settings are chosen on some queries and reported on others (holdout, cross-validation).

The best of many settings, measured on the queries it was chosen on, looks better than it is: choosing favours lucky
noise. Nothing is fitted within a setting, so the inner loop of a nested cross-validation is the mean over the
development queries. G. C. Cawley and N. L. C. Talbot, On over-fitting in model selection, 2010.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.config import Holdout, NestedCv, NoTuning, Tuning
from experiments.files import write_lines
from experiments.statistics import generator
from pipeline.errors import UserError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """Settings are chosen on the development queries and reported on the test queries, both by id."""

    development: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """One metric of many settings on the same queries, NaN where a query has no value."""

    values: Floats  #: shape (settings, queries)
    query_ids: Sequence[str]
    area_of: Mapping[str, str]
    baseline: int | None = None  #: the setting that others are held against, where it is among them

    def means(self, query_ids: Sequence[str] | None = None) -> Floats:
        """Return the mean of area means of each setting, over these queries or all; NaN where it has no value."""
        chosen = set(self.query_ids if query_ids is None else query_ids)
        of_area: dict[str, list[int]] = {}
        for i, query_id in enumerate(self.query_ids):
            if query_id in chosen:
                of_area.setdefault(self.area_of[query_id], []).append(i)
        return _mean(np.stack([_mean(self.values[:, columns]) for columns in of_area.values()], axis=1))

    def best(self, query_ids: Sequence[str] | None = None) -> int:
        """Return the setting with the highest mean; of equal ones the baseline, else the first."""
        means = np.nan_to_num(self.means(query_ids).round(12), nan=-np.inf)
        tied = np.flatnonzero(means == means.max())
        return self.baseline if self.baseline is not None and self.baseline in tied else int(tied[0])

    def of(self, setting: int, query_ids: Sequence[str] | None = None) -> dict[str, float]:
        """Return the values of one setting by query, without queries that have none."""
        chosen = set(self.query_ids if query_ids is None else query_ids)
        row = zip(self.query_ids, self.values[setting], strict=True)
        return {query_id: float(value) for query_id, value in row if query_id in chosen and not np.isnan(value)}


def _mean(values: Floats) -> Floats:
    """Return the mean over the last axis without NaN, NaN where there is nothing else."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(known, values, 0).sum(axis=-1) / known.sum(axis=-1)
    return means


@dataclass(frozen=True)
class Chosen:
    """The setting that was best on the development queries of a split, and what it is worth on the test queries."""

    split: Split
    setting: int
    development: float
    test: float
    baseline_test: float | None


def make_splits(tuning: Tuning, area_of: Mapping[str, str]) -> list[Split]:
    """Return how queries (id -> area) are split: one split of a holdout, one a fold; none without tuning.

    Stratified: every area is split by itself, its order drawn from the seed and the area's name, so that another query
    in one area leaves the others alone. Areas start at different folds, so that folds are of equal size.
    """
    if isinstance(tuning, NoTuning):
        return []
    areas: dict[str, list[str]] = {}
    for query_id in sorted(area_of):
        areas.setdefault(area_of[query_id], []).append(query_id)
    shuffled = {area: _shuffled(ids, tuning.seed, area) for area, ids in sorted(areas.items())}
    if isinstance(tuning, Holdout):
        return [_holdout(shuffled, tuning.share)]
    if tuning.folds > len(area_of):
        raise UserError(f"tuning.folds={tuning.folds}: expected at most {len(area_of)}, one a query")
    return _folds(shuffled, tuning)


def _shuffled(query_ids: Sequence[str], seed: int, area: str) -> list[str]:
    order = generator(seed, "splits", area).permutation(len(query_ids))
    return [query_ids[i] for i in order]


def _holdout(areas: Mapping[str, Sequence[str]], share: float) -> Split:
    development: list[str] = []
    taken, due = 0, 0.0
    for ids in areas.values():
        due += share * len(ids)  # what rounding leaves over is made up for in the next area
        n = min(len(ids), max(0, round(due) - taken))
        development += ids[:n]
        taken += n
    test = [query_id for ids in areas.values() for query_id in ids if query_id not in set(development)]
    if not development or not test:
        raise UserError(f"tuning.share={share:g}: {taken + len(test)} queries leave one side empty; give another share")
    return Split(tuple(sorted(development)), tuple(sorted(test)))


def _folds(areas: Mapping[str, Sequence[str]], tuning: NestedCv) -> list[Split]:
    folds: list[list[str]] = [[] for _ in range(tuning.folds)]
    start = 0
    for ids in areas.values():
        for i, query_id in enumerate(ids):
            folds[(start + i) % tuning.folds].append(query_id)
        start += len(ids)
    everything = [query_id for fold in folds for query_id in fold]
    return [Split(tuple(sorted(set(everything) - set(fold))), tuple(sorted(fold))) for fold in folds]


def write_splits(splits: Sequence[Split], path: Path) -> None:
    """Write which queries settings were chosen on and reported on."""
    write_lines(path, [json.dumps([asdict(split) for split in splits], indent=1, ensure_ascii=False)])


def choose(measured: Measured, splits: Sequence[Split]) -> list[Chosen]:
    """Return, for every split, the best setting of its development queries and its mean on the test queries."""
    chosen = []
    for split in splits:
        setting = measured.best(split.development)
        test = measured.means(split.test)
        baseline = None if measured.baseline is None else float(test[measured.baseline])
        development = float(measured.means(split.development)[setting])
        chosen.append(Chosen(split, setting, development, float(test[setting]), baseline))
    return chosen
