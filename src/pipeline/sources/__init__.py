"""Academic sources. A source in conf/source/ names a module here; each has a pydantic dataclass ``Source``.

A source says what to ask and what an answer means. It does no input or output: waiting, retrying, recording and secrets
are matters of ``pipeline.collecting.client``.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from pipeline.papers import Paper, Query

STRICT = ConfigDict(extra="forbid")


class MalformedError(Exception):
    """A body is not what the source promises. It is asked again, because the next one may be whole."""


class RefusedError(Exception):
    """The source refused a request in a way that asking again cannot mend."""


@dataclasses.dataclass(frozen=True)
class Request:
    """One GET request, without secrets."""

    url: str
    params: Mapping[str, str] = dataclasses.field(default_factory=dict)
    state: Any = None  #: what the source needs to walk on from the answer; it follows from earlier answers


@dataclasses.dataclass(frozen=True)
class Page:
    """What one answer holds."""

    papers: tuple[Paper, ...]  #: in the order of the answer; ``paper_id`` is ``source:id``
    following: Request | None = None  #: the next request of the walk; None: this was the last page
    declared: int | None = None  #: how many records the source says there are in all
    received: int | None = None  #: records on the page before any filter of ours; None: as many as papers


@dataclass(frozen=True, config=STRICT)
class Credential:
    """A key or a contact address: where its value is found, and where it goes."""

    env: Annotated[tuple[str, ...], Field(min_length=1)]  #: environment variables; the first that is set counts
    header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] | None = None
    param: str | None = None
    prefix: str = ""  #: before the value, such as ``Bearer``
    required: bool = False  #: without it the source is skipped


def _checked_address(url: str) -> str:
    import httpx

    try:
        port = httpx.URL(url).port
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ValueError(f"{url}: {error}; expected an address such as https://api.example.org") from error
    if port is not None and port not in range(1, 65_536):
        raise ValueError(f"{url}: no such port; expected a number from 1 to 65535")
    return url


@dataclass(frozen=True, config=STRICT, kw_only=True)
class SourceSettings:
    """What the client needs to know of any source; modules add settings of their own, and say what answers mean."""

    name: str
    kind: Literal["preprints", "open catalogue", "curated database", "by DOI"]
    gives: str  #: which of the fields, in words
    base_url: Annotated[str, Field(pattern=r"^https?://[^\s/?#\[\]]+"), AfterValidator(_checked_address)]
    page_size: Annotated[int, Field(ge=1)] = 100  #: records on a page, where a request says how many
    interval_s: Annotated[float, Field(ge=0)]  #: least time between the starts of two requests, on average
    burst: Annotated[int, Field(ge=1)] = 1  #: requests that may come faster, once
    host: str | None = None  #: sources of one host share its pace
    concurrency: Annotated[int, Field(ge=1)] = 1  #: requests under way at the same time
    credentials: tuple[Credential, ...] = ()

    @property
    def pace(self) -> str:
        """Whose pace is kept."""
        return self.host or self.name

    @property
    def root(self) -> str:
        """What paths are joined to."""
        return self.base_url.rstrip("/")

    def read(self, body: bytes, request: Request) -> Page:
        """Map an answer of status 200; raise ``MalformedError`` or ``RefusedError`` for what is no answer."""
        raise NotImplementedError

    def retries(self, status: int, headers: Mapping[str, str], body: bytes) -> bool | None:  # noqa: ARG002
        """Overrule whether an error is asked again; None leaves it to the client."""
        return None

    def instead(self, status: int, body: bytes, request: Request) -> Request | None:  # noqa: ARG002
        """Return another request in place of one that failed."""
        return None

    def is_absent(self, status: int, body: bytes) -> bool:  # noqa: ARG002
        """Tell an error that only says that there is no such record."""
        return False


class SearchedSource(SourceSettings):
    """A source that can be asked for papers on a query."""

    def search(self, query: Query, day: datetime.date, limit: int) -> Request:
        """Return the first request for a query made on this day; no page need be larger than ``limit`` records."""
        raise NotImplementedError


class SourceByDoi(SourceSettings):
    """A source that can be asked for papers whose DOI is known."""

    dois_a_request: ClassVar[int]  #: at most
    fills: ClassVar[tuple[str, ...]]  #: fields of a paper for which it is worth asking

    def lookup(self, dois: Sequence[str]) -> Request:
        """Return the request for these DOIs."""
        raise NotImplementedError

    def can_look_up(self, doi: str) -> bool:  # noqa: ARG002
        """Tell whether a DOI can be asked for."""
        return True
