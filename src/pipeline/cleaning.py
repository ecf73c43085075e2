"""Texts of sources made plain: no markup, no entities, one form of every character, single blanks."""

from __future__ import annotations

import html
import re
import unicodedata

_INLINE = frozenset(
    "a b bold em font i inf italic mi mn mo mtext sc scp small span strong sub sup tt u underline xref".split()
)
_BLOCK = (
    "abstract article-title body br caption center dd disp-formula div dl dt fig graphic h[1-6] hr img inline-formula "
    "inline-graphic label li list list-item math ol p pre sec section table tbody td tex-math th title tr ul"
).split()
_ATTRIBUTE = r"""\s+[\w:.-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+)"""
#: A tag of HTML, JATS or MathML. Names are told, because "x<y and y>z" holds no tag.
_TAG = re.compile(
    rf"</?(?:(?:jats|mml|m):([\w.-]+)|({'|'.join([*_INLINE, *_BLOCK])}))(?:{_ATTRIBUTE})*\s*/?>"
    r"|<!--.*?-->|<!\[CDATA\[|\]\]>",
    re.DOTALL | re.IGNORECASE,
)
_HEADING = re.compile(r"<((?:jats:)?title)\b[^<>]*>\s*abstract\s*:?\s*</\1>", re.IGNORECASE)
_INVISIBLE = re.compile("[\u00ad\u200b\u200c\u200d\u2060\ufeff]|[\x00-\x08\x0e-\x1f\x7f]")
_TOLD_UNKNOWN = frozenset({"n/a", "na", "none", "null", "nan", "not available", "abstract not available", "[no title]"})


def clean_text(text: object) -> str:
    """Return a text of a source as plain text in Unicode NFC; empty for what is no text or says that there is none.

    Tags and entities go (twice escaped ones too), and so does the heading "Abstract" of a JATS abstract. LaTeX stays.
    """
    if not isinstance(text, str):
        return ""
    plain = html.unescape(text)
    if re.search(r"&(?:[a-z]+|#\d+|#x[0-9a-f]+);", plain, re.IGNORECASE):  # escaped twice
        plain = html.unescape(plain)
    plain = _TAG.sub(_space_or_nothing, _HEADING.sub(" ", plain))
    plain = unicodedata.normalize("NFC", _INVISIBLE.sub("", plain))
    plain = " ".join(plain.encode("utf-8", "ignore").decode().split())
    return "" if plain.lower() in _TOLD_UNKNOWN else plain


def text_or_none(text: object) -> str | None:
    """Return a text made plain, None where nothing is left."""
    return clean_text(text) or None


def clean_texts(texts: object) -> tuple[str, ...]:
    """Return the texts of a list made plain, without empty ones and repetitions, in order."""
    cleaned = (clean_text(text) for text in texts) if isinstance(texts, list | tuple) else ()
    return tuple(dict.fromkeys(text for text in cleaned if text))


def whole_number(value: object) -> int | None:
    """Return a whole number that came as a number or as a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    text = str(value).strip()
    return int(text) if re.fullmatch(r"-?\d{1,15}", text, re.ASCII) else None


def _space_or_nothing(tag: re.Match[str]) -> str:
    """Words run together where a block ends, but not where a letter is set in italics."""
    return "" if (tag.group(1) or tag.group(2) or "").lower() in _INLINE else " "
