"""BM25 Okapi on a sparse index: the scores of ``rank_bm25.BM25Okapi`` at the cost of the query's words only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, count

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
        numbers: defaultdict[str, int] = defaultdict(count().__next__)  # a new word gets the next number
        n_words = np.fromiter(map(len, documents), dtype=np.int64, count=len(documents))
        words = chain.from_iterable(documents)
        columns = np.fromiter(map(numbers.__getitem__, words), dtype=np.int32, count=n_words.sum())
        self.vocabulary: dict[str, int] = dict(numbers)
        self.n_documents = len(documents)
        rows = np.repeat(np.arange(len(documents), dtype=np.int32), n_words)
        shape = (self.n_documents, len(self.vocabulary))
        self._weights = sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=shape).tocsc()
        if not self.vocabulary:
            return
        frequency, df = self._weights.data, np.diff(self._weights.indptr)
        idf = np.log(self.n_documents - df + 0.5) - np.log(df + 0.5)
        idf = np.where(idf < 0, epsilon * idf.mean(), idf)
        saturation = frequency + k1 * (1 - b + b * n_words[self._weights.indices] / n_words.mean())
        self._weights.data = np.repeat(idf, df) * frequency * (k1 + 1) / saturation

    def scores(self, query: Sequence[str]) -> Scores:
        """Return one score a document, shape (n_documents,). A repeated query term counts as often as it occurs."""
        columns = [self.vocabulary[term] for term in query if term in self.vocabulary]
        scores: Scores = self._weights[:, columns] @ np.ones(len(columns))  # summed in the order of the query
        return scores
