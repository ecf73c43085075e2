"""Paired comparison of two arms: pairing, test, interval, and correction for many tests."""

from __future__ import annotations

import random as shuffling
from statistics import stdev

import numpy as np
import pytest
from scipy import stats

from experiments.statistics import compare, generator, holm, wilcoxon
from pipeline.errors import UserError

VALUES_A = {"q1": 0.5, "q2": 0.7, "q3": 0.9, "q4": 0.4, "q5": 0.6}
VALUES_B = {"q1": 0.4, "q2": 0.9, "q3": 0.6, "q4": 0.4, "q5": 0.2}
pytestmark = pytest.mark.filterwarnings("error")  # scipy warns where it goes astray
AREAS = {"q1": "A", "q2": "A", "q3": "A", "q4": "B", "q5": "B"}


def test_w_and_number_of_differing_pairs_by_hand() -> None:
    # Differences 0.1 -0.2 0.3 0 0.4: ranks 1 (2) 3 4 without the zero; W = min(1 + 3 + 4, 2).
    comparison = compare(VALUES_A, VALUES_B, AREAS, seed=1)
    assert (comparison.n_queries, comparison.n_nonzero, comparison.w) == (5, 4, 2.0)


def test_p_is_the_normal_approximation_without_continuity_correction() -> None:
    # n = 4, W = 2: mean 4*5/4 = 5, variance 4*5*9/24 = 7.5, z = (2 - 5) / sqrt(7.5).
    expected = 2 * stats.norm.cdf((2 - 5) / np.sqrt(7.5))
    assert compare(VALUES_A, VALUES_B, AREAS, seed=1).p_value == pytest.approx(expected)


def test_mean_difference_is_a_minus_b_and_every_area_counts_the_same() -> None:
    # Area A: (0.1 - 0.2 + 0.3) / 3; area B: (0 + 0.4) / 2.
    assert compare(VALUES_A, VALUES_B, AREAS, seed=1).mean_difference == pytest.approx((0.2 / 3 + 0.2) / 2)
    assert compare(VALUES_B, VALUES_A, AREAS, seed=1).mean_difference == pytest.approx(-(0.2 / 3 + 0.2) / 2)


def test_order_of_queries_does_not_matter() -> None:  # pains.md, R14
    random = np.random.default_rng(2)
    values_a = {f"q{i}": float(random.random()) for i in range(20)}
    values_b = {f"q{i}": float(random.random()) for i in range(20)}
    areas = {query_id: "AB"[i % 2] for i, query_id in enumerate(values_a)}
    before = compare(values_a, values_b, areas, seed=1)
    items_a, items_b = list(values_a.items()), list(values_b.items())
    for seed in range(5):
        shuffling.Random(seed).shuffle(items_a)
        shuffling.Random(seed + 100).shuffle(items_b)
        assert compare(dict(items_a), dict(items_b), areas, seed=1) == before


@pytest.mark.parametrize(("missing_in", "side"), [("b", "first"), ("a", "second")])
def test_query_that_one_arm_lacks_is_named(missing_in: str, side: str) -> None:
    short = {query_id: value for query_id, value in VALUES_A.items() if query_id != "q3"}
    pair = (VALUES_A, short) if missing_in == "b" else (short, VALUES_A)
    with pytest.raises(UserError, match=f"query q3 has a value in the {side} arm only"):
        compare(*pair, AREAS, seed=1)


def test_failed_arm_is_in_no_test() -> None:  # pains.md, R15
    with pytest.raises(UserError, match="query q1 "):
        compare(VALUES_A, {}, AREAS, seed=1)
    with pytest.raises(UserError, match="no query"):
        compare({}, {}, AREAS, seed=1)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_value_that_is_not_finite_is_named(value: float) -> None:
    with pytest.raises(UserError, match="query q2 has no finite value"):
        compare(VALUES_A, {**VALUES_B, "q2": value}, AREAS, seed=1)


def test_query_without_an_area_is_named() -> None:
    with pytest.raises(UserError, match="query q5 has no area"):
        compare(VALUES_A, VALUES_B, {"q1": "A", "q2": "A", "q3": "A", "q4": "B"}, seed=1)


def test_arm_against_itself_is_no_difference() -> None:  # pains.md, R13
    comparison = compare(VALUES_A, VALUES_A, AREAS, seed=1)
    assert (comparison.n_nonzero, comparison.w, comparison.p_value) == (0, 0.0, 1.0)
    assert (comparison.mean_difference, comparison.interval) == (0.0, (0.0, 0.0))
    assert str(comparison) == "no difference"


def test_float_noise_is_no_difference() -> None:  # pains.md, R13
    assert 0.1 + 0.2 != 0.3
    comparison = compare({"q1": 0.1 + 0.2, "q2": 0.5}, {"q1": 0.3, "q2": 0.4}, {"q1": "A", "q2": "A"}, seed=1)
    assert comparison.n_nonzero == 1


def test_equal_differences_share_their_rank_in_spite_of_float_noise() -> None:
    # 0.3 - 0.1, 0.8 - 0.6 and 0.5 - 0.7 differ in the last bits; equal, they all have rank 2, so W = 2.
    values_a, values_b = {"q1": 0.3, "q2": 0.8, "q3": 0.5}, {"q1": 0.1, "q2": 0.6, "q3": 0.7}
    assert compare(values_a, values_b, dict.fromkeys(values_a, "A"), seed=1).w == 2.0


def test_comparison_reads_as_one_line() -> None:
    line = str(compare(VALUES_A, VALUES_B, AREAS, seed=1))
    assert line.startswith("+0.133 [")
    assert line.endswith("W = 2, p = 0.273 (4 of 5 queries differ)")


