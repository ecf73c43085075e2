"""The errors a user can mend. Each is one line: what, where, what was expected, how to mend it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class UserError(Exception):
    """Shown as one line without a traceback; the process then exits with code 2."""


class MissingError(UserError):
    """Something that an arm needs is not here; other arms may do without."""


class WeightsError(MissingError):
    """Model weights are missing and cannot be fetched."""


def first_line(error: Exception) -> str:
    """Return the first line of an error's text without secrets, or its kind where it has none."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return without_secrets(line)


def without_secrets(text: str) -> str:
    """Return the text with the user and password of every URL, and values named like secrets, shown as ***."""
    text = re.sub(r"://[^\s'\"]*@", "://***@", text)
    return re.sub(r"(?i)((?:password|passwd|pwd|token|secret|api_?key|[?&]key)=)[^&\s'\"]+", r"\1***", text)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ``"; did you mean X?"`` for the nearest choice, or an empty string when none is near."""
    near = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
