"""The words of a query, for sources that want them one by one."""

from __future__ import annotations

import re
import unicodedata

from pipeline.papers import Query

_LONGEST_WORD = 100  # in letters; a longer one is none, and makes an address too long
_MOST_WORDS = 16  # longer searches are refused or cut by some sources
STOP_WORDS = frozenset(
    "a an and andnot are as at be between but by can do does for from has have how in into is it its near not of on or "
    "over same than that the their these this those through to toward towards under upon using via vs was were what "
    "when which while who why will with without".split()
)


def search_words(query: Query) -> tuple[str, ...]:
    """Return the words of a query's text that carry meaning, in lower case, each once, at most 16.

    Only letters, digits and inner hyphens are left, so that no word can be an operator or break a quotation. Empty
    where the text has stop words only.
    """
    return tuple(dict.fromkeys(word for word in _words(query.text) if word not in STOP_WORDS))[:_MOST_WORDS]


def search_phrases(query: Query) -> tuple[str, ...]:
    """Return the query's keywords as phrases of plain words, without those that are a search word already."""
    known = {*search_words(query), *STOP_WORDS}
    return tuple(phrase for phrase in _phrases(query) if phrase not in known)[:_MOST_WORDS]


def any_of(query: Query, phrase: str = '"{}"', joined_by: str = " OR ") -> str:
    """Return a search for any of the query's words and keywords; one of several words is put in quotes.

    A text of stop words only is searched as a phrase; the search is empty where there is no letter or digit at all.
    """
    terms = [*search_words(query), *search_phrases(query)]
    if not terms:
        return phrase.format(" ".join(words)) if (words := _words(query.text)[:_MOST_WORDS]) else ""
    return joined_by.join(phrase.format(term) if " " in term or "-" in term else term for term in terms)


def mentions(query: Query, *texts: str) -> bool:
    """Return whether the texts hold at least half of the query's words, or one of its keywords.

    For sources that have no search of their own.
    """
    words = _words(" ".join(texts))
    joined = f" {' '.join(words)} "
    if any(f" {phrase} " in joined for phrase in _phrases(query) if phrase not in STOP_WORDS):
        return True
    wanted = search_words(query)
    return bool(wanted) and 2 * len(set(words) & set(wanted)) >= len(wanted)


def _phrases(query: Query) -> list[str]:
    phrases = (" ".join(_words(keyword)) for keyword in query.keywords)
    return list(dict.fromkeys(phrase for phrase in phrases if phrase))


def _words(text: str) -> list[str]:
    """Letters keep their marks: without them an Indic word falls apart. The dot of a Turkish capital I is no mark."""
    plain = re.sub("['\u2019]s\\b", "", unicodedata.normalize("NFKC", text)).lower().replace("i\u0307", "i")
    kept = "".join(character if _is_of_a_word(character) else " " for character in plain)
    parts = (part.strip("-") for part in re.sub("--+", " ", kept).split() if any(map(str.isalnum, part)))
    return [part for part in parts if len(part) <= _LONGEST_WORD]


def _is_of_a_word(character: str) -> bool:
    return character == "-" or character.isalnum() or unicodedata.category(character).startswith("M")
