"""The paper's own averages, relative gains and p-values from its own tables (tables 9, 15 and 16; 5.2.2, 5.2.3)."""

from __future__ import annotations

from math import sqrt

import pytest

from experiments.metrics import Scores, aggregate
from experiments.statistics import compare

AREAS = ("CSE", "MHS", "MNS", "EM", "LSH")

#: column -> (mean, standard deviation) of each area in the order of AREAS, then the printed Average row.
TABLES = {
    "AC2, MPNet": ([(0.606, 0.087), (0.702, 0.304), (0.531, 0.346), (0.716, 0.143), (0.529, 0.271)], (0.617, 0.230)),
    "AC2, BM25 + MPNet": (
        [(0.714, 0.153), (0.799, 0.171), (0.472, 0.401), (0.871, 0.074), (0.791, 0.171)],
        (0.729, 0.194),
    ),
    "AC2, BM25 + MPNet + LLM": (
        [(0.791, 0.186), (0.904, 0.065), (0.681, 0.239), (0.878, 0.114), (0.811, 0.111)],
        (0.813, 0.143),
    ),
    "NDCG, MPNet": ([(0.776, 0.139), (0.944, 0.047), (0.865, 0.023), (0.862, 0.092), (0.814, 0.075)], (0.852, 0.075)),
    "NDCG, BM25 + MPNet": (
        [(0.849, 0.155), (0.960, 0.052), (0.921, 0.072), (0.900, 0.058), (0.932, 0.054)],
        (0.912, 0.078),
    ),
    "NDCG, BM25 + MPNet + LLM": (
        [(0.959, 0.029), (0.971, 0.040), (0.978, 0.017), (0.922, 0.084), (0.908, 0.065)],
        (0.948, 0.047),
    ),
    "AC2, experts (table 9)": (
        [(0.932, 0.047), (0.909, 0.102), (0.863, 0.112), (0.892, 0.025), (0.912, 0.068)],
        (0.902, 0.071),
    ),
    "NDCG, cross-encoder (table 16)": (
        [(0.880, 0.110), (0.870, 0.060), (0.970, 0.030), (0.890, 0.100), (0.930, 0.120)],
        (0.908, 0.084),
    ),
}


def scores_of(areas: list[tuple[float, float]]) -> Scores:
    """Aggregate four queries an area that have the area's mean and sample standard deviation.

    Two values at mean - d and two at mean + d have the sample variance 4 d^2 / 3.
    """
    per_query: dict[str, dict[str, float | None]] = {}
    for area, (mean, sd) in zip(AREAS, areas, strict=True):
        d = sd * sqrt(3) / 2
        for i, value in enumerate([mean - d, mean + d, mean - d, mean + d]):
            per_query[f"{area} {i}"] = {"value": value}
    return aggregate(per_query, {query_id: query_id.split()[0] for query_id in per_query})


@pytest.mark.parametrize("column", TABLES)
def test_average_row_is_the_mean_of_area_means_and_the_mean_of_area_sds(column: str) -> None:
    areas, (average, sd) = TABLES[column]
    scores = scores_of(areas)
    assert scores.macro["value"] == pytest.approx(average, abs=5e-4)
    assert scores.sd["value"] == pytest.approx(sd, abs=5e-4)
    for area, (area_mean, area_sd) in zip(AREAS, areas, strict=True):
        assert scores.areas[area]["value"] == pytest.approx(area_mean)
        assert scores.areas_sd[area]["value"] == pytest.approx(area_sd)


@pytest.mark.parametrize(("metric", "gain_percent"), [("AC2", 31.77), ("NDCG", 11.27)])
def test_relative_gain_follows_from_the_printed_averages(metric: str, gain_percent: float) -> None:
    arms = (f"{metric}, MPNet", f"{metric}, BM25 + MPNet + LLM")
    before, after = (round(scores_of(TABLES[arm][0]).macro["value"] or 0, 3) for arm in arms)
    assert round(100 * (after - before) / before, 2) == gain_percent


@pytest.mark.parametrize(
    ("n_nonzero", "negative_ranks", "w", "p_value"),
    [(18, {4}, 4, 0.000386), (18, {1, 3}, 4, 0.000386), (19, {11}, 11, 0.000724), (19, {2, 3, 6}, 11, 0.000724)],
)
def test_wilcoxon_of_twenty_queries(n_nonzero: int, negative_ranks: set[int], w: float, p_value: float) -> None:
    # The difference of rank r is r / 100, against the new system where r is a negative rank; the other queries tie.
    previous = {f"q{rank}": 0.5 for rank in range(1, 21)}
    enhanced = dict(previous)
    for rank in range(1, n_nonzero + 1):
        enhanced[f"q{rank}"] += (-1 if rank in negative_ranks else 1) * rank / 100
    comparison = compare(enhanced, previous, dict.fromkeys(previous, "all"), seed=42)
    assert (comparison.n_queries, comparison.n_nonzero, comparison.w) == (20, n_nonzero, w)
    assert round(comparison.p_value, 6) == p_value
