"""How long to wait before a request is sent again."""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Mapping

_LONGEST_WAIT_S = 60.0
_MOST_DOUBLINGS = 100  # a number of any more would not be one


def asked_wait_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, which is a number or a date; None where there is none."""
    value = headers.get("retry-after", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def wait_s(backoff_s: float, faults: int, asked_s: float | None) -> float:
    """Return the seconds to wait after so many faults: a doubling backoff with jitter, on top of what was asked."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311 (no secret)
    own: float = min(_LONGEST_WAIT_S, backoff_s * 2.0 ** min(faults - 1, _MOST_DOUBLINGS)) * jitter
    return own + (asked_s or 0.0)
