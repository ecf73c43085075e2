"""Judged explanations are averaged over those that have a score, and the others are counted."""

import pytest

from experiments.explanations import JudgedExplanation, summarize, summary_metrics, summary_text


def judged(area, faithfulness, relevance, faults=()):
    return JudgedExplanation("q", area, "p", faithfulness, relevance, dict(faults), 3, 300, 30, None, None)


EXPLANATIONS = [
    judged("A", 0.5, 3),
    judged("A", 1.0, 2),
    judged("A", None, 1, {"faithfulness": "no claims"}),
    judged("B", 0.0, None, {"explanation_relevance": "unparsable"}),
    judged("B", 0.5, None, {"explanation_relevance": "provider error"}),
]


def test_mean_and_sd_are_over_explanations_with_the_score():
    of_a = summarize(EXPLANATIONS)["areas"]["A"]["faithfulness"]
    assert of_a == {"mean": 0.75, "sd": pytest.approx(0.5 / 2**0.5), "n": 2, "of": 3, "faults": {"no claims": 1}}


def test_the_average_is_over_all_explanations_and_its_sd_is_the_mean_of_the_areas():
    average = summarize(EXPLANATIONS)["average"]["faithfulness"]
    assert average["mean"] == (0.5 + 1.0 + 0.0 + 0.5) / 4
    assert average["sd"] == pytest.approx(0.5 / 2**0.5)  # of A and of B alike
    assert (average["n"], average["of"]) == (4, 5)


def test_an_area_without_scores_has_no_mean_and_the_average_no_sd():
    summary = summarize(EXPLANATIONS)
    assert summary["areas"]["B"]["explanation_relevance"]["mean"] is None
    assert summary["average"]["explanation_relevance"]["mean"] == (3 + 2 + 1) / 3
    assert summary["average"]["explanation_relevance"]["sd"] is None
    assert "explanation_relevance.sd" not in summary_metrics(summary)


def test_the_table_shows_how_many_were_scored_and_why_others_were_not():
    text = summary_text(summarize(EXPLANATIONS))
    assert "0.750 ± 0.354 (n = 2 of 3)" in text
    assert "without explanation_relevance: provider error 1, unparsable 1" in text


def test_table_14_of_the_paper_follows_from_its_areas():
    # the average row of the paper: means 0.701 and 2.73, ± 0.091 and 0.28
    faithfulness = {"CSE": 0.691, "MHS": 0.727, "MNS": 0.663, "EM": 0.727, "LSH": 0.696}
    relevance = {"CSE": 2.70, "MHS": 2.93, "MNS": 2.63, "EM": 2.80, "LSH": 2.60}
    average = summarize([judged(area, faithfulness[area], relevance[area]) for area in relevance])["average"]
    assert round(average["faithfulness"]["mean"], 3) == 0.701
    assert round(average["explanation_relevance"]["mean"], 2) == 2.73
