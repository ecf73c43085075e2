"""PubMed: a search gives numbers (esearch), and a second request the records of these numbers (efetch)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Annotated
from xml.etree.ElementTree import Element  # types only: defusedxml parses

from pydantic import Field
from pydantic.dataclasses import dataclass

from pipeline.cleaning import clean_names, clean_text, clean_texts, whole_number
from pipeline.dates import iso_date, year_of
from pipeline.identifiers import join_issns, normalize_doi
from pipeline.papers import Paper, Query
from pipeline.parsing import listing, mapping, parse_object, parse_xml, shown
from pipeline.records import known, record_id, type_among
from pipeline.search_terms import any_of
from pipeline.sources import STRICT, MalformedError, Page, RefusedError, Request, SearchedSource

_MOST_IDS = 9999  # of one search
_DATABASE = {"db": "pubmed", "tool": "litgrade"}
#: A record has several types: the first of these that is among them counts.
_DOCUMENT_TYPES = {
    "Retraction of Publication": "retraction",
    "Retracted Publication": "retraction",
    "Published Erratum": "erratum",
    "Preprint": "preprint",
    "Editorial": "editorial",
    "Letter": "letter",
    "Systematic Review": "review",
    "Scoping Review": "review",
    "Review": "review",
    "Dataset": "dataset",
    "Technical Report": "report",
    "Academic Dissertation": "dissertation",
    "Congress": "conference paper",
    "Journal Article": "article",
}
_RECORDS = {"PubmedArticle", "PubmedBookArticle"}  # numbers of deleted ones may stand beside them
_ARTICLE = "MedlineCitation/Article"
_DATES = (
    f"{_ARTICLE}/ArticleDate",
    f"{_ARTICLE}/Journal/JournalIssue/PubDate",
    "PubmedData/History/PubMedPubDate[@PubStatus='pubmed']",
)
_BOOK_DATES = ("BookDocument/ContributionDate", "BookDocument/Book/PubDate")
_RELATED_DOI = re.compile(r"\bdoi:\s*(\S+)", re.IGNORECASE)
#: An update relates versions of Cochrane reviews as well: only these are preprints.
_PREPRINT_SERVER = re.compile(r"\w*rxiv\b|Res Sq\b|SSRN\b|Preprints\b|OSF\b", re.IGNORECASE)
_E_NUMBER = re.compile(r"[A-Za-z]{0,6}\d{1,9}", re.ASCII)  # where pages would stand; other ids of publishers are longer


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Source(SearchedSource):
    """Records of biomedicine with MeSH headings; the most relevant first, at most 9999 of a search."""

    page_size: Annotated[int, Field(ge=1, le=200)]

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:  # noqa: ARG002 (ids are short)
        """Return the search for any of the query's words in title or abstract."""
        term = any_of(query, joined_by="[tiab] OR ") + "[tiab]"  # without a field a word may be taken for a journal
        how = {"retmode": "json", "retmax": str(_MOST_IDS), "sort": "relevance"}
        return Request(self._url("esearch"), _DATABASE | {"term": term} | how)

    def read(self, body: bytes, request: Request) -> Page:
        """Map the numbers that a search found to the next request, and records to papers."""
        return self._found(body) if "term" in request.params else self._fetched(body, request)

    def _url(self, tool: str) -> str:
        return f"{self.root}/{tool}.fcgi"

    def _found(self, body: bytes) -> Page:
        result = mapping(parse_object(body).get("esearchresult"))
        if error := clean_text(result.get("ERROR")):
            raise RefusedError(f"refused the search: {error[:200]}")
        count = whole_number(result.get("count"))
        ids = tuple(filter(None, map(clean_text, listing(result.get("idlist")))))
        if count is None or (count and not ids):
            raise MalformedError(f"sent no ids but {shown(body)}")
        return Page((), self._fetch(ids), declared=count)

    def _fetch(self, ids: tuple[str, ...]) -> Request | None:
        asked, left = ids[: self.page_size], ids[self.page_size :]
        params = _DATABASE | {"id": ",".join(asked), "retmode": "xml"}
        return Request(self._url("efetch"), params, state=left) if asked else None

    def _fetched(self, body: bytes, request: Request) -> Page:
        answer = parse_xml(body)
        if answer.tag != "PubmedArticleSet":
            raise MalformedError(f"sent no PubmedArticleSet but {shown(body)}")
        n_asked, records = request.params["id"].count(",") + 1, [part for part in answer if part.tag in _RECORDS]
        if not records and n_asked > 1:  # a single number may have been withdrawn since the search
            raise MalformedError(f"sent none of {n_asked} records")
        return Page(known(map(self._paper, records)), self._fetch(request.state), received=len(records))

    def _paper(self, record: Element) -> Paper | None:
        """Return the paper of a record; None for one without a number, or with neither title nor DOI."""
        paper = self._article(record) if record.tag == "PubmedArticle" else self._book(record)
        return paper if not paper.paper_id.endswith(":") and (paper.title or paper.doi) else None

    def _article(self, record: Element) -> Paper:
        number, pmc = _text(record, "MedlineCitation/PMID"), _pmc_id(record)
        types = _texts(record, f"{_ARTICLE}/PublicationTypeList/PublicationType")
        document_type, date = type_among(_DOCUMENT_TYPES, *types), _date(record, *_DATES)
        is_preprint = document_type == "preprint"
        venue = _text(record, f"{_ARTICLE}/Journal/Title") or None
        return Paper(
            paper_id=record_id(self.name, number),
            title=_title(record),
            abstract=_abstract(record, f"{_ARTICLE}/Abstract/AbstractText"),
            year=year_of(date),
            authors=_authors(record, f"{_ARTICLE}/AuthorList/Author"),
            disciplines=_major_topics(record),
            document_type=document_type,
            journal_name=None if is_preprint else venue,
            journal_volume=_text(record, f"{_ARTICLE}/Journal/JournalIssue/Volume") or None,
            journal_pages=_pages(record),
            publication_type="; ".join(types) or None,
            venue=venue,
            publication_date=date,
            is_open_access=True if pmc else None,
            url=f"https://pubmed.ncbi.nlm.nih.gov/{number}/",
            doi=_doi(record),
            keywords=_texts(record, "MedlineCitation/KeywordList/Keyword"),
            source=self.name,
            issn=_issns(record),
            references=_references(record),
            published_as=next(_related(record, "UpdateIn"), None) if is_preprint else None,
            preprints=tuple(dict.fromkeys(_related(record, "UpdateOf", _PREPRINT_SERVER))),
        )

    def _book(self, record: Element) -> Paper:
        """Map a book, or a chapter where the record has a title of its own."""
        number, date = _text(record, "BookDocument/PMID"), _date(record, *_BOOK_DATES)
        title, book = _text(record, "BookDocument/ArticleTitle"), _text(record, "BookDocument/Book/BookTitle")
        is_chapter = title not in {"", book}
        return Paper(
            paper_id=record_id(self.name, number),
            title=title or book,
            abstract=_abstract(record, "BookDocument/Abstract/AbstractText"),
            year=year_of(date),
            authors=_authors(record, "BookDocument/AuthorList/Author")
            or _authors(record, "BookDocument/Book/AuthorList/Author"),
            document_type="book chapter" if is_chapter else "book",
            publication_type="; ".join(_texts(record, "BookDocument/PublicationType")) or None,
            venue=book if is_chapter and book else None,
            publication_date=date,
            url=f"https://pubmed.ncbi.nlm.nih.gov/{number}/",
            doi=normalize_doi(_text(record, "BookDocument/ArticleIdList/ArticleId[@IdType='doi']")),
            keywords=_texts(record, "BookDocument/KeywordList/Keyword"),
            source=self.name,
        )


