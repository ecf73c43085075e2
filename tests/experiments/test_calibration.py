"""Thresholds of expected grades are the best there are, and no query has a say in its own."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.calibration import cross_fit, learn_thresholds
from experiments.judgments import Judgments
from pipeline.candidates import Candidates
from pipeline.grading import category_of
from pipeline.papers import CATEGORIES, Paper, Query

LOW, SOMEWHAT, MODERATELY, HIGHLY = CATEGORIES


def loss(thresholds, expected, grades):
    called = [CATEGORIES.index(category_of(value, thresholds)) for value in expected]
    return sum(abs(c - g) for c, g in zip(called, grades, strict=True))


def test_thresholds_lie_between_the_values_of_neighbouring_grades():
    # 0.2 and 0.4 are graded 0 and 1: halfway is 0.3; then (0.4 + 1) / 2 = 0.7 and (1 + 2) / 2 = 1.5
    assert learn_thresholds(np.array([0.2, 0.4, 1.0, 2.0]), np.array([0, 1, 2, 3])) == pytest.approx((0.3, 0.7, 1.5))


def test_a_grade_that_never_occurs_takes_no_values():
    thresholds = learn_thresholds(np.array([1.0, 2.0]), np.array([0, 3]))
    assert [category_of(value, thresholds) for value in (1.0, 2.0)] == [LOW, HIGHLY]


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.1, 1.7, 2.2, 3.0]), st.integers(0, 3)), min_size=1, max_size=12))
def test_no_other_thresholds_are_closer_to_the_grades(pairs):
    expected, grades = (np.array(column) for column in zip(*pairs, strict=True))
    cuts = [-1.0, 0.25, 0.8, 1.4, 2.0, 2.6, 4.0]
    best = min(loss(triple, expected, grades) for triple in itertools.combinations_with_replacement(cuts, 3))
    learned = learn_thresholds(expected.astype(float), grades)
    assert list(learned) == sorted(learned)
    assert loss(learned, expected, grades) == best


def table(query_id, *expected):
    papers = tuple(Paper(f"{query_id}-{i}") for i in range(len(expected)))
    return Candidates(Query(query_id, "x"), papers).with_columns(
        expected_grade=np.array(expected), category=np.array([MODERATELY] * len(expected), dtype=object)
    )


def test_a_query_has_no_say_in_its_own_thresholds():
    tables = [table("a", 1.0, 2.0), table("b", 1.0, 2.0)]
    others = {"b-0": 0, "b-1": 3}
    for own in ({"a-0": 3, "a-1": 0}, {"a-0": 0, "a-1": 0}, {}):
        calibrated = cross_fit(tables, Judgments({"a": own, "b": others}), n_folds=2)
        assert calibrated.rankings[0].columns["category"].tolist() == [LOW, HIGHLY]
    assert tables[0].columns["category"].tolist() == [MODERATELY, MODERATELY]


def test_the_order_of_papers_hangs_on_no_judgment():
    tables = [table("a", 2.0, 1.0), table("b", 1.0, 2.0)]
    for judgments in ({"a-0": 3, "b-0": 1, "b-1": 2}, {"a-0": 0, "b-0": 3, "b-1": 0}):
        grades = {"a": judgments, "b": judgments}
        ranked = cross_fit(tables, Judgments(grades), n_folds=2).rankings
        assert [paper.paper_id for paper in ranked[0].papers] == ["a-0", "a-1"]


def test_a_paper_without_expected_grade_keeps_what_it_has():
    tables = [table("a", np.nan, 2.0), table("b", 1.0, 2.0)]
    tables[0].columns["category"][0] = None
    calibrated = cross_fit(tables, Judgments({"a": {}, "b": {"b-0": 0, "b-1": 3}}), n_folds=2)
    assert calibrated.rankings[0].columns["category"].tolist() == [None, HIGHLY]


@pytest.mark.parametrize("n_folds", [0, 1])
def test_without_other_folds_the_categories_stay(n_folds):
    tables = [table("a", 1.0, 2.0), table("b", 1.0, 2.0)]
    calibrated = cross_fit(tables, Judgments({"a": {"a-0": 3}, "b": {"b-0": 0}}), n_folds)
    assert calibrated.thresholds == {}
    assert calibrated.rankings[0].columns["category"].tolist() == [MODERATELY, MODERATELY]
