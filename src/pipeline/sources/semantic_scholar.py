"""Semantic Scholar: a catalogue made by machine, strong in computer science and medicine."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_names, clean_text, clean_texts, text_or_none, whole_number
from pipeline.dates import read_date, year_of
from pipeline.identifiers import arxiv_doi, arxiv_id, join_issns, normalize_doi
from pipeline.papers import Paper, Query
from pipeline.parsing import flag, listing, mapping, objects, parse_object, shown, values_of, web_address
from pipeline.records import known, record_id, type_among
from pipeline.search_terms import search_words
from pipeline.sources import STRICT, MalformedError, Page, RefusedError, Request, SearchedSource

_FIELDS = (
    "paperId,externalIds,title,abstract,authors,year,publicationDate,venue,journal,publicationVenue,publicationTypes,"
    "citationCount,fieldsOfStudy,s2FieldsOfStudy,isOpenAccess,openAccessPdf,url"
)
_REACHABLE = 1000  # records of a search
_ARXIV = re.compile(r"arxiv(?:\.org)?|corr", re.IGNORECASE)
_DOI_PAGE = re.compile(r"https?://(?:dx\.)?doi\.org/", re.IGNORECASE)

#: A paper has several types; the one that says most comes first. "Review" is often a guess.
_DOCUMENT_TYPES = {
    "Editorial": "editorial",
    "LettersAndComments": "letter",
    "Dataset": "dataset",
    "Book": "book",
    "BookSection": "book chapter",
    "Conference": "conference paper",
    "Review": "review",
    "MetaAnalysis": "review",
    "JournalArticle": "article",
    "CaseReport": "article",
    "ClinicalTrial": "article",
    "Study": "article",
}


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SearchedSource):
    """Finds plain words, by relevance; at most 1000 records of a search can be reached."""

    page_size: Annotated[int, Field(ge=1, le=100)]

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:  # noqa: ARG002 (papers of any date)
        """Return the first page for the words of the query; a hyphen would find nothing."""
        words = " ".join(search_words(query)) or query.text
        params = {
            "query": " ".join(words.replace("-", " ").split()),
            "fields": _FIELDS,
            "offset": "0",
            "limit": str(min(self.page_size, limit)),
        }
        return Request(f"{self.root}/paper/search", params)

    def read(self, body: bytes, request: Request) -> Page:
        """Map the papers of an answer: to a search, a match, a batch, for references, citations, or a single one."""
        # a batch is a bare list
        answer = parse_object(b'{"data":' + body + b"}" if body.lstrip().startswith(b"[") else body)
        records = _records(answer)
        if records is None:
            if "error" in answer:
                raise RefusedError(f"refused the request: {shown(body)}")
            raise MalformedError(f"sent no papers but {shown(body)}")
        papers = known(_paper(self.name, record) for record in objects(records))
        following = _following(request, answer)
        return Page(papers, following, whole_number(answer.get("total")), len(records))


def _following(request: Request, answer: Mapping[str, Any]) -> Request | None:
    """Return the next page of a search; the total may promise more than can be reached."""
    if "offset" not in request.params:
        return None
    offset, following, total = int(request.params["offset"]), answer.get("next"), whole_number(answer.get("total"))
    if not listing(answer.get("data")) and (following is not None or (total and not offset)):
        raise MalformedError(f"sent an empty page at {offset} of {total}")
    start, size = whole_number(following), int(request.params["limit"])
    if start is None or not offset < start < _REACHABLE:
        return None
    params = {**request.params, "offset": str(start), "limit": str(min(size, _REACHABLE - start))}
    return dataclasses.replace(request, params=params)


def _records(answer: Mapping[str, Any]) -> list[Any] | None:
    """Return the papers of an answer of any shape, None where there is no place for one."""
    if "data" in answer:
        return [_cited_or_citing(record) for record in listing(answer["data"])]
    if answer.keys() & {"paperId", "citedPaper", "citingPaper"}:
        return [_cited_or_citing(answer)]
    return [] if "total" in answer else None  # without hits there is no data


def _cited_or_citing(record: object) -> object:
    """Return the paper at the other end of a citation; any other record as it is."""
    edge = mapping(record)
    return edge.get("citedPaper") or edge.get("citingPaper") or record


def _paper(source: str, record: Mapping[str, Any]) -> Paper | None:
    ids, venue = mapping(record.get("externalIds")), mapping(record.get("publicationVenue"))
    preprint = arxiv_doi(found[0]) if (found := arxiv_id(ids.get("ArXiv"))) else None
    doi = normalize_doi(ids.get("DOI")) or preprint
    title, native = clean_text(record.get("title")), text_or_none(record.get("paperId")) or doi
    if not native or not (title or doi):
        return None
    journal, types = _journal(record), clean_texts(record.get("publicationTypes"))
    journal_name, conference_name = _names(record, journal, types)
    date, pdf_url = read_date(record.get("publicationDate")), _pdf_url(record)
    return Paper(
        paper_id=record_id(source, native),
        title=title,
        abstract=clean_text(record.get("abstract")),
        year=whole_number(record.get("year")) or year_of(date),
        authors=clean_names(values_of(record.get("authors"), "name")),
        citation_count=whole_number(record.get("citationCount")),
        disciplines=_disciplines(record),
        document_type="preprint" if _is_arxiv_doi(doi) else type_among(_DOCUMENT_TYPES, *types),
        journal_name=journal_name,
        journal_volume=text_or_none(journal.get("volume")),
        journal_pages=re.sub(r"\s*([-\u2013])\s*", r"\1", clean_text(journal.get("pages"))) or None,
        conference_name=conference_name,
        publication_type=", ".join(types) or None,
        venue=journal_name or conference_name or text_or_none(record.get("venue")),
        publication_date=date,
        is_open_access=flag(record.get("isOpenAccess")),
        pdf_url=pdf_url,
        pdf_available=True if pdf_url else _told_closed(record),
        url=web_address(record.get("url")),
        doi=doi,
        source=source,
        issn=join_issns(venue.get("issn"), *listing(venue.get("alternate_issns"))),
        preprints=(preprint,) if preprint and not _is_arxiv_doi(doi) else (),
    )


def _is_arxiv_doi(doi: str | None) -> bool:
    return doi is not None and doi.startswith("10.48550/arxiv.")


def _journal(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is told of the journal; arXiv is none, and its volumes are ids."""
    journal = mapping(record.get("journal"))
    return {} if _ARXIV.fullmatch(clean_text(journal.get("name"))) else journal


