"""Whether two arms differ: a paired Wilcoxon test, a bootstrap interval, and Holm's correction for many tests."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.errors import UserError

RESAMPLES = 10_000
CONFIDENCE = 0.95

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """One metric of two arms on the same queries, differences taken as a - b."""

    n_queries: int
    n_nonzero: int  #: pairs that differ; only they enter the test
    w: float  #: Wilcoxon's W, the smaller of the two rank sums; 0 where nothing differs
    p_value: float  #: two-sided, from the normal approximation; 1 where nothing differs
    mean_difference: float  #: mean of the area means
    interval: tuple[float, float] | None  #: 95% bootstrap interval of it; None where an area has a single query

    def __str__(self) -> str:
        if self.n_nonzero == 0:
            return "no difference"
        bounds = "no interval" if self.interval is None else f"[{self.interval[0]:+.3f}, {self.interval[1]:+.3f}]"
        return (
            f"{self.mean_difference:+.3f} {bounds}, W = {self.w:g}, p = {self.p_value:.3g}"
            f" ({self.n_nonzero} of {self.n_queries} queries differ)"
        )


def compare(
    values_a: Mapping[str, float], values_b: Mapping[str, float], area_of: Mapping[str, str], *, seed: int
) -> Comparison:
    """Compare one metric of two arms, query id -> value, paired by query id whatever the order.

    The p-value of fewer than ten differing pairs is rough. There is no interval where an area has a single query.
    """
    differences = _differences(values_a, values_b)
    areas = _by_area(differences, area_of)
    n_nonzero, w, p_value = wilcoxon(list(differences.values()))
    return Comparison(
        n_queries=len(differences),
        n_nonzero=n_nonzero,
        w=w,
        p_value=p_value,
        mean_difference=float(np.mean([values.mean() for values in areas.values()])),
        interval=_bootstrap_interval(areas, seed),
    )


def compare_shared(
    values_a: Mapping[str, float], values_b: Mapping[str, float], area_of: Mapping[str, str], *, seed: int
) -> Comparison | None:
    """Compare on the queries that have a value in both; None where there is none."""
    ours, theirs = _on_shared(values_a, values_b)
    return compare(ours, theirs, area_of, seed=seed) if ours else None


def p_value_shared(values_a: Mapping[str, float], values_b: Mapping[str, float]) -> float | None:
    """Return the p-value of ``compare_shared`` alone, which takes no bootstrap."""
    ours, theirs = _on_shared(values_a, values_b)
    return wilcoxon(list(_differences(ours, theirs).values()))[2] if ours else None


def _on_shared(
    values_a: Mapping[str, float], values_b: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    both = values_a.keys() & values_b.keys()
    return {q: values_a[q] for q in both}, {q: values_b[q] for q in both}


def wilcoxon(differences: Sequence[float]) -> tuple[int, float, float]:
    """Return the number of non-zero differences, W, and the two-sided p-value of Wilcoxon's signed-rank test.

    Zeros are dropped; p is the normal approximation without continuity correction, as in the paper (5.2.2, 5.2.3).
    """
    n_nonzero = int(np.count_nonzero(differences))
    if n_nonzero == 0:  # scipy divides by zero here (scipy/scipy#20179)
        return 0, 0.0, 1.0
    from scipy import stats

    with warnings.catch_warnings():  # a small sample is reported as n_nonzero, beside the p-value
        warnings.filterwarnings("ignore", message="Sample size too small for normal approximation")
        result = stats.wilcoxon(list(differences), zero_method="wilcox", correction=False, method="approx")
    return n_nonzero, float(result.statistic), float(result.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for their number by Holm's step-down method, in the order given.

    S. Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for n_before, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - n_before) * p_values[i]))
        adjusted[i] = largest
    return adjusted


@dataclass(frozen=True)
class EffectSize:
    """How large paired differences are, whatever their number."""

    rank_biserial: float  #: -1 to 1; 0 where nothing differs
    cohen_d: float | None  #: None where the differences do not vary


def effect_size(differences: Sequence[float]) -> EffectSize:
    """Return the matched-pairs rank-biserial correlation and Cohen's d of the differences (d_z).

    The first is the sum of the ranks of positive differences less that of negative ones, over the sum of all, zeros
    dropped (D. S. Kerby, The simple difference formula, 2014); the second their mean over their sample standard
    deviation (J. Cohen, Statistical Power Analysis, 2nd ed., 1988, section 2.3.5).
    """
    from scipy import stats

    values = np.array(differences, dtype=np.float64)
    nonzero = values[values != 0]
    ranks = stats.rankdata(np.abs(nonzero))
    biserial = float((ranks * np.sign(nonzero)).sum() / ranks.sum()) if len(nonzero) else 0.0
    sd = values.std(ddof=1) if len(values) > 1 else 0.0
    return EffectSize(biserial, float(values.mean() / sd) if sd > 1e-12 else None)


def generator(seed: int, *axes: str) -> np.random.Generator:
    """Return random numbers for a seed and named axes, so that a new area, say, leaves those of the others alone."""
    key = hashlib.sha256(json.dumps([seed, *axes]).encode()).digest()
    return np.random.default_rng(int.from_bytes(key, "big"))


def _differences(values_a: Mapping[str, float], values_b: Mapping[str, float]) -> dict[str, float]:
    """Return query id -> a - b in the order of the ids, rounded so that float noise is no difference."""
    if unpaired := sorted(values_a.keys() ^ values_b.keys()):
        side = "first" if unpaired[0] in values_a else "second"
        raise UserError(
            f"query {unpaired[0]} has a value in the {side} arm only ({len(unpaired)} such queries);"
            " compare arms that were run and measured on the same queries"
        )
    if not values_a:
        raise UserError("there is no query to compare; both arms are without values")
    differences = {query_id: round(values_a[query_id] - values_b[query_id], 12) for query_id in sorted(values_a)}
    for query_id, difference in differences.items():
        if not np.isfinite(difference):
            raise UserError(f"query {query_id} has no finite value in both arms; leave it out of the comparison")
    return differences


def _by_area(differences: Mapping[str, float], area_of: Mapping[str, str]) -> dict[str, Floats]:
    areas: dict[str, list[float]] = {}
    for query_id, difference in differences.items():
        if query_id not in area_of:
            raise UserError(f"query {query_id} has no area; give every query of the comparison one")
        areas.setdefault(area_of[query_id], []).append(difference)
    return {area: np.array(values) for area, values in areas.items()}


def _bootstrap_interval(areas: Mapping[str, Floats], seed: int) -> tuple[float, float] | None:
    """Resample the differences inside each area and return the percentile interval of the mean of area means."""
    if any(len(values) < 2 for values in areas.values()):
        return None
    means = [_resampled_means(values, generator(seed, "bootstrap", area)) for area, values in areas.items()]
    lower, upper = np.quantile(np.mean(means, axis=0), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(lower), float(upper)


def _resampled_means(values: Floats, random: np.random.Generator) -> Floats:
    """Return means of resampled values, spread by sqrt(n / (n - 1)).

    Resampling n values alone understates their variance by (n - 1) / n, which is a quarter in an area of four queries.
    J. N. K. Rao and C. F. J. Wu, Resampling inference with complex survey data, 1988.
    """
    n = len(values)
    means = values[random.integers(n, size=(RESAMPLES, n))].mean(axis=1)
    spread: Floats = values.mean() + np.sqrt(n / (n - 1)) * (means - values.mean())
    return spread
