"""A metric spans what it could be if the model had graded the papers that it failed on."""

import itertools
import random

import numpy as np

from experiments.intervals import bounds
from experiments.metrics import Depths, grade_ranking, measure_query
from experiments.metrics.agreement import gwet_ac2
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


def test_the_interval_is_that_of_all_grades_of_up_to_four_papers():
    draw = random.Random(0)
    for _ in range(20):
        given = [(draw.choice([None, None, *CATEGORIES]), draw.choice(CATEGORIES)) for _ in range(5)]
        given = [(LOW, LOW) if i >= 4 else row for i, row in enumerate(given)]
        given.sort(key=lambda row: -CATEGORIES.index(row[0] or row[1]))  # as the stage orders them
        judgments = {f"p{i}": draw.randrange(4) for i in range(5)}
        found = bounds(table(*given), judgments, "low", DEPTHS)
        open_ = [i for i, (category, _) in enumerate(given) if category is None]
        if not open_:
            assert found is None
            continue
        values = []
        for chosen in itertools.product(CATEGORIES, repeat=len(open_)):
            rows = dict(zip(open_, chosen, strict=True))
            order = sorted(
                range(5), key=lambda i, rows=rows: (-CATEGORIES.index(rows.get(i) or given[i][0]), i)
            )  # by category, ties as before
            ranked = table(*[(rows.get(i) or given[i][0], LOW) for i in order])
            renamed = {f"p{place}": judgments[f"p{i}"] for place, i in enumerate(order)}
            values.append(value(ranked, renamed, "ndcg_at_3"))
        np.testing.assert_allclose(found.low["ndcg_at_3"], min(values))
        np.testing.assert_allclose(found.high["ndcg_at_3"], max(values))


def test_an_expected_grade_could_lie_anywhere_in_a_category():
    # c, judged 3, could stand above b although both are low: then the top two agree less
    papers = tuple(Paper(name) for name in "abc")
    ranked = Candidates(Query("q", "x"), papers).with_columns(
        category=np.array([SOMEWHAT, LOW, None], dtype=object),
        initial_category=np.array([LOW] * 3, dtype=object),
        expected_grade=np.array([1.0, 0.2, np.nan]),
        outcome=np.array(["graded", "graded", "empty"], dtype=object),
        previous_rank=np.arange(1, 4),
    )
    depths = Depths(evaluate=2, recall=(2,))
    found = bounds(ranked, {"a": 1, "b": 0, "c": 3}, "low", depths)
    categories, grades = [1, 0], [1, 3]  # a is called somewhat (1) and judged 1, c is called low (0) and judged 3
    np.testing.assert_allclose(found.low["ac2"], gwet_ac2(np.column_stack([categories, grades])))


def test_many_ungraded_papers_are_moved_by_their_judgments():
    given = [(None, LOW)] * 6
    found = bounds(table(*given), {"p0": 0, "p1": 0, "p2": 3, "p3": 3}, "low", DEPTHS)
    np.testing.assert_allclose(found.high["ndcg_at_3"], 1.0)
    assert found.low["ndcg_at_3"] == 0.0
