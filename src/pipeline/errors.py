"""The errors a user can mend. Each is one line: what, where, what was expected, how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Shown as one line without a traceback; the process then exits with code 2."""


class WeightsError(UserError):
    """Model weights are missing and cannot be fetched."""


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its kind where it has none."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ``"; did you mean X?"`` for the nearest choice, or an empty string when none is near."""
    near = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
