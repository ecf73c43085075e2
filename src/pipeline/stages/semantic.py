"""Rank by sentence-embedding similarity and reputation, and give each paper an initial category (the paper, 4.3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from pipeline.cache import Encoded
from pipeline.candidates import Candidates
from pipeline.embedding import cosines, embed
from pipeline.encoding import Encoder
from pipeline.errors import UserError
from pipeline.papers import Paper, Query
from pipeline.scoring import Score, Values, Weights, categorize, final_score, normalize, reputation, similarity

PARTS = ("title", "abstract", "keywords", "disciplines")

Texts = dict[str, str]  #: part -> what is compared; an empty text is missing


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Stage:
    """Score, rank and categorize; a part that either side lacks contributes 0 to STS (weights are not rescaled)."""

    weights: Weights
    score: Score
    embedder: Encoder
    abstract_query: Literal["expanded", "keywords"] = "expanded"  #: what abstracts are compared with

    def __call__(self, tables: Sequence[Candidates]) -> list[Candidates]:
        """Return the tables ranked, with columns sts_* (NaN: missing), reputation, scores and initial_category.

        ``raw_score`` is S before normalization, ``score`` after it; ``abstract_truncated`` tells whose abstract is
        longer than the embedder's window.
        """
        return [self.ranked(table) for table in self.compared(tables)]

    def compared(self, tables: Sequence[Candidates]) -> list[Candidates]:
        """Return the tables in their order with columns sts_* (NaN: missing) and abstract_truncated: no score yet."""
        papers = {paper.paper_id: paper for table in tables for paper in table.papers}
        texts = {paper_id: _paper_texts(paper) for paper_id, paper in papers.items()}
        sides = [*texts.values(), *(self._query_texts(table.query) for table in tables)]
        vectors = embed((side[part] for side in sides for part in self._used()), self.embedder)
        return [self._compare(table, texts, vectors) for table in tables]

    def _used(self) -> list[str]:
        return [part for part in PARTS if getattr(self.weights, part) > 0]

    def _query_texts(self, query: Query) -> Texts:
        return {
            "title": query.text,
            "abstract": query.expanded if self.abstract_query == "expanded" else query.with_keywords,
            "keywords": ", ".join(query.keywords),
            "disciplines": ", ".join(query.subject),
        }

    def _compare(self, table: Candidates, texts: dict[str, Texts], vectors: dict[str, Encoded]) -> Candidates:
        query, papers = self._query_texts(table.query), [texts[paper.paper_id] for paper in table.papers]
        columns = {f"sts_{part}": np.full(len(table), np.nan) for part in PARTS}
        for part in self._used():
            given = [i for i, paper in enumerate(papers) if paper[part]] if query[part] else []
            if given:
                similar = cosines(vectors[query[part]].values, [vectors[papers[i][part]].values for i in given])
                columns[f"sts_{part}"][given] = similar
        is_truncated = [p["abstract"] in vectors and vectors[p["abstract"]].is_truncated for p in papers]
        return table.with_columns(**columns, abstract_truncated=np.array(is_truncated, dtype=bool))

    def ranked(self, table: Candidates) -> Candidates:
        """Return a compared table scored and ranked."""
        weights = np.array([getattr(self.weights, part) for part in PARTS])
        sts = similarity(similarities(table), weights)
        standing = reputations(table, self.weights)
        raw = final_score(sts, standing, self.weights.alpha)
        score = normalize(raw, self.score.normalize).round(9)
        columns = {"sts": sts, "reputation": standing, "raw_score": raw, "score": score}
        return table.with_columns(**columns, initial_category=categorize(score, self.score)).ranked_by("score")


def similarities(table: Candidates) -> Values:
    """Return the similarities of a compared table, shape (4, n), parts in the order of ``PARTS``."""
    return np.stack([table.columns[f"sts_{part}"] for part in PARTS])


def reputations(table: Candidates, weights: Weights) -> Values:
    """Return R of each candidate, from its citation count and impact factor."""
    found = reputation(_numbers(table, "citation_count"), _numbers(table, "impact_factor"), weights)
    if not np.isfinite(found).all():
        raise UserError(f"query {table.query.query_id}: citation counts or impact factors are beyond all measure")
    return found


def _paper_texts(paper: Paper) -> Texts:
    return {
        "title": paper.title,
        "abstract": paper.abstract,
        "keywords": ", ".join(paper.keywords),
        "disciplines": ", ".join(paper.disciplines),
    }


def _numbers(table: Candidates, field: str) -> Values:
    values = (getattr(paper, field) for paper in table.papers)
    return np.array([np.nan if value is None else float(value) for value in values])
