"""Crossref's words for what a work is and who made it, which Unpaywall uses too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.cleaning import clean_text

#: Crossref's words for types -> ours.
CROSSREF_TYPES = {
    "journal-article": "article",
    "posted-content": "preprint",
    "preprint": "preprint",
    "working_paper": "preprint",
    "proceedings-article": "conference paper",
    "book": "book",
    "edited-book": "book",
    "monograph": "book",
    "reference-book": "book",
    "book-chapter": "book chapter",
    "book-part": "book chapter",
    "book-section": "book chapter",
    "reference-entry": "book chapter",
    "dissertation": "dissertation",
    "report": "report",
    "dataset": "dataset",
    "letter": "letter",
}
#: Types of what has a DOI but is no work of its own: parts, containers, reviews of a manuscript.
NO_PAPERS = frozenset(
    "component journal journal-issue journal-volume peer-review proceedings proceedings-series book-series book-set "
    "report-component report-series database grant".split()
)


def person_name(person: Mapping[str, Any]) -> str:
    """Return the name of a person (given names first), or of an organisation; empty where there is none."""
    parts = [clean_text(person.get(part)) for part in ("given", "family", "suffix")]
    return " ".join(part for part in parts if part) or clean_text(person.get("name"))
