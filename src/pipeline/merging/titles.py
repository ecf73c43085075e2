"""Whether two titles could be those of one paper."""

from __future__ import annotations

from rapidfuzz import fuzz

from pipeline.merging.title_keys import plain_words, read_title
from pipeline.search_terms import STOP_WORDS

_SHORTEST, _STANDS_THERE = 12, 90.0  # characters of a title that says something; of 100
_ALIKE = 80.0  # of 100, letter by letter: typing errors, languages without blanks


def could_be_same(a: str, b: str) -> bool:
    """Whether two titles say nearly the same words; an unknown title could be any.

    A subtitle may be missing, a word or two may have changed on the way from preprint to article.
    """
    if not a or not b:
        return True
    of_a, of_b = (set(plain_words(title).split()) - STOP_WORDS for title in (a, b))
    n_shared = len(of_a & of_b)
    is_part = n_shared >= 3 and n_shared >= 0.8 * min(len(of_a), len(of_b))
    is_most = n_shared >= 0.6 * max(len(of_a), len(of_b), 1)
    return is_part or is_most or fuzz.ratio(plain_words(a), plain_words(b)) >= _ALIKE


def holds_title(text: str, title: str) -> bool:
    """Whether a title stands in a text, but for typing errors and line breaks; many texts hold a weak one."""
    key, words = read_title(title), plain_words(text)
    if key is None or len(key.text) < _SHORTEST or (key.is_weak and key.text.isascii()):  # all of Chinese are weak
        return False
    is_long_enough = len(words) >= 0.9 * len(key.text)  # or else the text is sought in the title
    return is_long_enough and fuzz.partial_ratio(key.text, words) >= _STANDS_THERE
