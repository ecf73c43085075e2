"""Unpaywall: where a work with a DOI is free to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_names, clean_text, text_or_none, whole_number
from pipeline.crossref_words import CROSSREF_TYPES, NO_PAPERS, person_name
from pipeline.dates import read_date, year_of
from pipeline.identifiers import arxiv_doi, arxiv_id, join_issns, normalize_doi
from pipeline.papers import Paper
from pipeline.parsing import flag, mapping, objects, parse_object, shown, values_of, web_address
from pipeline.records import known, record_id, type_among
from pipeline.sources import STRICT, MalformedError, Page, RefusedError, Request, SourceByDoi


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SourceByDoi):
    """Has no search, wants a contact address, and calls too many requests a second a 422."""

    dois_a_request: ClassVar[int] = 1
    fills: ClassVar[tuple[str, ...]] = ("is_open_access", "pdf_url")

    def lookup(self, dois: Sequence[str]) -> Request:
        """Return the request for a DOI."""
        (doi,) = dois
        return Request(f"{self.root}/{quote(doi)}")

    def read(self, body: bytes, request: Request) -> Page:  # noqa: ARG002 (there are no pages)
        """Map the object of a DOI, or the hits of a title search."""
        answer = parse_object(body)
        if answer.get("error"):
            raise RefusedError(f"refused the request: {shown(body)}")
        hits = answer.get("results")
        works = values_of(hits, "response") if isinstance(hits, list) else [answer]
        if not isinstance(hits, list) and "doi" not in answer:
            raise MalformedError(f"sent no DOI object but {shown(body)}")
        return Page(known(_paper(self.name, work) for work in objects(works)), received=len(works))

    def retries(self, status: int, headers: Mapping[str, str], body: bytes) -> bool | None:  # noqa: ARG002 (body tells)
        """Retry a 422 that asks to slow down; any other is about the contact address and final."""
        return True if status == 422 and b"too many requests" in body.lower() else None

    def is_absent(self, status: int, body: bytes) -> bool:
        """Tell a DOI that Unpaywall lacks from an address that is wrong."""
        try:
            return status == 404 and bool(parse_object(body))
        except MalformedError:
            return False


def _paper(source: str, work: Mapping[str, Any]) -> Paper | None:
    doi, word = normalize_doi(work.get("doi")), text_or_none(work.get("genre"))
    if not doi or work.get("is_paratext") is True or word in NO_PAPERS:
        return None
    date, venue = read_date(work.get("published_date")), text_or_none(work.get("journal_name"))
    best, is_open = mapping(work.get("best_oa_location")), flag(work.get("is_oa"))
    places = [best, *objects(work.get("oa_locations"))]
    pdf_url = web_address(*values_of(places, "url_for_pdf"))
    return Paper(
        paper_id=record_id(source, str(work["doi"])),
        title=clean_text(work.get("title")),
        year=whole_number(work.get("year")) or year_of(date),
        authors=clean_names([_author(author) for author in objects(work.get("z_authors"))]),
        document_type=type_among(CROSSREF_TYPES, word),
        journal_name=venue if word == "journal-article" else None,
        conference_name=venue if word == "proceedings-article" else None,
        publication_type=word,
        venue=venue,
        publication_date=date,
        is_open_access=is_open,
        pdf_url=pdf_url,
        pdf_available=True if pdf_url else (False if is_open is False else None),
        url=web_address(best.get("url_for_landing_page"), work.get("doi_url")),
        doi=doi,
        source=source,
        issn=join_issns(work.get("journal_issns"), work.get("journal_issn_l")),
        preprints=_preprints(places, doi),
    )


def _author(author: Mapping[str, Any]) -> str:
    """Return a name in the shape of 2025, or in the one before."""
    return clean_text(author.get("raw_author_name")) or person_name(author)


def _preprints(places: Sequence[Mapping[str, Any]], doi: str) -> tuple[str, ...]:
    """Return the arXiv DOIs of the copies that arXiv holds."""
    ids = (arxiv_id(place.get("url_for_landing_page")) for place in places)
    return tuple(dict.fromkeys(own for found in ids if found and (own := arxiv_doi(found[0])) != doi))
