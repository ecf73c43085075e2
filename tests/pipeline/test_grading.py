"""From verdicts to categories, order, and what it took."""

import numpy as np
import pytest

from grade_helpers import candidates
from pipeline.grading import category_of, combine_samples, graded_table, grading_order
from pipeline.llm.answers import Answer
from pipeline.llm.asking import Asked
from pipeline.llm.chat import Reply
from pipeline.llm.verdicts import Outcome, Verdict

HIGH, MODERATE, SOMEWHAT, LOW = "highly relevant", "moderately relevant", "somewhat relevant", "low relevance"
THRESHOLDS = (0.5, 1.5, 2.5)
BAD = Verdict(Outcome.UNPARSABLE)


def replied(usd: float | None = 0.002, *, recorded: bool = False, **fields) -> Reply:
    given = {"input_tokens": 100, "output_tokens": 10, "model": "m", **fields}
    return Reply(Answer(key="k", about="", date="", latency_s=0.1, usd=usd, **given), is_recorded=recorded)


NO_ANSWER = Reply(None, fault="HTTP 500")


def graded(category: str, explanation: str | None = None) -> Verdict:
    return Verdict(Outcome.GRADED, category, explanation)


def expected(grade: float) -> Verdict:
    return Verdict(Outcome.GRADED, expected_grade=grade)


def paper_grade(*verdicts: Verdict, replies=None):
    return combine_samples([Asked(verdict, tuple(replies or [replied()])) for verdict in verdicts], THRESHOLDS)


@pytest.mark.parametrize(
    ("samples", "category"),
    [
        ([HIGH], HIGH), ([HIGH, HIGH, LOW], HIGH), ([LOW, HIGH, HIGH], HIGH), ([HIGH, LOW], LOW), ([LOW, HIGH], LOW),
        ([HIGH, MODERATE, SOMEWHAT], SOMEWHAT), ([HIGH, HIGH, MODERATE, MODERATE, LOW], MODERATE),
        ([None, HIGH], HIGH), ([None, None, LOW], LOW), ([HIGH, None, LOW, HIGH], HIGH),
    ],
)  # fmt: skip
def test_the_category_is_that_of_most_samples_and_the_lower_of_equals(samples, category):
    grade = paper_grade(*(graded(c) if c else BAD for c in samples))
    assert (grade.outcome, grade.category, grade.samples) == (Outcome.GRADED, category, tuple(samples))


def test_without_any_grade_the_outcome_is_that_of_the_first_sample():
    grade = paper_grade(Verdict(Outcome.REFUSED), BAD, BAD)
    assert (grade.outcome, grade.category, grade.samples) == (Outcome.REFUSED, None, (None, None, None))


def test_the_explanation_is_of_a_sample_with_the_category_chosen():
    assert paper_grade(graded(HIGH, "a"), graded(LOW, "b"), graded(LOW, "c")).explanation == "b"
    assert paper_grade(graded(HIGH, "a"), graded(LOW, None), graded(LOW, "c")).explanation == "c"
    assert paper_grade(graded(HIGH, "a"), graded(LOW, None)).explanation is None


@pytest.mark.parametrize(
    ("grade", "category"),
    [(0, LOW), (0.499, LOW), (0.5, SOMEWHAT), (1.5, MODERATE), (2.499, MODERATE), (2.5, HIGH), (3, HIGH)],
)
def test_a_threshold_belongs_to_the_higher_category(grade, category):
    assert category_of(grade, THRESHOLDS) == category
    assert paper_grade(expected(grade)).category == category


def test_expected_grades_are_averaged_before_they_are_cut():
    """(2.4 + 2.4 + 3.0) / 3 = 2.6 is highly relevant, though two of three samples are moderately relevant."""
    grade = paper_grade(expected(2.4), BAD, expected(2.4), expected(3.0))
    assert grade.expected_grade == pytest.approx(2.6)
    assert (grade.category, grade.samples) == (HIGH, (MODERATE, None, MODERATE, HIGH))


def test_papers_are_ordered_by_category_and_equal_ones_stay_as_they_were():
    table = candidates(HIGH, HIGH, MODERATE, SOMEWHAT, LOW, LOW)
    grades = [paper_grade(graded(c)) for c in (LOW, SOMEWHAT, HIGH, LOW, HIGH, SOMEWHAT)]
    assert [p.paper_id for p in graded_table(table, grades).papers] == ["p2", "p4", "p1", "p5", "p0", "p3"]


