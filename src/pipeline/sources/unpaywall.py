"""Unpaywall: where a work with a DOI is free to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_text, clean_texts, text_or_none, whole_number
from pipeline.dates import read_date, year_of
from pipeline.identifiers import arxiv_doi, arxiv_id, join_issns, normalize_doi
from pipeline.papers import Paper
from pipeline.parsing import listing, mapping, parse_object, shown
from pipeline.sources import STRICT, MalformedError, Page, RefusedError, Request, SourceSettings
from pipeline.sources.crossref import DOCUMENT_TYPES, NO_PAPERS, first_address, person_name


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SourceSettings):
    """Has no search, wants a contact address, and calls too many requests a second a 422."""

    dois_a_request: ClassVar[int] = 1
    fills: ClassVar[tuple[str, ...]] = ("is_open_access", "pdf_url")

    def lookup(self, dois: Sequence[str]) -> Request:
        """Return the request for a DOI."""
        (doi,) = dois
        return Request(f"{self.base_url}/{quote(doi)}")

    def read(self, body: bytes, request: Request) -> Page:  # noqa: ARG002 (there are no pages)
        """Map the object of a DOI, or the hits of a title search."""
        answer = parse_object(body)
        if answer.get("error"):
            raise RefusedError(f"refused the request: {shown(body)}")
        hits = answer.get("results")
        records = [mapping(hit).get("response") for hit in hits] if isinstance(hits, list) else [answer]
        if not isinstance(hits, list) and "doi" not in answer:
            raise MalformedError(f"sent no DOI object but {shown(body)}")
        papers = tuple(paper for record in records if (paper := _paper(self.name, mapping(record))))
        return Page(papers, received=len(records))

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
    best, is_open = mapping(work.get("best_oa_location")), work.get("is_oa")
    places = [best, *map(mapping, listing(work.get("oa_locations")))]
    pdf_url = first_address(*(place.get("url_for_pdf") for place in places))
    return Paper(
        paper_id=f"{source}:{'_'.join(str(work['doi']).split())}",
        title=clean_text(work.get("title")),
        year=whole_number(work.get("year")) or year_of(date),
        authors=clean_texts([_author(mapping(author)) for author in listing(work.get("z_authors"))]),
        document_type=DOCUMENT_TYPES.get(word, "other") if word else None,
        journal_name=venue if word == "journal-article" else None,
        conference_name=venue if word == "proceedings-article" else None,
        publication_type=word,
        venue=venue,
        publication_date=date,
        is_open_access=is_open if isinstance(is_open, bool) else None,
        pdf_url=pdf_url,
        pdf_available=True if pdf_url else (False if is_open is False else None),
        url=first_address(best.get("url_for_landing_page"), work.get("doi_url")),
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
