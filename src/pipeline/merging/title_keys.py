"""Titles as they are compared: keys that survive markup, accents and hyphens, and what makes a title a weak witness."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from pipeline.cleaning import clean_text

_LEAST_RATIO = 95.0  # of 100
_FEW_WORDS = 3
_FEW_CHARACTERS = 12
#: Scripts without blanks between words: there every character counts as a word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_STROKES = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "\u0131": "i"})
_ACCENT = re.compile("[\u0300-\u036f]")  # of Latin, Greek and Cyrillic; marks of other scripts are letters
_LONE_GREEK = re.compile("(?<![\u03b1-\u03c9])[\u03b1-\u03c9](?![\u03b1-\u03c9])")
_TEX_FONT = re.compile(r"\\(?:math[a-z]+|text[a-z]*|emph|it|bf|rm|sc|sf|tt)\b")
_SILENT = re.compile(r"['\u2018\u2019\u02bc`]|(?<=\d),(?=\d{3}\b)")
#: Words that come and go between two spellings of a title; a letter alone ("vitamin A") is none.
_FUNCTION_WORDS = frozenset("the an and of in on for to at by".split())
_NOTICE_WORDS = frozenset(
    "addendum comment comments correction corrections corrigenda corrigendum editorial errata erratum rejoinder reply "
    "response retracted retraction withdrawal withdrawn".split()
)
_NOTICE = re.compile(
    r"(?:(?:author|publisher) )?(?:correction|corrections|editorial|withdrawal|withdrawn|rejoinder)\b"
    r"|(?:a )?(?:comment|comments|commentary) on\b|(?:authors? |a )?(?:reply|response) (?:to|from|by)\b|reply\b"
    r"|.*\b(?:erratum|errata|corrigendum|corrigenda|addendum|retracted|retraction (?:of|notice))\b"
    r"|retraction\b|expression of concern\b|.*\breply$"
)
#: A title of nothing but these words says nothing of a work.
_GENERIC_WORDS = _NOTICE_WORDS | frozenset(
    "a about abstract abstracts acknowledgement acknowledgements acknowledgment acknowledgments an and announcement "
    "annual appendix article articles author authors back board book books by call chapter chief closing committee "
    "conclusion conclusions conference congress contents contributors cover discussion editor editors editorials "
    "erratum final for foreword from front general guest in index information international introduction introductory "
    "invited issue its journal keynote letter letters list master matter meeting message new news note notes notice "
    "number obituary of on opening our outlook overview page paper papers part preface preliminary proceedings program "
    "programme remark remarks report reports review reviewer reviewers reviews section session special subject summary "
    "supplement supplementary symposium table thank thanks the this title to topic volume welcome with workshop "
    "year".split()
)
#: Words that tell one work from another: with digits, roman numerals, of characters that are words themselves.
_FIXED = re.compile(rf"[\d{_UNSPACED}]|^[ivx]+$")


@dataclass(frozen=True, slots=True)
class TitleKey:
    """A title as it is compared with others."""

    text: str  #: its words in plain lower-case letters and digits
    key: str  #: equal for titles that differ in markup, case, accents, punctuation and blanks alone
    content: tuple[str, ...]  #: its words without those that come and go
    is_weak: bool  #: so short or generic that many works have it
    is_notice: bool  #: of an erratum, a retraction, a comment, a reply, an editorial


def read_title(title: str) -> TitleKey | None:
    """Return a title as it is compared; None where there is none."""
    text = plain_words(title)
    if not text:
        return None
    words = text.split()
    joined = "".join(words)
    return TitleKey(
        text,
        "|".join([joined, *re.findall(r"\d+", text)]),  # the numbers, because 1 12 and 11 2 are not the same
        tuple(word for word in words if word not in _FUNCTION_WORDS) or tuple(words),
        len(_WORD.findall(text)) <= _FEW_WORDS
        or len(joined) <= _FEW_CHARACTERS
        or all(word in _GENERIC_WORDS or _is_fixed(word) for word in words),
        _NOTICE.match(text) is not None,
    )


def plain_words(text: str) -> str:
    """Return a text's words in lower case, without markup, accents and punctuation, joined by blanks.

    A text of signs alone is kept as it is. ``+`` and ``#`` stay, because C++ is not C; lone Greek letters are spelled.
    """
    cleaned = clean_text(text)
    spelled = _LONE_GREEK.sub(_letter_name, fold(_TEX_FONT.sub("", cleaned)).replace("&", " and "))
    kept = "".join(sign if _is_kept(sign) else " " for sign in _SILENT.sub("", spelled))
    return " ".join(kept.split()) or cleaned


def fold(text: str) -> str:
    """Return a text in Unicode NFKC, in lower case, its letters without accents and strokes."""
    decomposed = unicodedata.normalize("NFKD", text).casefold().translate(_STROKES)
    return unicodedata.normalize("NFKC", _ACCENT.sub("", decomposed))


_DOUBLED = re.compile(r"(\w)\1")
_LONG = 8  # letters


def differ_by_a_slip(a: TitleKey, b: TitleKey) -> bool:
    """Whether two titles are spelled alike but for function words and one slip of the pen.

    Words that tell one work from another (numbers, numerals, single letters, "reply") must be the same.
    """
    if len(a.content) != len(b.content) or fuzz.ratio(a.text, b.text) < _LEAST_RATIO:
        return False
    differing = [pair for pair in zip(a.content, b.content, strict=True) if pair[0] != pair[1]]
    return not differing or (len(differing) == 1 and _is_slip(*differing[0]))


def holes(title: TitleKey) -> Iterator[tuple[int, str]]:
    """Yield keys of which titles that differ by a slip share one, each with the word that is not in the key."""
    content = title.content
    yield hash(content), ""
    for i, word in enumerate(content):
        if not _is_fixed(word):
            yield hash((i, word[0], content[:i], content[i + 1 :])), word


def _is_slip(a: str, b: str) -> bool:
    """Another letter makes another word: nitrate and nitrite, county and country, causal and casual.

    A slip is a plural, a letter doubled, s for z, or two letters swapped in a long word.
    """
    if a[0] != b[0] or max(len(a), len(b)) <= 3 or _is_fixed(a) or _is_fixed(b) or OSA.distance(a, b) > 1:
        return False
    shorter, longer = sorted((a, b), key=len)
    if len(shorter) < len(longer):
        return longer == f"{shorter}s" or _DOUBLED.sub(r"\1", longer) == _DOUBLED.sub(r"\1", shorter)
    return a.replace("s", "z") == b.replace("s", "z") or (len(a) >= _LONG and sorted(a) == sorted(b))


def _is_fixed(word: str) -> bool:
    return len(word) == 1 or word in _NOTICE_WORDS or _FIXED.search(word) is not None


def _is_kept(sign: str) -> bool:
    return sign.isalnum() or sign in "+#" or unicodedata.category(sign)[0] == "M"


def _letter_name(letter: re.Match[str]) -> str:
    return unicodedata.name(letter.group()).split()[-1].lower().replace("lamda", "lambda")
