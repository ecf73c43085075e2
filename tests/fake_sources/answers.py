"""A request as a source sees it, an answer as it goes out, and the papers a source has."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from fake_sources.records import PER_SEED, MadeUp, made_up_paper

MANY = 1_000_000  #: what a source declares that never ends
ENDLESS_SEED = 70
NOW = "2026-09-30T12:00:00Z"
#: Words of search languages and of no meaning, which find nothing by themselves.
_NO_TERMS = frozenset("a abs abstract all and for key not of on or the ti tiab title ts".split())


@dataclass(frozen=True)
class Ask:
    """A GET request for a source."""

    source: str
    path: str  #: decoded, behind the name of the source
    params: Mapping[str, str]
    headers: Mapping[str, str]  #: names in lower case

    def whole(self, name: str, default: int) -> int:
        """Return a parameter as a whole number; ValueError where it is none."""
        return int(self.params.get(name, default))


@dataclass(frozen=True)
class Answer:
    """A status, headers and a body, and how badly they are sent."""

    body: bytes = b""
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drip_s: float = 0.0  #: seconds between one byte of the body and the next
    connection: Literal["kept", "reset", "silent"] = "kept"
    is_damaged: bool = False  #: a damaged answer does not move a cursor on
    moves_on: Callable[[], None] | None = None  #: done when the answer goes out whole


def json_answer(
    value: Any,
    status: int = 200,
    content_type: str = "application/json",
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Answer:
    """Return JSON with letters as they are, so that a wrong charset does harm."""
    return Answer(json.dumps(value, ensure_ascii=False).encode(), content_type, status, headers)


@dataclass(frozen=True)
class Shelf:
    """The papers that a source has, and whether its pages are what they should be."""

    papers: tuple[MadeUp, ...] = ()
    venues: Mapping[str, float] = field(default_factory=dict)  #: ISSN -> mean citations of two years
    walks: dict[str, int] = field(default_factory=dict)  #: cursor -> where it stands; for cursors that stay the same
    pages: Literal["whole", "empty", "endless", "repeating"] = "whole"

    @cached_property
    def words(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(_words(paper.title)) for paper in self.papers)

    def matching(self, text: str) -> list[MadeUp]:
        """Return the papers that have a word of a search in their title."""
        wanted = frozenset(_words(text)) - _NO_TERMS
        return [paper for paper, words in zip(self.papers, self.words, strict=True) if wanted & words]

    @cached_property
    def by_doi(self) -> Mapping[str, MadeUp]:
        return {paper.doi: paper for paper in self.papers}

    @cached_property
    def by_number(self) -> Mapping[int, MadeUp]:
        return {paper.number: paper for paper in self.papers}

    def of_dois(self, dois: Sequence[str]) -> list[MadeUp]:
        return [self.by_doi[doi] for doi in dict.fromkeys(map(str.lower, dois)) if doi in self.by_doi]

    def of_number(self, number: int) -> MadeUp | None:
        if self.pages == "endless":
            return made_up_paper(number % PER_SEED, number // PER_SEED)
        return self.by_number.get(number)

    def page(self, found: Sequence[MadeUp], start: int, size: int) -> tuple[int, list[MadeUp]]:
        """Return how many records there are said to be, and those from ``start`` on."""
        if self.pages == "endless":
            return MANY, [made_up_paper(i, ENDLESS_SEED) for i in range(start, start + size)]
        if self.pages == "repeating":
            return MANY, list(found[:size])
        return len(found), [] if self.pages == "empty" else list(found[start : start + size])


def is_within(date: datetime.date, first: str, last: str) -> bool:
    return first <= date.isoformat() <= last


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.lower())
