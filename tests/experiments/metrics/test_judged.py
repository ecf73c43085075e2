"""The judged share of the top, whatever the rule for unjudged papers."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from ir_measures import Judged

from experiments.metrics import Depths, Unjudged, grade_ranking
from experiments.metrics.judged import measure
from pipeline.candidates import Candidates
from pipeline.papers import Paper, Query


def candidates(*paper_ids: str) -> Candidates:
    return Candidates(Query("q", "a query"), tuple(Paper(paper_id) for paper_id in paper_ids))


@pytest.mark.parametrize("unjudged", ["low", "skip"])
def test_share_of_the_top_that_has_a_judgment(unjudged: Unjudged) -> None:
    ranking = grade_ranking(candidates("a", "x", "b", "c"), {"a": 0, "b": 3, "c": 1}, unjudged)
    assert measure(ranking, Depths(evaluate=2, recall=())) == {"judged_at_2": 1 / 2}
    assert measure(ranking, Depths(evaluate=10, recall=())) == {"judged_at_10": 3 / 4}


def test_equals_ir_measures_on_random_rankings() -> None:
    random = np.random.default_rng(5)
    for _ in range(100):
        papers = [f"p{i}" for i in range(30)]
        judgments = {str(paper): 1 for paper in random.choice(papers, 15, replace=False)}
        ranked = [str(paper) for paper in random.permutation(papers)[: random.integers(1, 30)]]
        run = {"q": {paper: 1 - rank / 1000 for rank, paper in enumerate(ranked)}}
        theirs = ir_measures.calc_aggregate([Judged @ 10], {"q": judgments}, run)[Judged @ 10]
        ours = measure(grade_ranking(candidates(*ranked), judgments, "low"), Depths(evaluate=10, recall=()))
        assert ours["judged_at_10"] == pytest.approx(theirs)
