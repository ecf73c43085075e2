"""BM25 against rank_bm25: the same scores and order, index and query times, memory."""

from __future__ import annotations

import numpy as np
from rank_bm25 import BM25Okapi

from benchmarks.measuring import in_own_process, peak_mb, row, seconds
from benchmarks.texts import documents, queries
from pipeline.okapi import Okapi

SIZES, N_QUERIES = (3_000, 60_000), 20


def rows() -> list[list[str]]:
    """Measure both sizes; an error where one score or place differs."""
    return [line for n in SIZES for line in _rows(n)]


def _rows(n: int) -> list[list[str]]:
    papers, asked = documents(n), queries(N_QUERIES)
    dense, sparse = BM25Okapi(papers), _okapi(papers)
    _check_equal(dense, sparse, asked)
    theirs, ours = seconds(lambda: BM25Okapi(papers)), seconds(lambda: _okapi(papers))
    their_queries = seconds(lambda: [dense.get_scores(query) for query in asked])
    our_queries = seconds(lambda: [sparse.scores(query) for query in asked], repeats=10)
    peaks = [in_own_process(_index_peak_mb, n, is_ours) for is_ours in (False, True)]
    pairs = {
        "index, s": (theirs, ours),
        "a query, ms": (1000 * their_queries / N_QUERIES, 1000 * our_queries / N_QUERIES),
        f"index and {N_QUERIES} queries, s": (theirs + their_queries, ours + our_queries),
        "peak memory of indexing, beside the words, MB": peaks,
    }
    return [row(f"BM25 of {n:,} papers: {name}", "rank_bm25", *pair) for name, pair in pairs.items()]


def _okapi(papers: list[list[str]]) -> Okapi:
    return Okapi(papers, k1=1.5, b=0.75, epsilon=0.25)


def _check_equal(dense: BM25Okapi, sparse: Okapi, asked: list[list[str]]) -> None:
    """Refuse scores, of all papers, that differ by 1e-9, and another order of the papers."""
    for query in asked:
        theirs, ours = dense.get_scores(query), sparse.scores(query)
        if np.abs(theirs - ours).max() > 1e-9:
            raise ValueError(f"the scores of {query} differ by {np.abs(theirs - ours).max()}")
        orders = [np.argsort(-scores.round(9), kind="stable") for scores in (theirs, ours)]
        if not np.array_equal(*orders):
            raise ValueError(f"the papers of {query} come in another order")


def _index_peak_mb(n: int, is_ours: bool) -> float:  # noqa: FBT001 (passed to another process)
    papers = documents(n)
    return peak_mb(lambda: _okapi(papers) if is_ours else BM25Okapi(papers))
