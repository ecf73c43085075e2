"""Requests to sources: paced, retried while that can help, limited in size and time, free of secrets."""

from __future__ import annotations

import asyncio
import html
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Self
from urllib.parse import quote_plus

from pydantic import Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from pipeline.collecting.reports import SourceFault, Stop
from pipeline.collecting.responses import Response
from pipeline.errors import UserError, first_line
from pipeline.parsing import shown
from pipeline.sources import STRICT, Credential, MalformedError, Page, RefusedError, Request, SourceSettings
from pipeline.unpacking import BodyError, TooBigError, read_body
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
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 15.0  #: for one request
    max_mb: Annotated[float, Field(gt=0, le=1000)] = 20.0  #: size of one answer, unpacked


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
    next_one: asyncio.Lock = field(default_factory=asyncio.Lock)  #: who gives up waiting takes no turn from others
    free_at: float = 0.0  #: when the whole burst may be used again

    @asynccontextmanager
    async def turn(self, clock: Clock, deadline: float) -> AsyncIterator[None]:
        async with self.slots:
            async with self.next_one:
                wait = self.free_at - (self.burst - 1) * self.interval_s - clock.now()
                if wait > 0 and clock.now() + wait >= deadline:
                    raise SourceFault(Stop.BUDGET, f"its pace allows no more: one request in {self.interval_s:g} s")
                if wait > 0:
                    await clock.sleep(wait)
                self.free_at = max(clock.now(), self.free_at) + self.interval_s
            yield

    def heed(self, headers: Mapping[str, str]) -> None:
        """Slow down to what the source says it allows (Crossref's headers), before it has to refuse."""
        limit = re.fullmatch(r"0*([1-9]\d{0,8})", headers.get("x-rate-limit-limit", ""), re.ASCII)
        interval = re.fullmatch(r"(\d{1,9})s?", headers.get("x-rate-limit-interval", ""), re.ASCII)
        if limit and interval:
            self.interval_s = max(self.interval_s, int(interval[1]) / int(limit[1]))


