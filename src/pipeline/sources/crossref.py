"""Crossref: what publishers register with the DOI of a work."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_names, clean_text, clean_texts, text_or_none, whole_number
from pipeline.crossref_words import CROSSREF_TYPES, NO_PAPERS, person_name
from pipeline.dates import iso_date, year_of
from pipeline.identifiers import join_issns, normalize_doi
from pipeline.papers import Paper, Query
from pipeline.parsing import listing, mapping, objects, parse_object, shown, values_of, web_address
from pipeline.records import newest, record_id, type_among
from pipeline.search_terms import search_phrases, search_words
from pipeline.sources import STRICT, MalformedError, Page, RefusedError, Request, SearchedSource, SourceByDoi

_NOTICES = {
    "addendum": "erratum",
    "clarification": "erratum",
    "correction": "erratum",
    "corrigendum": "erratum",
    "erratum": "erratum",
    "expression_of_concern": "erratum",
    "partial_retraction": "retraction",
    "removal": "retraction",
    "retraction": "retraction",
    "withdrawal": "retraction",
}
_TAKEN_BACK = {"removal", "retraction", "withdrawal"}  #: what becomes of a work; after a partial one it still stands
# The date of the DOI's registration ("created") is none of publication: a backfile comes decades later.
_DATES = ("issued", "published", "published-print", "published-online", "posted", "approved")
_RETRACTED = re.compile(r"\[?retract(?:ed|ion)(?: article| note| notice)?\]?\s*:|\[retracted\]", re.IGNORECASE)
_REACH = 10_000  # offset and rows together
_ABSTRACT_HEADING = re.compile(r"^abstract\s*(?:[.:\u2013\u2014|]\s*|$)", re.IGNORECASE)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SearchedSource, SourceByDoi):
    """Walks by offset, because a cursor moves on with answers that were lost; also asked for many DOIs at once."""

    dois_a_request: ClassVar[int] = 40
    fills: ClassVar[tuple[str, ...]] = (
        "title",
        "abstract",
        "authors",
        "publication_date",
        "venue",
        "issn",
        "references",
    )

    page_size: Annotated[int, Field(ge=1, le=1000)]

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:  # noqa: ARG002 (works of any date)
        """Return the first page of works that share words with the query, the nearest first."""
        words = " ".join([*search_words(query), *search_phrases(query)]) or query.text
        return _at(Request(self.base_url, {"query.bibliographic": words}), 0, min(self.page_size, limit))

    def lookup(self, dois: Sequence[str]) -> Request:
        """Return one request for these DOIs."""
        return Request(self.base_url, {"filter": ",".join(f"doi:{doi}" for doi in dois), "rows": str(len(dois))})

    def can_look_up(self, doi: str) -> bool:
        """Tell whether a DOI can be asked for: a comma, which separates filters, cannot stand in one."""
        return "," not in doi

    def read(self, body: bytes, request: Request) -> Page:
        """Map a list of works, or a single one."""
        answer = parse_object(body)
        message = mapping(answer.get("message"))
        if answer.get("status") == "failed":
            raise RefusedError(f"refused the request: {shown(body)}")
        records = [message] if "DOI" in message else message.get("items")
        if answer.get("status") != "ok" or not isinstance(records, list):
            raise MalformedError(f"sent no works but {shown(body)}")
        papers = newest(_paper(self.name, work) for work in objects(records))
        total = whole_number(message.get("total-results"))
        return Page(papers, _following(request, len(records), total or 0), total, len(records))


def _at(request: Request, start: int, rows: int) -> Request:
    params = {**request.params, "rows": str(min(rows, _REACH - start)), "offset": str(start)}
    return dataclasses.replace(request, params=params)


def _following(request: Request, n_records: int, total: int) -> Request | None:
    """Return the next page of a search; a page may be short in the middle of it, an empty one is its end."""
    if "offset" not in request.params:
        return None
    start = int(request.params["offset"]) + n_records
    if not n_records or start >= min(total, _REACH):
        return None
    return _at(request, start, int(request.params["rows"]))


def _paper(source: str, work: Mapping[str, Any]) -> tuple[int, Paper] | None:
    """Return the version of a work and its paper; versions of a preprint have DOIs of their own."""
    native, word = work.get("DOI"), text_or_none(work.get("type"))
    if not isinstance(native, str) or word in NO_PAPERS:
        return None
    doi, date = normalize_doi(native), _date(work)
    title = _first_text(work.get("title")) or ""
    if not title and not doi:
        return None
    container = _first_text(work.get("container-title"))
    pdfs = [link.get("URL") for link in objects(work.get("link")) if _is_pdf_for_readers(link)]
    paper = Paper(
        paper_id=record_id(source, native),
        title=title,
        abstract=_ABSTRACT_HEADING.sub("", clean_text(work.get("abstract"))),
        year=year_of(date),
        authors=clean_names([person_name(author) for author in objects(work.get("author"))]),
        citation_count=whole_number(work.get("is-referenced-by-count")),
        disciplines=clean_texts(work.get("subject")),
        document_type=_document_type(work, title),
        journal_name=container if word == "journal-article" else None,
        journal_volume=text_or_none(work.get("volume")),
        journal_pages=text_or_none(work.get("page")) or text_or_none(work.get("article-number")),
        conference_name=container if word == "proceedings-article" else None,
        publication_type=word,
        venue=container or _institution(work) or text_or_none(work.get("group-title")),
        publication_date=date,
        is_open_access=_is_open(work),
        pdf_url=web_address(*pdfs),
        url=web_address(mapping(mapping(work.get("resource")).get("primary")).get("URL"), work.get("URL")),
        doi=doi,
        source=source,
        issn=join_issns(*listing(work.get("ISSN")), *values_of(work.get("issn-type"), "value")),
        references=tuple(dict.fromkeys(_dois(work.get("reference"), "DOI"))),
        published_as=next(_related(work, "is-preprint-of"), None),
        preprints=tuple(dict.fromkeys(_related(work, "has-preprint"))),
    )
    return _version(paper), paper


def _date(work: Mapping[str, Any]) -> str | None:
    dates = (listing(mapping(work.get(name)).get("date-parts")) for name in _DATES)
    known = (iso_date(*listing(parts[0])[:3]) for parts in dates if parts and listing(parts[0]))
    return next((date for date in known if date), None)


def _document_type(work: Mapping[str, Any], title: str) -> str | None:
    """Return what a work is; a notice and a retracted article go before the type they were registered with."""
    own = normalize_doi(work.get("DOI"))
    # some registered an update of a work at the work itself: that is no notice
    notices = [
        _NOTICES.get(str(update.get("type")))
        for update in objects(work.get("update-to"))
        if normalize_doi(update.get("DOI")) != own
    ]
    fates = _TAKEN_BACK.intersection(map(str, values_of(work.get("updated-by"), "type")))
    if "retraction" in notices or fates or _RETRACTED.match(title):
        return "retraction"
    if "erratum" in notices:
        return "erratum"
    word = text_or_none(work.get("type"))
    if word == "posted-content" and work.get("subtype"):
        word = text_or_none(work.get("subtype"))
    return type_among(CROSSREF_TYPES, word)


def _institution(work: Mapping[str, Any]) -> str | None:
    """Return where a work was posted or defended: of preprints the server."""
    return next(iter(clean_texts(values_of(work.get("institution"), "name"))), None)


def _is_open(work: Mapping[str, Any]) -> bool | None:
    """Return True where the version of record has a Creative Commons licence from the start; else it is unknown."""
    return (
        any(
            licence.get("content-version") == "vor"
            and licence.get("delay-in-days") == 0
            and "creativecommons.org/" in str(licence.get("URL"))
            for licence in objects(work.get("license"))
        )
        or None
    )


def _is_pdf_for_readers(link: Mapping[str, Any]) -> bool:
    return link.get("content-type") == "application/pdf" and link.get("intended-application") != "similarity-checking"


def _related(work: Mapping[str, Any], kind: str) -> Iterator[str]:
    own = normalize_doi(work.get("DOI"))
    return (doi for doi in _dois(mapping(work.get("relation")).get(kind), "id") if doi != own)


def _dois(entries: object, key: str) -> Iterator[str]:
    return (doi for value in values_of(entries, key) if (doi := normalize_doi(value)))


def _first_text(texts: object) -> str | None:
    """Return the first text of a list that may be missing, empty or hold the same in two languages."""
    return next(iter(clean_texts(texts if isinstance(texts, list) else [texts])), None)


def _version(paper: Paper) -> int:
    found = re.search(r"v(\d{1,3})$", paper.paper_id, re.IGNORECASE)
    return int(found.group(1)) if found else 0
