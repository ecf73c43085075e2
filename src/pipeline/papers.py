"""The nouns of the field: a paper, a query, and the four relevance categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: The four relevance categories; the index of a category is its grade, 0 to 3.
CATEGORIES = ("low relevance", "somewhat relevant", "moderately relevant", "highly relevant")

#: What a paper can be; the words of the sources are mapped to these.
DOCUMENT_TYPES = (
    "article",
    "review",
    "preprint",
    "conference paper",
    "book",
    "book chapter",
    "dissertation",
    "report",
    "dataset",
    "editorial",
    "letter",
    "erratum",
    "retraction",  # the notice, or the paper that was taken back
    "other",
)


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper in the common schema of 24 fields, its references and versions, and where each field came from.

    ``None``, an empty tuple or an empty text mean unknown, never zero: what an unknown value counts for is
    decided where it is used.
    """

    paper_id: str
    title: str = ""
    abstract: str = ""
    year: int | None = None
    authors: tuple[str, ...] = ()
    citation_count: int | None = None
    disciplines: tuple[str, ...] = ()
    document_type: str | None = None  #: one of DOCUMENT_TYPES
    journal_name: str | None = None
    journal_volume: str | None = None
    journal_pages: str | None = None
    conference_name: str | None = None
    publication_type: str | None = None  #: the source's own word for the type
    venue: str | None = None  #: the journal, conference or repository
    publication_date: str | None = None  #: ISO, as precise as it is known: 2021, 2021-03 or 2021-03-14
    is_open_access: bool | None = None
    pdf_url: str | None = None
    pdf_available: bool | None = None  #: whether a PDF is known to be free to read
    url: str | None = None
    doi: str | None = None
    keywords: tuple[str, ...] = ()
    source: str | None = None
    issn: str | None = None  #: all ISSNs of the venue, joined by a comma and a blank
    impact_factor: float | None = None
    references: tuple[str, ...] = ()  #: DOIs where known, else the ids of the source
    published_as: str | None = None  #: of a preprint: the DOI of its published article
    preprints: tuple[str, ...] = ()  #: of an article: the DOIs of its preprints
    records: tuple[str, ...] = ()  #: the source records that were merged into this paper, as ``source:id``
    provenance: Mapping[str, str] = field(default_factory=dict)  #: field -> the record that its value is from


@dataclass(frozen=True, slots=True)
class Query:
    """What a researcher asks for: a title-like text, with keywords, domain and subject fields where known."""

    query_id: str
    text: str
    keywords: tuple[str, ...] = ()
    domain: str | None = None
    fields: tuple[str, ...] = ()
    area: str = "all"
    paper_id: str | None = None  #: the paper the query was made from; it is left out of the ranking

    @property
    def expanded(self) -> str:
        """Text, keywords, domain and subject fields in one (the paper, section 4.3.1)."""
        return " ".join([self.with_keywords, *self.subject])

    @property
    def with_keywords(self) -> str:
        """Text and keywords in one: all that the earlier system asked its users for (the paper, table 3)."""
        return " ".join([self.text, *self.keywords])

    @property
    def subject(self) -> tuple[str, ...]:
        """Domain and subject fields, compared with a paper's disciplines (the paper, equation 4)."""
        return (self.domain, *self.fields) if self.domain else self.fields
