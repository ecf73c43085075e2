"""BM25 Okapi on a sparse index: the scores of ``rank_bm25.BM25Okapi`` at the cost of the query's words only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

Scores = npt.NDArray[np.float64]


class Okapi:
    """BM25 scores of tokenized documents (the paper, equation 1), each term's weight computed once at indexing.

    A term in more than half of the documents has a negative idf; as in rank_bm25 it gets ``epsilon`` times the mean
    idf instead. A term in exactly half of them has idf 0. Where there is nothing to score (no documents, or only
    empty ones) every score is 0.
    """

    def __init__(self, documents: Sequence[Sequence[str]], k1: float, b: float, epsilon: float) -> None:
        self.vocabulary: dict[str, int] = {}
        counts = [Counter(document) for document in documents]
        terms = [self.vocabulary.setdefault(term, len(self.vocabulary)) for count in counts for term in count]
        frequency = np.array([n for count in counts for n in count.values()], dtype=np.float64)
        rows = np.repeat(np.arange(len(counts)), [len(count) for count in counts])
        self.n_documents = len(documents)
        if not terms:
            self._weights = sparse.csc_matrix((self.n_documents, 0))
            return
        length = np.array([len(document) for document in documents], dtype=np.float64)
        df = np.bincount(terms, minlength=len(self.vocabulary))
        idf = np.log(self.n_documents - df + 0.5) - np.log(df + 0.5)
        idf = np.where(idf < 0, epsilon * idf.mean(), idf)
        saturation = frequency + k1 * (1 - b + b * length[rows] / length.mean())
        weights = idf[terms] * frequency * (k1 + 1) / saturation
        self._weights = sparse.csc_matrix((weights, (rows, terms)), shape=(self.n_documents, len(self.vocabulary)))

    def scores(self, query: Sequence[str]) -> Scores:
        """Return one score a document, shape (n_documents,). A repeated query term counts as often as it occurs."""
        scores = np.zeros(self.n_documents)
        starts, rows, weights = self._weights.indptr, self._weights.indices, self._weights.data
        for term in query:
            column = self.vocabulary.get(term)
            if column is not None:
                span = slice(starts[column], starts[column + 1])
                scores[rows[span]] += weights[span]
        return scores
