"""Scopus: numbers as text, no abstract without the right view, no more than 5000 without the right token."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlencode

from fake_sources.answers import Answer, Ask, Shelf, json_answer
from fake_sources.records import MadeUp

_URL = "https://api.elsevier.com/content"
_MOST = {"STANDARD": 200, "COMPLETE": 25}
_LAST = 5000


def answer(ask: Ask, shelf: Shelf) -> Answer:
    if not (ask.headers.get("x-els-apikey") or ask.params.get("apiKey")):
        return _refused(401, "AUTHENTICATION_ERROR", "Invalid API Key specified")
    view, is_subscriber = ask.params.get("view", "STANDARD"), bool(ask.headers.get("x-els-insttoken"))
    if view == "COMPLETE" and not is_subscriber:
        return _refused(401, "AUTHORIZATION_ERROR", "The requestor is not authorized to access the requested view")
    start, size, cursor = ask.whole("start", 0), ask.whole("count", 25), ask.params.get("cursor")
    if size > _MOST[view] or start + size > _LAST or (cursor and not is_subscriber):
        return _refused(400, "INVALID_INPUT", "Exceeds the maximum number allowed for the service level")
    start = start if cursor is None else _place(cursor)
    total, papers = shelf.page(shelf.matching(ask.params.get("query", "")), start, size)
    entries = [_entry(paper, view) for paper in papers]
    links = _links(ask, start, size, total)
    results = {
        "opensearch:totalResults": str(total),
        "opensearch:startIndex": str(start),
        "opensearch:itemsPerPage": str(len(papers)),
        "opensearch:Query": {"@role": "request", "@searchTerms": ask.params.get("query", ""), "@startPage": str(start)},
        "link": links,
        "entry": entries if total else [{"@_fa": "true", "error": "Result set was empty"}],
    }
    if cursor is not None:
        del results["opensearch:startIndex"]
        results["cursor"] = {"@current": cursor, "@next": _cursor(start + size)}
    quota = {"X-RateLimit-Limit": "20000", "X-RateLimit-Remaining": "19990"}
    return json_answer({"search-results": results}, headers=quota)


def failure(ask: Ask) -> Answer:
    return _refused(200, "GENERAL_SYSTEM_ERROR", "Error processing your request")


def _refused(status: int, code: str, text: str) -> Answer:
    return json_answer({"service-error": {"status": {"statusCode": code, "statusText": text}}}, status)


def _cursor(place: int) -> str:
    return base64.b64encode(f"AoJ {place}".encode()).decode()


def _place(cursor: str) -> int:
    return 0 if cursor == "*" else int(base64.b64decode(cursor).split()[1])


def _links(ask: Ask, start: int, size: int, total: int) -> list[dict[str, str]]:
    def link(ref: str, to: int) -> dict[str, str]:
        kept = {name: text for name, text in ask.params.items() if name not in ("start", "count", "apiKey")}
        url = f"{_URL}/search/scopus?{urlencode({'start': to, 'count': size} | kept)}"
        return {"@_fa": "true", "@ref": ref, "@href": url, "@type": "application/json"}

    reachable = min(total, _LAST)
    following = [link("next", start + size)] if start + size < reachable else []
    last = [link("last", max(0, reachable - 1) // size * size)] if total else []
    return [link("self", start), link("first", 0), *following, *last]


def _entry(paper: MadeUp, view: str) -> dict[str, Any]:
    number = str(85_000_000_000 + paper.number)
    given, family = paper.authors[0]
    is_paged = paper.number % 5 > 0
    entry = {
        "@_fa": "true",
        "link": [
            {"@_fa": "true", "@ref": "self", "@href": f"{_URL}/abstract/scopus_id/{number}"},
            {"@_fa": "true", "@ref": "scopus", "@href": f"https://www.scopus.com/inward/record.uri?scp={number}"},
        ],
        "prism:url": f"{_URL}/abstract/scopus_id/{number}",
        "dc:identifier": f"SCOPUS_ID:{number}",
        "eid": f"2-s2.0-{number}",
        "dc:title": paper.title,
        "dc:creator": f"{family} {given[0]}.",
        "prism:publicationName": paper.journal,
        "prism:eIssn": paper.issn.replace("-", ""),
        "prism:volume": paper.volume,
        "prism:issueIdentifier": paper.issue,
        "prism:pageRange": f"{paper.first_page}-{paper.last_page}" if is_paged else None,
        "prism:coverDate": paper.date.isoformat(),
        "prism:coverDisplayDate": f"{paper.date:%d %B %Y}",
        "prism:doi": paper.doi,
        "citedby-count": str(paper.citation_count),
        "affiliation": [{"@_fa": "true", "affilname": "Institute of Flutter", "affiliation-city": "Bergen"}],
        "prism:aggregationType": "Journal",
        "subtype": "ar",
        "subtypeDescription": "Article",
        **({} if is_paged else {"article-number": str(paper.first_page)}),
        "source-id": "21101027394",
        "openaccess": "1" if paper.is_open else "0",
        "openaccessFlag": paper.is_open,
    }
    return entry | (_complete(paper) if view == "COMPLETE" else {})


def _complete(paper: MadeUp) -> dict[str, Any]:
    return {
        "dc:description": paper.abstract,
        "author-count": {"@limit": "100", "@total": str(len(paper.authors)), "$": str(len(paper.authors))},
        "author": [
            {
                "@_fa": "true",
                "@seq": str(seq),
                "authid": str(6_602_330_574 + seq),
                "authname": f"{family} {given[0]}.",
                "surname": family,
                "given-name": given,
                "initials": f"{given[0]}.",
                "afid": [{"@_fa": "true", "$": "60027844"}],
            }
            for seq, (given, family) in enumerate(paper.authors, 1)
        ],
        "authkeywords": " | ".join(paper.keywords),
    }
