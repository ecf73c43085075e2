"""The walk over the pages of one source for one query: which request comes next, and when to stop."""

from __future__ import annotations

import datetime
from collections.abc import Generator
from dataclasses import dataclass, field

from pipeline.collecting.reports import Report, Stop
from pipeline.papers import Paper, Query
from pipeline.sources import Page, Request, SearchedSource


@dataclass(frozen=True)
class Limits:
    """How much of a source is wanted for one query."""

    records: int
    pages: int


@dataclass
class Walk:
    """What is asked of a source, and what it has brought so far."""

    source: SearchedSource
    query: Query
    day: datetime.date  #: the day of the collection
    limits: Limits
    papers: list[Paper] = field(default_factory=list)
    pages: int = 0
    received: int = 0  #: records before any filter
    declared: int | None = None
    stop: Stop = Stop.DONE
    detail: str = ""

    @property
    def name(self) -> str:
        """The name under which answers and report are kept."""
        return f"search/{self.query.query_id}/{self.source.name}"

    @property
    def step(self) -> str:
        """The key under which the answer to the next request is kept."""
        return f"{self.pages:06d}"

    def requests(self) -> Generator[Request, Page]:
        """Yield the requests, each after the page of the one before was sent."""
        request: Request | None = self.source.search(self.query, self.day, self.limits.records)
        seen: set[tuple[str, str | None]] = set()
        while request is not None:
            page = yield request
            self.pages += 1
            self.received += len(page.papers) if page.received is None else page.received
            self.declared = self.declared if page.declared is None else page.declared
            # a later version of a preprint is a record of its own: merging keeps the latest
            new = {key: paper for paper in page.papers if (key := (paper.paper_id, paper.publication_date)) not in seen}
            if page.papers and not new:
                self.stop, self.detail = Stop.PARTIAL, f"page {self.pages} repeats records of earlier pages"
                return
            seen |= new.keys()
            self.papers += new.values()
            if self._is_full(page):
                return
            request = page.following
        if self.received < (self.declared or 0):
            self.stop, self.detail = Stop.SHORT, f"declared {self.declared} records, gave {self.received}"

    def _is_full(self, page: Page) -> bool:
        n = len(self.papers)
        if n >= self.limits.records:
            is_more = page.following is not None or n > self.limits.records or (self.declared or 0) > self.received
            self.stop = Stop.CAP if is_more else Stop.DONE
            del self.papers[self.limits.records :]
            return True
        if self.pages >= self.limits.pages and page.following is not None:
            self.stop, self.detail = Stop.CAP, f"{self.limits.pages} pages (sources.max_pages)"
            return True
        return False

    def report(self, seconds: float) -> Report:
        """Return what became of it."""
        return Report(
            self.query.query_id,
            self.source.name,
            self.stop,
            self.detail,
            self.pages,
            len(self.papers),
            self.declared,
            round(seconds, 2),
        )
