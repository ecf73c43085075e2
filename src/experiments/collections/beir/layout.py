"""From the files of a collection to its queries, papers, judgments and pools."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

from experiments.collections import Collection
from experiments.collections.beir.files import (
    TextFile,
    check_folder,
    fingerprint,
    open_file,
    open_optional,
    open_path,
    shown,
)
from experiments.collections.beir.kinds import (
    FLAG,
    IDENTIFIERS,
    NUMBER,
    OBJECT_OF_TEXTS,
    TEXT,
    TEXTS,
    WHOLE_NUMBER,
    Kind,
)
from experiments.collections.beir.qrels import read_judgments
from experiments.collections.beir.records import Record, read_records
from experiments.judgments import Judgments
from pipeline.papers import Paper, Query

_KINDS: Mapping[Any, Kind[Any]] = {
    str | None: TEXT,
    tuple[str, ...]: TEXTS,
    int | None: WHOLE_NUMBER,
    float | None: NUMBER,
    bool | None: FLAG,
    Mapping[str, str]: OBJECT_OF_TEXTS,
}
#: The fields of a paper that metadata may fill, by their annotations; id, title and abstract have another.
_PAPER_FIELDS = {name: _KINDS[hint] for name, hint in get_type_hints(Paper).items() if hint in _KINDS}


def read_collection(folder: Path, split: str = "test") -> Collection:
    """Read and check a whole collection; the judgments are those of ``qrels/<split>.tsv``."""
    return _read(folder, split, is_judged=True)


def read_snapshot(folder: Path, split: str = "test") -> Collection:
    """Read what was collected for queries: judgments may be missing, wholly or for some queries.

    Word statistics are those of each query's pool, as in a search engine that knows nothing else.
    """
    return replace(_read(folder, split, is_judged=False), word_statistics="pool")


def _read(folder: Path, split: str, *, is_judged: bool) -> Collection:
    check_folder(folder)
    corpus = open_file(folder, "corpus.jsonl")
    topics = open_file(folder, "queries.jsonl")
    qrels = (open_file if is_judged else open_optional)(folder, f"qrels/{split}.tsv")
    pools = open_optional(folder, "pools.jsonl")
    references = open_optional(folder, "references.jsonl")
    papers = _read_papers(corpus, references)
    queries = read_records(topics, "_id")
    files = (corpus, topics, qrels, pools, references)
    no_judgments = Judgments({query_id: {} for query_id in queries})
    return Collection(
        name=folder.resolve().name,
        queries=tuple(_read_query(query_id, record) for query_id, record in queries.items()),
        papers=papers,
        judgments=read_judgments(qrels, queries, papers, is_complete=is_judged) if qrels else no_judgments,
        fingerprint=fingerprint(file for file in files if file is not None),
        pools=None if pools is None else _read_pools(pools, queries, papers, may_be_empty=not is_judged),
    )


def read_queries(path: Path) -> tuple[Query, ...]:
    """Read and check the queries of a file."""
    records = read_records(open_path(path, path.name), "_id")
    return tuple(_read_query(query_id, record) for query_id, record in records.items())


def _read_papers(corpus: TextFile, references: TextFile | None) -> dict[str, Paper]:
    records = read_records(corpus, "_id")
    cited = {} if references is None else _read_references(references, records)
    return {paper_id: _read_paper(paper_id, record, cited) for paper_id, record in records.items()}


def _read_paper(paper_id: str, record: Record, cited: Mapping[str, tuple[str, ...]]) -> Paper:
    metadata = record.metadata()
    fields = {name: metadata.get(name, kind) for name, kind in _PAPER_FIELDS.items() if name in metadata.values}
    if paper_id in cited:
        fields["references"] = cited[paper_id]
    return Paper(paper_id, record.text("title"), record.text("text"), **fields)


def _read_references(file: TextFile, papers: Container[str]) -> dict[str, tuple[str, ...]]:
    """Return the references of every listed paper; the works that it cites may lie outside the corpus."""
    cited = {}
    for paper_id, record in read_records(file, "paper_id").items():
        if paper_id not in papers:
            raise record.error(f"unknown paper {shown(paper_id)}; expected an _id of corpus.jsonl")
        cited[paper_id] = record.require("references", TEXTS)
    return cited


def _read_query(query_id: str, record: Record) -> Query:
    text = record.text("text")
    if not text:
        raise record.error(f"the text of query {shown(query_id)} is empty; expected what the query asks for")
    metadata = record.metadata()
    return Query(
        query_id=query_id,
        text=text,
        keywords=metadata.get("keywords", TEXTS),
        domain=metadata.get("domain", TEXT),
        fields=metadata.get("fields", TEXTS),
        area=metadata.get("area", TEXT) or "all",
        paper_id=metadata.get("paper_id", TEXT),
    )


def _read_pools(
    file: TextFile, queries: Mapping[str, Record], papers: Container[str], *, may_be_empty: bool
) -> dict[str, tuple[str, ...]]:
    pools = {}
    for query_id, record in read_records(file, "query_id").items():
        if query_id not in queries:
            raise record.error(f"unknown query {shown(query_id)}; expected an _id of queries.jsonl")
        pools[query_id] = _read_pool(record, papers)
        if not pools[query_id] and not may_be_empty:
            raise record.error("the pool is empty; expected at least one candidate")
    for query_id, record in queries.items():
        if query_id not in pools:
            raise record.error(f"query {shown(query_id)} has no pool; expected one in {file.path}")
    return pools


def _read_pool(record: Record, papers: Container[str]) -> tuple[str, ...]:
    pool = record.require("candidates", IDENTIFIERS)
    seen: set[str] = set()
    for paper_id in pool:
        if paper_id not in papers:
            raise record.error(f"unknown paper {shown(paper_id)} in the pool; expected an _id of corpus.jsonl")
        if paper_id in seen:
            raise record.error(f"paper {shown(paper_id)} is in the pool twice; expected every candidate once")
        seen.add(paper_id)
    return pool
