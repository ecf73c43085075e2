"""Web of Science Starter: no abstracts, old titles in capitals, citations unknown on a free key."""

from __future__ import annotations

from typing import Any

from fake_sources.answers import Answer, Ask, Shelf, json_answer
from fake_sources.records import MadeUp

_MOST = 50


def answer(ask: Ask, shelf: Shelf) -> Answer:
    if not ask.headers.get("x-apikey"):
        return json_answer({"error": "invalid_request", "error_description": "The access token is missing"}, 401)
    limit, number = ask.whole("limit", 10), ask.whole("page", 1)
    if "q" not in ask.params or number < 1 or not 0 <= limit <= _MOST:
        return error(400, "Bad Request", "q is needed, limit is 0 to 50, page is 1 or more")
    if not ask.path.endswith("/documents"):
        return error(404, "Resource couldn't be found", "There is no record found.")
    total, papers = shelf.page(shelf.matching(ask.params["q"]), (number - 1) * limit, limit)
    metadata = {"total": total, "page": number, "limit": limit}
    return json_answer({"metadata": metadata, "hits": [_hit(paper) for paper in papers]})


def failure(ask: Ask) -> Answer:
    return error(200, "Internal error", "The search failed.")


def error(status: int, title: str, details: str) -> Answer:
    return json_answer({"error": {"status": status, "title": title, "details": details}}, status)


def uid(paper: MadeUp) -> str:
    return f"WOS:{paper.number:015d}"


def _hit(paper: MadeUp) -> dict[str, Any]:
    is_old = paper.year < 2018
    return {
        "uid": uid(paper),
        "title": paper.title.upper() if is_old else paper.title,
        "types": ["Article"],
        "sourceTypes": ["Article"],
        "source": {
            "sourceTitle": paper.journal.upper(),
            "publishYear": paper.year,
            **({"publishMonth": f"{paper.date:%b}".upper()} if paper.number % 3 else {}),
            "volume": paper.volume,
            "issue": paper.issue,
            "pages": _pages(paper),
        },
        "names": {"authors": [_author(*names, i) for i, names in enumerate(paper.authors)]},
        "links": {"record": [] if is_old else f"https://www.webofscience.com/api/gateway?KeyUT={uid(paper)}"},
        "citations": [{"db": "WOK", "count": 10_000}, {"db": "WOS", "count": paper.citation_count}]
        if paper.number % 4
        else [],
        "identifiers": {"doi": paper.doi, "eissn": paper.issn},
        "keywords": {"authorKeywords": list(paper.keywords)},
    }


def _pages(paper: MadeUp) -> dict[str, Any]:
    first, last = str(paper.first_page), str(paper.last_page)
    if paper.number % 10 == 9:
        return {"range": f"{first}-&", "begin": first, "end": "&", "count": 0}
    return {"range": f"{first}-{last}", "begin": first, "end": last, "count": 1 + paper.last_page - paper.first_page}


def _author(given: str, family: str, i: int) -> dict[str, str]:
    author = {"displayName": f"{family}, {given}"}
    return author if i == 1 else author | {"wosStandard": f"{family}, {given[0]}", "researcherId": "C-1669-2016"}
