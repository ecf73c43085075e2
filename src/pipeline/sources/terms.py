"""The words of a query, for sources that want them one by one."""

from __future__ import annotations

import re
import unicodedata

from pipeline.papers import Query

_MOST_WORDS = 16  # longer searches are refused or cut by some sources
_STOP_WORDS = frozenset(
    "a an and are as at be between but by can do does for from has have how in into is it its near not of on or over "
    "same than that the their these this those through to toward towards under upon using via vs was were what when "
    "which while who why will with without".split()
)


def search_words(query: Query) -> tuple[str, ...]:
    """Return the words of a query's text that carry meaning, in lower case, each once, at most 16.

    Only letters, digits and inner hyphens are left, so that no word can be an operator or break a quotation.
    """
    return tuple(list(dict.fromkeys(word for word in _words(query.text) if word not in _STOP_WORDS))[:_MOST_WORDS])


def search_phrases(query: Query) -> tuple[str, ...]:
    """Return the query's keywords as phrases of plain words, without those that are a search word already."""
    phrases = (" ".join(_words(keyword)) for keyword in query.keywords)
    known = set(search_words(query))
    return tuple(dict.fromkeys(phrase for phrase in phrases if phrase and phrase not in known))[:_MOST_WORDS]


def any_of(query: Query, phrase: str = '"{}"', joined_by: str = " OR ") -> str:
    """Return a search for any of the query's words and keywords; one of several words is put in quotes."""
    terms = [*search_words(query), *search_phrases(query)]
    return joined_by.join(phrase.format(term) if " " in term or "-" in term else term for term in terms)


def mentions(query: Query, *texts: str) -> bool:
    """Return whether the texts hold at least half of the query's words, or one of its keywords.

    For sources that have no search of their own.
    """
    words = set(_words(" ".join(texts)))
    wanted = search_words(query)
    joined = f" {' '.join(_words(' '.join(texts)))} "
    if any(f" {phrase} " in joined for phrase in search_phrases(query)):
        return True
    return bool(wanted) and 2 * sum(word in words for word in wanted) >= len(wanted)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:-[^\W_]+)*", unicodedata.normalize("NFKC", text).casefold())
