"""A metric spans what it could be if the model had graded the papers that it failed on."""

import numpy as np

from experiments.intervals import bounds
from experiments.metrics import Depths, grade_ranking, measure_query
from pipeline.candidates import Candidates
from pipeline.papers import CATEGORIES, Paper, Query

LOW, SOMEWHAT, MODERATELY, HIGHLY = CATEGORIES
DEPTHS = Depths(evaluate=3, recall=(3,))


def table(*rows):
    """Rows are (category of the model or None, initial category), as the stage orders them."""
    papers = tuple(Paper(f"p{i}") for i in range(len(rows)))
    category, initial = (np.array(column, dtype=object) for column in zip(*rows, strict=True))
    return Candidates(Query("q", "x"), papers).with_columns(
        category=category,
        initial_category=initial,
        outcome=np.array(["unparsable" if c is None else "graded" for c in category], dtype=object),
        previous_rank=np.arange(1, len(rows) + 1),
    )


def value(ranked, judgments, name):
    return measure_query(grade_ranking(ranked, judgments, "low"), DEPTHS)[name]


def test_no_interval_where_all_are_graded():
    assert bounds(table((HIGHLY, LOW)), {"p0": 3}, "low", DEPTHS) is None


def test_ndcg_spans_the_places_that_the_paper_could_take():
    # p1 (judged 3) stands second by its initial category; called highly relevant it ties with p0 and stays second,
    # called low it is last: gains 2^3 - 1 = 7 at ranks 2 and 3 against the ideal at rank 1
    found = bounds(
        table((HIGHLY, LOW), (None, MODERATELY), (SOMEWHAT, LOW)), {"p0": 0, "p1": 3, "p2": 0}, "low", DEPTHS
    )
    np.testing.assert_allclose(found.high["ndcg_at_3"], 1 / np.log2(3))
    np.testing.assert_allclose(found.low["ndcg_at_3"], 1 / np.log2(4))


def test_agreement_spans_every_grade():
    judgments = {"p0": 3, "p1": 2, "p2": 0}
    given = [(HIGHLY, LOW), (None, LOW), (LOW, LOW)]
    found = bounds(table(*given), judgments, "low", DEPTHS)
    as_if = [table(given[0], (category, LOW), given[2]) for category in CATEGORIES]
    assert found.high["ac2"] == max(value(t, judgments, "ac2") for t in as_if) == 1.0  # all three agree
    assert found.low["ac2"] == min(value(t, judgments, "ac2") for t in as_if)
    assert found.low["ac2"] < found.high["ac2"]


def test_papers_of_different_judgments_move_apart():
    # p1 (3) up and p2 (0) down is the best, the other way round the worst
    judgments = {"p0": 1, "p1": 3, "p2": 0}
    found = bounds(table((MODERATELY, LOW), (None, LOW), (None, LOW)), judgments, "low", DEPTHS)
    ideal = 7 + 1 / np.log2(3)
    np.testing.assert_allclose(found.high["ndcg_at_3"], 1.0)
    np.testing.assert_allclose(found.low["ndcg_at_3"], (1 / np.log2(3) + 7 / np.log2(4)) / ideal)
