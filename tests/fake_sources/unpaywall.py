"""Unpaywall: one DOI a call, and nobody without an address of their own."""

from __future__ import annotations

import re
from typing import Any

from fake_sources.answers import Answer, Ask, Shelf, json_answer
from fake_sources.records import MadeUp


def answer(ask: Ask, shelf: Shelf) -> Answer:
    address = ask.params.get("email", "")
    if "@" not in address or address.endswith("example.com"):
        return error("Please use your own email address in API calls. See http://unpaywall.org/products/api", 422)
    doi = re.sub(r"^.*?(?=10\.)", "", ask.path)
    found = shelf.of_dois([doi])
    return json_answer(_record(found[0])) if found else error(f"'{doi}' isn't in Unpaywall.", 404)


def failure(ask: Ask) -> Answer:
    return error("Internal server error", 200)


def error(text: str, status: int) -> Answer:
    return json_answer({"HTTP_status_code": max(status, 400), "error": True, "message": text}, status)


def _record(paper: MadeUp) -> dict[str, Any]:
    location = _location(paper) if paper.is_open else None
    return {
        "doi": paper.doi,
        "doi_url": f"https://doi.org/{paper.doi}",
        "title": paper.title,
        "genre": "journal-article",
        "is_paratext": False,
        "published_date": paper.date.isoformat(),
        "year": paper.year,
        "journal_name": paper.journal,
        "journal_issns": f"{paper.issn},0114-9954",
        "journal_issn_l": paper.issn,
        "journal_is_oa": paper.is_open,
        "journal_is_in_doaj": paper.is_open,
        "publisher": "Flutter Press",
        "is_oa": paper.is_open,
        "oa_status": "gold" if paper.is_open else "closed",
        "has_repository_copy": False,
        "best_oa_location": location,
        "first_oa_location": location,
        "oa_locations": [location] if location else [],
        "oa_locations_embargoed": [],
        "data_standard": 2,
        "z_authors": [
            {
                "author_position": "additional" if i else "first",
                "raw_author_name": " ".join(names),
                "is_corresponding": not i,
                "raw_affiliation_strings": [],
            }
            for i, names in enumerate(paper.authors)
        ],
        "updated": "2026-01-02T03:04:05Z",
    }


def _location(paper: MadeUp) -> dict[str, Any]:
    return {
        "url": f"https://doi.org/{paper.doi}",
        "url_for_pdf": f"https://flutter.example/{paper.number}.pdf" if paper.number % 2 else None,
        "url_for_landing_page": f"https://doi.org/{paper.doi}",
        "evidence": "deprecated",
        "license": "cc-by",
        "version": "publishedVersion",
        "host_type": "publisher",
        "is_best": True,
        "updated": "deprecated",
    }