def test_a_paper_the_model_failed_on_keeps_the_place_of_its_initial_category():
    table = candidates(HIGH, MODERATE, SOMEWHAT, LOW)
    grades = [paper_grade(v) for v in (graded(LOW), BAD, graded(HIGH), graded(MODERATE))]
    ranked = graded_table(table, grades)
    assert [p.paper_id for p in ranked.papers] == ["p2", "p1", "p3", "p0"]  # high, moderate (initial), moderate, low
    assert ranked.columns["category"].tolist() == [HIGH, None, MODERATE, LOW]
    assert ranked.columns["outcome"].tolist() == ["graded", "unparsable", "graded", "graded"]


def test_expected_grades_order_inside_a_category():
    table = candidates(LOW, LOW, LOW, HIGH, LOW)
    grades = [paper_grade(v) for v in (expected(0.1), expected(2.6), expected(0.4), BAD, expected(2.9))]
    ranked = graded_table(table, grades)
    assert [p.paper_id for p in ranked.papers] == ["p4", "p1", "p3", "p2", "p0"]
    assert np.isnan(ranked.columns["expected_grade"][2])


def test_papers_never_asked_about_stay_below_as_they_were():
    table = candidates(LOW, LOW, HIGH, MODERATE, HIGH)
    ranked = graded_table(table, [paper_grade(graded(LOW)), paper_grade(graded(SOMEWHAT))])
    assert [p.paper_id for p in ranked.papers] == ["p1", "p0", "p2", "p3", "p4"]
    assert ranked.columns["outcome"].tolist() == ["graded", "graded", None, None, None]
    assert ranked.columns["requests"].tolist() == [1, 1, 0, 0, 0]
    assert ranked.columns["usd"].tolist() == [0.002, 0.002, 0, 0, 0]
    assert ranked.columns["category"].tolist()[2:] == [None] * 3


def test_every_reply_counts_and_an_unknown_part_makes_the_sum_unknown():
    table = candidates(*[LOW] * 5)
    replies = [
        [replied(0.002), replied(0.003)],  # a repair
        [replied(0.002, recorded=True), replied(0.003)],
        [replied(0.002), replied(None, input_tokens=None)],
        [replied(None, recorded=True)],
        [replied(0.002), NO_ANSWER],
    ]
    columns = graded_table(table, [paper_grade(graded(LOW), replies=some) for some in replies]).columns
    nan = float("nan")
    np.testing.assert_allclose(columns["usd"], [0.005, 0.005, nan, nan, 0.002])
    np.testing.assert_allclose(columns["paid_usd"], [0.005, 0.003, nan, 0.0, 0.002])
    np.testing.assert_allclose(columns["input_tokens"], [200, 200, nan, 100, 100])
    np.testing.assert_allclose(columns["output_tokens"], [20, 20, 20, 10, 10])
    assert columns["requests"].tolist() == [2, 2, 2, 1, 2]


def test_all_that_answered_are_named_once():
    replies = [replied(model="a", provider="P", fingerprint="f1"), replied(model="a", provider="P", fingerprint="f1")]
    other = [replied(model="a", fingerprint="f2"), NO_ANSWER, replied(model="b")]
    grades = [paper_grade(graded(LOW), replies=some) for some in (replies, other, [NO_ANSWER])]
    answered_by = graded_table(candidates(LOW, LOW, LOW), grades).columns["answered_by"].tolist()
    assert answered_by == ["a P f1", "a f2; b", None]


def test_columns_that_would_say_nothing_are_not_there():
    (one, none) = (graded_table(candidates(LOW), [paper_grade(v)]).columns for v in (graded(LOW), BAD))
    assert not {"expected_grade", "samples"} & (set(one) | set(none))
    two = graded_table(candidates(LOW, LOW), [paper_grade(graded(LOW), BAD)])
    assert two.columns["samples"].tolist() == [[LOW, None], None]


def test_an_empty_table_stays_empty_and_the_input_is_not_changed():
    assert len(graded_table(candidates(), [])) == 0
    table = candidates(LOW, LOW)
    before = (table.papers, set(table.columns))
    ranked = graded_table(table, [paper_grade(graded(LOW)), paper_grade(graded(HIGH))])
    assert (table.papers, set(table.columns)) == before
    assert grading_order(ranked).tolist() == [0, 1]
