"""Requests to sources: paced, retried while that can help, limited in size and time, free of secrets."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Self
from urllib.parse import quote

from pydantic import Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from pipeline.collecting.reports import SourceFault, Stop
from pipeline.collecting.responses import Response
from pipeline.errors import UserError, first_line
from pipeline.sources import STRICT, Credential, MalformedError, Page, Reader, RefusedError, Request, SourceSettings
from pipeline.sources.parsing import shown
from pipeline.waiting import asked_wait_s, wait_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

log = logging.getLogger(__name__)

CONTACT_ENV = "LITGRADE_MAILTO"  #: a contact address for every source that wants one

_MAY_GET_BETTER = {408, 425, 429}  # and 5xx
_REDIRECTS = {301, 302, 303, 307, 308}
_MOST_REDIRECTS = 5
_SHORTEST_SECRET = 5  # a shorter word may be part of any answer


@pydantic_dataclass(frozen=True, config=STRICT)
class Patience:
    """How long and how often a source is asked for one answer."""

    attempts: Annotated[int, Field(ge=1)] = 5  #: requests for one answer, while the source is overloaded or faulty
    backoff_s: Annotated[float, Field(ge=0, le=60)] = 1.0  #: first wait between them; doubled each time, with jitter
    timeout_s: Annotated[float, Field(gt=0)] = 15.0  #: for one request
    max_mb: Annotated[float, Field(gt=0)] = 20.0  #: size of one answer, unpacked


@dataclass(frozen=True)
class Clock:
    """The time, in seconds, and a way to wait; tests have their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep


