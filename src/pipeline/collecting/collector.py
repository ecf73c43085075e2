"""A query at all sources at once, within a time budget; what has arrived when it ends is kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pipeline.collecting.client import Client, address, missing_keys, page_of
from pipeline.collecting.reports import Report, SourceFault, Stop
from pipeline.collecting.responses import Response, Responses
from pipeline.collecting.walk import Walk
from pipeline.errors import UserError, first_line
from pipeline.progress import progress
from pipeline.sources import MalformedError, Page, RefusedError, Request, SourceSettings

log = logging.getLogger(__name__)

_Done = TypeVar("_Done")


def replay(walk: Walk, responses: Responses) -> Walk:
    """Walk over the answers that are kept, as far as they go."""
    requests = walk.requests()
    try:
        request = next(requests)
        while (kept := responses.get(walk.name, walk.step)) is not None:
            request = requests.send(read_kept(walk.source, request, kept, responses))
    except StopIteration:
        pass
    return walk


@dataclass(frozen=True)
class Collector:
    """Asks sources and keeps what they answer."""

    client: Client
    responses: Responses

    async def collect(self, walks: Sequence[Walk], budget_s: float) -> list[Report]:
        """Walk at the same time; a source that fails never fails the others, and none outlasts the budget."""
        deadline = asyncio.get_running_loop().time() + budget_s
        with progress(len(walks), f"{walks[0].query.query_id}: sources" if walks else "sources") as step:

            async def work(walk: Walk) -> Report:
                report = await self._report(walk, deadline)
                step(1)
                return report

            return await together(work(walk) for walk in walks)

    async def _report(self, walk: Walk, deadline: float) -> Report:
        if (known := self.responses.report(walk.name)) is not None:
            return known
        started = asyncio.get_running_loop().time()
        stop, detail = await outcome(
            walk.source, lambda: self._pages(walk, deadline), deadline, self.client, lambda: walk.pages
        )
        if stop != Stop.DONE:
            is_gap = stop == Stop.MALFORMED and walk.papers
            walk.stop, walk.detail = Stop.PARTIAL if is_gap else stop, detail
        report = walk.report(asyncio.get_running_loop().time() - started)
        self.responses.set_report(walk.name, report)
        return report

    async def _pages(self, walk: Walk, deadline: float) -> None:
        requests = walk.requests()
        request: Request | None = next(requests)
        while request is not None:
            step, kept = walk.step, self.responses.get(walk.name, walk.step)
            if kept is None:
                response, page = await self.client.fetch(walk.source, request, deadline)
            else:
                page = read_kept(walk.source, request, kept, self.responses)
            try:
                request = requests.send(page)
            except StopIteration:
                request = None
            if kept is None and walk.stop != Stop.PARTIAL:  # a page that repeats others is not to be kept for ever
                self.responses.add(walk.name, step, response)


async def together(work: Iterable[Coroutine[Any, Any, _Done]]) -> list[_Done]:
    """Do all of this at the same time; where one raises, the others are ended before it does."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def outcome(
    source: SourceSettings,
    ask: Callable[[], Awaitable[object]],
    deadline: float,
    client: Client,
    n_answers: Callable[[], int],
) -> tuple[Stop, str]:
    """Return what became of asking a source, and what went wrong; only a ``UserError`` is raised.

    ``deadline`` is a time of the event loop, ``n_answers`` tells how many answers there are when it has passed.
    """
    if missing := missing_keys(source):
        return Stop.NO_KEY, f"set the environment variable {' and '.join(missing)}"
    try:
        async with asyncio.timeout_at(deadline):
            await ask()
    except TimeoutError:
        if (trouble := client.trouble_of(source)) is not None:  # faults took the time
            return trouble.stop, first_line(trouble)
        return (Stop.BUDGET, "") if n_answers() else (Stop.UNREACHABLE, "no answer within the budget")
    except SourceFault as fault:
        return fault.stop, first_line(fault)
    except UserError:
        raise
    except Exception as error:  # whatever it is, the other sources go on
        log.exception("%s: a fault of litgrade, not of the source", source.name)
        return Stop.MALFORMED, f"litgrade cannot read it: {first_line(error)}"
    return Stop.DONE, ""


def read_kept(source: SourceSettings, request: Request, kept: Response, responses: Responses) -> Page:
    """Return what an answer holds that was kept for this very request."""
    if kept.request != address(request):
        raise UserError(
            f"{responses.path}: {source.name} was asked {kept.request}, but this configuration asks "
            f"{address(request)}; collect into a new snapshot"
        )
    try:
        page = page_of(source, request, kept.status, kept.body)
    except (MalformedError, RefusedError) as error:
        raise UserError(f"{responses.path}: an answer of {source.name} cannot be read any more: {error}") from error
    return Page(()) if page is None else page
