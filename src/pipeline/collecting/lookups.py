"""Look-ups: many small requests of one kind, each kept, within a time budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pipeline.collecting.client import Client, address
from pipeline.collecting.collector import outcome, read_kept, together
from pipeline.collecting.reports import Report, SourceFault, Stop
from pipeline.collecting.responses import Responses
from pipeline.progress import progress
from pipeline.sources import Page, Request, SourceSettings

_MOST_FAULTS = 5  # in a row; then the next ones would fail as well


def batches(items: Sequence[str], size: int) -> list[Sequence[str]]:
    """Return the items in order, at most ``size`` at a time."""
    return [items[start : start + size] for start in range(0, len(items), size)]


@dataclass(frozen=True)
class Lookups:
    """What is looked up at one place."""

    name: str  #: of what is looked up, for reports
    source: SourceSettings
    requests: Sequence[Request]

    @property
    def walk(self) -> str:
        """The name under which answers and report are kept."""
        return f"enrich/{self.name}"

    def pages(self, responses: Responses) -> Iterator[tuple[Request, bytes, Page]]:
        """Yield the answers that are kept, in the order of the requests."""
        for request in self.requests:
            kept = responses.get(self.walk, address(request))
            if kept is not None:
                yield request, kept.body, read_kept(self.source, request, kept, responses)


async def ask(lookups: Lookups, client: Client, responses: Responses, budget_s: float) -> Report:
    """Ask what is not kept yet, and return what became of it; ``records`` is left to who reads the answers."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    asking = _Asking(lookups, client, responses, started + budget_s)
    stop, detail = await outcome(lookups.source, asking.all, asking.deadline, client, asking.n_kept)
    if failed := asking.failed:
        responses.set_fact(asking.fact, sorted(asking.failed_before | failed.keys()))
        n_left, last = sum(1 for _ in asking.waiting), list(failed.values())[-1]
        not_asked = f", {n_left} were not asked" if n_left else ""
        stop, detail = last.stop, f"{len(failed)} look-ups failed{not_asked}: {last}"
    declared = len(lookups.requests)
    return Report("", lookups.name, stop, detail, asking.n_kept(), 0, declared, round(loop.time() - started, 2))


@dataclass
class _Asking:
    """Look-ups under way. Those that failed in an earlier run come last, so that they hold up no others for ever."""

    lookups: Lookups
    client: Client
    responses: Responses
    deadline: float
    failed: dict[str, SourceFault] = field(default_factory=dict)  #: by address
    in_a_row: int = 0

    @property
    def fact(self) -> str:
        """The name under which the addresses are kept that failed."""
        return f"failed/{self.lookups.walk}"

    @cached_property
    def failed_before(self) -> set[str]:
        return set(self.responses.fact(self.fact) or ())

    @cached_property
    def waiting(self) -> Iterator[Request]:
        return iter(sorted(self.lookups.requests, key=lambda request: address(request) in self.failed_before))

    def is_kept(self, request: Request) -> bool:
        return self.responses.get(self.lookups.walk, address(request)) is not None

    def n_kept(self) -> int:
        return sum(map(self.is_kept, self.lookups.requests))

    async def all(self) -> None:
        with progress(len(self.lookups.requests), self.lookups.name) as step:
            await together(self._work(step) for _ in range(self.lookups.source.concurrency))

    async def _work(self, step: Callable[[int], object]) -> None:
        for request in self.waiting:
            if not self.is_kept(request):
                await self._look_up(request)
            step(1)
            if self.in_a_row >= _MOST_FAULTS:
                return

    async def _look_up(self, request: Request) -> None:
        try:
            response, _ = await self.client.fetch(self.lookups.source, request, self.deadline)
        except SourceFault as fault:
            if fault.stop == Stop.BUDGET:  # its pace leaves no time for more
                raise
            self.failed[address(request)] = fault
            self.in_a_row += 1
        else:
            self.responses.add(self.lookups.walk, address(request), response)
            self.in_a_row = 0
