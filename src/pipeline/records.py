"""What the records of all sources have in common on their way to papers: ids, types, pages, versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from pipeline.cleaning import clean_text, clean_texts
from pipeline.papers import Paper

Read = TypeVar("Read")


def record_id(source: str, native: str) -> str:
    """Return the id of a record: its source and the id that it has there, without blanks."""
    return f"{source}:{'_'.join(native.split())}"


def known(values: Iterable[Read | None]) -> tuple[Read, ...]:
    """Return the values that are not None: what was read of the records that are whole."""
    return tuple(value for value in values if value is not None)


def newest(versions: Iterable[tuple[int, Paper] | None]) -> tuple[Paper, ...]:
    """Return the papers of these numbered versions, of each DOI the highest, in the order of first appearance.

    Papers without a DOI are told apart by their ids.
    """
    kept: dict[str, tuple[int, Paper]] = {}
    for version, paper in known(versions):
        key = paper.doi or paper.paper_id
        if key not in kept or version > kept[key][0]:
            kept[key] = version, paper
    return tuple(paper for _, paper in kept.values())


def type_among(types: Mapping[str, str], *words: str | None) -> str | None:
    """Return the document type of a record that is called all these words: that of the first one in ``types``.

    It is "other" where none is there, None where there are no words.
    """
    said = {word for word in words if word}
    return next((ours for theirs, ours in types.items() if theirs in said), "other") if said else None


def page_range(first: object, last: object) -> str | None:
    """Return first and last page as one text, "7" where they are the same or the last is unknown."""
    return "-".join(clean_texts([first, last])) if clean_text(first) else None
