"""Crossref: works with JATS abstracts, and a cursor that stays the same and never ends."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from typing import Any
from xml.sax.saxutils import escape

from fake_sources.answers import Answer, Ask, Shelf, json_answer
from fake_sources.ids import preprint_doi
from fake_sources.records import MadeUp

_MOST_ROWS, _LAST_OFFSET = 1000, 10_000
_QUERIES = re.compile(r"query(\.[\w-]+)?$")


def answer(ask: Ask, shelf: Shelf) -> Answer:
    if single := re.search(r"/works/(.+)$", ask.path):
        return _single(shelf, single[1])
    rows, offset, cursor = ask.whole("rows", 20), ask.whole("offset", 0), ask.params.get("cursor")
    if rows > _MOST_ROWS:
        return _refused(400, "integer-not-valid", f"Integer specified as {rows} but must be at most {_MOST_ROWS}.")
    if offset > _LAST_OFFSET:
        return _refused(400, "integer-not-valid", f"Offset specified as {offset} but must be at most {_LAST_OFFSET}.")
    if cursor is None:
        return _page(ask, shelf, offset, rows)
    if cursor == "*":
        cursor = f"DnF1ZXJ5VGhlbkZldGNo+{len(shelf.walks)}/AAAA="
        shelf.walks[cursor] = 0
    if cursor not in shelf.walks:
        return _refused(404, "cursor-invalid", "Cursor specified but it is invalid")
    return _page(ask, shelf, shelf.walks[cursor], rows, cursor)


def failure(ask: Ask) -> Answer:
    return _refused(200, "internal-failure", "The search did not come to an end")


def _single(shelf: Shelf, doi: str) -> Answer:
    if not (found := shelf.of_dois([doi])):
        return Answer(b"Resource not found.", "text/plain", 404)
    return json_answer(_told("work", _work(found[0])))


def _refused(status: int, kind: str, text: str) -> Answer:
    message = [{"type": kind, "value": "", "message": text}]
    return json_answer({"status": "failed", "message-type": "validation-failure", "message": message}, status)


def _found(ask: Ask, shelf: Shelf) -> list[MadeUp]:
    filters = [part.partition(":")[::2] for part in ask.params.get("filter", "").split(",") if part]
    if dois := [value for name, value in filters if name == "doi"]:
        return shelf.of_dois(dois)
    queries = [value for name, value in ask.params.items() if _QUERIES.match(name)]
    return shelf.matching(" ".join(queries)) if queries else list(shelf.papers)


def _page(ask: Ask, shelf: Shelf, start: int, rows: int, cursor: str | None = None) -> Answer:
    total, papers = shelf.page(_found(ask, shelf), start, rows)
    names = [name for name in ask.params.get("select", "").split(",") if name]
    works = [_work(paper) for paper in papers]
    message = {
        "facets": {},
        **({"next-cursor": cursor} if cursor else {}),
        "total-results": total,
        "items": [{name: work[name] for name in names if name in work} for work in works] if names else works,
        "items-per-page": rows,
        "query": {"start-index": 0 if cursor else start, "search-terms": ask.params.get("query")},
    }
    answer = json_answer(_told("work-list", message), headers=_pace(ask))
    return answer if cursor is None else replace(answer, moves_on=lambda: shelf.walks.update({cursor: start + rows}))


def _pace(ask: Ask) -> dict[str, str]:
    """Return the headers that clients pace themselves by; generous, because tests do not wait."""
    is_known = "mailto" in ask.params or "mailto:" in ask.headers.get("user-agent", "")
    return {
        "x-rate-limit-limit": "1000",
        "x-rate-limit-interval": "1s",
        "x-concurrency-limit": "100",
        "x-api-pool": "polite" if is_known else "public",
    }


def _told(kind: str, message: dict[str, Any]) -> dict[str, Any]:
    return {"status": "ok", "message-type": kind, "message-version": "1.0.0", "message": message}


def _date(date: datetime.date, parts: int = 3) -> dict[str, Any]:
    return {"date-parts": [[date.year, date.month, date.day][:parts]]}


def _moment(date: datetime.date) -> dict[str, Any]:
    return {**_date(date), "date-time": f"{date}T00:00:00Z", "timestamp": 1000 * (date.toordinal() - 719_163) * 86_400}


def _work(paper: MadeUp) -> dict[str, Any]:
    """Return a journal article; what is missing is absent, as there."""
    parts = 1 + paper.number % 3
    work = {
        "indexed": _moment(paper.date),
        "reference-count": len(paper.references),
        "publisher": "Flutter Press",
        "issue": paper.issue,
        "content-domain": {"domain": [], "crossmark-restriction": False},
        "short-container-title": [],
        "DOI": paper.doi.upper() if paper.number % 5 == 0 else paper.doi,
        "type": "journal-article",
        "created": _moment(paper.date),
        "page": f"{paper.first_page}-{paper.last_page}",
        "source": "Crossref",
        "is-referenced-by-count": paper.citation_count,
        "title": [_marked_up(paper)],
        "prefix": "10.5555",
        "volume": paper.volume,
        "author": [_author(*names, is_first=not i) for i, names in enumerate(paper.authors)],
        "member": "7822",
        "container-title": [paper.journal],
        "language": "en",
        "deposited": _moment(paper.date),
        "score": 12.5,
        "resource": {"primary": {"URL": f"https://flutter.example/{paper.number}"}},
        "subtitle": [],
        "issued": _date(paper.date, parts),
        "references-count": len(paper.references),
        "URL": f"http://dx.doi.org/{paper.doi}",
        "relation": {},
        "ISSN": [paper.issn],
        "issn-type": [{"type": "electronic", "value": paper.issn}],
        "published": _date(paper.date, parts),
    }
    return work | _deposited(paper)


def _deposited(paper: MadeUp) -> dict[str, Any]:
    """Return what some publishers register and others do not."""
    some: dict[str, Any] = {}
    if paper.references:
        some["reference"] = [_reference(doi, key) for key, doi in enumerate(paper.references)]
    if paper.number % 4:
        some["abstract"] = _jats(paper)
    if paper.is_published and paper.number % 2:
        preprint = {"id-type": "doi", "id": preprint_doi("arxiv", paper), "asserted-by": "subject"}
        some["relation"] = {"has-preprint": [preprint]}
    return some


def _author(given: str, family: str, *, is_first: bool) -> dict[str, Any]:
    return {"given": given, "family": family, "sequence": "first" if is_first else "additional", "affiliation": []}


def _reference(doi: str, key: int) -> dict[str, Any]:
    if key == 3:  # the fourth is known by its text alone
        return {"key": f"ref{key}", "unstructured": "Flutter, F. A book without a DOI."}
    return {"key": f"ref{key}", "doi-asserted-by": "publisher", "DOI": doi.upper()}


def _marked_up(paper: MadeUp) -> str:
    if paper.number % 7:
        return paper.title
    first, _, rest = paper.title.partition(" ")
    return f"<i>{first}</i>\n                    {rest}"


def _jats(paper: MadeUp) -> str:
    jats = f"<jats:title>Abstract</jats:title><jats:p>{escape(paper.abstract)}</jats:p>"
    return escape(jats) if paper.number % 9 == 1 else jats
