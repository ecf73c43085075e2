"""Whether two titles could be those of one paper."""

from __future__ import annotations

from rapidfuzz import fuzz, utils

_LEAST_SHARED = 60.0  # of 100; titles of one paper differ by subtitles, case, markup and typing errors


def could_be_same(a: str, b: str) -> bool:
    """Whether two titles share most of their words; an unknown title could be any."""
    return not a or not b or fuzz.token_set_ratio(a, b, processor=utils.default_process) >= _LEAST_SHARED