def _names(
    record: Mapping[str, Any], journal: Mapping[str, Any], types: tuple[str, ...]
) -> tuple[str | None, str | None]:
    """Return the names of journal and conference; the proceedings of a conference stand in place of a journal."""
    kind = mapping(record.get("publicationVenue")).get("type")
    name, venue = text_or_none(journal.get("name")), text_or_none(record.get("venue"))
    if kind == "conference" or (kind is None and "Conference" in types):
        return None, venue or name
    return name or (venue if kind == "journal" else None), None


def _disciplines(record: Mapping[str, Any]) -> tuple[str, ...]:
    return clean_texts([*listing(record.get("fieldsOfStudy")), *values_of(record.get("s2FieldsOfStudy"), "category")])


def _pdf_url(record: Mapping[str, Any]) -> str | None:
    """Return the address of the PDF; where it is that of the DOI, it leads to a page about the paper."""
    address = web_address(mapping(record.get("openAccessPdf")).get("url"))
    return None if address and _DOI_PAGE.match(address) else address


def _told_closed(record: Mapping[str, Any]) -> bool | None:
    """Return False where a paper is said to be closed: that no PDF was found says less."""
    is_closed = mapping(record.get("openAccessPdf")).get("status") == "CLOSED" and record.get("isOpenAccess") is False
    return False if is_closed else None
