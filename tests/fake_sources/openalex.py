"""OpenAlex: works with inverted abstracts, DOIs as URLs, and venues by ISSN."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

from fake_sources.answers import NOW, Answer, Ask, Shelf, json_answer
from fake_sources.records import JOURNALS, PER_SEED, MadeUp

_URL = "https://openalex.org"
_MOST_PER_PAGE, _MOST_VALUES, _LAST = 200, 100, 10_000
_LEFT = {"X-RateLimit-Limit": "100000", "X-RateLimit-Remaining": "99990", "X-RateLimit-Credits-Used": "10"}
_NOT_FOUND = b"<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n"


def answer(ask: Ask, shelf: Shelf) -> Answer:
    if single := re.search(r"/works/(.+)$", ask.path):
        found = shelf.of_dois([re.sub(r"^(https://doi\.org/|doi:)", "", single[1])])
        return (
            json_answer(_work(found[0]), headers=_LEFT)
            if found
            else Answer(_NOT_FOUND, "text/html; charset=utf-8", 404)
        )
    size = int(ask.params.get("per-page") or ask.params.get("per_page") or 25)
    filters = dict(part.partition(":")[::2] for part in ask.params.get("filter", "").split(",") if part)
    if not 1 <= size <= _MOST_PER_PAGE:
        return _refused("Pagination error.", "per-page parameter must be between 1 and 200")
    if any(value.count("|") >= _MOST_VALUES for value in filters.values()):
        return _refused("Invalid query parameters error.", "Maximum number of values exceeded for a filter.")
    if ask.path.rstrip("/").endswith("/sources"):
        return _venues(ask, shelf, filters.get("issn", "").split("|"), size)
    return _works(ask, shelf, filters, size)


def failure(ask: Ask) -> Answer:
    return _refused("Internal error.", "The search could not be run.", 200)


def _refused(kind: str, text: str, status: int = 400) -> Answer:
    return json_answer({"error": kind, "message": text}, status)


def _works(ask: Ask, shelf: Shelf, filters: dict[str, str], size: int) -> Answer:
    cursor, number = ask.params.get("cursor"), ask.whole("page", 1)
    if cursor is None and number * size > _LAST:
        return _refused("Pagination error.", "Maximum results size of 10,000 records is exceeded.")
    start = (number - 1) * size if cursor is None else _place(cursor)
    total, papers = shelf.page(_found(ask, shelf, filters), start, size)
    meta: dict[str, Any] = {"count": total, "db_response_time_ms": 3, "page": number, "per_page": size}
    meta["groups_count"] = None
    if cursor is not None:
        meta |= {"page": None, "next_cursor": _cursor(start + size) if papers else None}
    works = _selected(ask, [_work(paper) for paper in papers])
    return json_answer({"meta": meta, "results": works, "group_by": []}, headers=_LEFT)


def _found(ask: Ask, shelf: Shelf, filters: dict[str, str]) -> list[MadeUp]:
    if "doi" in filters:
        return shelf.of_dois([value.removeprefix("https://doi.org/") for value in filters["doi"].split("|")])
    texts = [ask.params.get("search", ""), *(value for name, value in filters.items() if name.endswith(".search"))]
    return shelf.matching(" ".join(texts)) if any(texts) else list(shelf.papers)


def _cursor(place: int) -> str:
    return base64.b64encode(json.dumps([100.5, place]).encode()).decode()


def _place(cursor: str) -> int:
    place: int = 0 if cursor == "*" else json.loads(base64.b64decode(cursor))[1]
    return place


def _venues(ask: Ask, shelf: Shelf, issns: list[str], size: int) -> Answer:
    known = [issn for issn in issns if issn in shelf.venues][:size]
    venues = [_venue(issn) | {"summary_stats": _stats(shelf.venues[issn])} for issn in known]
    meta = {"count": len(known), "db_response_time_ms": 3, "page": 1, "per_page": size, "groups_count": None}
    return json_answer({"meta": meta, "results": _selected(ask, venues), "group_by": []}, headers=_LEFT)


def _selected(ask: Ask, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = [name for name in ask.params.get("select", "").split(",") if name]
    return [{name: record[name] for name in names if name in record} for record in records] if names else records


def _stats(citedness: float) -> dict[str, Any]:
    return {"2yr_mean_citedness": citedness, "h_index": 90, "i10_index": 1200}


def _venue(issn: str) -> dict[str, Any]:
    name = next((name for name, known in JOURNALS if known == issn), f"Journal {issn}")
    return {
        "id": f"{_URL}/S{issn.replace('-', '').replace('X', '0')}",
        "display_name": name,
        "issn_l": issn,
        "issn": [issn],
        "is_oa": False,
        "is_in_doaj": False,
        "host_organization_name": "Flutter Press",
        "type": "journal",
    }


def _work(paper: MadeUp) -> dict[str, Any]:
    location = _location(paper)
    topic = _topic(paper)
    return {
        "id": _id(paper.number),
        "doi": f"https://doi.org/{paper.doi}",
        "title": paper.title,
        "display_name": paper.title,
        "publication_year": paper.year,
        "publication_date": paper.date.isoformat(),
        "ids": {"openalex": _id(paper.number), "doi": f"https://doi.org/{paper.doi}"},
        "language": "en",
        "primary_location": location,
        "type": "article",
        "indexed_in": ["crossref"],
        "open_access": _access(paper),
        "authorships": [_authorship(" ".join(names), i, len(paper.authors)) for i, names in enumerate(paper.authors)],
        "cited_by_count": paper.citation_count,
        "biblio": _biblio(paper),
        "is_retracted": False,
        "is_paratext": False,
        "is_xpac": False,
        "primary_topic": topic,
        "topics": [topic],
        "keywords": [_keyword(keyword) for keyword in paper.keywords],
        "concepts": [],
        "locations_count": 1,
        "locations": [location],
        "best_oa_location": location if paper.is_open else None,
        "referenced_works_count": len(paper.references),
        "referenced_works": [_id(paper.number // PER_SEED * PER_SEED + place) for place in _places(paper.references)],
        "abstract_inverted_index": _inverted(paper.abstract) if paper.number % 15 else None,
        "updated_date": NOW,
    }


def _id(number: int) -> str:
    return f"{_URL}/W{4_000_000_000 + number}"


def _places(dois: Sequence[str]) -> list[int]:
    return [int(doi.rpartition(".")[2]) for doi in dois]


def _access(paper: MadeUp) -> dict[str, Any]:
    return {
        "is_oa": paper.is_open,
        "oa_status": "gold" if paper.is_open else "closed",
        "oa_url": _location(paper)["pdf_url"],
        "any_repository_has_fulltext": False,
    }


def _biblio(paper: MadeUp) -> dict[str, str]:
    pages = {"first_page": str(paper.first_page), "last_page": str(paper.last_page)}
    return {"volume": paper.volume, "issue": paper.issue, **pages}


def _keyword(keyword: str) -> dict[str, Any]:
    return {"id": f"{_URL}/keywords/{keyword}", "display_name": keyword.capitalize(), "score": 0.5}


def _location(paper: MadeUp) -> dict[str, Any]:
    return {
        "id": f"doi:{paper.doi}",
        "is_oa": paper.is_open,
        "landing_page_url": f"https://doi.org/{paper.doi}",
        "pdf_url": f"https://flutter.example/{paper.number}.pdf" if paper.is_open else None,
        "source": _venue(paper.issn) | {"display_name": paper.journal},
        "license": None,
        "version": "publishedVersion",
        "raw_source_name": paper.journal,
        "raw_type": "journal-article",
    }


def _authorship(name: str, i: int, n: int) -> dict[str, Any]:
    return {
        "author_position": "first" if i == 0 else "last" if i == n - 1 else "middle",
        "author": {"id": f"{_URL}/A50000{i}", "display_name": name, "orcid": None},
        "institutions": [],
        "raw_author_name": name,
    }


def _topic(paper: MadeUp) -> dict[str, Any]:
    named = {"id": f"{_URL}/fields/33", "display_name": paper.discipline}
    return {"id": f"{_URL}/T10000", "display_name": "Flutter", "subfield": named, "field": named, "domain": named}


def _inverted(text: str) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, word in enumerate(text.split()):
        places.setdefault(word, []).append(place)
    return places
