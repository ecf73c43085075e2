"""The page of a report: templates, and what keeps text from leaving its place.

Everything that is put into a template is escaped; characters that could reorder or break the page are shown as �. A
Content-Security-Policy in the page forbids scripts and any request, should a text ever get through.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from jinja2 import Environment

# Control characters but tab and newline, marks that turn the direction of what follows, and halves of characters.
_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def render(context: dict[str, Any]) -> str:
    """Return the page as one text that needs no other file."""
    return _environment().get_template("page.html").render(context)


def harmless(value: object) -> object:
    """Return what a template puts out, with harmful characters replaced; our own markup as it is."""
    return value if isinstance(value, Markup) else _HARMFUL.sub("\ufffd", str(value))


def short(text: str, most: int) -> str:
    """Return the text, cut with a mark where it is longer than this many characters."""
    return text if len(text) <= most else f"{text[:most]}… (cut, {len(text):,} characters)"


def lines_of(cell: str | Sequence[str]) -> Sequence[str]:
    """Return the lines of a table's cell."""
    return [cell] if isinstance(cell, str) else cell


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"short": short, "lines_of": lines_of}
    return made
