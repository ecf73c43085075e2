"""Query by query: what was asked, how each run did on it, and the head of the best runs' rankings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.collections import Collection
from experiments.report_tables import Cell, Entry, Table, label_of
from pipeline.papers import CATEGORIES, Query

#: Columns of ranking.jsonl that are shown as numbers, and what a reader calls them.
SCORES = {
    "bm25": "BM25",
    "sts_title": "title",
    "sts_abstract": "abstract",
    "sts_keywords": "keywords",
    "sts_disciplines": "disciplines",
    "sts": "STS",
    "reputation": "reputation",
    "score": "score",
    "expected_grade": "expected",
}


@dataclass(frozen=True)
class RankedPaper:
    """A row of a ranking, ready to be laid out; grades are 0 to 3, None: none."""

    rank: int
    paper_id: str
    title: str
    scores: Sequence[str]
    initial: int | None
    model: int | None
    judged: int | None
    explanation: str | None
    notes: Sequence[str]  #: what the judge said, what it cost, what went wrong


@dataclass(frozen=True)
class Ranking:
    """The head of one run's ranking for a query."""

    entry: Entry
    scores: Sequence[str]  #: headers of the numbers that this run has
    has_initial: bool
    has_model: bool
    papers: Sequence[RankedPaper]
    length: int  #: of the whole ranking
    same_as: Entry | None = None  #: a run shown before, whose papers and scores here are all the same


@dataclass(frozen=True)
class QueryPage:
    """One query; ``query`` is None where the collection could not be read."""

    query_id: str
    area: str
    query: Query | None
    headline: str  #: the objective in the best run
    metrics: Table
    rankings: Sequence[Ranking]


def query_pages(
    entries: Sequence[Entry], shown: Sequence[Entry], metrics: Sequence[str], top: int, collection: Collection | None
) -> list[QueryPage]:
    """Return a page a query, with the rankings of the runs in ``shown``; ``metrics`` begins with the objective."""
    rankings = {entry.number: entry.run.rankings() for entry in shown}
    judged = {entry.number: _judged(entry) for entry in shown}
    queries = {} if collection is None else {query.query_id: query for query in collection.queries}
    known = [*queries, *entries[0].run.scores.queries, *(q for of_run in rankings.values() for q in of_run)]
    asked = [
        q for q in dict.fromkeys(known) if any(q in e.run.scores.queries for e in entries) or _is_ranked(q, rankings)
    ]
    pages = []
    for query_id in asked:
        grades = {} if collection is None else collection.judgments[query_id]
        heads = _without_repeats(
            _ranking(entry, rankings[entry.number][query_id], top, grades, judged[entry.number])
            for entry in shown
            if query_id in rankings[entry.number]
        )
        query = queries.get(query_id)
        area = query.area if query else entries[0].run.area_of.get(query_id, "")
        best = entries[0].run.scores.queries.get(query_id, {}).get(metrics[0])
        headline = "—" if best is None else f"{best:.3f}"
        pages.append(QueryPage(query_id, area, query, headline, _metrics(entries, metrics, query_id), heads))
    return pages


def _without_repeats(rankings: Iterable[Ranking]) -> list[Ranking]:
    shown: list[Ranking] = []
    for ranking in rankings:
        same = next((r.entry for r in shown if r.papers == ranking.papers and r.scores == ranking.scores), None)
        shown.append(replace(ranking, same_as=same))
    return shown


def _is_ranked(query_id: str, rankings: Mapping[int, Mapping[str, Any]]) -> bool:
    return any(query_id in of_run for of_run in rankings.values())


def _judged(entry: Entry) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what the judge said of each explanation, by query and paper."""
    path = entry.run.folder / "explanations.jsonl"
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(row["query_id"], row["paper_id"]): row for row in rows}


def _metrics(entries: Sequence[Entry], metrics: Sequence[str], query_id: str) -> Table:
    rows: list[list[Cell]] = []
    for entry in entries:
        values = entry.run.scores.queries.get(query_id, {})
        rows.append([entry.label, *("—" if (v := values.get(name)) is None else f"{v:.3f}" for name in metrics)])
    return Table(["run", *map(label_of, metrics)], rows)


def _ranking(
    entry: Entry,
    rows: Sequence[Mapping[str, Any]],
    top: int,
    grades: Mapping[str, int],
    judged: Mapping[tuple[str, str], Mapping[str, Any]],
) -> Ranking:
    head = rows[:top]
    names = [name for name in SCORES if any(row.get(name) is not None for row in head)]
    papers = [
        RankedPaper(
            rank=row["rank"],
            paper_id=row["paper_id"],
            title=row.get("title") or "(without a title)",
            scores=["—" if (value := row.get(name)) is None else f"{value:.3f}" for name in names],
            initial=_grade(row.get("initial_category")),
            model=_grade(row.get("category")),
            judged=grades.get(row["paper_id"]),
            explanation=row.get("explanation"),
            notes=_notes(row, judged.get((row["query_id"], row["paper_id"]))),
        )
        for row in head
    ]
    has_initial, has_model = (any(name in row for row in head) for name in ("initial_category", "category"))
    return Ranking(entry, [SCORES[name] for name in names], has_initial, has_model, papers, len(rows))


def _grade(category: str | None) -> int | None:
    return CATEGORIES.index(category) if category in CATEGORIES else None


def _notes(row: Mapping[str, Any], judged: Mapping[str, Any] | None) -> list[str]:
    notes = []
    if row.get("outcome") not in {None, "graded"}:
        notes.append(f"the model's answer: {row['outcome']}")
    if row.get("instruction_like"):
        notes.append("the text holds something like an instruction")
    if judged is not None:
        scores = {"faithfulness": "faithfulness", "explanation_relevance": "relevance of the explanation"}
        for name, label in scores.items():
            value = judged[name]
            notes.append(f"{label} {value:g}" if value is not None else f"{label}: none, {judged['faults'].get(name)}")
    if row.get("requests"):
        tokens = [_known(row.get(name)) for name in ("input_tokens", "output_tokens")]
        usd = row.get("usd")
        notes.append(f"{tokens[0]} + {tokens[1]} tokens, " + ("cost unknown" if usd is None else f"${usd:.6f}"))
    return notes


def _known(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f}"
