"""A collection in a folder: the BEIR layout, extended by metadata, pools and references.

    corpus.jsonl      {"_id", "title", "text", "metadata"}: keys of metadata that are fields of ``Paper`` fill them
    queries.jsonl     {"_id", "text", "metadata": {"keywords", "domain", "fields", "area", "paper_id"}}
    qrels/test.tsv    query-id, corpus-id, score (0 to 3), under a header line
    pools.jsonl       optional {"query_id", "candidates"}; without it the pool of a query is the corpus
    references.jsonl  optional {"paper_id", "references"}

Any of them may be gzipped instead (``corpus.jsonl.gz``).
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from experiments.collections import Collection
from experiments.collections.beir.layout import read_collection

__all__ = ["Loader", "read_collection"]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Loader:
    """A collection in a folder of the user's own."""

    path: Path
    split: str = "test"  #: which judgments: qrels/<split>.tsv

    def load(self) -> Collection:
        """Read and check the collection; its name is that of the folder."""
        return read_collection(self.path, self.split)
