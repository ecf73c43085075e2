"""What tests of collecting share: a clock that does not wait, a source of numbers, and walks over fake sources."""

from __future__ import annotations

import asyncio
import datetime
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic.dataclasses import dataclass

from endpoint import Reply
from fake_sources import FAMILIES, QUERY_TEXT, FakeSources, MadeUp, made_up_papers
from pipeline.collecting.client import Client, Clock, Patience
from pipeline.collecting.collector import Collector
from pipeline.collecting.reports import Report
from pipeline.collecting.responses import Response, Responses
from pipeline.collecting.walk import Limits, Walk
from pipeline.papers import Paper, Query
from pipeline.parsing import parse_object
from pipeline.sources import STRICT, Page, Request, SearchedSource
from source_helpers import source

DAY = datetime.date(2026, 9, 30)
QUERY = Query("q1", QUERY_TEXT)
SEARCHABLE = tuple(name for name in FAMILIES if name != "unpaywall")
FOREVER = math.inf
_KEYS = {
    "SCOPUS_API_KEY": "scopus-key-1",
    "WOS_API_KEY": "wos-key-1",
    "UNPAYWALL_EMAIL": "me@flutter.example",
}
_OTHER_KEYS = (
    "LITGRADE_MAILTO CROSSREF_MAILTO OPENALEX_MAILTO OPENALEX_API_KEY OSF_TOKEN NCBI_EMAIL NCBI_API_KEY "
    "SCOPUS_INSTTOKEN S2_API_KEY"
).split()


def set_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the keys without which sources are skipped, and no other."""
    for name in _OTHER_KEYS:
        monkeypatch.delenv(name, raising=False)
    for name, value in _KEYS.items():
        monkeypatch.setenv(name, value)


class NoWaiting:
    """A clock that jumps to the end of every wait, and keeps how long each was."""

    def __init__(self) -> None:
        self.time, self.waits = 1000.0, list[float]()

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)

    @property
    def clock(self) -> Clock:
        return Clock(self.now, self.sleep)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Numbers(SearchedSource):
    """A source whose pages are {"ids": [...], "next": PAGE or null}; each id is a paper."""

    base_url: str
    name: str = "numbers"
    kind: Literal["open catalogue"] = "open catalogue"
    gives: str = "numbers"
    interval_s: float = 0.0

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:
        return Request(self.base_url, {"page": "1"})

    def read(self, body: bytes, request: Request) -> Page:
        answer = parse_object(body)
        papers = tuple(Paper(f"{self.name}:{i}", title=f"Number {i}", source=self.name) for i in answer["ids"])
        following = answer.get("next")
        return Page(papers, Request(self.base_url, {"page": str(following)}) if following else None, len(papers))


def numbers(*ids: int, following: int | None = None) -> Reply:
    return Reply(json.dumps({"ids": ids, "next": following}).encode())


def ask(
    reader: Any, request: Request, *, clock: Clock | None = None, deadline: float = FOREVER, **patience: Any
) -> tuple[Response, Page]:
    """Ask for one answer, as a walk does."""

    async def fetch() -> tuple[Response, Page]:
        async with Client(quick(**patience), "1", clock or Clock()) as client:
            return await client.fetch(reader, request, deadline)

    return asyncio.run(fetch())


def quick(**patience: Any) -> Patience:
    return Patience(**{"attempts": 3, "backoff_s": 0.001, "timeout_s": 5.0, **patience})


def recent_papers(n: int, seed: int = 0) -> list[MadeUp]:
    """Papers of the last month before the day of the search, because bioRxiv is asked for no other."""
    return made_up_papers(n, seed=seed, newest=DAY - datetime.timedelta(days=9), days=20)


def walk_of(name: str, server: FakeSources, records: int = 1000, pages: int = 1000, **settings: Any) -> Walk:
    """A walk over a fake source, without pauses."""
    settings = {"base_url": server.base_urls[name], "interval_s": 0.0, **settings}
    return Walk(source(name, **settings), QUERY, DAY, Limits(records, pages))


def collect(walks: Sequence[Walk], path: Path, budget_s: float = 60.0, **patience: Any) -> list[Report]:
    """Collect into a file, as a process of its own would."""
    responses = Responses(path)
    try:
        return asyncio.run(collect_into(walks, responses, budget_s, **patience))
    finally:
        responses.close()


async def collect_into(
    walks: Sequence[Walk], responses: Responses, budget_s: float = 60.0, **patience: Any
) -> list[Report]:
    async with Client(quick(**patience), "1") as client:
        return await Collector(client, responses).collect(walks, budget_s)
