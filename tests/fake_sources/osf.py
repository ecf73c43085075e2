"""OSF preprints (PsyArXiv, SocArXiv, EdArXiv): JSON:API with filters that look for literal pieces of text."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from math import ceil
from typing import Any
from urllib.parse import urlencode

from fake_sources.answers import Answer, Ask, Shelf, json_answer
from fake_sources.ids import osf_id, preprint_doi
from fake_sources.records import MadeUp

PAGE = 100
_API = "https://api.osf.io/v2/preprints"
_TYPE = "application/vnd.api+json"
_FILTER = re.compile(r"filter\[([^\]]+)\](?:\[(\w+)\])?$")
_READ: dict[str, Callable[[str, MadeUp], str]] = {
    "provider": lambda source, paper: source,
    "title": lambda source, paper: paper.title,
    "description": lambda source, paper: paper.abstract,
    "date_created": lambda source, paper: paper.date.isoformat(),
    "date_published": lambda source, paper: paper.date.isoformat(),
    "is_published": lambda source, paper: "true",
    "reviews_state": lambda source, paper: "accepted",
}
_COMPARE: dict[str, Callable[[str, str], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
}


def answer(ask: Ask, shelf: Shelf) -> Answer:
    found = list(shelf.papers)
    for name, value in ask.params.items():
        if not (asked := _FILTER.match(name)):
            continue  # a bare q= is ignored, too
        if asked[1] not in _READ:
            return error(f"'{asked[1]}' is not a valid field for this endpoint.", 400)
        found = [paper for paper in found if _passes(_READ[asked[1]](ask.source, paper), asked[1], asked[2], value)]
    number, size = ask.whole("page", 1), min(ask.whole("page[size]", 10), PAGE)
    total, papers = shelf.page(found, (number - 1) * size, size)
    if number > max(1, ceil(total / size)):
        return error("Not found.", 404)
    return _page(ask, papers, total, size)


def failure(ask: Ask) -> Answer:
    return error("Service temporarily unavailable, try again later.", 200)


def error(text: str, status: int) -> Answer:
    value = {"errors": [{"source": {"parameter": "filter"}, "detail": text}], "meta": {"version": "2.0"}}
    return json_answer(value, status, _TYPE)


def _passes(has: str, field: str, compare: str | None, value: str) -> bool:
    if field in ("title", "description"):
        return value.lower() in has.lower()
    return _COMPARE[compare or "eq"](has, value[: len(has)] if field.startswith("date") else value)


def _page(ask: Ask, papers: list[MadeUp], total: int, size: int) -> Answer:
    number, pages = ask.whole("page", 1), max(1, ceil(total / size))

    def link(to: int) -> str:
        others = {name: value for name, value in sorted(ask.params.items()) if name != "page"}
        return f"{_API}/?{urlencode(others | ({'page': str(to)} if to > 1 else {}))}"

    links = {
        "first": link(1) if number > 1 else None,
        "last": link(pages) if number < pages else None,
        "prev": link(number - 1) if number > 1 else None,
        "next": link(number + 1) if number < pages else None,
        "meta": {"total": total, "per_page": size},
    }
    is_embedded = ask.params.get("embed") in ("contributors", "bibliographic_contributors")
    data = [_record(ask.source, paper, ask.params["embed"] if is_embedded else None) for paper in papers]
    return json_answer({"data": data, "links": links, "meta": {"version": "2.0"}}, content_type=_TYPE)


def _record(source: str, paper: MadeUp, embedded: str | None) -> dict[str, Any]:
    name = osf_id(paper) + ("_v1" if paper.number % 2 else "")
    doi = preprint_doi(source, paper) + ("_v1" if paper.number % 2 else "")
    links = {"self": f"{_API}/{name}/", "html": f"https://osf.io/preprints/{source}/{name}/"}
    links |= {"preprint_doi": f"https://doi.org/{doi}"}
    links |= {"doi": f"https://doi.org/{paper.doi}"} if paper.is_published else {}
    record = {
        "id": name,
        "type": "preprints",
        "attributes": _attributes(paper),
        "relationships": {
            "contributors": {"links": {"related": {"href": f"{_API}/{name}/contributors/", "meta": {}}}},
            "provider": {"data": {"id": source, "type": "preprint-providers"}},
            "primary_file": {"data": {"id": f"{osf_id(paper)}file", "type": "files"}},
        },
        "links": links,
    }
    return record | ({"embeds": {embedded: _contributors(paper)}} if embedded else {})


def _attributes(paper: MadeUp) -> dict[str, Any]:
    moment = f"{paper.date}T20:51:29.311288" + ("Z" if paper.number % 3 else "")
    return {
        "date_created": moment,
        "date_modified": moment,
        "date_published": moment,
        "original_publication_date": None,
        "doi": paper.doi if paper.is_published else None,
        "title": paper.title,
        "description": paper.abstract,
        "is_published": True,
        "license_record": {"copyright_holders": [], "year": None},
        "tags": list(paper.keywords),
        "preprint_doi_created": moment,
        "date_withdrawn": None,
        "public": True,
        "reviews_state": "accepted",
        "version": 1,
        "is_latest_version": True,
        "subjects": [[{"id": "584240da54be81056cecac00", "text": paper.discipline}]],
    }


def _contributors(paper: MadeUp) -> dict[str, Any]:
    """The authors, last one first, and one who only uploaded."""
    people = [*(" ".join(author) for author in paper.authors), "Uploading Librarian"]
    data = [_contributor(paper, i, name, is_author=i < len(paper.authors)) for i, name in enumerate(people)]
    meta = {"total": len(data), "per_page": 10}
    return {"data": data[::-1], "links": {"first": None, "last": None, "prev": None, "next": None, "meta": meta}}


def _contributor(paper: MadeUp, index: int, name: str, *, is_author: bool) -> dict[str, Any]:
    is_user = index != 1
    user = {"data": {"id": f"u{index}", "type": "users", "attributes": {"full_name": name}}}
    return {
        "id": f"{osf_id(paper)}-c{index}",
        "type": "contributors",
        "attributes": {
            "index": index,
            "bibliographic": is_author,
            "permission": "write",
            "unregistered_contributor": None if is_user else name,
        },
        "embeds": {"users": user if is_user else {"errors": [{"detail": "Not found."}]}},
    }
