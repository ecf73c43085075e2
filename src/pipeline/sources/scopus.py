"""Scopus Search: curated records with citations; abstracts, all authors and keywords only for subscribers."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NoReturn

from pydantic import Field
from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_names, clean_text, clean_texts, text_or_none, whole_number
from pipeline.dates import iso_date, read_date, year_of
from pipeline.identifiers import join_issns, normalize_doi
from pipeline.paging import check_not_empty
from pipeline.papers import Paper, Query
from pipeline.parsing import flag, mapping, objects, parse_object
from pipeline.records import known, record_id, type_among
from pipeline.search_terms import any_of
from pipeline.sources import STRICT, MalformedError, Page, RefusedError, Request, SearchedSource

_MOST_RECORDS = 5000  # start plus count; more only for subscribers, by a cursor
_SMALL_PAGE = 25  # what the view COMPLETE, and the lowest service level, allow
_TOO_LARGE = b"Exceeds the maximum number allowed for the service level"
_FINAL = {"AUTHENTICATION_ERROR", "AUTHORIZATION_ERROR", "INVALID_INPUT", "QUOTA_EXCEEDED", "RESOURCE_NOT_FOUND"}
_TYPES = {
    "ar": "article",
    "ip": "article",
    "bz": "article",
    "dp": "article",
    "re": "review",
    "sh": "review",
    "cp": "conference paper",
    "bk": "book",
    "ch": "book chapter",
    "rp": "report",
    "ed": "editorial",
    "le": "letter",
    "er": "erratum",
    "tb": "retraction",
}


@dataclasses.dataclass(frozen=True)
class _Walk:
    """How far a walk has come; a page's size may change on the way, because Scopus counts in records."""

    start: int
    page_size: int


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SearchedSource):
    """Scopus. The view that tells most is asked first; ``page_size`` is that of the other."""

    page_size: Annotated[int, Field(ge=1, le=200)]

    view: Literal["COMPLETE", "STANDARD"]

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:  # noqa: ARG002 (it knows no day)
        """Return the search of titles, abstracts and keywords for any of the query's words, best first."""
        asked = {"query": f"TITLE-ABS-KEY({any_of(query)})", "view": self.view, "sort": "relevancy"}
        asked["httpAccept"] = "application/json"
        size = _SMALL_PAGE if self.view == "COMPLETE" else self.page_size
        return _at(Request(self.base_url, asked), _Walk(0, min(size, limit)))

    def read(self, body: bytes, request: Request) -> Page:
        """Map a page of a search; its only entry may say that there are none."""
        answer = parse_object(body)
        results = mapping(answer.get("search-results"))
        total, entries = whole_number(results.get("opensearch:totalResults")), results.get("entry")
        if total is None or not isinstance(entries, list):
            _refuse(answer)
        records = [record for record in objects(entries) if "error" not in record]
        papers = known(self._paper(record) for record in records)
        return Page(papers, _following(request, len(records), total), total, len(records))

    def retries(self, status: int, headers: Mapping[str, str], body: bytes) -> bool | None:  # noqa: ARG002
        """Do not ask again while a week's quota is used up."""
        return False if b"QUOTA_EXCEEDED" in body else None

    def instead(self, status: int, body: bytes, request: Request) -> Request | None:
        """Ask for the other view where the first is not licensed, and for small pages where larger ones are not."""
        if status in {401, 403} and b"AUTHORIZATION_ERROR" in body and request.params["view"] == "COMPLETE":
            standard = dataclasses.replace(request, params={**request.params, "view": "STANDARD"})
            return _at(standard, dataclasses.replace(request.state, page_size=self.page_size))
        if status == 400 and _TOO_LARGE in body and int(request.params["count"]) > _SMALL_PAGE:
            return _at(request, dataclasses.replace(request.state, page_size=_SMALL_PAGE))
        return None

    def _paper(self, record: Mapping[str, Any]) -> Paper | None:
        native = clean_text(record.get("dc:identifier") or record.get("eid"))
        native = native.removeprefix("SCOPUS_ID:").removeprefix("2-s2.0-")
        title, doi = clean_text(record.get("dc:title")), normalize_doi(record.get("prism:doi"))
        if not native or not (title or doi):
            return None
        date = _date(record)
        venue = text_or_none(record.get("prism:publicationName"))
        kind_of_venue = clean_text(record.get("prism:aggregationType"))
        return Paper(
            paper_id=record_id(self.name, native),
            title=title,
            abstract=clean_text(record.get("dc:description")),
            year=year_of(date),
            authors=_authors(record),
            citation_count=whole_number(record.get("citedby-count")),
            document_type=type_among(_TYPES, clean_text(record.get("subtype"))),
            journal_name=venue if kind_of_venue in {"Journal", "Trade Journal"} else None,
            journal_volume=text_or_none(record.get("prism:volume")),
            journal_pages=text_or_none(record.get("prism:pageRange")) or text_or_none(record.get("article-number")),
            conference_name=venue if kind_of_venue == "Conference Proceeding" else None,
            publication_type=text_or_none(record.get("subtypeDescription")) or text_or_none(record.get("subtype")),
            venue=venue,
            publication_date=date,
            is_open_access=_is_open_access(record),
            url=_landing(record),
            doi=doi,
            keywords=clean_texts(clean_text(record.get("authkeywords")).split("|")),
            source=self.name,
            issn=join_issns(record.get("prism:issn"), record.get("prism:eIssn")),
        )


