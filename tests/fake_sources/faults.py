"""What goes wrong at real sources: ``truncated_gzip()`` for every request, ``truncated_gzip().at(2)`` for the third."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, Self

from fake_sources.answers import Answer

_HTML = "text/html; charset=utf-8"
_BLANKS = 2**20 * b" "


@dataclass(frozen=True)
class Fault:
    """What happens to some answers of a source, counted from 0; without ``at`` to all."""

    spoil: Callable[[Answer], Answer] = lambda answer: answer
    pages: Literal["whole", "empty", "endless", "repeating"] = "whole"
    replaces: bool = False  #: whether nothing of the true answer is left
    is_failure: bool = False  #: the source tells of an error of its own
    first: int = 0
    times: int | None = None  #: None: from ``first`` on for ever

    def at(self, first: int, times: int = 1) -> Self:
        """Return the same fault for so many requests from the ``first`` on."""
        return replace(self, first=first, times=times)

    def hits(self, n: int) -> bool:
        return self.first <= n and (self.times is None or n < self.first + self.times)


def _instead(answer: Answer) -> Fault:
    return Fault(lambda _: answer, replaces=True)


def reply(
    status: int,
    body: bytes = b"",
    content_type: str = "application/json",
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Fault:
    """Answer with this, whatever was asked."""
    return _instead(Answer(body, content_type, status, headers))


def too_many_requests(retry_after: float | None = None) -> Fault:
    """Answer 429 with an HTML page, and with Retry-After if told."""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return reply(429, _page("429 Too Many Requests"), _HTML, headers)


def server_errors(status: int = 500) -> Fault:
    return reply(status, _page(f"{status} Server Error"), _HTML)


def html_page() -> Fault:
    """Answer 200 with a page for people."""
    return reply(200, _page("Welcome. Down for maintenance"), _HTML)


def empty_body() -> Fault:
    return reply(200)


def error_inside_200() -> Fault:
    """Tell of an error in the source's own words, with status 200."""
    return Fault(replaces=True, is_failure=True)


def redirect_to_itself() -> Fault:
    return reply(302, headers={"Location": ""})


def connection_reset() -> Fault:
    return _instead(Answer(connection="reset"))


def hang() -> Fault:
    """Take the request and never answer."""
    return _instead(Answer(connection="silent"))


def slow_drip(seconds: float) -> Fault:
    """Send a byte, wait, send the next."""
    return Fault(lambda answer: replace(answer, drip_s=seconds))


def truncated_gzip() -> Fault:
    """Send half of what gzip made, with a Content-Length that fits the half."""

    def spoil(answer: Answer) -> Answer:
        packed = gzip.compress(answer.body)
        headers = {**answer.headers, "Content-Encoding": "gzip"}
        return replace(answer, body=packed[: len(packed) // 2], headers=headers, is_damaged=True)

    return Fault(spoil)


def wrong_charset() -> Fault:
    """Say latin-1 and send UTF-8."""
    return Fault(lambda answer: replace(answer, content_type=_bare(answer.content_type) + "; charset=ISO-8859-1"))


def cut_body() -> Fault:
    """Send two thirds of the JSON or XML as if they were all."""
    return Fault(lambda answer: replace(answer, body=answer.body[: 2 * len(answer.body) // 3], is_damaged=True))


def huge_body(megabytes: int = 50) -> Fault:
    """Put blanks behind the answer; JSON and XML stay valid, and gzip makes them small."""
    return Fault(lambda answer: replace(answer, body=answer.body + megabytes * _BLANKS))


def endless() -> Fault:
    """Never end: new made-up records on every page."""
    return Fault(pages="endless")


def repeating() -> Fault:
    """Never end: the first page again and again."""
    return Fault(pages="repeating")


def empty_page() -> Fault:
    """Hold no record, although there are more."""
    return Fault(pages="empty")


def _page(text: str) -> bytes:
    return f"<html>\n<head><title>{text}</title></head>\n<body><h1>{text}</h1></body>\n</html>\n".encode()


def _bare(content_type: str) -> str:
    return content_type.partition(";")[0]