class _AttemptError(Exception):
    """One attempt failed."""

    def __init__(self, stop: Stop, message: str, *, can_get_better: bool, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.stop, self.can_get_better, self.wait_s = stop, can_get_better, wait_s


@dataclass
class _Pace:
    """Least time between the starts of a source's requests after a burst of some, and the most that are under way."""

    interval_s: float
    burst: int
    slots: asyncio.Semaphore
    free_at: float = 0.0  #: when the burst is used up and the next request may start

    @asynccontextmanager
    async def turn(self, clock: Clock) -> AsyncIterator[None]:
        async with self.slots:
            now = clock.now()
            start = max(now, self.free_at - (self.burst - 1) * self.interval_s)
            self.free_at = max(now, self.free_at) + self.interval_s
            if start > now:
                await clock.sleep(start - now)
            yield

    def heed(self, headers: Mapping[str, str]) -> None:
        """Slow down to what the source says it allows (Crossref's headers), before it has to refuse."""
        limit, interval = headers.get("x-rate-limit-limit", ""), headers.get("x-rate-limit-interval", "")
        if limit.isdigit() and int(limit) and interval.removesuffix("s").isdigit():
            self.interval_s = max(self.interval_s, int(interval.removesuffix("s")) / int(limit))


@dataclass
class Client:
    """One HTTP client for all sources of a collection; an async context manager."""

    patience: Patience
    version: str
    clock: Clock = field(default_factory=Clock)
    _paces: dict[str, _Pace] = field(default_factory=dict)
    _open: httpx.AsyncClient = field(init=False)

    async def __aenter__(self) -> Self:
        import httpx

        logging.getLogger("httpx").setLevel(logging.WARNING)  # it would print addresses with their keys
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
        timeout = httpx.Timeout(self.patience.timeout_s)
        self._open = httpx.AsyncClient(headers={"User-Agent": self.user_agent}, timeout=timeout, limits=limits)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._open.aclose()

    @property
    def user_agent(self) -> str:
        """Who asks, with a contact address where one is set."""
        contact = os.environ.get(CONTACT_ENV, "").strip()
        return f"litgrade/{self.version}" + (f" (mailto:{contact})" if contact.isascii() and contact else "")

    async def fetch(self, source: Reader, request: Request, deadline: float) -> tuple[Response, Page]:
        """Return a source's answer and what it holds.

        No attempt starts that would have to wait beyond ``deadline``, a time of the clock. Raises ``SourceFault``.
        """
        faults = 0
        while True:
            try:
                return await self._attempt(source, request)
            except _AttemptError as fault:
                faults += 1
                wait = wait_s(self.patience.backoff_s, faults, fault.wait_s)
                if not fault.can_get_better or faults >= self.patience.attempts:
                    tried = f"; {faults} attempts" if faults > 1 else ""
                    raise SourceFault(fault.stop, f"{fault}{tried}") from fault
                if self.clock.now() + wait >= deadline:
                    reason = f"{fault}; to wait {wait:.0f} s more would pass the budget"
                    raise SourceFault(fault.stop, reason) from fault
                log.debug("%s: %s; again in %.1f s", source.name, fault, wait)
                await self.clock.sleep(wait)

    async def _attempt(self, source: Reader, request: Request) -> tuple[Response, Page]:
        import httpx

        slots = asyncio.Semaphore(source.concurrency)
        pace = self._paces.setdefault(source.pace, _Pace(source.interval_s, source.burst, slots))
        secrets = secrets_of(source)
        try:
            async with pace.turn(self.clock), asyncio.timeout(self.patience.timeout_s):
                status, headers, body = await self._send(request, secrets)
        except TimeoutError:
            limit = self.patience.timeout_s
            raise _AttemptError(Stop.UNREACHABLE, f"no whole answer within {limit:g} s", can_get_better=True) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            stop = Stop.MALFORMED if isinstance(error, httpx.DecodingError) else Stop.UNREACHABLE
            reason = f"{_blotted(first_line(error).encode(), secrets).decode()} ({type(error).__name__})"
            raise _AttemptError(stop, reason, can_get_better=True) from error
        pace.heed(headers)
        return self._read(source, request, Response(address(request), status, body), headers)

    def _read(
        self, source: Reader, request: Request, response: Response, headers: Mapping[str, str]
    ) -> tuple[Response, Page]:
        try:
            page = page_of(source, request, response.status, response.body)
        except MalformedError as error:
            raise _AttemptError(Stop.MALFORMED, str(error), can_get_better=True) from error
        except RefusedError as error:
            raise _AttemptError(Stop.REFUSED, str(error), can_get_better=False) from error
        if page is None:
            raise _error(source, response, headers)
        return response, page

    async def _send(
        self, request: Request, secrets: Sequence[tuple[Credential, str]]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send with credentials and follow redirects on the same host; another host must never see a key."""
        headers = {key.header: key.prefix + value for key, value in secrets if key.header}
        given = {key.param: value for key, value in secrets if key.param}
        url = _url(request).copy_merge_params(given)
        for _ in range(_MOST_REDIRECTS):
            async with self._open.stream("GET", url, headers=headers) as answer:
                if answer.status_code not in _REDIRECTS or "location" not in answer.headers:
                    return answer.status_code, answer.headers, _blotted(await self._body(answer), secrets)
                target = url.join(answer.headers["location"])
            if target.host != url.host:
                raise _AttemptError(Stop.REFUSED, f"redirected to another host, {target.host}", can_get_better=False)
            url = target
        raise _AttemptError(Stop.REFUSED, f"redirected more than {_MOST_REDIRECTS} times", can_get_better=False)

    async def _body(self, answer: httpx.Response) -> bytes:
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > self.patience.max_mb * 1e6:
                limit = f"sent more than {self.patience.max_mb:g} MB (sources.patience.max_mb)"
                raise _AttemptError(Stop.MALFORMED, limit, can_get_better=False)
        return bytes(body)


def _error(source: Reader, response: Response, headers: Mapping[str, str]) -> _AttemptError:
    """Return what a status other than 200 means."""
    status, body = response.status, response.body
    retries = source.retries(status, headers, body) if hasattr(source, "retries") else None
    if retries is None:
        retries = status in _MAY_GET_BETTER or status >= 500
    stop = Stop.RATE_LIMITED if status == 429 or (retries and status == 422) else Stop.HTTP_ERROR
    message = f"HTTP {status}: {shown(body)}"
    return _AttemptError(stop, message, can_get_better=retries, wait_s=asked_wait_s(headers))


def address(request: Request) -> str:
    """Return a request's address without secrets."""
    return str(_url(request))


def _url(request: Request) -> httpx.URL:
    import httpx

    return httpx.URL(request.url).copy_merge_params(dict(request.params))


def page_of(source: Reader, request: Request, status: int, body: bytes) -> Page | None:
    """Return what an answer holds, None where it is an error. Raises as ``source.read`` does."""
    if status == 200:
        return source.read(body, request)
    if hasattr(source, "is_absent") and source.is_absent(status, body):
        return Page(())
    other = source.instead(status, body, request) if hasattr(source, "instead") else None
    return None if other is None else Page((), following=other)


def missing_keys(source: Reader | SourceSettings) -> list[str]:
    """Return the environment variables that a source needs and that are not set; of several choices the first."""
    return [credential.env[0] for credential in source.credentials if credential.required and not _value(credential)]


def secrets_of(source: Reader | SourceSettings) -> list[tuple[Credential, str]]:
    """Return the credentials of a source that are set, with their values."""
    return [(credential, value) for credential in source.credentials if (value := _value(credential))]


def _value(credential: Credential) -> str | None:
    for name in credential.env:
        value = os.environ.get(name, "").strip()
        if value and not (value.isascii() and value.isprintable()):
            raise UserError(f"the value of {name} holds characters that no key or address has; copy it again")
        if value:
            return value
    return None


def _blotted(body: bytes, secrets: Sequence[tuple[Credential, str]]) -> bytes:
    """Blot out secrets that a source repeats in its answers, as in links to the next page."""
    for _, value in secrets:
        if len(value) >= _SHORTEST_SECRET:
            body = body.replace(value.encode(), b"***").replace(quote(value, safe="").encode(), b"***")
    return body
