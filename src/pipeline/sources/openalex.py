"""OpenAlex: an open catalogue of works of all fields, and of the impact of their venues."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_names, clean_text, clean_texts, text_or_none, whole_number
from pipeline.dates import read_date, year_of
from pipeline.identifiers import arxiv_doi, arxiv_id, join_issns, normalize_doi, normalize_issn
from pipeline.paging import check_not_empty
from pipeline.papers import Paper, Query
from pipeline.parsing import flag, listing, mapping, objects, parse_object, shown, values_of, web_address
from pipeline.records import known, page_range, record_id, type_among
from pipeline.search_terms import any_of
from pipeline.sources import STRICT, MalformedError, Page, RefusedError, Request, SearchedSource

_DOCUMENT_TYPES = {
    "article": "article",
    "review": "review",
    "preprint": "preprint",
    "book": "book",
    "book-chapter": "book chapter",
    "reference-entry": "book chapter",
    "dissertation": "dissertation",
    "report": "report",
    "dataset": "dataset",
    "editorial": "editorial",
    "letter": "letter",
    "erratum": "erratum",
    "retraction": "retraction",
}
_NO_PAPERS = {"paratext", "peer-review", "supplementary-materials", "grant"}
_NO_IMPACT = 1e6  # nor is infinity, nor NaN
_VENUES = "/sources"
_MOST_VENUES = 100  # a page


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SearchedSource):
    """Has a budget of requests a day; also asked for the impact of venues."""

    issns_a_request: ClassVar[int] = 50

    page_size: Annotated[int, Field(ge=1, le=200)]

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:  # noqa: ARG002 (works of any date)
        """Return the first page of works with any of the query's words and keywords, the nearest first."""
        params = {"search": any_of(query), "per-page": str(min(self.page_size, limit)), "cursor": "*"}
        return Request(f"{self.root}/works", params, state=0)

    def read(self, body: bytes, request: Request) -> Page:
        """Map a list of works, or a single one; an answer about venues is checked, it holds no papers."""
        if request.url.endswith(_VENUES):
            self.read_venues(body)
            return Page(())
        answer = parse_object(body)
        if "error" in answer:
            raise RefusedError(f"refused the request: {shown(body)}")
        records = answer.get("results", [answer] if "id" in answer or "doi" in answer else None)
        if not isinstance(records, list):
            raise MalformedError(f"sent no works but {shown(body)}")
        papers = known(_paper(self.name, work) for work in objects(records))
        meta = mapping(answer.get("meta"))
        following = _following(request, meta, len(records))
        return Page(papers, following, whole_number(meta.get("count")), len(records))

    def retries(self, status: int, headers: Mapping[str, str], body: bytes) -> bool | None:  # noqa: ARG002 (headers tell)
        """Overrule the retry of a 429 where the budget of the day is spent; it is filled at midnight UTC."""
        lowered = {name.lower(): value for name, value in headers.items()}
        is_spent = re.fullmatch(r"\s*0+(\.0*)?\s*", lowered.get("x-ratelimit-remaining", "")) is not None
        return False if status == 429 and is_spent else None

    def venues(self, issns: Sequence[str]) -> Request:
        """Return one request for the impact of the venues with these ISSNs."""
        params = {
            "filter": f"issn:{'|'.join(issns)}",
            "select": "id,issn,issn_l,summary_stats",
            "per-page": str(_MOST_VENUES),
        }
        return Request(f"{self.root}{_VENUES}", params)

    def read_venues(self, body: bytes) -> dict[str, float]:
        """Return ISSN -> citations of a year per work of the two years before it, for every ISSN of the venues."""
        venues = parse_object(body).get("results")
        if not isinstance(venues, list):
            raise MalformedError(f"sent no venues but {shown(body)}")
        impacts: dict[str, float] = {}
        for venue in objects(venues):
            impact = mapping(venue.get("summary_stats")).get("2yr_mean_citedness")
            if isinstance(impact, int | float) and not isinstance(impact, bool) and 0 <= impact < _NO_IMPACT:
                issns = map(normalize_issn, [venue.get("issn_l"), *listing(venue.get("issn"))])
                impacts = {**{issn: float(impact) for issn in issns if issn}, **impacts}
        return impacts


def _following(request: Request, meta: Mapping[str, Any], n_records: int) -> Request | None:
    """Return the next page of a search, whose state is how many records came before."""
    cursor, count = meta.get("next_cursor"), whole_number(meta.get("count"))
    if request.state is None or not isinstance(cursor, str):
        return None
    seen = request.state + n_records
    if count is None or seen >= count:
        return None
    check_not_empty(n_records, seen, count)
    return dataclasses.replace(request, params={**request.params, "cursor": cursor}, state=seen)