@dataclass
class Client:
    """One HTTP client for all sources of a collection; an async context manager."""

    patience: Patience
    version: str
    clock: Clock = field(default_factory=Clock)
    _trouble: dict[tuple[str, str], SourceFault] = field(default_factory=dict)  #: (source, address) being tried again
    _paces: dict[str, _Pace] = field(default_factory=dict)
    _open: httpx.AsyncClient = field(init=False)

    async def __aenter__(self) -> Self:
        import httpx

        for name in ("httpx", "httpcore"):  # they would print addresses and headers with their keys
            logging.getLogger(name).setLevel(logging.WARNING)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
        timeout = httpx.Timeout(self.patience.timeout_s)
        headers = {"User-Agent": self.user_agent, "Accept-Encoding": "gzip"}
        self._open = httpx.AsyncClient(headers=headers, timeout=timeout, limits=limits)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._open.aclose()

    @property
    def user_agent(self) -> str:
        """Who asks, with a contact address where one is set."""
        contact = _of_environment(CONTACT_ENV)
        return f"litgrade/{self.version}" + (f" (mailto:{contact})" if contact else "")

    async def fetch(self, source: SourceSettings, request: Request, deadline: float) -> tuple[Response, Page]:
        """Return a source's answer and what it holds.

        No attempt starts that would have to wait beyond ``deadline``, a time of the clock. Raises ``SourceFault``.
        """
        import httpx

        try:
            key, faults = (source.name, address(request)), 0
        except (httpx.InvalidURL, UnicodeError) as error:
            raise _no_address(error) from None
        while True:
            try:
                found = await self._attempt(source, request, deadline)
            except SourceFault:  # its pace leaves no time for an attempt; faults are why one more was needed
                if key in self._trouble:
                    raise self._trouble.pop(key) from None
                raise
            except _AttemptError as fault:
                faults += 1
                wait = wait_s(self.patience.backoff_s, faults, fault.wait_s)
                told = f"{fault}; {faults} attempts" if faults > 1 else str(fault)
                self._trouble.pop(key, None)
                if not fault.can_get_better or faults >= self.patience.attempts:
                    raise SourceFault(fault.stop, told) from fault
                if self.clock.now() + wait >= deadline:
                    late = f"{told}; to wait {wait:.0f} s more would pass the budget"
                    raise SourceFault(fault.stop, late) from fault
                log.debug("%s: %s; again in %.1f s", source.name, fault, wait)
                self._trouble[key] = SourceFault(fault.stop, f"{told}; then time was up")
                await self.clock.sleep(wait)
            else:
                self._trouble.pop(key, None)
                return found

    def trouble_of(self, source: SourceSettings) -> SourceFault | None:
        """Return, once, what a source's requests had met that were cancelled while they were tried again."""
        met = [self._trouble.pop(key) for key in list(self._trouble) if key[0] == source.name]
        return met[-1] if met else None

    async def _attempt(self, source: SourceSettings, request: Request, deadline: float) -> tuple[Response, Page]:
        import httpx

        slots = asyncio.Semaphore(source.concurrency)
        pace = self._paces.setdefault(source.pace, _Pace(source.interval_s, source.burst, slots))
        secrets = secrets_of(source)
        try:
            async with pace.turn(self.clock, deadline), asyncio.timeout(self.patience.timeout_s):
                status, headers, body = await self._send(request, secrets)
        except (TimeoutError, httpx.TimeoutException):
            limit = self.patience.timeout_s
            raise _AttemptError(Stop.UNREACHABLE, f"no whole answer within {limit:g} s", can_get_better=True) from None
        except BodyError as error:
            is_final = isinstance(error, TooBigError)
            reason = f"sent {error}" + (" (sources.patience.max_mb)" if is_final else "")
            raise _AttemptError(Stop.MALFORMED, reason, can_get_better=not is_final) from error
        except (httpx.InvalidURL, UnicodeError) as error:  # it redirects to one
            raise _no_address(error) from None
        except httpx.HTTPError as error:
            reason = f"the connection failed: {_blotted(first_line(error).encode(), secrets).decode()}"
            raise _AttemptError(Stop.UNREACHABLE, reason, can_get_better=True) from None
        pace.heed(headers)
        return self._read(source, request, Response(address(request), status, body), headers)

    def _read(
        self, source: SourceSettings, request: Request, response: Response, headers: Mapping[str, str]
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
        """Send with credentials and follow redirects at the same place; no other must ever see a key."""
        headers = {key.header: key.prefix + value for key, value in secrets if key.header}
        given = {key.param: value for key, value in secrets if key.param}
        url = _url(request).copy_merge_params(given)
        for _ in range(_MOST_REDIRECTS + 1):
            async with self._open.stream("GET", url, headers=headers) as answer:
                if answer.status_code not in _REDIRECTS or "location" not in answer.headers:
                    body = await read_body(answer, self.patience.max_mb)
                    return answer.status_code, answer.headers, _blotted(body, secrets)
                target = url.join(answer.headers["location"])
            if not _is_same_place(url, target):
                place = _blotted(f"{target.scheme}://{target.netloc.decode()}".encode(), secrets).decode()
                raise _AttemptError(Stop.REFUSED, f"redirected elsewhere, to {place}", can_get_better=False)
            url = target
        raise _AttemptError(Stop.REFUSED, f"redirected more than {_MOST_REDIRECTS} times", can_get_better=False)


def _is_same_place(url: httpx.URL, target: httpx.URL) -> bool:
    """Whether keys may go there too: to the same host and port, never from TLS to plain text."""
    if target.host != url.host:
        return False
    is_upgraded = (url.scheme, target.scheme) == ("http", "https") and url.port is None and target.port is None
    return is_upgraded or (url.scheme, url.port) == (target.scheme, target.port)


def _no_address(error: Exception) -> SourceFault:
    return SourceFault(Stop.REFUSED, f"no address that can be asked: {first_line(error)}")


def _error(source: SourceSettings, response: Response, headers: Mapping[str, str]) -> _AttemptError:
    """Return what a status other than 200 means."""
    status, body = response.status, response.body
    retries = source.retries(status, headers, body)
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


def page_of(source: SourceSettings, request: Request, status: int, body: bytes) -> Page | None:
    """Return what an answer holds, None where it is an error. Raises as ``source.read`` does."""
    if status == 200:
        return source.read(body, request)
    if source.is_absent(status, body):
        return Page(())
    other = source.instead(status, body, request)
    return None if other is None else Page((), following=other)


def missing_keys(source: SourceSettings) -> list[str]:
    """Return the environment variables that a source needs and that are not set; of several choices the first."""
    return [credential.env[0] for credential in source.credentials if credential.required and not _value(credential)]


def secrets_of(source: SourceSettings) -> list[tuple[Credential, str]]:
    """Return the credentials of a source that are set, with their values."""
    return [(credential, value) for credential in source.credentials if (value := _value(credential))]


def _value(credential: Credential) -> str | None:
    return next((value for name in credential.env if (value := _of_environment(name))), None)


def _of_environment(name: str) -> str:
    """Return a key or an address that is set, empty where it is not."""
    value = os.environ.get(name, "").strip()
    if not (value.isascii() and value.isprintable()):
        raise UserError(f"the value of {name} holds characters that no key or address has; copy it again")
    return value


def _blotted(body: bytes, secrets: Sequence[tuple[Credential, str]]) -> bytes:
    """Blot out secrets that a source repeats in its answers, as in links to the next page."""
    values = {value for _, value in secrets} | {_of_environment(CONTACT_ENV)}
    for value in sorted(values, key=lambda value: (-len(value), value)):  # one may be the beginning of another
        if len(value) >= _SHORTEST_SECRET:
            body = re.sub("".join(map(_spellings, value)).encode(), b"***", body)
    return body


def _spellings(sign: str) -> str:
    """Return a pattern for a sign of a secret as it is, percent-encoded, or escaped as in JSON or HTML, even twice."""
    if sign.isalnum():
        return sign
    code = ord(sign)
    as_text = "|".join(map(re.escape, sorted({sign, quote_plus(sign), html.escape(sign)})))
    return rf"(?:\\*(?:{as_text})|(?i:%(?:25)*{code:02x}|\\+u00{code:02x}|&#0*{code};|&#x0*{code:x};))"
