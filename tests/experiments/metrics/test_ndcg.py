"""Both nDCGs by hand, and the standard one against trec_eval through ir_measures."""

from __future__ import annotations

from math import log2

import ir_measures
import numpy as np
import pytest
from ir_measures import Measure, nDCG

from experiments.metrics import Depths, GradedRanking
from experiments.metrics.ndcg import measure

DEPTHS = Depths(evaluate=10, recall=())
EXPONENTIAL = nDCG(gains={0: 0, 1: 1, 2: 3, 3: 7}) @ 10


def graded(grades: list[int], judged: list[int]) -> GradedRanking:
    return GradedRanking(
        grades=np.array(grades, dtype=np.int64),
        is_judged=np.ones(len(grades), dtype=np.bool_),
        categories=None,
        judged=np.array(sorted(judged, reverse=True), dtype=np.int64),
    )


def test_exponential_gain_by_hand() -> None:  # pains.md, P33
    # Grades 1, 3: DCG = 1 / log2(2) + 7 / log2(3); ideal 7 / log2(2) + 1 / log2(3).
    values = measure(graded([1, 3], [3, 1]), DEPTHS)
    assert values["ndcg_at_10"] == pytest.approx((1 + 7 / log2(3)) / (7 + 1 / log2(3)))
    assert values["ndcg_top_at_10"] == pytest.approx((1 + 7 / log2(3)) / (7 + 1 / log2(3)))


def test_ideal_over_all_judged_papers_sees_what_the_top_missed() -> None:
    # Retrieved 1, 0 of the judged 3, 1, 0: DCG 1; ideal 7 + 1 / log2(3); ideal of the retrieved 1.
    values = measure(graded([1, 0], [3, 1, 0]), DEPTHS)
    assert values["ndcg_at_10"] == pytest.approx(1 / (7 + 1 / log2(3)))
    assert values["ndcg_top_at_10"] == 1.0


def test_ten_equally_bad_papers_are_perfect_only_for_the_papers_ndcg() -> None:
    values = measure(graded([1] * 10, [3] * 10 + [1] * 10), DEPTHS)
    assert values["ndcg_top_at_10"] == 1.0
    assert values["ndcg_at_10"] == pytest.approx(1 / 7)


def test_only_the_first_k_count() -> None:
    values = measure(graded([0, 2, 3], [3, 2, 0]), Depths(evaluate=2, recall=()))
    # DCG 3 / log2(3); ideal of the judged 7 + 3 / log2(3); ideal of the two retrieved 3.
    assert values == {
        "ndcg_at_2": pytest.approx(3 / log2(3) / (7 + 3 / log2(3))),
        "ndcg_top_at_2": pytest.approx(3 / log2(3) / 3),
    }


@pytest.mark.parametrize(
    ("grades", "judged"), [([], [3]), ([0, 0], [0, 0]), ([0, 0], [3, 0, 0])], ids=["empty", "no relevant", "all missed"]
)
def test_no_gain_is_0_not_nan(grades: list[int], judged: list[int]) -> None:
    assert measure(graded(grades, judged), DEPTHS) == {"ndcg_at_10": 0.0, "ndcg_top_at_10": 0.0}


def random_query(random: np.random.Generator) -> tuple[dict[str, int], list[str]]:
    """Judgments and a ranking that holds unjudged papers and misses judged ones."""
    papers = [f"p{i}" for i in range(40)]
    judgments = {str(paper): int(random.integers(0, 4)) for paper in random.choice(papers, 20, replace=False)}
    return judgments, [str(paper) for paper in random.permutation(papers)[:25]]


def trec_eval(measured: Measure, judgments: dict[str, int], ranked: list[str]) -> float:
    """Measure one query; one measure a call, since ir_measures 0.4.3 mixes up two nDCGs of different gains in one."""
    run = {"q": {paper: 1 - rank / 1000 for rank, paper in enumerate(ranked)}}  # strictly decreasing
    return float(ir_measures.calc_aggregate([measured], {"q": judgments}, run)[measured])


def test_equals_trec_eval_with_the_same_gain_and_differs_from_its_linear_default() -> None:
    random = np.random.default_rng(3)
    n_linear_differs = 0
    for _ in range(100):
        judgments, ranked = random_query(random)
        ours = measure(graded([judgments.get(paper, 0) for paper in ranked], list(judgments.values())), DEPTHS)
        assert ours["ndcg_at_10"] == pytest.approx(trec_eval(EXPONENTIAL, judgments, ranked), abs=1e-9)
        n_linear_differs += ours["ndcg_at_10"] != pytest.approx(trec_eval(nDCG @ 10, judgments, ranked), abs=1e-3)
    assert n_linear_differs > 90


def test_ideal_of_the_retrieved_is_trec_evals_with_only_the_retrieved_judged() -> None:
    random = np.random.default_rng(4)
    for _ in range(50):
        judgments, ranked = random_query(random)
        top = {paper: judgments.get(paper, 0) for paper in ranked[:10]}
        ours = measure(graded([judgments.get(paper, 0) for paper in ranked], list(judgments.values())), DEPTHS)
        assert ours["ndcg_top_at_10"] == pytest.approx(trec_eval(EXPONENTIAL, top, ranked), abs=1e-9)
