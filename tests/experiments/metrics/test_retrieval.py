"""Recall, precision, average precision and reciprocal rank by hand and against trec_eval."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RR, P, R

from experiments.metrics import Depths, GradedRanking, grade_ranking
from experiments.metrics.retrieval import measure
from pipeline.candidates import Candidates
from pipeline.papers import Paper, Query


def graded(grades: list[int], judged: list[int]) -> GradedRanking:
    return GradedRanking(
        grades=np.array(grades, dtype=np.int64),
        is_judged=np.ones(len(grades), dtype=np.bool_),
        categories=None,
        judged=np.array(sorted(judged, reverse=True), dtype=np.int64),
    )


def test_by_hand() -> None:
    # Relevant at ranks 2 and 4; four relevant papers are judged, two of them were not found.
    values = measure(graded([0, 3, 0, 1, 0], [3, 2, 1, 1, 0, 0, 0]), Depths(evaluate=10, recall=(2, 10)))
    assert values == {
        "recall_at_2": 1 / 4,
        "recall_at_10": 2 / 4,
        "precision_at_2": 1 / 2,
        "precision_at_10": 2 / 10,  # of ten, though only five were returned
        "map": pytest.approx((1 / 2 + 2 / 4) / 4),
        "mrr": 1 / 2,
    }


def test_min_grade_decides_what_is_relevant() -> None:
    values = measure(graded([1, 2, 3], [3, 2, 1]), Depths(evaluate=10, recall=(1,), min_grade=3))
    assert values == {"recall_at_1": 0.0, "precision_at_1": 0.0, "map": 1 / 3, "mrr": 1 / 3}


def test_map_and_mrr_see_the_whole_list() -> None:
    values = measure(graded([0] * 199 + [1], [1]), Depths(evaluate=10, recall=(100,)))
    assert values == {"recall_at_100": 0.0, "precision_at_100": 0.0, "map": 1 / 200, "mrr": 1 / 200}


@pytest.mark.parametrize(("grades", "judged"), [([], [1]), ([0, 0], [0, 0]), ([0], [3, 0])])
def test_nothing_relevant_found_is_0(grades: list[int], judged: list[int]) -> None:
    assert set(measure(graded(grades, judged), Depths(evaluate=10, recall=(5,))).values()) == {0.0}


@pytest.mark.parametrize("min_grade", [1, 2, 3])
def test_equals_trec_eval_on_random_rankings(min_grade: int) -> None:
    random = np.random.default_rng(min_grade)
    theirs_by_ours = {
        "recall_at_5": R(rel=min_grade) @ 5,
        "recall_at_100": R(rel=min_grade) @ 100,
        "precision_at_5": P(rel=min_grade) @ 5,
        "precision_at_100": P(rel=min_grade) @ 100,
        "map": AP(rel=min_grade),
        "mrr": RR(rel=min_grade),
    }
    for _ in range(100):
        papers = [f"p{i}" for i in range(60)]
        judgments = {str(paper): int(random.integers(0, 4)) for paper in random.choice(papers, 20, replace=False)}
        ranked = [str(paper) for paper in random.permutation(papers)[: random.integers(1, 60)]]
        run = {"q": {paper: 1 - rank / 1000 for rank, paper in enumerate(ranked)}}  # strictly decreasing
        theirs = ir_measures.calc_aggregate(theirs_by_ours.values(), {"q": judgments}, run)
        candidates = Candidates(Query("q", "a query"), tuple(Paper(paper) for paper in ranked))
        ours = measure(grade_ranking(candidates, judgments, "low"), Depths(10, (5, 100), min_grade))
        assert ours == {name: pytest.approx(theirs[measured], abs=1e-9) for name, measured in theirs_by_ours.items()}
