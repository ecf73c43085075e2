"""Reputation, final score, normalization and initial categories."""

import numpy as np
import pytest
from pydantic import ValidationError

from pipeline.scoring import Score, Weights, categorize, final_score, min_max, normalize, reputation


def test_min_max_scales_and_never_divides_by_zero():
    assert min_max(np.array([2.0, 4.0, 3.0])).tolist() == [0.0, 1.0, 0.5]
    assert min_max(np.array([7.0, 7.0])).tolist() == [0.0, 0.0]
    assert min_max(np.array([7.0])).tolist() == [0.0]
    assert min_max(np.array([])).tolist() == []


def test_an_unknown_citation_count_or_impact_factor_counts_as_zero():
    found = reputation(np.array([np.nan, 10.0]), np.array([2.0, np.nan]), Weights())
    assert found.tolist() == pytest.approx([0.4 * 1.0, 0.6 * 1.0])


def test_inputs_are_not_changed():
    citations = np.array([np.nan, 10.0])
    reputation(citations, citations, Weights())
    assert np.isnan(citations[0])


def test_normalize_minmax_and_clip():
    scores = np.array([1.1, 0.6, -0.1])
    assert normalize(scores, "minmax").tolist() == pytest.approx([1.0, 0.7 / 1.2, 0.0])
    assert normalize(scores, "clip").tolist() == [1.0, 0.6, 0.0]


def test_a_threshold_belongs_to_the_higher_category():
    categories = categorize(np.array([1.0, 0.8, 0.7999, 0.6, 0.4, 0.3999, 0.0]), Score())
    assert [text.split()[0] for text in categories] == [
        "highly", "highly", "moderately", "moderately", "somewhat", "low", "low",
    ]  # fmt: skip


def test_final_score_adds_the_weighted_reputation():
    assert final_score(np.array([0.5]), np.array([0.2]), 0.15).tolist() == pytest.approx([0.53])


@pytest.mark.parametrize(
    "settings", [{"title": 0.6}, {"title": -0.1}, {"citations": 0.7}, {"alpha": 1.5}, {"titel": 0.5}]
)
def test_weights_out_of_range_are_refused(settings):
    with pytest.raises(ValidationError):
        Weights(**settings)


def test_thresholds_out_of_order_are_refused():
    with pytest.raises(ValidationError, match="highly >= moderately"):
        Score(highly=0.5)
