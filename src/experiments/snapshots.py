"""Snapshots: what sources answered to queries, frozen in a folder in the collection layout.

corpus.jsonl.gz   every paper once, merged and completed, with where each field is from
queries.jsonl     the queries
pools.jsonl       which papers were found for which query
reports.csv       what became of every query at every source
manifest.json     settings, days, versions, counts, and the sha256 of the files above; written last
responses.sqlite  the answers of the sources as they came; all other files can be made again from it
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from experiments.files import replacing, write_lines
from experiments.tables import write_csv
from pipeline.collecting.reports import Report
from pipeline.errors import UserError
from pipeline.papers import Paper, Query

RESPONSES = "responses.sqlite"
MANIFEST = "manifest.json"
CORPUS, QUERIES, POOLS, REPORTS = "corpus.jsonl.gz", "queries.jsonl", "pools.jsonl", "reports.csv"
FILES = (CORPUS, QUERIES, POOLS, REPORTS)


@dataclass(frozen=True)
class Snapshot:
    """What a collection has made of its queries."""

    queries: Sequence[Query]
    papers: Sequence[Paper]  #: sorted by id
    pools: Mapping[str, Sequence[str]]  #: query id -> paper ids
    reports: Sequence[Report]
    n_records: int  #: before merging
    facts: Mapping[str, Any]  #: settings, days and versions, for the manifest


def write_snapshot(snapshot: Snapshot, folder: Path, responses_fingerprint: str) -> None:
    """Write all files but the responses; the same snapshot makes the same bytes."""
    (folder / MANIFEST).unlink(missing_ok=True)
    _write_gzip(folder / CORPUS, (json.dumps(_paper_row(paper), ensure_ascii=False) for paper in snapshot.papers))
    write_lines(folder / QUERIES, (json.dumps(_query_row(q), ensure_ascii=False) for q in snapshot.queries))
    pools = ({"query_id": query_id, "candidates": list(ids)} for query_id, ids in snapshot.pools.items())
    write_lines(folder / POOLS, (json.dumps(pool, ensure_ascii=False) for pool in pools))
    names = [field.name for field in fields(Report)]
    write_csv(folder / REPORTS, names, [list(asdict(report).values()) for report in snapshot.reports])
    manifest = {
        **snapshot.facts,
        "counts": {
            "queries": len(snapshot.queries),
            "records": snapshot.n_records,
            "papers": len(snapshot.papers),
            "with_abstract": sum(bool(paper.abstract) for paper in snapshot.papers),
            "with_doi": sum(bool(paper.doi) for paper in snapshot.papers),
            "with_pdf": sum(bool(paper.pdf_url) for paper in snapshot.papers),
            "with_impact_factor": sum(paper.impact_factor is not None for paper in snapshot.papers),
        },
        "responses": responses_fingerprint,
        "files": {name: _sha256(folder / name) for name in FILES},
    }
    write_lines(folder / MANIFEST, [json.dumps(manifest, indent=1, ensure_ascii=False)])


def ids_that_go(snapshot: Snapshot, folder: Path) -> list[str]:
    """Return the paper ids of the pools in this folder that the snapshot no longer has: merged with newer records."""
    try:
        lines = (folder / POOLS).read_text(encoding="utf-8").splitlines()
        before = {str(paper_id) for line in lines for paper_id in json.loads(line)["candidates"]}
    except (OSError, ValueError, KeyError, TypeError):  # not there yet, or damaged: it is made anew
        return []
    return sorted(before - {paper.paper_id for paper in snapshot.papers})


def check_files(folder: Path) -> None:
    """Raise ``UserError`` unless this folder holds a finished snapshot whose files are those that were frozen."""
    path = folder / MANIFEST
    if not path.is_file():
        unfinished = "; its collection was not finished, run it again" if (folder / RESPONSES).is_file() else ""
        raise UserError(f"{folder}: no {MANIFEST}, expected a snapshot made by litgrade collect{unfinished}")
    try:
        known = dict(json.loads(path.read_text(encoding="utf-8"))["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: {error!r}; expected the manifest of a snapshot") from error
    for name in FILES:
        if not (folder / name).is_file() or _sha256(folder / name) != known.get(name):
            raise UserError(
                f"{folder / name}: not the file that was frozen; make it again with litgrade collect "
                f"sources.mode=replay snapshot={folder}"
            )


def _paper_row(paper: Paper) -> dict[str, Any]:
    """Return a row of corpus.jsonl; what is unknown is left out."""
    values = asdict(paper)
    row = {"_id": values.pop("paper_id"), "title": values.pop("title"), "text": values.pop("abstract")}
    return row | {"metadata": {name: value for name, value in values.items() if value not in (None, (), {})}}


def _query_row(query: Query) -> dict[str, Any]:
    values = asdict(query)
    return {
        "_id": values.pop("query_id"),
        "text": values.pop("text"),
        "metadata": {k: v for k, v in values.items() if v},
    }


def _write_gzip(path: Path, lines: Iterable[str]) -> None:
    with (
        replacing(path) as partial,
        partial.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed,  # no name and time: the same bytes
    ):
        packed.writelines(f"{line}\n".encode() for line in lines)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
