"""Semantic Scholar: only the fields that are asked for, and ``next`` as long as there is more."""

from __future__ import annotations

from typing import Any

from fake_sources.answers import Answer, Ask, Shelf, json_answer
from fake_sources.ids import arxiv_id, hexadecimal
from fake_sources.records import MadeUp, made_up_paper

_MOST, _LAST, _BULK = 100, 1000, 1000


def answer(ask: Ask, shelf: Shelf) -> Answer:
    fields = [name for name in ask.params.get("fields", "title").split(",") if name]
    unknown = [name for name in fields if name.partition(".")[0] not in _FIELDS]
    if unknown:
        return error(f"Unrecognized or unsupported fields: [{', '.join(unknown)}]", 400)
    found = shelf.matching(ask.params.get("query", ""))
    if ask.path.endswith("/paper/search/bulk"):
        return _bulk(ask, shelf, found, fields)
    if not ask.path.endswith("/paper/search"):
        return json_answer({"message": "Not Found"}, 404)
    offset, limit = ask.whole("offset", 0), ask.whole("limit", 10)
    if limit > _MOST or offset + limit > _LAST:
        return error(
            f"Requested data for offset={offset} + limit={limit} must be < {_LAST}, limit at most {_MOST}", 400
        )
    total, papers = shelf.page(found, offset, limit)
    if not total:
        return json_answer({"total": 0, "offset": 0})
    more = {"next": offset + limit} if offset + limit < min(total, _LAST) else {}
    return json_answer({"total": total, "offset": offset, **more, "data": [_asked(paper, fields) for paper in papers]})


def failure(ask: Ask) -> Answer:
    return error("Internal server error", 200)


def error(text: str, status: int) -> Answer:
    return json_answer({"error": text}, status)


def _bulk(ask: Ask, shelf: Shelf, found: list[MadeUp], fields: list[str]) -> Answer:
    token = ask.params.get("token")
    start = int(token.removeprefix("PCOKWVSKJJ")) if token else 0
    total, papers = shelf.page(found, start, _BULK)
    following = f"PCOKWVSKJJ{start + _BULK}" if start + _BULK < total else None
    return json_answer({"total": total, "token": following, "data": [_asked(paper, fields) for paper in papers]})


def _asked(paper: MadeUp, fields: list[str]) -> dict[str, Any]:
    record = _record(paper)
    names = {name.partition(".")[0] for name in fields} | {"paperId"}
    return {name: value for name, value in record.items() if name in names}


def _record(paper: MadeUp) -> dict[str, Any]:
    name = hexadecimal("semantic scholar", paper, 40)
    ids: dict[str, Any] = {"DOI": paper.doi, "CorpusId": 200_000_000 + paper.number}
    return {
        "paperId": name,
        "externalIds": ids | ({"ArXiv": arxiv_id(paper)} if paper.is_published else {}),
        "corpusId": 200_000_000 + paper.number,
        "url": f"https://www.semanticscholar.org/paper/{name}",
        "title": paper.title,
        "venue": paper.journal if paper.number % 6 else "",
        "publicationVenue": {"id": name[:8], "name": paper.journal, "type": "journal", "issn": paper.issn},
        "year": paper.year,
        "referenceCount": len(paper.references),
        "citationCount": paper.citation_count,
        "influentialCitationCount": 0,
        "isOpenAccess": paper.is_open,
        "openAccessPdf": _pdf(paper),
        "fieldsOfStudy": [paper.discipline] if paper.number % 5 else None,
        "s2FieldsOfStudy": [
            {"category": paper.discipline, "source": "external"},
            {"category": paper.discipline, "source": "s2-fos-model"},
        ],
        "publicationTypes": ["JournalArticle"] if paper.number % 7 else None,
        "publicationDate": paper.date.isoformat() if paper.number % 8 else None,
        "journal": {
            "name": paper.journal,
            "volume": paper.volume,
            "pages": f"\n          {paper.first_page} - {paper.last_page}\n        ",
        },
        "authors": [
            {"authorId": None if i else "1657365531", "name": f"{given[0]}. {family}"}
            for i, (given, family) in enumerate(paper.authors)
        ],
        "abstract": paper.abstract if paper.number % 3 else None,
        "tldr": None,
    }


def _pdf(paper: MadeUp) -> dict[str, Any]:
    """Return where the PDF is; an object with an empty address where there is none."""
    url = f"https://flutter.example/{paper.number}.pdf" if paper.is_open else ""
    return {"url": url, "status": "GOLD" if paper.is_open else None, "license": None, "disclaimer": "Made up."}


_FIELDS = frozenset(_record(made_up_paper(0)))