def test_wilcoxon_drops_zeros_and_takes_the_smaller_rank_sum() -> None:
    assert wilcoxon([0.0, 0.1, -0.2, 0.0, -0.3])[:2] == (3, 1.0)
    assert wilcoxon([0.0, 0.0]) == (0, 0.0, 1.0)
    assert wilcoxon([]) == (0, 0.0, 1.0)


def test_interval_of_two_queries_by_hand() -> None:
    # Means of two draws from {0, 1} are 0, 1/2, 1 with probability 1/4, 1/2, 1/4: the percentiles are the ends, spread
    # around the mean 1/2 by sqrt(2 / (2 - 1)).
    comparison = compare({"q1": 1.0, "q2": 0.5}, {"q1": 0.0, "q2": 0.5}, {"q1": "A", "q2": "A"}, seed=1)
    assert comparison.interval == pytest.approx((0.5 - 0.5 * 2**0.5, 0.5 + 0.5 * 2**0.5))


def test_interval_of_five_areas_of_four_queries_is_as_wide_as_the_standard_error_says() -> None:
    values = {f"q{i}": ((7 * i) % 20) / 20 for i in range(20)}
    area_of = {query_id: f"area {i % 5}" for i, query_id in enumerate(values)}
    areas = [[v for q, v in values.items() if area_of[q] == area] for area in sorted(set(area_of.values()))]
    standard_error = (sum(stdev(area) ** 2 / 4 for area in areas)) ** 0.5 / 5
    comparison = compare(values, dict.fromkeys(values, 0.0), area_of, seed=1)
    assert comparison.interval is not None
    assert comparison.interval[1] - comparison.interval[0] == pytest.approx(2 * 1.96 * standard_error, rel=0.08)


def test_no_interval_where_an_area_has_a_single_query() -> None:
    values = {"q1": 0.1, "q2": 0.4, "q3": 0.2}
    comparison = compare(values, dict.fromkeys(values, 0.0), {"q1": "A", "q2": "A", "q3": "B"}, seed=1)
    assert comparison.interval is None


def test_interval_resamples_inside_the_areas_only() -> None:
    # Every query of A gains 1, every query of B nothing: mixing the areas would move the mean, so nothing moves.
    values_a = {"q1": 1.0, "q2": 1.0, "q3": 0.2, "q4": 0.3}
    values_b = {"q1": 0.0, "q2": 0.0, "q3": 0.2, "q4": 0.3}
    areas = {"q1": "A", "q2": "A", "q3": "B", "q4": "B"}
    assert compare(values_a, values_b, areas, seed=1).interval == (0.5, 0.5)


def test_interval_is_paired() -> None:
    # Queries differ much, arms by 0.25 on each: resampling the arms apart would give a wide interval.
    values_b = {f"q{i}": i / 8 for i in range(8)}
    values_a = {query_id: value + 0.25 for query_id, value in values_b.items()}
    assert compare(values_a, values_b, dict.fromkeys(values_a, "A"), seed=1).interval == (0.25, 0.25)


def test_interval_is_that_of_scipys_bootstrap() -> None:
    random = np.random.default_rng(11)
    differences = random.normal(0.1, 0.2, size=60)
    theirs = stats.bootstrap(
        (differences,), np.mean, n_resamples=10_000, method="percentile", random_state=np.random.default_rng(12)
    ).confidence_interval
    values_a = {f"q{i}": float(value) for i, value in enumerate(differences)}
    ours = compare(values_a, dict.fromkeys(values_a, 0.0), dict.fromkeys(values_a, "A"), seed=13).interval
    assert ours is not None
    assert ours[0] == pytest.approx(theirs.low, abs=0.004)
    assert ours[1] == pytest.approx(theirs.high, abs=0.004)


def test_areas_of_one_query_each_have_no_interval() -> None:
    comparison = compare({"q1": 1.0, "q2": 0.5}, {"q1": 0.0, "q2": 0.4}, {"q1": "A", "q2": "B"}, seed=1)
    assert comparison.interval is None
    assert "no interval" in str(comparison)


def test_same_seed_same_interval() -> None:
    values_a = {f"q{i}": float(value) for i, value in enumerate(np.random.default_rng(1).normal(size=20))}
    values_b, areas = dict.fromkeys(values_a, 0.0), dict.fromkeys(values_a, "A")
    first, again, other = (compare(values_a, values_b, areas, seed=seed).interval for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_generator_depends_on_seed_and_axes_and_on_nothing_else() -> None:
    def draw(seed: int, *axes: str) -> int:
        return int(generator(seed, *axes).integers(2**62))

    assert draw(1, "bootstrap", "CSE") == draw(1, "bootstrap", "CSE")
    assert len({draw(1, "bootstrap", "CSE"), draw(2, "bootstrap", "CSE"), draw(1, "bootstrap", "MHS"), draw(1)}) == 4
    assert draw(1, "a", "bc") != draw(1, "ab", "c")


def test_inputs_are_not_changed() -> None:
    values_a, values_b, areas = dict(VALUES_A), dict(VALUES_B), dict(AREAS)
    compare(values_a, values_b, areas, seed=1)
    assert (values_a, values_b, areas) == (VALUES_A, VALUES_B, AREAS)


def test_holm_by_hand_in_the_order_given() -> None:
    # Sorted 0.01 0.02 0.03 0.04 times 4 3 2 1 = 0.04 0.06 0.06 0.04; the last may not fall below those before it.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_holm_never_exceeds_1_and_leaves_a_single_p_alone() -> None:
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([0.03]) == [0.03]
    assert holm([]) == []
