"""Rank by BM25 over titles and abstracts (the paper, section 4.3.1)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pipeline.candidates import Candidates
from pipeline.okapi import Okapi
from pipeline.papers import Paper
from pipeline.scoring import Fraction
from pipeline.tokenizers import TOKENIZERS, Tokenizer

log = logging.getLogger(__name__)

NonNegative = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Stage:
    """Score and rank by BM25.

    ``separate``, the paper's form: query text against titles plus expanded query against abstracts (equation 2).
    ``joined``: expanded query against title and abstract in one index, the usual baseline. Word statistics are taken
    from the table's corpus where it has one, so that a pool drawn from a collection is scored as in the collection.
    """

    index: Literal["separate", "joined"] = "separate"
    tokenizer: Tokenizer = "words"
    k1: NonNegative = 1.5
    b: Fraction = 0.75
    epsilon: NonNegative = 0.25

    def __call__(self, tables: Sequence[Candidates]) -> list[Candidates]:
        """Return the tables ranked, with columns bm25_title and bm25_abstract (separate only), bm25 and score."""
        indexed: tuple[Paper, ...] | None = None
        indexes: dict[str, Okapi] = {}
        positions: dict[str, int] = {}
        ranked = []
        for table in tables:
            corpus = table.papers if table.corpus is None else table.corpus
            if corpus is not indexed:  # queries over one corpus share its tuple of papers, hence its indexes
                indexed, indexes = corpus, self._indexes(corpus)
                positions = {paper.paper_id: i for i, paper in enumerate(corpus)}
            ranked.append(self._rank(table, indexes, [positions[paper.paper_id] for paper in table.papers]))
        return ranked

    def _indexes(self, papers: tuple[Paper, ...]) -> dict[str, Okapi]:
        if self.index == "joined":
            texts = {"bm25": [f"{paper.title} {paper.abstract}" for paper in papers]}
        else:
            texts = {"bm25_title": [p.title for p in papers], "bm25_abstract": [p.abstract for p in papers]}
        tokenize = TOKENIZERS[self.tokenizer]
        return {
            column: Okapi([tokenize(text) for text in documents], self.k1, self.b, self.epsilon)
            for column, documents in texts.items()
        }

    def _rank(self, table: Candidates, indexes: dict[str, Okapi], positions: list[int]) -> Candidates:
        query, tokenize = table.query, TOKENIZERS[self.tokenizer]
        texts = {"bm25_title": query.text, "bm25_abstract": query.expanded, "bm25": query.expanded}
        columns = {column: okapi.scores(tokenize(texts[column]))[positions] for column, okapi in indexes.items()}
        if self.index == "separate":
            columns["bm25"] = columns["bm25_title"] + columns["bm25_abstract"]
        columns["score"] = columns["bm25"].round(9)  # so that the order of equal scores hangs on no last bit
        if len(table) > 1 and np.ptp(columns["score"]) == 0:
            log.warning("query %s: all BM25 scores are equal, so the order of the pool is kept", query.query_id)
        return table.with_columns(**columns).ranked_by("score")
