"""DOAJ: bibjson, the query in the path, and nothing beyond the thousandth record."""

from __future__ import annotations

import re
from math import ceil
from typing import Any
from urllib.parse import quote

from fake_sources.answers import NOW, Answer, Ask, Shelf, json_answer
from fake_sources.ids import hexadecimal
from fake_sources.records import MadeUp

_MOST, _LAST = 100, 1000


def answer(ask: Ask, shelf: Shelf) -> Answer:
    asked = re.search(r"search/articles/(.+)$", ask.path)
    if not asked:
        return Answer(b"<html><body>404</body></html>", "text/html", 404)
    number, size = ask.whole("page", 1), min(ask.whole("pageSize", 10), _MOST)
    if number * size > _LAST:
        return error("You cannot access results beyond 1000 records via this API. (ref: 0123456789)", 400)
    total, papers = shelf.page(shelf.matching(asked[1]), (number - 1) * size, size)
    last = max(1, ceil(total / size))

    def link(to: int) -> str:
        return f"https://doaj.org/api/search/articles/{quote(asked[1])}?page={to}&pageSize={size}"

    links = {"prev": link(number - 1)} if number > 1 else {}
    links |= {"next": link(number + 1), "last": link(last)} if number < last else {}
    page = {"total": total, "page": number, "pageSize": size, "timestamp": NOW, "query": asked[1]}
    return json_answer(page | {"results": [_record(paper) for paper in papers]} | links)


def failure(ask: Ask) -> Answer:
    return error("The search failed (ref: 0123456789)", 200)


def error(text: str, status: int) -> Answer:
    return json_answer({"status": "bad_request", "error": text}, status)


def _record(paper: MadeUp) -> dict[str, Any]:
    """Return an article; one in five has no DOI, one in four no first page."""
    identifiers = [{"id": paper.issn, "type": "eissn"}]
    identifiers += [{"id": paper.doi, "type": "doi"}] if paper.number % 5 else []
    bibjson = {
        "identifier": identifiers,
        "journal": {
            "volume": paper.volume,
            "number": paper.issue,
            "country": "GB",
            "issns": [paper.issn],
            "publisher": "Flutter Press",
            "language": ["EN"],
            "title": paper.journal,
        },
        "month": str(paper.date.month),
        "year": str(paper.year),
        "end_page": str(paper.last_page),
        **({"start_page": str(paper.first_page)} if paper.number % 4 else {}),
        "subject": [{"code": "Q", "scheme": "LCC", "term": paper.discipline}],
        "author": [{"name": " ".join(names), "affiliation": "Institute of Flutter"} for names in paper.authors],
        "link": [{"content_type": "HTML", "type": "fulltext", "url": f"https://flutter.example/{paper.number}"}],
        "keywords": list(paper.keywords),
        "abstract": paper.abstract,
        "title": paper.title,
    }
    return {"last_updated": NOW, "bibjson": bibjson, "id": hexadecimal("doaj", paper, 32), "created_date": NOW}
