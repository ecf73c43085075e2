"""arXiv: an Atom feed, searched with words that may stand anywhere in a record."""

from __future__ import annotations

import datetime
from typing import Annotated
from xml.etree.ElementTree import Element  # types only: defusedxml parses

from pydantic import Field
from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_names, clean_text, clean_texts, text_or_none, whole_number
from pipeline.dates import read_date, year_of
from pipeline.identifiers import arxiv_doi, arxiv_id, normalize_doi
from pipeline.paging import check_not_empty
from pipeline.papers import Paper, Query
from pipeline.parsing import parse_xml, shown
from pipeline.records import newest, record_id
from pipeline.search_terms import any_of
from pipeline.sources import STRICT, MalformedError, Page, RefusedError, Request, SearchedSource

_ATOM = "{http://www.w3.org/2005/Atom}"
_ARXIV = "{http://arxiv.org/schemas/atom}"
_OPENSEARCH = "{http://a9.com/-/spec/opensearch/1.1/}"
_DEEPEST = 30_000  # a search that goes further is an error 400


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SearchedSource):
    """Preprints with their own DOI, which the feed does not hold; the DOI in the feed is that of the article."""

    page_size: Annotated[int, Field(ge=1, le=2000)]

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:  # noqa: ARG002 (one search a query)
        """Return the first request: any of the query's words, the most relevant records first."""
        return self._request("all:" + any_of(query, joined_by=" OR all:"), 0, min(self.page_size, limit))

    def read(self, body: bytes, request: Request) -> Page:
        """Map a feed; an empty one where the total promises more is malformed."""
        feed = _feed(body)
        entries = feed.findall(f"{_ATOM}entry")
        start, total = int(request.params["start"]), whole_number(feed.findtext(f"{_OPENSEARCH}totalResults"))
        check_not_empty(len(entries), start, total)
        papers = newest(self._paper(entry) for entry in entries)
        seen, size = start + len(entries), int(request.params["max_results"])
        is_last = not entries or (total is not None and seen >= total) or seen >= _DEEPEST
        following = None if is_last else self._request(request.params["search_query"], seen, size)
        return Page(papers, following, declared=total, received=len(entries))

    def _request(self, search: str, start: int, size: int) -> Request:
        order = {"sortBy": "relevance", "sortOrder": "descending"}  # unsorted pages may overlap
        params = {"search_query": search, "start": str(start), "max_results": str(min(size, _DEEPEST - start))} | order
        return Request(self.base_url, params)

    def _paper(self, entry: Element) -> tuple[int, Paper] | None:
        """Return the version of an entry and its paper."""
        found = arxiv_id(entry.findtext(f"{_ATOM}id"))
        if found is None:
            return None
        identifier, version = found
        date = read_date(entry.findtext(f"{_ATOM}published"))
        pdf_url = _link(entry, "title", "pdf")
        paper = Paper(
            paper_id=record_id(self.name, identifier),
            title=clean_text(entry.findtext(f"{_ATOM}title")),
            abstract=clean_text(entry.findtext(f"{_ATOM}summary")),
            year=year_of(date),
            authors=clean_names([name.text for name in entry.iterfind(f"{_ATOM}author/{_ATOM}name")]),
            disciplines=_categories(entry),
            document_type="preprint",
            venue="arXiv",
            publication_date=date,
            is_open_access=True,
            pdf_url=pdf_url,
            pdf_available=True if pdf_url else None,
            url=_link(entry, "rel", "alternate"),
            doi=arxiv_doi(identifier),
            source=self.name,
            published_as=normalize_doi(entry.findtext(f"{_ARXIV}doi")),
        )
        return version or 1, paper


def _feed(body: bytes) -> Element:
    """Return the feed of a body; errors are told in a feed too, as its only entry."""
    feed = parse_xml(body)
    if feed.tag != f"{_ATOM}feed":
        raise MalformedError(f"sent no Atom feed but {shown(body)}")
    for entry in feed.iterfind(f"{_ATOM}entry"):
        if "/api/errors" in (entry.findtext(f"{_ATOM}id") or ""):
            raise RefusedError(f"refused the search: {clean_text(entry.findtext(f'{_ATOM}summary'))}")
    return feed


def _categories(entry: Element) -> tuple[str, ...]:
    """Return the primary category, then the others."""
    elements = [*entry.iterfind(f"{_ARXIV}primary_category"), *entry.iterfind(f"{_ATOM}category")]
    return clean_texts([element.get("term") for element in elements])


def _link(entry: Element, attribute: str, value: str) -> str | None:
    links = (link.get("href") for link in entry.iterfind(f"{_ATOM}link") if link.get(attribute) == value)
    return text_or_none(next(links, None))
