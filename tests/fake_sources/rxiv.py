"""bioRxiv and medRxiv: every version in an interval, thirty a page, and no search."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fake_sources.answers import Answer, Ask, Shelf, is_within, json_answer
from fake_sources.ids import preprint_doi
from fake_sources.records import MadeUp

PAGE = 30
SERVERS = {"biorxiv": "bioRxiv", "medrxiv": "medRxiv"}
_REVISION = datetime.timedelta(days=9)
_INTERVAL = re.compile(r"details/(\w+)/(\d{4}-\d\d-\d\d)/(\d{4}-\d\d-\d\d)(?:/(\d+))?(?:/json)?/?$")
_ONE = re.compile(r"details/(\w+)/(10\.\d+/\S+?)(?:/na)?(?:/json)?$")


def answer(ask: Ask, shelf: Shelf) -> Answer:
    if (interval := _INTERVAL.search(ask.path)) and interval[1] == ask.source:
        return _interval(ask, shelf, interval[2], interval[3], int(interval[4] or 0))
    if (one := _ONE.search(ask.path)) and one[1] == ask.source:
        found = [paper for paper in versions(ask.source, shelf.papers) if _doi(ask.source, paper) == one[2]]
        return _collection({"status": "ok", "category": "all"}, found, ask.source) if found else error("no posts found")
    return error("Error: check the interval")


def failure(ask: Ask) -> Answer:
    return error("Error: the database is not available")


def error(text: str) -> Answer:
    return json_answer({"messages": [{"status": text}], "collection": []})


def versions(source: str, papers: Sequence[MadeUp]) -> list[MadeUp]:
    """Return every version of these papers in the order of the API; each fourth paper has two, nine days apart."""
    later = [replace(paper, version=2, date=paper.date + _REVISION) for paper in papers if paper.number % 4 == 0]
    return sorted([*papers, *later], key=lambda paper: (_doi(source, paper), paper.version))


def _doi(source: str, paper: MadeUp) -> str:
    return preprint_doi(source, paper if paper.version == 1 else replace(paper, date=paper.date - _REVISION))


def _interval(ask: Ask, shelf: Shelf, first: str, last: str, cursor: int) -> Answer:
    found = [paper for paper in versions(ask.source, shelf.papers) if is_within(paper.date, first, last)]
    total, page = shelf.page(found, cursor, PAGE)
    if not page and shelf.pages != "empty":
        return error("no posts found")
    message = {
        "status": "ok",
        "category": "all",
        "interval": f"{first}:{last}",
        "cursor": cursor,
        "count": len(page),
        "count_new_papers": str(sum(paper.version == 1 for paper in found)),
        "total": str(total),
    }
    return _collection(message, page, ask.source)


def _collection(message: dict[str, Any], papers: Sequence[MadeUp], source: str) -> Answer:
    return json_answer({"messages": [message], "collection": [_record(paper, source) for paper in papers]})


def _record(paper: MadeUp, source: str) -> dict[str, Any]:
    return {
        "title": paper.title,
        "authors": "; ".join(f"{family}, {given[0]}." for given, family in paper.authors),
        "author_corresponding": " ".join(paper.authors[0]),
        "author_corresponding_institution": "Institute of Flutter",
        "doi": _doi(source, paper),
        "date": paper.date.isoformat(),
        "version": str(paper.version),
        "type": "new results" if source == "biorxiv" else "PUBLISHAHEADOFPRINT",
        "license": "cc_by",
        "category": paper.discipline.lower(),
        "jatsxml": f"https://www.{source}.org/content/early/{paper.number}.source.xml",
        "abstract": f"Background{paper.abstract}",
        "funder": "NA",
        "published": paper.doi if paper.is_published else "NA",
        "server": SERVERS[source],
    }
