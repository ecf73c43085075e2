"""Look-ups: many small requests of one kind, each kept, within a time budget."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.collecting.client import Client, address
from pipeline.collecting.collector import outcome, read_kept, together
from pipeline.collecting.reports import Report, SourceFault, Stop
from pipeline.collecting.responses import Responses
from pipeline.progress import progress
from pipeline.sources import Page, Request, SourceSettings

_MOST_FAULTS = 5  # then the next ones would fail as well


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
    started, deadline = loop.time(), loop.time() + budget_s
    waiting, faults = iter(lookups.requests), list[SourceFault]()

    async def ask_all() -> None:
        with progress(len(lookups.requests), lookups.name) as step:

            async def work() -> None:
                for request in waiting:
                    if responses.get(lookups.walk, address(request)) is None:
                        await _look_up(lookups, request, client, responses, deadline, faults)
                    step(1)
                    if len(faults) >= _MOST_FAULTS:
                        return

            await together(work() for _ in range(lookups.source.concurrency))

    def n_kept() -> int:
        return sum(responses.get(lookups.walk, address(request)) is not None for request in lookups.requests)

    stop, detail = await outcome(lookups.source, ask_all, deadline, client, n_kept)
    if faults:
        n_left = sum(1 for _ in waiting)
        not_asked = f", {n_left} were not asked" if n_left else ""
        stop, detail = faults[-1].stop, f"{len(faults)} look-ups failed{not_asked}: {faults[-1]}"
    declared = len(lookups.requests)
    return Report("", lookups.name, stop, detail, n_kept(), 0, declared, round(loop.time() - started, 2))


async def _look_up(  # noqa: PLR0913, PLR0917 (one step of ``ask``)
    lookups: Lookups,
    request: Request,
    client: Client,
    responses: Responses,
    deadline: float,
    faults: list[SourceFault],
) -> None:
    try:
        response, _ = await client.fetch(lookups.source, request, deadline)
        responses.add(lookups.walk, address(request), response)
    except SourceFault as fault:
        if fault.stop == Stop.BUDGET:  # its pace leaves no time for more
            raise
        faults.append(fault)
