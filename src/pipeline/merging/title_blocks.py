"""Which papers are worth comparing: a search of all pairs would take hours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product

from rapidfuzz import process
from rapidfuzz.distance import OSA

from pipeline.merging.same_paper import Traits
from pipeline.merging.title_keys import TitleKey, differ_by_a_slip, holes

Pair = tuple[int, int]
_MOST_WORDS = 100  # longer "titles" are none, and comparing them but for one word takes the square of the time


def title_pairs(traits: Sequence[Traits]) -> Iterator[Pair]:
    """Yield pairs of an equal title, but for those of two papers with DOIs, of which there can be many."""
    for block in title_blocks(traits):
        without = [i for i in block if traits[i].doi is None]
        yield from combinations(without, 2)
        yield from product(without, [i for i in block if traits[i].doi is not None])


def title_blocks(traits: Sequence[Traits]) -> Iterator[list[int]]:
    """Yield papers of an equal title; where the title is weak also of one year, author and place."""
    blocks: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, of_one in enumerate(traits):
        for key in _block_keys(of_one):
            blocks[key].append(i)
    return (block for block in blocks.values() if len(block) > 1)


def slip_pairs(traits: Sequence[Traits]) -> Iterator[Pair]:
    """Yield pairs whose titles differ by a slip."""
    titled: dict[TitleKey, list[int]] = defaultdict(list)
    for i, of_one in enumerate(traits):
        if of_one.title is None or len(of_one.title.content) > _MOST_WORDS:
            continue
        if not of_one.title.is_weak and of_one.author and of_one.year:
            titled[of_one.title].append(i)
    for title, other in _slips(list(titled)):
        yield from product(titled[title], titled[other])


def _slips(titles: Sequence[TitleKey]) -> Iterator[tuple[TitleKey, TitleKey]]:
    blocks: dict[int, list[tuple[TitleKey, str]]] = defaultdict(list)
    for title in titles:
        for key, word in holes(title):
            blocks[key].append((title, word))
    for block in (block for block in blocks.values() if len(block) > 1):
        words = [word for _, word in block]
        for following, (title, word) in enumerate(block[:-1], start=1):
            near = process.extract(word, words[following:], scorer=OSA.distance, score_cutoff=1, limit=None)
            found = (block[following + offset][0] for _, _, offset in near)
            yield from ((title, other) for other in found if differ_by_a_slip(title, other))


def _block_keys(of_one: Traits) -> Iterator[tuple[object, ...]]:
    if of_one.title is None:
        return
    if not of_one.title.is_weak:
        yield (of_one.title.key,)
    elif of_one.author is not None and of_one.year is not None:
        places = [*of_one.venues, *([("page", of_one.page)] if of_one.page else [])]
        for word, place in product(set(of_one.author.words), places):
            yield of_one.title.key, of_one.year, word, place
