"""Words of a text for BM25: lower-cased, no stemming, no stop-word removal (the paper, section 4.3.1)."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Literal

Tokenizer = Literal["words", "treebank"]

_WORDS = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Split into runs of Unicode word characters, lower-cased."""
    return _WORDS.findall(text.lower())


def treebank(text: str) -> list[str]:
    """Split as the Penn Treebank does, lower-cased; punctuation marks are tokens of their own."""
    return list(_treebank()(text.lower()))


@functools.cache
def _treebank() -> Callable[[str], list[str]]:
    from nltk.tokenize import NLTKWordTokenizer  # slow to import, and not the default

    tokenize: Callable[[str], list[str]] = NLTKWordTokenizer().tokenize
    return tokenize


TOKENIZERS: dict[Tokenizer, Callable[[str], list[str]]] = {"words": words, "treebank": treebank}
