"""Web of Science by its Starter API: curated records with citations, without abstracts."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_names, clean_text, clean_texts, text_or_none, whole_number
from pipeline.dates import iso_date, year_of
from pipeline.identifiers import join_issns, normalize_doi
from pipeline.paging import next_page
from pipeline.papers import Paper, Query
from pipeline.parsing import listing, mapping, objects, parse_object
from pipeline.records import known, record_id, type_among
from pipeline.search_terms import any_of
from pipeline.sources import STRICT, MalformedError, Page, RefusedError, Request, SearchedSource

_DATABASE = "WOS"  # others count other citations
#: A record has several types ("Article" and "Proceedings Paper"); the first one here is what it is.
_TYPES = {
    "retracted publication": "retraction",
    "retraction": "retraction",
    "correction": "erratum",
    "review": "review",
    "book chapter": "book chapter",
    "book": "book",
    "proceedings paper": "conference paper",
    "editorial material": "editorial",
    "editorial": "editorial",
    "letter": "letter",
    "data paper": "article",
    "article": "article",
}


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SearchedSource):
    """Web of Science. Its topic search looks into abstracts, which it does not give.

    Titles of older records are in capitals and stay so: names and formulas in them could not be set back.
    """

    page_size: Annotated[int, Field(ge=1, le=50)]

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:  # noqa: ARG002 (it knows no day)
        """Return the topic search for any of the query's words, best first."""
        size = min(self.page_size, limit)
        asked = {"q": f"TS=({any_of(query)})", "db": _DATABASE, "sortField": "RS+D"}
        return Request(self.base_url, {**asked, "limit": str(size), "page": "1"})

    def read(self, body: bytes, request: Request) -> Page:
        """Map a page of a search."""
        answer = parse_object(body)
        if "error" in answer:
            raise RefusedError(_reason(answer))
        records, total = answer.get("hits"), whole_number(mapping(answer.get("metadata")).get("total"))
        if not isinstance(records, list) or total is None:
            raise MalformedError("sent no list of hits with its total")
        papers = known(self._paper(record) for record in objects(records))
        following = next_page(request, len(records), total, "limit")
        return Page(papers, following, total, len(records))

    def _paper(self, record: Mapping[str, Any]) -> Paper | None:
        source, identifiers = mapping(record.get("source")), mapping(record.get("identifiers"))
        native, title = clean_text(record.get("uid")), clean_text(record.get("title"))
        doi = normalize_doi(identifiers.get("doi"))
        if not native or not (title or doi):
            return None
        date = iso_date(source.get("publishYear"), *clean_text(source.get("publishMonth")).split()[:2])
        words = clean_texts([*listing(record.get("types")), *listing(record.get("sourceTypes"))])
        document_type = type_among(_TYPES, *map(str.lower, words))
        venue = text_or_none(source.get("sourceTitle"))
        is_proceedings = document_type == "conference paper" and "Article" not in words
        is_book = document_type in {"book", "book chapter"}
        return Paper(
            paper_id=record_id(self.name, native),
            title=title,
            year=year_of(date),
            authors=_authors(mapping(record.get("names"))),
            citation_count=_citation_count(record),
            document_type=document_type,
            journal_name=None if is_proceedings or is_book else venue,
            journal_volume=text_or_none(source.get("volume")),
            journal_pages=_pages(source),
            conference_name=venue if is_proceedings else None,
            publication_type="; ".join(clean_texts(record.get("sourceTypes"))) or next(iter(words), None),
            venue=venue,
            publication_date=date,
            url=text_or_none(mapping(record.get("links")).get("record")),
            doi=doi,
            keywords=clean_texts(mapping(record.get("keywords")).get("authorKeywords")),
            source=self.name,
            issn=join_issns(identifiers.get("issn"), identifiers.get("eissn")),
        )


def _reason(answer: Mapping[str, Any]) -> str:
    """Return what an error says: an object, or two texts where the key is wrong."""
    error = mapping(answer["error"])
    texts = [error.get("title"), error.get("details"), answer["error"], answer.get("error_description")]
    return ": ".join(clean_texts(texts))[:200]


def _authors(names: Mapping[str, Any]) -> tuple[str, ...]:
    authors = objects(names.get("authors"))
    return clean_names([author.get("displayName") or author.get("wosStandard") for author in authors])


def _citation_count(record: Mapping[str, Any]) -> int | None:
    """Return the citations in the Core Collection. Free keys are told none at all, which is not zero."""
    counts = objects(record.get("citations"))
    return next((whole_number(count.get("count")) for count in counts if count.get("db") == _DATABASE), None)


def _pages(source: Mapping[str, Any]) -> str | None:
    """Return the pages, or the article's number. "211-&" says that the last page is not known."""
    pages = clean_text(mapping(source.get("pages")).get("range")).removesuffix("-&")
    return pages or text_or_none(source.get("articleNumber"))
