"""Holding a ranking against judgments, collecting the families, and summarizing queries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest

from experiments import metrics
from experiments.metrics import Depths, GradedRanking, Unjudged, aggregate, grade_ranking, measure_query
from pipeline.candidates import Candidates
from pipeline.errors import UserError
from pipeline.papers import Paper, Query

DEPTHS = Depths(evaluate=10, recall=(5, 10))
NAMES = {
    "ac2",
    "judged_at_10",
    "map",
    "mrr",
    "ndcg_at_10",
    "ndcg_top_at_10",
    "precision_at_10",
    "precision_at_5",
    "recall_at_10",
    "recall_at_5",
}


def candidates(*paper_ids: str, **columns: list[str | None]) -> Candidates:
    table = Candidates(Query("q1", "a query"), tuple(Paper(paper_id) for paper_id in paper_ids))
    return table.with_columns(**{name: np.array(texts, dtype=object) for name, texts in columns.items()})


def test_unjudged_low_counts_as_grade_0() -> None:
    ranking = grade_ranking(candidates("a", "b", "c"), {"a": 3, "c": 1}, "low")
    assert ranking.grades.tolist() == [3, 0, 1]
    assert ranking.is_judged.tolist() == [True, False, True]


def test_unjudged_skip_leaves_the_paper_out_of_grades_and_categories() -> None:
    table = candidates("a", "b", "c", category=["highly relevant", "low relevance", "somewhat relevant"])
    ranking = grade_ranking(table, {"a": 3, "c": 2}, "skip")
    assert ranking.grades.tolist() == [3, 2]
    assert ranking.categories is not None
    assert ranking.categories.tolist() == [3, 1]
    assert ranking.is_judged.tolist() == [True, False, True]


def test_unjudged_error_names_query_and_first_unjudged_paper() -> None:
    with pytest.raises(UserError, match="query q1: paper b is ranked but not judged"):
        grade_ranking(candidates("a", "b", "c"), {"a": 3}, "error")


def test_unjudged_error_passes_where_all_are_judged() -> None:
    assert grade_ranking(candidates("a", "b"), {"a": 0, "b": 2}, "error").grades.tolist() == [0, 2]
    assert grade_ranking(candidates(), {"a": 0}, "error").grades.tolist() == []


def test_judged_holds_all_grades_of_the_query_descending() -> None:
    assert grade_ranking(candidates("a"), {"x": 0, "a": 1, "y": 3, "z": 1}, "low").judged.tolist() == [3, 1, 1, 0]


def test_category_comes_before_initial_category_and_falls_back_to_it_paper_by_paper() -> None:
    table = candidates(
        "a",
        "b",
        category=["moderately relevant", None],
        initial_category=["low relevance", "highly relevant"],
    )
    ranking = grade_ranking(table, {"a": 3, "b": 3}, "low")
    assert ranking.categories is not None
    assert ranking.categories.tolist() == [2, 3]


def test_paper_that_a_model_failed_on_has_no_category_and_one_it_was_not_asked_about_its_initial_one() -> None:
    table = candidates(
        "a",
        "b",
        "c",
        category=["moderately relevant", None, None],
        initial_category=["low relevance", "highly relevant", "highly relevant"],
        outcome=["graded", "refused", None],
    )
    ranking = grade_ranking(table, {"a": 3, "b": 3, "c": 3}, "low")
    assert ranking.categories is not None
    assert np.nan_to_num(ranking.categories, nan=-1).tolist() == [2, -1, 3]


def test_initial_category_alone_is_the_arms_category() -> None:
    ranking = grade_ranking(candidates("a", initial_category=["somewhat relevant"]), {"a": 3}, "low")
    assert ranking.categories is not None
    assert ranking.categories.tolist() == [1]


def test_paper_without_any_category_is_a_missing_rating_not_grade_0() -> None:
    ranking = grade_ranking(candidates("a", "b", category=[None, "low relevance"]), {"a": 0, "b": 0}, "low")
    assert ranking.categories is not None
    assert np.isnan(ranking.categories[0])
    assert ranking.categories[1] == 0


def test_arm_without_category_columns_has_no_categories_and_no_ac2() -> None:
    ranking = grade_ranking(candidates("a", "b"), {"a": 3, "b": 1}, "low")
    assert ranking.categories is None
    assert measure_query(ranking, DEPTHS)["ac2"] is None


def test_unknown_category_is_named() -> None:
    with pytest.raises(ValueError, match="'highly'"):
        grade_ranking(candidates("a", category=["highly"]), {"a": 3}, "low")


@pytest.mark.parametrize("unjudged", ["low", "skip", "error"])
def test_judged_query_that_returned_nothing_gets_0_for_every_metric(unjudged: Unjudged) -> None:
    ranking = grade_ranking(candidates(category=[]), {"a": 3, "b": 0}, unjudged)
    assert measure_query(ranking, DEPTHS) == dict.fromkeys(NAMES, 0.0)


def test_ranking_of_unjudged_papers_only_has_no_agreement_but_scores_0_elsewhere() -> None:
    table = candidates("x", "y", category=["low relevance", "low relevance"])
    values = measure_query(grade_ranking(table, {"a": 3}, "skip"), DEPTHS)
    assert values.pop("ac2") is None
    assert set(values.values()) == {0.0}


def test_every_family_is_measured_in_the_order_of_its_file_name() -> None:
    ranking = grade_ranking(candidates("a", "b"), {"a": 3, "b": 0}, "low")
    names = list(measure_query(ranking, DEPTHS))
    assert set(names) == NAMES
    assert [name.split("_")[0] for name in names] == [
        *("ac2", "judged", "ndcg", "ndcg", "recall", "recall", "precision", "precision", "map", "mrr")
    ]


FAMILY = "def measure(ranking, depths):\n    return {'%s': float(ranking.grades.sum())}\n"


def test_new_file_in_the_folder_adds_its_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "added_family.py").write_text(FAMILY % "grade_sum")
    monkeypatch.setattr(metrics, "__path__", [*metrics.__path__, str(tmp_path)])
    ranking = grade_ranking(candidates("a", "b"), {"a": 3, "b": 1}, "low")
    assert measure_query(ranking, DEPTHS)["grade_sum"] == 4.0


def test_two_families_may_not_measure_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "second_map.py").write_text(FAMILY % "map")
    monkeypatch.setattr(metrics, "__path__", [*metrics.__path__, str(tmp_path)])
    with pytest.raises(ValueError, match=r"second_map\.py measures map"):
        measure_query(grade_ranking(candidates("a"), {"a": 3}, "low"), DEPTHS)


def test_measuring_changes_no_input() -> None:
    table = candidates("a", "b", category=["low relevance", "highly relevant"])
    judgments = {"b": 1, "a": 3}
    ranking = grade_ranking(table, judgments, "low")
    arrays = [ranking.grades, ranking.is_judged, ranking.categories, ranking.judged]
    for array in arrays:
        assert array is not None
        array.setflags(write=False)
    measure_query(ranking, DEPTHS)
    assert list(judgments.items()) == [("b", 1), ("a", 3)]
    assert table.columns["category"].tolist() == ["low relevance", "highly relevant"]


def test_area_is_the_mean_of_its_queries_and_macro_the_mean_of_the_areas() -> None:
    per_query = {"q1": {"map": 0.1}, "q2": {"map": 0.5}, "q3": {"map": 0.9}, "q4": {"map": 0.2}, "q5": {"map": 0.4}}
    scores = aggregate(per_query, {"q1": "B", "q2": "B", "q3": "B", "q4": "A", "q5": "A"})
    assert scores.areas["B"]["map"] == pytest.approx((0.1 + 0.5 + 0.9) / 3)
    assert scores.areas["A"]["map"] == pytest.approx((0.2 + 0.4) / 2)
    assert scores.macro["map"] == pytest.approx((0.5 + 0.3) / 2)  # not 2.1 / 5


def test_sd_is_that_of_a_sample_and_macro_sd_the_mean_of_the_areas_sds() -> None:
    per_query = {"q1": {"map": 0.1}, "q2": {"map": 0.5}, "q3": {"map": 0.9}, "q4": {"map": 0.2}, "q5": {"map": 0.4}}
    scores = aggregate(per_query, {"q1": "B", "q2": "B", "q3": "B", "q4": "A", "q5": "A"})
    assert scores.areas_sd["B"]["map"] == pytest.approx(stdev([0.1, 0.5, 0.9]))
    assert scores.areas_sd["A"]["map"] == pytest.approx(stdev([0.2, 0.4]))
    assert scores.sd["map"] == pytest.approx(mean([stdev([0.1, 0.5, 0.9]), stdev([0.2, 0.4])]))


def test_area_of_one_query_has_no_sd_and_leaves_the_average_without_one() -> None:
    scores = aggregate({"q1": {"map": 0.1}, "q2": {"map": 0.5}, "q3": {"map": 0.9}}, {"q1": "A", "q2": "A", "q3": "B"})
    assert scores.areas_sd["B"]["map"] is None
    assert scores.areas_sd["A"]["map"] == pytest.approx(stdev([0.1, 0.5]))
    assert scores.sd["map"] is None  # the sd of one area is not that of the average


def test_one_query_in_all_has_no_sd_at_all() -> None:
    scores = aggregate({"q1": {"map": 0.1}}, {"q1": "A"})
    assert (scores.macro["map"], scores.sd["map"]) == (0.1, None)


def test_metric_without_a_value_for_any_query_stays_none() -> None:
    scores = aggregate({"q1": {"ac2": None}, "q2": {"ac2": None}}, {"q1": "A", "q2": "A"})
    assert (scores.areas["A"]["ac2"], scores.macro["ac2"], scores.sd["ac2"]) == (None, None, None)


def test_metric_without_a_value_for_one_query_is_the_mean_over_the_others() -> None:
    per_query: dict[str, dict[str, float | None]] = {"q1": {"ac2": 0.4}, "q2": {"ac2": None}, "q3": {"ac2": 0.6}}
    scores = aggregate({**per_query, "q4": {"ac2": None}}, {"q1": "A", "q2": "A", "q3": "A", "q4": "B"})
    assert scores.areas["A"]["ac2"] == pytest.approx((0.4 + 0.6) / 2)
    assert scores.areas["B"]["ac2"] is None
    assert scores.macro["ac2"] == pytest.approx(0.5)


def test_query_that_returned_nothing_stays_in_the_mean_as_0() -> None:  # pains.md, P32
    judgments = {"a": 3, "b": 1}
    perfect = measure_query(grade_ranking(candidates("a", "b"), judgments, "low"), DEPTHS)
    nothing = measure_query(grade_ranking(candidates(), judgments, "low"), DEPTHS)
    scores = aggregate({"q1": perfect, "q2": nothing, "q3": perfect}, dict.fromkeys(["q1", "q2", "q3"], "A"))
    assert scores.macro["ndcg_at_10"] == pytest.approx((1 + 0 + 1) / 3)


def test_areas_and_queries_keep_the_order_given() -> None:
    scores = aggregate({"q9": {"map": 0.1}, "q1": {"map": 0.2}, "q5": {"map": 0.3}}, {"q1": "B", "q9": "Z", "q5": "A"})
    assert list(scores.queries) == ["q9", "q1", "q5"]
    assert list(scores.areas) == ["Z", "B", "A"]


def test_query_without_an_area_is_an_error_that_names_it() -> None:
    with pytest.raises(KeyError, match="q2"):
        aggregate({"q1": {"map": 0.1}, "q2": {"map": 0.2}}, {"q1": "A"})


def test_importing_the_families_loads_nothing_heavy() -> None:
    families = "agreement, judged, ndcg, retrieval"
    program = (
        f"import sys; from experiments.metrics import {families}; import experiments.statistics;"
        "print([name for name in ('scipy', 'pandas', 'irrCAC') if name in sys.modules])"
    )
    environment = {"PYTHONPATH": str(Path(metrics.__path__[0]).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


def test_graded_ranking_is_frozen() -> None:
    ranking = grade_ranking(candidates("a"), {"a": 3}, "low")
    assert isinstance(ranking, GradedRanking)
    with pytest.raises(AttributeError):
        ranking.judged = np.array([1])  # type: ignore[misc]  # assigning is what must fail
