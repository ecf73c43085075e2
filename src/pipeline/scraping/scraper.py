"""Fetching the open page or PDF of a paper from hosts that nobody vouches for.

Every address is checked before it is asked, and asked by its number, so that no second answer of a name server can lead
elsewhere. Bodies are limited in size and time, and read in processes that are killed when they take too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import multiprocessing
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import httpx
import pydantic.dataclasses
from pebble import ProcessExpired, ProcessPool
from pydantic import ConfigDict, Field

from pipeline.scraping.documents import Found, Kind, UnreadableError, read_document
from pipeline.scraping.public_addresses import is_public, resolve
from pipeline.unpacking import BodyError, read_body

_REDIRECTS = 5
_PARSING_S = 10  # of one document
_PARSING_BYTES = 1 << 30  # of address space, beyond what a process has when it starts
_DOCUMENTS = 50  # that one process reads before a fresh one takes its place
_MEDIA_TYPES = re.compile(
    r"text/(?:html|xml|plain|pdf)|application/(?:xhtml\+xml|xml|(?:x-)?pdf|octet-stream|(?:x-|force-)?download)"
    r"|binary/octet-stream|"
)


@pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Scraping:
    """How much a document may take. There is one attempt."""

    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 15.0  #: for a document, fetched and read
    max_mb: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 20.0  #: million bytes, after decompression
    concurrency: Annotated[int, Field(gt=0, strict=True)] = 4  #: documents at a time


class ScrapeError(Exception):
    """Why a document was not read, in one short line."""


class PassingError(ScrapeError):
    """A reason that may be gone another time."""


@dataclass(frozen=True)
class Scraped:
    """A document as it was fetched, and what was found in it."""

    url: str  #: after redirects
    kind: Kind
    n_bytes: int
    sha256: str
    found: Found


class Scraper:
    """Fetches and reads documents; an asynchronous context."""

    def __init__(
        self,
        settings: Scraping,
        user_agent: str,
        is_allowed: Callable[[str], bool] = is_public,
        resolver: Callable[[str, int], Awaitable[list[str]]] = resolve,
    ) -> None:
        self.settings, self._is_allowed, self._resolver = settings, is_allowed, resolver
        self._gate = asyncio.Semaphore(settings.concurrency)
        self._hosts: dict[bytes, asyncio.Lock] = defaultdict(asyncio.Lock)  #: one document of a host at a time
        self._pool = _new_pool(settings.concurrency)
        self._headers = {"User-Agent": user_agent, "Accept": "text/html,application/pdf,*/*;q=0.1"}
        # The bare transport has no cookies and follows nothing. A kept connection would serve any host at the same
        # address, whoever its certificate was for.
        self._transport = httpx.AsyncHTTPTransport(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))

    async def __aenter__(self) -> Scraper:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.aclose()
        self._pool.stop()  # type: ignore[no-untyped-call]
        await asyncio.to_thread(self._pool.join)

    async def scrape(self, url: str) -> Scraped:
        """Fetch a document and read it; ``ScrapeError`` where that is refused or fails."""
        async with self._gate:
            try:
                async with asyncio.timeout(self.settings.timeout_s) as limit:
                    final_url, response, body = await self._fetch(url, limit)
                    kind = _kind(body, _media_type(response))
                    found = await self._read(kind, body, str(final_url), response.charset_encoding)
            except TimeoutError:
                raise PassingError(f"took longer than {self.settings.timeout_s:g} s") from None
            except httpx.HTTPError as error:
                raise PassingError(f"the connection failed ({type(error).__name__})") from None
        return Scraped(str(final_url), kind, len(body), hashlib.sha256(body).hexdigest(), found)

    async def _fetch(self, url: str, limit: asyncio.Timeout) -> tuple[httpx.URL, httpx.Response, bytes]:
        """Return where the redirects end, the answer there and its body."""
        target = _checked(url)
        for _ in range(_REDIRECTS + 1):
            async with self._turn(target.raw_host, limit):
                response = await self._ask(target)
                try:
                    if not response.has_redirect_location:
                        return target, response, await _body(response, self.settings.max_mb)
                    target = _checked(response.headers["Location"], target)
                finally:
                    await response.aclose()
        raise ScrapeError(f"redirects more than {_REDIRECTS} times")

    @contextlib.asynccontextmanager
    async def _turn(self, host: bytes, limit: asyncio.Timeout) -> AsyncIterator[None]:
        """Wait until no other document of a host is under way, which takes none of the time of this one."""
        clock = asyncio.get_running_loop().time
        left = (limit.when() or 0.0) - clock()
        limit.reschedule(None)
        async with self._hosts[host]:
            limit.reschedule(clock() + left)
            yield

    async def _ask(self, url: httpx.URL) -> httpx.Response:
        """Ask the host at an address that was checked; its name goes into the header and the TLS handshake alone."""
        host = url.raw_host.decode("ascii")
        timeout = httpx.Timeout(self.settings.timeout_s, connect=self.settings.timeout_s / 3)
        failure: Exception = ScrapeError(f"{host} has no address")
        for address in await self._addresses(host, url.port or (443 if url.scheme == "https" else 80)):
            request = httpx.Request(
                "GET",
                url.copy_with(host=address),
                headers={"Host": url.netloc.decode("ascii"), "Accept-Encoding": "gzip", **self._headers},
                extensions={"sni_hostname": host.rstrip("."), "timeout": timeout.as_dict()},
            )
            try:
                return await self._transport.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            addresses = await self._resolver(host, port)
        except (OSError, UnicodeError):
            raise PassingError(f"{host} has no address") from None
        for address in addresses:
            if not self._is_allowed(address):
                raise ScrapeError(f"{host} leads to {address}, which is not public")
        return addresses

    async def _read(self, kind: Kind, body: bytes, url: str, charset: str | None) -> Found:
        if not self._pool.active:  # a process that died between two documents has taken the pool with it
            broken, self._pool = self._pool, _new_pool(self.settings.concurrency)
            await asyncio.to_thread(broken.join)
        try:
            task = self._pool.schedule(read_document, args=(kind, body, url, charset), timeout=_PARSING_S)
            return await asyncio.wrap_future(task)  # a task that is cancelled is killed, too
        except TimeoutError:
            raise ScrapeError(f"took longer than {_PARSING_S} s to read") from None
        except (ProcessExpired, BrokenProcessPool):
            raise ScrapeError("ended the process that read it") from None
        except UnreadableError as error:
            raise ScrapeError(str(error)) from None


def _checked(url: str, base: httpx.URL | None = None) -> httpx.URL:
    """Return a URL that may be asked, whatever its host turns out to be. It is parsed this once."""
    try:
        parsed = base.join(url) if base else httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise ScrapeError("is no web address") from None
    if parsed.scheme not in {"http", "https"} or not parsed.raw_host:
        raise ScrapeError(f"is no web address but {parsed.scheme or 'a path'}:")
    if parsed.userinfo:
        raise ScrapeError("has a user name in its address")
    if parsed.port not in {None, 80, 443} and parsed.port not in range(1024, 65_536):  # mail and the like
        raise ScrapeError(f"is at port {parsed.port}, where no documents are")
    return parsed


async def _body(response: httpx.Response, most_mb: float) -> bytes:
    """Return the body of what can be a document."""
    _check_answer(response)
    try:
        return await read_body(response, most_mb)
    except BodyError as error:
        raise ScrapeError(f"is {error}") from None


def _check_answer(response: httpx.Response) -> None:
    """Refuse whatever holds no document by its status and headers."""
    if response.status_code != httpx.codes.OK:
        is_passing = response.status_code == 429 or response.status_code >= 500
        raise (PassingError if is_passing else ScrapeError)(f"was answered with status {response.status_code}")
    if not _MEDIA_TYPES.fullmatch(_media_type(response)):
        raise ScrapeError(f"is {_media_type(response)[:40]}, not HTML or PDF")


def _media_type(response: httpx.Response) -> str:
    return str(response.headers.get("Content-Type", "")).split(";")[0].strip().lower()


def _kind(body: bytes, media_type: str) -> Kind:
    """Tell by the bytes, because PDFs are sent as anything, and so are the pages that stand in for them."""
    start = body[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if b"%PDF-" in start and not start.startswith(b"<"):
        return "pdf"
    if start.startswith(b"<") or media_type.endswith(("html", "xml")):
        return "html"
    raise ScrapeError("is neither HTML nor PDF")


def _new_pool(n_processes: int) -> ProcessPool:
    spawn = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks
    return ProcessPool(n_processes, max_tasks=_DOCUMENTS, initializer=_limit_process, context=spawn)


def _limit_process() -> None:
    """Bound what a hostile document can take, even from a process whose parent was killed; keep parsers quiet."""
    import resource

    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (_DOCUMENTS * _PARSING_S,) * 2)
    mapped = Path("/proc/self/statm")  # what the main module imports again may be large
    n_bytes = _PARSING_BYTES + (int(mapped.read_text().split()[0]) * resource.getpagesize() if mapped.exists() else 0)
    with contextlib.suppress(ValueError):  # macOS knows no such limit
        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