def _text(record: Element, path: str) -> str:
    """Return all text of the first element there, with that of the markup inside it."""
    return next(iter(_texts(record, path)), "")


def _texts(record: Element, path: str) -> tuple[str, ...]:
    return clean_texts(["".join(element.itertext()) for element in record.iterfind(path)])


def _title(record: Element) -> str:
    """Return the English title; where it only says that there is none, the original one."""
    title = _text(record, f"{_ARTICLE}/ArticleTitle")
    is_told = clean_text(title.strip("[]. "))  # "[Not Available]."
    return title if is_told else _text(record, f"{_ARTICLE}/VernacularTitle")


def _abstract(record: Element, path: str) -> str:
    """Return the parts of an abstract, each after its label."""
    parts = ((part.get("Label", ""), clean_text("".join(part.itertext()))) for part in record.iterfind(path))
    return " ".join(f"{label}: {text}" if label not in {"", "UNLABELLED"} else text for label, text in parts if text)


def _authors(record: Element, path: str) -> tuple[str, ...]:
    """Return persons with their given names first, and groups; names marked as wrong are left out."""
    return clean_names([_name(author) for author in record.iterfind(path) if author.get("ValidYN") != "N"])


def _name(author: Element) -> str:
    given = _text(author, "ForeName") or _text(author, "Initials")
    person = " ".join(part for part in (given, _text(author, "LastName"), _text(author, "Suffix")) if part)
    return person or _text(author, "CollectiveName")


