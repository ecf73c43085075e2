"""Collections: queries, papers and judgments. A collection's name in the config is the name of a module here.

Each module has a pydantic dataclass ``Loader`` (its fields are the config keys) with ``load() -> Collection``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from experiments.judgments import Judgments
from pipeline.candidates import Candidates
from pipeline.papers import Paper, Query


@dataclass(frozen=True)
class Collection:
    """Queries, papers and judgments, checked and frozen."""

    name: str
    queries: tuple[Query, ...]
    papers: Mapping[str, Paper]  #: paper id -> paper, in corpus order
    judgments: Judgments
    fingerprint: str  #: sha256 over the content of every file that was read
    pools: Mapping[str, tuple[str, ...]] | None = None  #: query id -> candidate ids; None: the pool is the corpus
    word_statistics: Literal["corpus", "pool"] = "corpus"  #: what the rarity of a word is counted in
    notice: str | None = None  #: printed wherever figures of this collection are printed

    def candidates(self) -> list[Candidates]:
        """Return the pool of every query, in the order of the pool or corpus, without the query's own paper."""
        corpus = tuple(self.papers.values())
        tables = []
        for query in self.queries:
            pool = corpus if self.pools is None else tuple(self.papers[i] for i in self.pools[query.query_id])
            if query.paper_id is not None:
                pool = tuple(paper for paper in pool if paper.paper_id != query.paper_id)
            tables.append(Candidates(query, pool, corpus=corpus if self.word_statistics == "corpus" else None))
        return tables


class Loader(Hashable, Protocol):
    """What every module in this folder defines under this name, with its settings as fields."""

    def load(self) -> Collection:
        """Read and check the collection; raise ``UserError`` naming file and line of what is wrong."""
        ...
