"""What became of a query at a source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stop(StrEnum):
    """Why a source stopped. All but the first four are failures."""

    DONE = "done"  #: it has no more
    CAP = "cap"  #: as many records or pages as were wanted
    SHORT = "short"  #: it has no more, though it says that it has
    BUDGET = "budget"  #: time was up; what had arrived is kept
    NO_KEY = "no key"
    PARTIAL = "partial"  #: a page in the middle never came whole
    RATE_LIMITED = "rate limited"
    MALFORMED = "malformed"  #: answers that are none
    REFUSED = "refused"  #: an error that asking again cannot mend
    HTTP_ERROR = "HTTP error"
    UNREACHABLE = "unreachable"

    @property
    def is_failure(self) -> bool:
        """Whether the source did not do what was asked of it."""
        return self not in {Stop.DONE, Stop.CAP, Stop.SHORT, Stop.BUDGET}


class SourceFault(Exception):  # noqa: N818 (it becomes a line in a report, not an error of the program)
    """A source gave no usable answer, whatever was tried."""

    def __init__(self, stop: Stop, message: str) -> None:
        super().__init__(message)
        self.stop = stop


@dataclass(frozen=True)
class Report:
    """One query at one source, or the look-ups of one kind."""

    query_id: str
    source: str
    stop: Stop
    detail: str = ""  #: what went wrong
    pages: int = 0
    records: int = 0
    declared: int | None = None  #: records that the source says it has
    seconds: float = 0.0