def _date(record: Element, *paths: str) -> str | None:
    """Return the first of these dates that is one. Seasons and spans of months tell no more than the year."""
    for element in (found for path in paths for found in record.iterfind(path)):
        span = re.search(r"\b[12]\d{3}\b", _text(element, "MedlineDate"))
        year = _text(element, "Year") or (span.group() if span else None)
        if date := iso_date(year, _text(element, "Month"), _text(element, "Day")):
            return date
    return None


def _pages(record: Element) -> str | None:
    """Return pages from first to last (616-24 is 616-624), or the number of an electronic article."""
    first, last = (_text(record, f"{_ARTICLE}/Pagination/{end}") for end in ("StartPage", "EndPage"))
    if not first:
        first, _, last = _text(record, f"{_ARTICLE}/Pagination/MedlinePgn").partition("-")
    if first.isdigit() and last.isdigit() and len(last) < len(first):
        last = first[: len(first) - len(last)] + last
    numbers = _texts(record, f"{_ARTICLE}/ELocationID[@EIdType='pii']")
    pages = f"{first}-{last}" if last and last != first else first
    return pages or next((number for number in numbers if _E_NUMBER.fullmatch(number)), None)


def _major_topics(record: Element) -> tuple[str, ...]:
    """Return the headings that the record is mainly about, of themselves or in some respect; not "Humans"."""
    headings = record.iterfind("MedlineCitation/MeshHeadingList/MeshHeading")
    major = [heading for heading in headings if any(part.get("MajorTopicYN") == "Y" for part in heading)]
    return clean_texts([heading.findtext("DescriptorName") for heading in major])


def _doi(record: Element) -> str | None:
    """Return the record's own DOI; ids of the same kind stand in its references too."""
    own = _text(record, "PubmedData/ArticleIdList/ArticleId[@IdType='doi']")
    placed = record.iterfind(f"{_ARTICLE}/ELocationID[@EIdType='doi']")
    return normalize_doi(own) or next((normalize_doi(doi.text) for doi in placed if doi.get("ValidYN") != "N"), None)


def _pmc_id(record: Element) -> str | None:
    """Return the id in PubMed Central, whose full texts are free to read."""
    number = _text(record, "PubmedData/ArticleIdList/ArticleId[@IdType='pmc']")
    return number if re.fullmatch(r"PMC\d+", number, re.ASCII) else None


def _issns(record: Element) -> str | None:
    linking = _text(record, "MedlineCitation/MedlineJournalInfo/ISSNLinking")
    return join_issns(*_texts(record, f"{_ARTICLE}/Journal/ISSN"), linking)


def _references(record: Element) -> tuple[str, ...]:
    """Return the DOIs of cited papers, where there is none their PubMed numbers."""
    cited = record.iterfind("PubmedData/ReferenceList//Reference")
    ids = (
        normalize_doi(_text(reference, "ArticleIdList/ArticleId[@IdType='doi']"))
        or _text(reference, "ArticleIdList/ArticleId[@IdType='pubmed']")
        for reference in cited
    )
    return clean_texts(list(ids))


def _related(record: Element, relation: str, venue: re.Pattern[str] | None = None) -> Iterator[str]:
    """Yield the DOIs of related records, where told only of those in such a venue."""
    path = f"MedlineCitation/CommentsCorrectionsList/CommentsCorrections[@RefType='{relation}']/RefSource"
    for source in _texts(record, path):
        found = _RELATED_DOI.search(source) if venue is None or venue.match(source) else None
        if found and (doi := normalize_doi(found.group(1))):
            yield doi
