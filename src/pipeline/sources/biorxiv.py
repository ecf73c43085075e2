"""bioRxiv and medRxiv: no search, so that the postings of a month are fetched and filtered here."""

from __future__ import annotations

import dataclasses
import datetime
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_names, clean_text, clean_texts, text_or_none, whole_number
from pipeline.dates import read_date, year_of
from pipeline.identifiers import normalize_doi
from pipeline.paging import check_not_empty
from pipeline.papers import Paper, Query
from pipeline.parsing import listing, mapping, objects, parse_object
from pipeline.records import newest, record_id
from pipeline.search_terms import mentions, search_phrases, search_words
from pipeline.sources import STRICT, MalformedError, Page, Request, SearchedSource

_DAYS = 30
_SERVERS = {"biorxiv": "bioRxiv", "medrxiv": "medRxiv"}
_NO_POSTS = "no posts found"
_INLINE_MARK = re.compile(r"[OC]_SCP(?:LOW|CAP)")  # small capitals: O_ opens, C_ closes
_BLOCK_MARK = re.compile(r"[OC]_(?:LI|ST_ABS|TEXTBOX|FIG|TBL|QD)")
_CHARACTER = re.compile(r"\{([A-Za-z]{2,20}(?: [a-z]+)?|\+/-)\}")  # {beta}, {middle dot}, {+/-}
#: A heading that runs into the text after it, as in "ObjectivesTo evaluate".
_HEADING = re.compile(
    r"^(Aims?|Author summary|Backgrounds?|Conclusions?|Data sources|Data synthesis|Design|Discussion|Findings|Funding"
    r"|Highlights|Importance|Interpretation|Introduction|Meaning|Methods?|Motivation|Objectives?|Purpose|Question"
    r"|Results?|Setting|Significance|Study selection|Summary|Trial registration)(?=[A-Z])",
    re.MULTILINE,
)


@dataclasses.dataclass(frozen=True)
class _Walk:
    query: Query
    interval: str
    cursor: int = 0  # the number of the next record
    found: frozenset[tuple[str, str | None]] = frozenset()  # ids and dates of what was kept
    page_before: tuple[str, ...] = ()  # its DOIs and versions


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SearchedSource):
    """One of the two servers; a record is a version of a preprint."""

    server: Literal["biorxiv", "medrxiv"]

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:  # noqa: ARG002 (the server sizes pages)
        """Return the first request for the postings of the 30 days before."""
        return self._request(_Walk(query, f"{day - datetime.timedelta(days=_DAYS)}/{day}"))

    def read(self, body: bytes, request: Request) -> Page:
        """Map the records that mention the query; a page may hold none of them in the middle of a walk."""
        walk: _Walk = request.state
        message, records = _answer(body)
        total = whole_number(message.get("total"))
        check_not_empty(len(records), walk.cursor, total)
        ids = tuple(f"{record.get('doi')} {record.get('version')}" for record in records)
        if records and ids == walk.page_before:
            raise MalformedError(f"sent the page before again at {walk.cursor}")
        papers = newest(self._paper(record) for record in records)
        papers = tuple(paper for paper in papers if self._is_wanted(paper, walk))
        following = self._following(dataclasses.replace(walk, page_before=ids), papers, total)
        return Page(papers, following, declared=total, received=len(records))

    def _request(self, walk: _Walk) -> Request:
        url = f"{self.root}/details/{self.server}/{walk.interval}/{walk.cursor}/json"
        return Request(url, state=walk)

    def _is_wanted(self, paper: Paper, walk: _Walk) -> bool:
        # records move to later pages while new ones are posted, so that a page may repeat some
        is_new = (paper.paper_id, paper.publication_date) not in walk.found
        return is_new and mentions(walk.query, paper.title, paper.abstract, *paper.disciplines)

    def _following(self, walk: _Walk, papers: tuple[Paper, ...], total: int | None) -> Request | None:
        received = len(walk.page_before)
        cursor = walk.cursor + received  # the size of a page is the server's choice, and changes
        found = walk.found | {(paper.paper_id, paper.publication_date) for paper in papers}
        is_last = not received or (total is not None and cursor >= total)
        has_words = search_words(walk.query) or search_phrases(walk.query)  # else nothing can mention the query
        return (
            None if is_last or not has_words else self._request(dataclasses.replace(walk, cursor=cursor, found=found))
        )

    def _paper(self, record: Mapping[str, Any]) -> tuple[int, Paper] | None:
        """Return the version of a record and its paper; a record is known by its DOI alone."""
        doi, version = clean_text(record.get("doi")), whole_number(record.get("version"))
        if not normalize_doi(doi):
            return None
        date = read_date(record.get("date"))
        url = f"https://www.{self.server}.org/content/{quote(doi)}v{version}" if version else None
        paper = Paper(
            paper_id=record_id(self.name, doi),
            title=clean_text(_unmarked(record.get("title"))),
            abstract=clean_text(_unmarked(record.get("abstract"))),
            year=year_of(date),
            authors=_authors(record.get("authors")),
            disciplines=clean_texts([record.get("category")]),
            document_type="preprint",
            publication_type=text_or_none(record.get("type")),
            venue=_SERVERS[self.server],
            publication_date=date,
            is_open_access=True,
            pdf_url=f"{url}.full.pdf" if url else None,
            pdf_available=True if url else None,
            url=url,
            doi=normalize_doi(doi),
            source=self.name,
            published_as=normalize_doi(record.get("published")),
        )
        return version or 1, paper


def _answer(body: bytes) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Return the message and the records of a body; trouble is told in the message, with status 200."""
    answer = parse_object(body)
    message = mapping(next(iter(listing(answer.get("messages"))), None))
    status = clean_text(message.get("status"))
    if status.lower() == _NO_POSTS:
        return {}, []
    if status.lower() != "ok":
        raise MalformedError(f"told {status[:80]!r} instead of ok")
    return message, objects(answer.get("collection"))


def _authors(names: object) -> tuple[str, ...]:
    """Return the names of one text, as in "Family, I. I.; Family, I."."""
    return clean_names(names.split(";")) if isinstance(names, str) else ()


def _unmarked(text: object) -> str:
    """Return a text without the marks that the server leaves in it, its headings apart from what follows."""
    if not isinstance(text, str):
        return ""
    plain = _BLOCK_MARK.sub("\n", _INLINE_MARK.sub("", text))
    return _HEADING.sub(r"\1: ", _CHARACTER.sub(_character, plain))


def _character(found: re.Match[str]) -> str:
    """Return the character of a name, the name as it stood where there is none."""
    name = found.group(1)
    if name == "+/-":
        return "±"
    case = "CAPITAL" if name[0].isupper() else "SMALL"
    for full_name in (f"GREEK {case} LETTER {name}", name, f"{name} SIGN"):
        try:
            return unicodedata.lookup(full_name)
        except KeyError:
            continue
    return found.group()