def _at(request: Request, walk: _Walk) -> Request:
    """Return a request for the page that starts where the walk has come to."""
    count = min(walk.page_size, _MOST_RECORDS - walk.start)
    params = {**request.params, "start": str(walk.start), "count": str(count)}
    return dataclasses.replace(request, params=params, state=walk)


def _following(request: Request, received: int, total: int) -> Request | None:
    """Return the next page, unless the records, or those that can be reached, end with this one."""
    walk = request.state
    check_not_empty(received, walk.start, total)
    start = walk.start + received
    if start >= min(total, _MOST_RECORDS):
        return None
    return _at(request, dataclasses.replace(walk, start=start))


def _refuse(answer: Mapping[str, Any]) -> NoReturn:
    """Tell what stands in place of results: an error of the service, of the gateway before it, or nothing known."""
    service = mapping(mapping(answer.get("service-error")).get("status"))
    gateway = mapping(answer.get("error-response"))
    code = clean_text(service.get("statusCode") or gateway.get("error-code"))
    reason = ": ".join(clean_texts([code, service.get("statusText") or gateway.get("error-message")]))[:200]
    if code in _FINAL:
        raise RefusedError(reason)
    raise MalformedError(reason or "sent no search results")


def _date(record: Mapping[str, Any]) -> str | None:
    """Return the date of the cover as precise as it is printed there: "2020" is stored as the first of January."""
    cover = read_date(record.get("prism:coverDate"))
    words = clean_text(record.get("prism:coverDisplayDate")).split()
    printed = iso_date(*(words[::-1] if len(words) <= 3 else words[-1:])) if words else None
    return printed if cover and printed and cover.startswith(printed) else cover


def _authors(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return all authors; without the view COMPLETE only the first is told."""
    names = [_full_name(author) or author.get("authname") for author in objects(record.get("author"))]
    return clean_names(names) or clean_names([record.get("dc:creator")])


def _full_name(author: Mapping[str, Any]) -> str | None:
    given, surname = clean_text(author.get("given-name")), clean_text(author.get("surname"))
    return f"{given} {surname}" if given and surname else None


def _is_open_access(record: Mapping[str, Any]) -> bool | None:
    told = flag(record.get("openaccessFlag"))
    return {"0": False, "1": True}.get(clean_text(record.get("openaccess"))) if told is None else told


def _landing(record: Mapping[str, Any]) -> str | None:
    links = objects(record.get("link"))
    return next((text_or_none(link.get("@href")) for link in links if link.get("@ref") == "scopus"), None)
