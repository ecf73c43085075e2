"""Texts of sources made plain: no markup, no entities, one form of every character, single blanks."""

from __future__ import annotations

import functools
import html
import re
import unicodedata
from html.entities import html5

_INLINE = frozenset(
    "a abbr b big bold em ext-link font i inf italic mi mn mo monospace mtext named-content overline roman sans-serif "
    "sc scp small span strong styled-content sub sup tt u underline uri xref".split()
)
_BLOCK = (
    "abstract annotation article-title body br caption center dd disp-formula div dl dt fig graphic h[1-6] hr img "
    "inline-formula inline-graphic label li list list-item math menclose mfenced mfrac mmultiscripts mover mpadded "
    "mprescripts mroot mrow mspace msqrt mstyle msub msubsup msup mtable mtd mtr munder munderover ol p pre sec "
    "section semantics table tbody td tex-math th title tr ul"
).split()
_PREFIX = r"(?:jats|mml|m|ce|o|ns\d+):"
_ATTRIBUTE = r"""\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>]+)"""
_COMMENT = r"<!--(?:(?!<!--|-->).)*-->"  # none within another, so that many open ones cost no time
#: A tag of HTML, JATS or MathML. Names are told, because "x<y and y>z" holds no tag.
_TAG = re.compile(
    rf"</?(?:{_PREFIX}([\w.-]+)|({'|'.join([*_INLINE, *_BLOCK])}))(?:{_ATTRIBUTE})*\s*/?>|{_COMMENT}|<!\[CDATA\[|\]\]>",
    re.DOTALL | re.IGNORECASE,
)
_HEADING = re.compile(
    r"<((?:jats:)?title)\b[^<>]*>\s*+abstract\s*+:?\s*+</\1>|<(?:jats:)?p>\s*+abstract\s*+[.:](?=\s)", re.IGNORECASE
)
#: What some publishers wrap every formula in.
_PREAMBLE = re.compile(r"\\documentclass\b(?:(?!\\documentclass).)*?\\begin\{document\}|\\end\{document\}", re.DOTALL)
_ENTITY = re.compile(r"&(?:amp;)*(#\d{1,7}|#x[\da-f]{1,6}|[a-z]\w*);", re.IGNORECASE | re.ASCII)
#: Persian and Indic scripts and emoji need joiners; elsewhere they are rubbish, as all else here is.
_INVISIBLE = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|[\x00-\x08\x0e-\x1b\x7f]"
    "|[\u200c\u200d](?![^\x00-\x7f])|(?<![^\x00-\x7f])[\u200c\u200d]"
)
#: Control characters that were letters of Windows-1252, mostly quotation marks.
_MISREAD = {code: bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)}
_MOST_MARKS = 30  # on one letter; no language has as many
_MAY_HOLD_A_PILE = re.compile(f"[\u0300-\U0001ffff]{{{_MOST_MARKS + 1}}}")  # as Chinese may; no text of Latin letters
_MOST_LAYERS = 10  # of markup inside markup; real texts have three
_TOLD_UNKNOWN = frozenset(
    "n/a,na,none,null,nan,no title,no abstract,no abstract available,not available,abstract not available".split(",")
)


def clean_text(text: object) -> str:
    """Return a text of a source as plain text in Unicode NFC; empty for what is no text or says that there is none.

    Tags and entities go (twice escaped ones too), and so does the heading "Abstract" of a JATS abstract. LaTeX stays.
    """
    if not isinstance(text, str):
        return ""
    plain = text.encode("utf-8", "ignore").decode().translate(_MISREAD)
    for _ in range(_MOST_LAYERS):
        before, plain = plain, _without_a_layer(plain)
        if plain == before:
            break
    return "" if plain.strip("[](). ").lower() in _TOLD_UNKNOWN else plain


def unescaped(text: str) -> str:
    """Return a text without invisible characters, its entities as characters: also ``&amp;lt;``, but no ``R&D``."""
    return _ENTITY.sub(_character, _INVISIBLE.sub("", text))


def text_or_none(text: object) -> str | None:
    """Return a text made plain, None where nothing is left."""
    return clean_text(text) or None


def clean_texts(texts: object) -> tuple[str, ...]:
    """Return the texts of a list made plain, without empty ones and repetitions, in order."""
    return tuple(dict.fromkeys(clean_names(texts)))


def clean_names(names: object) -> tuple[str, ...]:
    """Return the names of a list made plain, without empty ones: two people may have the same."""
    cleaned = (clean_text(name) for name in names) if isinstance(names, list | tuple) else ()
    return tuple(name for name in cleaned if name)


def whole_number(value: object) -> int | None:
    """Return a whole number of at most 15 digits that came as a number or as a text; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) < 10**15 else None
    text = value.strip() if isinstance(value, str) else ""
    return int(text) if re.fullmatch(r"-?\d{1,15}", text, re.ASCII) else None


def _without_a_layer(text: str) -> str:
    plain = _PREAMBLE.sub(" ", _HEADING.sub(" ", unescaped(text)))
    plain = _TAG.sub(_space_or_nothing, plain)
    if _MAY_HOLD_A_PILE.search(plain):
        plain = _pile().sub(lambda pile: pile.group()[:_MOST_MARKS], plain)
    return " ".join(unicodedata.normalize("NFC", plain).split())


@functools.cache  # built where it is needed: it looks at all characters
def _pile() -> re.Pattern[str]:
    """Return what finds more marks on a letter than NFC should have to order, which takes the square of the time."""
    marks = "".join(chr(code) for code in range(0x300, 0x20000) if unicodedata.combining(chr(code)))
    return re.compile(f"[{marks}]{{{_MOST_MARKS + 1},}}")


def _character(entity: re.Match[str]) -> str:
    """Only names that HTML knows, and only with their semicolon: ``?id=1&region=2`` holds no entity."""
    name = entity.group(1)
    known = name.startswith("#") or f"{name};" in html5
    return html.unescape(f"&{name};") if known else f"&{name};"


def _space_or_nothing(tag: re.Match[str]) -> str:
    """Words run together where a block ends, but not where a letter is set in italics."""
    return "" if (tag.group(1) or tag.group(2) or "").lower() in _INLINE else " "