def _paper(source: str, work: Mapping[str, Any]) -> Paper | None:
    doi = normalize_doi(work.get("doi"))
    native, word = _short(work.get("id")) or doi, text_or_none(work.get("type"))
    title = clean_text(work.get("title")) or clean_text(work.get("display_name"))
    if work.get("is_paratext") is True or word in _NO_PAPERS or not native or not (title or doi):
        return None
    date, access = _date(work), mapping(work.get("open_access"))
    primary, biblio = mapping(work.get("primary_location")), mapping(work.get("biblio"))
    venue = mapping(primary.get("source"))
    venue_name = text_or_none(venue.get("display_name")) or text_or_none(primary.get("raw_source_name"))
    is_open, free_pdf = flag(access.get("is_oa")), _free_pdf(work)
    return Paper(
        paper_id=record_id(source, native),
        title=title,
        abstract=_abstract(work.get("abstract_inverted_index")),
        year=whole_number(work.get("publication_year")) or year_of(date),
        authors=clean_names([_author(authorship) for authorship in objects(work.get("authorships"))]),
        citation_count=whole_number(work.get("cited_by_count")),
        disciplines=_disciplines(work),
        document_type=_document_type(work),
        journal_name=venue_name if venue.get("type") == "journal" else None,
        journal_volume=text_or_none(biblio.get("volume")),
        journal_pages=page_range(biblio.get("first_page"), biblio.get("last_page")),
        conference_name=venue_name if venue.get("type") == "conference" else None,
        publication_type=word,
        venue=venue_name,
        publication_date=date,
        is_open_access=is_open,
        pdf_url=free_pdf or web_address(primary.get("pdf_url")),
        pdf_available=True if free_pdf else (False if is_open is False else None),
        url=web_address(primary.get("landing_page_url"), work.get("doi"), work.get("id")),
        doi=doi,
        keywords=clean_texts(values_of(work.get("keywords"), "display_name")),
        source=source,
        issn=join_issns(venue.get("issn_l"), *listing(venue.get("issn"))),
        references=tuple(
            dict.fromkeys(short for work in listing(work.get("referenced_works")) if (short := _short(work)))
        ),
        preprints=_preprints(work, doi),
    )


def _short(address: object) -> str | None:
    """Return the id at the end of an address such as https://openalex.org/W123."""
    return address.rstrip("/").rsplit("/", 1)[-1].strip() or None if isinstance(address, str) else None


def _date(work: Mapping[str, Any]) -> str | None:
    """Return the date; January 1st is what is told where only the year is known."""
    date = read_date(work.get("publication_date"))
    return date[:4] if date and date.endswith("-01-01") else date


def _abstract(index: object) -> str:
    """Return the text of an index of words and their positions."""
    placed = [
        (position, word)
        for word, positions in mapping(index).items()
        for position in listing(positions)
        if isinstance(position, int)
    ]
    return clean_text(" ".join(word for _, word in sorted(placed)))


def _author(authorship: Mapping[str, Any]) -> object:
    return mapping(authorship.get("author")).get("display_name") or authorship.get("raw_author_name")


def _disciplines(work: Mapping[str, Any]) -> tuple[str, ...]:
    """Return domain, field, subfield and topic; of older answers the broad concepts."""
    topic = mapping(work.get("primary_topic"))
    levels = [mapping(topic.get(level)) for level in ("domain", "field", "subfield")]
    broad = [concept for concept in objects(work.get("concepts")) if (whole_number(concept.get("level")) or 0) <= 1]
    return clean_texts(values_of([*levels, topic] if topic else broad, "display_name"))


def _document_type(work: Mapping[str, Any]) -> str | None:
    """Return what a work is; proceedings articles are called articles, and a retracted one keeps its type there."""
    primary, word = mapping(work.get("primary_location")), text_or_none(work.get("type"))
    if work.get("is_retracted") is True:
        return "retraction"
    is_of_conference = (
        "proceedings-article" in (work.get("type_crossref"), primary.get("raw_type"))
        or mapping(primary.get("source")).get("type") == "conference"
    )
    if word == "article" and is_of_conference:
        return "conference paper"
    return type_among(_DOCUMENT_TYPES, word)


def _locations(work: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return where a work can be found, the best place first."""
    return objects([work.get("best_oa_location"), work.get("primary_location"), *listing(work.get("locations"))])


def _free_pdf(work: Mapping[str, Any]) -> str | None:
    return web_address(*(place.get("pdf_url") for place in _locations(work) if place.get("is_oa") is True))


def _preprints(work: Mapping[str, Any], doi: str | None) -> tuple[str, ...]:
    """Return the arXiv DOIs under which a work that has another DOI can be found too."""
    if not doi or doi.startswith("10.48550/") or work.get("type") == "preprint":
        return ()
    addresses = values_of(_locations(work), "landing_page_url")
    ids = (arxiv_id(address) for address in addresses)
    dois = (normalize_doi(address) for address in addresses)
    by_doi = [own for own in dois if own and own.startswith("10.48550/arxiv.")]
    return tuple(dict.fromkeys([*(arxiv_doi(found[0]) for found in ids if found), *by_doi]))
