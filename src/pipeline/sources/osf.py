"""Preprint servers of the Open Science Framework: PsyArXiv, SocArXiv, EdArXiv.

Their only search is for one literal text in the title, so that a query's words are asked one by one.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_names, clean_text, clean_texts, text_or_none, whole_number
from pipeline.dates import read_date, year_of
from pipeline.identifiers import normalize_doi
from pipeline.paging import check_not_empty
from pipeline.papers import Paper, Query
from pipeline.parsing import listing, mapping, objects, parse_object, shown, values_of
from pipeline.records import newest, record_id
from pipeline.search_terms import mentions, search_phrases, search_words
from pipeline.sources import STRICT, MalformedError, Page, Request, SearchedSource

_PROVIDERS = {"psyarxiv": "PsyArXiv", "socarxiv": "SocArXiv", "edarxiv": "EdArXiv"}
_MOST_WORDS = 4  # of a query; without a token there are 100 requests an hour
_LONGEST_WAIT_S = 7  # about what the attempts of one request take
_VERSIONED = re.compile(r"(\w+?)(?:_v(\d+))?", re.ASCII)
_THROTTLED = re.compile(rb"available in (\d{1,9}) second")


@dataclasses.dataclass(frozen=True)
class _Walk:
    query: Query
    words: tuple[str, ...]  # the one that is asked, then those that are left
    page: int = 1
    page_before: tuple[str, ...] = ()  # the ids on it
    found: frozenset[tuple[str, str | None]] = frozenset()  # ids and dates of what was kept


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SearchedSource):
    """One of the servers; withdrawn preprints are left out."""

    page_size: Annotated[int, Field(ge=1, le=100)]

    provider: Literal["psyarxiv", "socarxiv", "edarxiv"]

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:  # noqa: ARG002 (few match a word)
        """Return the first request, for the longest word in a title."""
        return self._request(_Walk(query, _telling_words(query)))

    def read(self, body: bytes, request: Request) -> Page:
        """Map the preprints that mention the query; a page may hold none of them in the middle of a walk.

        ``declared`` stays unknown: the totals of the words overlap.
        """
        walk: _Walk = request.state
        answer = parse_object(body)
        records, links = answer.get("data"), mapping(answer.get("links"))
        if not isinstance(records, list):
            raise MalformedError(f"sent no list of preprints but {shown(body)}")
        total = whole_number(mapping(links.get("meta") or answer.get("meta")).get("total"))  # which one: by version
        before = (walk.page - 1) * self.page_size
        check_not_empty(len(records), before, total)
        ids = tuple(map(str, values_of(records, "id")))
        if records and ids == walk.page_before:
            raise MalformedError(f"sent the page before again at {before} of {total}")
        papers = self._papers(records, walk)
        walk = dataclasses.replace(walk, page_before=ids)
        following = self._following(walk, papers, has_next=bool(records and links.get("next")))
        return Page(papers, following, received=len(records))

    def retries(self, status: int, headers: Mapping[str, str], body: bytes) -> bool | None:  # noqa: ARG002 (none tells)
        """Give up where the hour's requests are spent; the wait is told in the text of the error alone."""
        told = _THROTTLED.search(body) if status == 429 else None
        return int(told.group(1)) <= _LONGEST_WAIT_S if told else None

    def _request(self, walk: _Walk) -> Request:
        params = {
            "filter[provider]": self.provider,
            "filter[title]": walk.words[0],
            "embed": "contributors",
            "page": str(walk.page),
            "page[size]": str(self.page_size),
        }
        return Request(self.base_url, params, state=walk)

    def _papers(self, records: list[Any], walk: _Walk) -> tuple[Paper, ...]:
        """Return those that the query wants and that no earlier word has found."""
        papers = newest(self._paper(record) for record in objects(records))
        return tuple(
            paper
            for paper in papers
            if (paper.paper_id, paper.publication_date) not in walk.found
            and mentions(walk.query, paper.title, paper.abstract, *paper.keywords)
        )

    def _following(self, walk: _Walk, papers: tuple[Paper, ...], *, has_next: bool) -> Request | None:
        if not (search_words(walk.query) or search_phrases(walk.query)):
            return None  # nothing can mention the query
        found = walk.found | {(paper.paper_id, paper.publication_date) for paper in papers}
        if has_next:
            later = dataclasses.replace(walk, page=walk.page + 1, found=found)
        else:
            later = dataclasses.replace(walk, words=walk.words[1:], page=1, page_before=(), found=found)
        return self._request(later) if later.words else None

    def _paper(self, record: Mapping[str, Any]) -> tuple[int, Paper] | None:
        """Return the version of a record and its paper; None for one that is withdrawn or has no name."""
        attributes, links = mapping(record.get("attributes")), mapping(record.get("links"))
        identified = _VERSIONED.fullmatch(clean_text(record.get("id")))
        title, doi = clean_text(attributes.get("title")), normalize_doi(links.get("preprint_doi"))
        if identified is None or _is_withdrawn(attributes) or not (title or doi):
            return None
        date, pdf_url = read_date(attributes.get("date_published")), _pdf_url(record)
        paper = Paper(
            paper_id=record_id(self.name, identified.group(1)),
            title=title,
            abstract=clean_text(attributes.get("description")),
            year=year_of(date),
            authors=_authors(record),
            disciplines=_subjects(attributes),
            document_type="preprint",
            venue=_PROVIDERS[self.provider],
            publication_date=date,
            is_open_access=True,
            pdf_url=pdf_url,
            pdf_available=True if pdf_url else None,
            url=text_or_none(links.get("html")),
            doi=doi,
            keywords=clean_texts(attributes.get("tags")),
            source=self.name,
            published_as=normalize_doi(attributes.get("doi")),
        )
        return int(identified.group(2) or 1), paper


def _telling_words(query: Query) -> tuple[str, ...]:
    """Return the longest words of a query; where it has none its text as it is, which finds next to nothing."""
    words = search_words(query) or tuple(" ".join(search_phrases(query)).split())
    return tuple(sorted(words, key=len, reverse=True)[:_MOST_WORDS]) or (query.text,)


def _is_withdrawn(attributes: Mapping[str, Any]) -> bool:
    return bool(attributes.get("date_withdrawn")) or attributes.get("reviews_state") == "withdrawn"


def _authors(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the bibliographic contributors that the server embeds (its first ten), in their order."""
    contributors = mapping(mapping(record.get("embeds")).get("contributors"))
    named = [
        (whole_number(attributes.get("index")) or 0, _name(mapping(contributor), attributes))
        for contributor in listing(contributors.get("data"))
        if (attributes := mapping(mapping(contributor).get("attributes"))).get("bibliographic") is not False
    ]
    return clean_names([name for _, name in sorted(named, key=lambda pair: pair[0])])


def _name(contributor: Mapping[str, Any], attributes: Mapping[str, Any]) -> object:
    user = mapping(mapping(mapping(contributor.get("embeds")).get("users")).get("data"))
    return mapping(user.get("attributes")).get("full_name") or attributes.get("unregistered_contributor")


def _subjects(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the subjects of all paths through the taxonomy; newer answers hold a link in their place."""
    paths = (listing(path) for path in listing(attributes.get("subjects")))
    return clean_texts([mapping(subject).get("text") for path in paths for subject in path])


def _pdf_url(record: Mapping[str, Any]) -> str | None:
    file = mapping(mapping(mapping(record.get("relationships")).get("primary_file")).get("data"))
    identifier = clean_text(file.get("id"))
    return f"https://osf.io/download/{identifier}/" if identifier else None
