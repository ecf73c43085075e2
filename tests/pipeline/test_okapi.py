"""BM25 equals rank_bm25, and stays sane where rank_bm25 divides by zero."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from pipeline.okapi import Okapi

WORD = st.sampled_from("gene cell wing flow mach model a b".split())
DOCUMENT = st.lists(WORD, max_size=12)


@settings(max_examples=1000)
@given(
    st.lists(DOCUMENT, min_size=1, max_size=12).filter(any),
    st.lists(WORD | st.just("unseen"), max_size=8),
    st.sampled_from([(1.5, 0.75, 0.25), (0.9, 0.4, 0.0), (2.0, 0.0, 1.0), (0.1, 0.9, 0.25)]),
)
def test_scores_equal_rank_bm25(documents, query, parameters):
    k1, b, epsilon = parameters
    expected = BM25Okapi(documents, k1=k1, b=b, epsilon=epsilon).get_scores(query)
    np.testing.assert_allclose(Okapi(documents, k1, b, epsilon).scores(query), expected, rtol=0, atol=1e-9)


def test_five_documents_by_hand():
    documents = [["flutter", "app"], ["flutter", "wing", "speed"], ["wing"], ["app", "app"], ["speed", "test"]]
    # N = 5, average length 2; "app" is in 2 of 5: idf = ln(3.5 / 2.5); document 4 has it twice at length 2
    idf = np.log(3.5 / 2.5)
    expected = [idf * 1 * 2.5 / (1 + 1.5), 0, 0, idf * 2 * 2.5 / (2 + 1.5), 0]
    np.testing.assert_allclose(Okapi(documents, 1.5, 0.75, 0.25).scores(["app"]), expected, atol=1e-12)


def test_a_word_in_half_of_the_documents_scores_zero():
    assert Okapi([["a", "b"], ["a", "c"]], 1.5, 0.75, 0.25).scores(["b"]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("documents", [[], [[]], [[], []]])
def test_nothing_to_score_is_zero_for_each_document(documents):
    assert Okapi(documents, 1.5, 0.75, 0.25).scores(["a"]).tolist() == [0.0] * len(documents)
