"""Settings are chosen on some queries and reported on others, and a choice made in sample is said to be one."""

import numpy as np
import pytest

from experiments.config import Holdout, NestedCv, NoTuning
from experiments.tuning import Measured, Split, choose, make_splits
from experiments.verdict import judge_settings
from pipeline.errors import UserError

AREAS = {f"{area}{i}": area for area, n in (("a", 7), ("b", 5), ("c", 4)) for i in range(n)}
CV = NestedCv(method="nested_cv", folds=5, seed=42)
HALF = Holdout(method="holdout", share=0.5, seed=42)


def test_every_query_is_in_the_test_of_exactly_one_fold():
    splits = make_splits(CV, AREAS)
    assert sorted(q for split in splits for q in split.test) == sorted(AREAS)
    for split in splits:
        assert set(split.development) == set(AREAS) - set(split.test)
    assert sorted(len(split.test) for split in splits) == [3, 3, 3, 3, 4]  # 16 queries, 5 folds


def test_folds_hold_areas_in_equal_shares():
    for area, n in (("a", 7), ("b", 5), ("c", 4)):
        of_folds = [sum(AREAS[q] == area for q in split.test) for split in make_splits(CV, AREAS)]
        assert sum(of_folds) == n
        assert max(of_folds) - min(of_folds) <= 1


def test_a_holdout_takes_its_share_of_every_area():
    (split,) = make_splits(HALF, AREAS)
    assert [sum(AREAS[q] == area for q in split.development) for area in "abc"] == [4, 2, 2]  # 3.5, 2.5 and 2
    assert sorted([*split.development, *split.test]) == sorted(AREAS)


@pytest.mark.parametrize("tuning", [CV, HALF])
def test_the_seed_decides(tuning):
    assert make_splits(tuning, AREAS) == make_splits(tuning, dict(reversed(AREAS.items())))
    assert make_splits(tuning, AREAS) != make_splits(tuning.model_copy(update={"seed": 1}), AREAS)


def test_another_query_in_one_area_leaves_the_order_of_the_others_alone():
    more = AREAS | {"c9": "c"}
    before, after = make_splits(CV, AREAS), make_splits(CV, more)
    for one, other in zip(before, after, strict=True):
        assert [q for q in one.test if AREAS[q] != "c"] == [q for q in other.test if more[q] != "c"]


@pytest.mark.parametrize(
    ("tuning", "areas", "line"),
    [(CV, {"q1": "a", "q2": "a"}, "tuning.folds=5: expected at most 2"), (HALF, {"q1": "a"}, "tuning.share=0.5")],
)
def test_too_few_queries_are_refused(tuning, areas, line):
    with pytest.raises(UserError, match=line):
        make_splits(tuning, areas)


VALUES = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.5, np.nan], [0.4, 0.4, 0.4, 0.4]])
FOUR = Measured(VALUES, ["q1", "q2", "q3", "q4"], {"q1": "a", "q2": "a", "q3": "b", "q4": "b"}, baseline=2)


def test_means_are_of_area_means_without_missing_values():
    # a: (1 + 0) / 2 and b: 0 -> 0.25;  a: (0 + 0.5) / 2 and b: 0.5 -> 0.375;  0.4
    assert FOUR.means() == pytest.approx([0.25, 0.375, 0.4])
    assert FOUR.means(["q4"])[1:] == pytest.approx([np.nan, 0.4], nan_ok=True)


def test_the_best_setting_is_chosen_without_the_test_queries():
    (chosen,) = choose(FOUR, [Split(("q2", "q3"), ("q1", "q4"))])
    assert chosen.setting == 1  # 0.5 on q2 and q3, against 0 and 0.4
    assert chosen.development == pytest.approx(0.5)
    assert chosen.test == pytest.approx(0.0)  # q1 alone: q4 has no value
    assert chosen.baseline_test == pytest.approx(0.4)


def test_of_equal_settings_the_baseline_is_chosen():
    values = np.array([[0.4, 0.4], [0.4, 0.4], [0.4, 0.4]])
    assert Measured(values, ["q1", "q2"], {"q1": "a", "q2": "a"}, baseline=1).best() == 1
    assert Measured(values, ["q1", "q2"], {"q1": "a", "q2": "a"}).best() == 0


def noise() -> Measured:
    """500 settings that are all equally good: what differs is chance."""
    values = np.random.default_rng(0).uniform(size=(500, 40))
    areas = {f"q{i}": "ab"[i % 2] for i in range(40)}
    return Measured(values, list(areas), areas, baseline=0)


def test_the_best_of_noise_looks_good_in_sample_and_not_on_other_queries():
    verdict = judge_settings(noise(), str, CV, "ndcg_at_10")
    assert verdict.metrics["best_in_sample"] > 0.6  # of a uniform number: 0.5, spread over 40 queries 0.046
    assert verdict.metrics["held_out"] < 0.58
    assert verdict.against_baseline.interval[0] < 0.1


def test_held_out_values_are_of_settings_chosen_without_the_query():
    measured = noise()
    verdict = judge_settings(measured, str, CV, "ndcg_at_10")
    for chosen in verdict.chosen:
        means = measured.means(chosen.split.development)
        assert chosen.setting == int(np.argmax(means))
        for query_id in chosen.split.test:
            column = measured.query_ids.index(query_id)
            assert verdict.held_out[query_id] == measured.values[chosen.setting, column]


def test_a_choice_in_sample_is_said_in_red_on_a_terminal():
    verdict = judge_settings(noise(), str, NoTuning(method="none"), "ndcg_at_10")
    assert verdict.lines(is_terminal=True)[-1].startswith("\x1b[31mThis setting was chosen on the queries")
    assert verdict.lines(is_terminal=False)[-1].startswith("**This setting was chosen on the queries")
    assert "chosen on the queries it is measured on" not in " ".join(
        judge_settings(noise(), str, CV, "ndcg_at_10").lines(is_terminal=False)
    )
