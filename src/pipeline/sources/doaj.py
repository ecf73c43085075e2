"""The Directory of Open Access Journals: articles, searched with Elasticsearch's query strings."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import Field
from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_names, clean_text, clean_texts, text_or_none, whole_number
from pipeline.dates import iso_date, year_of
from pipeline.identifiers import join_issns, normalize_doi
from pipeline.paging import next_page
from pipeline.papers import Paper, Query
from pipeline.parsing import listing, mapping, objects, parse_object, values_of
from pipeline.records import known, page_range, record_id
from pipeline.search_terms import any_of
from pipeline.sources import STRICT, MalformedError, Page, RefusedError, Request, SearchedSource

_MOST_RECORDS = 1000  # beyond them is HTTP 400, whatever the last page is said to be


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SearchedSource):
    """DOAJ. The search is a part of the path; all that it finds is open access."""

    page_size: Annotated[int, Field(ge=1, le=100)]

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:  # noqa: ARG002 (it knows no day)
        """Return the search for any of the query's words, best first."""
        size = min(self.page_size, limit)
        url = f"{self.root}/{quote(any_of(query), safe='')}"
        return Request(url, {"page": "1", "pageSize": str(size)})

    def read(self, body: bytes, request: Request) -> Page:
        """Map a page of a search, or a single article."""
        answer = parse_object(body)
        if "bibjson" in answer:
            return Page(known([self._paper(answer)]), declared=1, received=1)
        if "error" in answer:
            raise RefusedError(clean_text(answer["error"])[:200])
        records, total = answer.get("results"), whole_number(answer.get("total"))
        if not isinstance(records, list) or total is None:
            raise MalformedError("sent no list of results with its total")
        papers = known(self._paper(record) for record in objects(records))
        following = next_page(request, len(records), total, "pageSize", reach=_MOST_RECORDS)
        return Page(papers, following, total, len(records))

    def _paper(self, record: Mapping[str, Any]) -> Paper | None:
        article = mapping(record.get("bibjson"))
        journal = mapping(article.get("journal"))
        identifiers = [(entry.get("type"), entry.get("id")) for entry in objects(article.get("identifier"))]
        native, title = clean_text(record.get("id")), clean_text(article.get("title"))
        doi = next((doi for kind, text in identifiers if kind == "doi" and (doi := normalize_doi(text))), None)
        if not native or not (title or doi):
            return None
        date = iso_date(article.get("year"), article.get("month"))
        journal_name = text_or_none(journal.get("title"))
        landing, pdf_url = _links(article)
        return Paper(
            paper_id=record_id(self.name, native),
            title=title,
            abstract=clean_text(article.get("abstract")),
            year=year_of(date),
            authors=clean_names(values_of(article.get("author"), "name")),
            disciplines=clean_texts(values_of(article.get("subject"), "term")),
            document_type="article",
            journal_name=journal_name,
            journal_volume=text_or_none(journal.get("volume")),
            journal_pages=page_range(article.get("start_page"), article.get("end_page")),
            venue=journal_name,
            publication_date=date,
            is_open_access=True,
            pdf_url=pdf_url,
            pdf_available=True if pdf_url else None,
            url=landing or f"https://doaj.org/article/{quote(native)}",
            doi=doi,
            keywords=clean_texts(article.get("keywords")),
            source=self.name,
            issn=join_issns(*(text for kind, text in identifiers if kind != "doi"), *listing(journal.get("issns"))),
        )


def _links(article: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the first page to land on and the first PDF; the type of a link is missing now and then."""
    landing, pdf_url = None, None
    for link in objects(article.get("link")):
        url = text_or_none(link.get("url"))
        if not url or clean_text(link.get("type")).lower() != "fulltext":
            continue
        if "pdf" in clean_text(link.get("content_type")).lower() or url.lower().endswith(".pdf"):
            pdf_url = pdf_url or url
        else:
            landing = landing or url
    return landing, pdf_url
