"""Made-up texts as long as real ones: how often a word occurs falls with its rank, as Zipf found."""

from __future__ import annotations

import numpy as np

N_WORDS = 60_000
_SOUNDS = "ba ce di fo gu la me ni pro ra se ti ul va wo".split()


def documents(n: int, seed: int = 0, words: int = 148) -> list[list[str]]:
    """Return n documents of about so many words each (a third more or less is common)."""
    draw = np.random.default_rng([seed, n])
    lengths = np.clip(draw.normal(words, words / 3, n), 20, 3 * words).astype(int)
    drawn, ends = _draw(draw, int(lengths.sum())), np.cumsum(lengths)
    return [drawn[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def queries(n: int, words: int = 12) -> list[list[str]]:
    """Return n queries of so many words, the most frequent among them."""
    draw = np.random.default_rng([1, n])
    return [_draw(draw, words) for _ in range(n)]


def abstracts(n: int) -> list[str]:
    """Return n texts of 50 to 400 tokens, half of them below 200, as those of CSFCube and Cranfield."""
    return [" ".join(document) for document in documents(n, seed=2, words=80)]


def _draw(draw: np.random.Generator, n: int) -> list[str]:
    weights = 1 / (np.arange(N_WORDS) + 2.7)
    vocabulary = np.array([_word(rank) for rank in range(N_WORDS)], dtype=object)
    chosen: list[str] = vocabulary[draw.choice(N_WORDS, size=n, p=weights / weights.sum())].tolist()
    return chosen


def _word(rank: int) -> str:
    sounds = ""
    while rank or not sounds:
        rank, sound = divmod(rank, len(_SOUNDS))
        sounds += _SOUNDS[sound]
    return sounds
