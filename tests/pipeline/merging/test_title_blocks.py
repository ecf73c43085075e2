"""How much is compared where many papers look alike."""

from __future__ import annotations

from typing import Any

from pipeline.merging.same_paper import Traits, read_traits
from pipeline.merging.title_blocks import slip_pairs, title_pairs
from pipeline.papers import Paper

LONG = "Soil erosion in alpine valleys after heavy rain"


def traits(*papers: dict[str, Any]) -> list[Traits]:
    return [read_traits(Paper(f"made:{i}", **fields)) for i, fields in enumerate(papers)]


def test_editorials_of_different_authors_years_or_places_are_not_compared() -> None:
    known = {"title": "Editorial", "authors": ("Jane Doe",), "year": 2020, "venue": "Rain"}
    others = ({"authors": ("Wei Wang",)}, {"authors": ()}, {"year": 2021}, {"year": None}, {"venue": "Snow"})
    assert list(title_pairs(traits(known, *({**known, **other} for other in others)))) == []
    assert set(title_pairs(traits(known, {**known, "authors": ("Doe J.",)}))) == {(0, 1)}


def test_papers_of_one_title_with_dois_are_compared_only_with_those_without() -> None:
    known = [{"title": LONG, "doi": f"10.1000/{i}"} for i in range(50)]
    assert len(list(title_pairs(traits(*known)))) == 0
    assert len(list(title_pairs(traits(*known, {"title": LONG})))) == 50


def test_only_titles_that_differ_by_a_slip_are_pairs() -> None:
    titles = (LONG, LONG.replace("valleys", "valley"), LONG.replace("valleys", "meadows"), LONG.replace("rain", "snow"))
    known = {"authors": ("Jane Doe",), "year": 2020}
    assert set(slip_pairs(traits(*({**known, "title": title} for title in titles)))) == {(0, 1)}
    assert list(slip_pairs(traits(*({**known, "title": title, "year": None} for title in titles)))) == []
