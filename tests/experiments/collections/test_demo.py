"""The demo collection holds what its README promises, and nothing in it gives a grade away."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from scipy.stats import spearmanr

from experiments.collections import Collection
from experiments.collections.demo import FOLDER, Loader
from experiments.collections.demo.criteria import Criteria, grade_from_criteria
from pipeline.papers import CATEGORIES, Paper

AREAS = {"CSE", "MHS", "MNS", "EM", "LSH"}
#: What may be unknown about a paper, and of how many papers it is (README, counts).
UNKNOWN = {
    "impact_factor": 115,
    "keywords": 60,
    "disciplines": 40,
    "citation_count": 25,
    "abstract": 15,
    "venue": 14,
    "year": 5,
    "authors": 5,
}


@pytest.fixture(scope="module")
def demo() -> Collection:
    return Loader().load()


def read_lines(name: str) -> Iterator[dict[str, Any]]:
    content = (FOLDER / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    return map(json.loads, content.decode().splitlines())


def read_criteria() -> dict[tuple[str, str], Criteria]:
    return {(row.pop("query_id"), row.pop("paper_id")): Criteria(**row) for row in read_lines("criteria.jsonl.gz")}


def own_grades() -> dict[str, int]:
    """Paper id -> its grade for the query it was written for."""
    return {paper_id: grade_from_criteria(criteria) for (_, paper_id), criteria in read_criteria().items()}


@pytest.mark.parametrize(
    ("criteria", "grade"),
    [
        (("same", "same", "same", "same", "similar"), 3),
        (("same", "same", "same", "narrower", "similar"), 2),
        (("same", "same", "same", "narrower", "partial"), 2),
        (("same", "same", "related", "broader", "similar"), 1),
        (("related", "related", "related", "broader", "different"), 1),
        (("different", "same", "same", "same", "similar"), 0),
        (("same", "different", "same", "same", "similar"), 0),
        (("same", "same", "unrelated", "different", "similar"), 0),
    ],
)
def test_grade_follows_the_rules_of_the_paper(criteria: tuple[Any, ...], grade: int) -> None:
    assert grade_from_criteria(Criteria(*criteria)) == grade


@pytest.mark.parametrize(
    "criteria",
    [
        ("same", "same", "same", "same", "different"),
        ("same", "same", "same", "narrower", "different"),
        ("same", "same", "same", "broader", "similar"),
        ("related", "same", "same", "same", "similar"),
        ("same", "same", "related", "narrower", "similar"),
    ],
)
def test_combination_without_a_rule_is_refused(criteria: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="no relevance category"):
        grade_from_criteria(Criteria(*criteria))


def test_every_grade_follows_from_the_criteria(demo: Collection) -> None:
    criteria = read_criteria()
    assert len(criteria) == 300
    for query in demo.queries:
        judged = demo.judgments[query.query_id]
        assert set(judged) == set(demo.papers)
        for paper_id, grade in judged.items():
            own = criteria.get((query.query_id, paper_id))
            assert grade == (0 if own is None else grade_from_criteria(own)), (query.query_id, paper_id)


def test_every_query_has_its_own_fifteen_papers(demo: Collection) -> None:
    own: dict[str, Counter[int]] = defaultdict(Counter)
    for (query_id, _), criteria in read_criteria().items():
        own[query_id][grade_from_criteria(criteria)] += 1
    assert own == {query.query_id: {3: 3, 2: 4, 1: 4, 0: 4} for query in demo.queries}
    assert len(own_grades()) == 300


def test_two_low_papers_of_every_query_are_from_another_field(demo: Collection) -> None:
    strangers = Counter(query_id for (query_id, _), c in read_criteria().items() if "different" in (c.domain, c.field))
    assert all(strangers[query.query_id] >= 2 for query in demo.queries)


def test_queries_are_four_an_area_and_complete(demo: Collection) -> None:
    assert Counter(query.area for query in demo.queries) == dict.fromkeys(AREAS, 4)
    for query in demo.queries:
        assert query.keywords
        assert query.domain
        assert query.fields
        assert 5 <= len(query.text.split()) <= 12


def test_collection_says_that_it_is_made_up(demo: Collection) -> None:
    assert demo.name == "demo (made up)"
    assert demo.notice is not None
    assert "made up for demonstration" in demo.notice
    assert "nothing about real performance" in demo.notice


def test_loader_has_no_settings() -> None:
    settings: dict[str, Any] = {"path": "elsewhere"}
    with pytest.raises(ValidationError):
        Loader(**settings)


def test_abstracts_are_empty_or_of_60_to_120_words(demo: Collection) -> None:
    lengths = [len(paper.abstract.split()) for paper in demo.papers.values()]
    assert all(length == 0 or 60 <= length <= 120 for length in lengths)


def test_titles_and_authors_are_not_used_twice(demo: Collection) -> None:
    papers = demo.papers.values()
    assert max(Counter(paper.title for paper in papers).values()) == 1
    assert max(Counter(author for paper in papers for author in paper.authors).values()) == 1


@pytest.mark.parametrize(("field", "count"), UNKNOWN.items())
def test_values_are_missing_as_in_life(demo: Collection, field: str, count: int) -> None:
    assert sum(getattr(paper, field) in (None, (), "") for paper in demo.papers.values()) == count


def test_conference_papers_and_preprints_have_no_impact_factor(demo: Collection) -> None:
    types = {paper.document_type for paper in demo.papers.values() if paper.impact_factor is not None}
    assert types == {"article", "review"}


def test_corpus_is_in_the_order_of_neutral_ids(demo: Collection) -> None:
    assert list(demo.papers) == [f"d{number:03}" for number in range(1, 301)]


def test_corpus_order_reveals_no_query(demo: Collection) -> None:
    query_of = {paper_id: query_id for query_id, paper_id in read_criteria()}
    order = [query_of[paper_id] for paper_id in demo.papers]
    # By chance 299 * 14 / 299 = 14 neighbours share a query, with a standard deviation of about 3.7.
    assert 3 <= sum(left == right for left, right in pairwise(order)) <= 25


def test_corpus_order_reveals_no_grade(demo: Collection) -> None:
    grades = own_grades()
    places: dict[int, list[int]] = defaultdict(list)
    for place, paper_id in enumerate(demo.papers):
        places[grades[paper_id]].append(place)
    # The mean place of 60 papers is 149.5 by chance, with a standard deviation of about 10.
    assert all(abs(sum(of_grade) / len(of_grade) - 149.5) < 30 for of_grade in places.values())


def words(paper: Paper) -> int | None:
    return len(paper.abstract.split()) or None


@pytest.mark.parametrize(
    "value",
    [
        words,
        lambda paper: len(paper.title.split()),
        lambda paper: paper.year,
        lambda paper: paper.citation_count,
        lambda paper: paper.impact_factor,
        lambda paper: len(paper.authors),
        lambda paper: len(paper.keywords),
    ],
    ids=["words", "title", "year", "citations", "impact", "authors", "keywords"],
)
def test_metadata_does_not_follow_the_grade(demo: Collection, value: Any) -> None:
    grades = own_grades()
    known = [(grades[i], value(paper)) for i, paper in demo.papers.items() if value(paper) is not None]
    assert abs(float(spearmanr(known).statistic)) < 0.2


def test_every_document_type_has_every_grade(demo: Collection) -> None:
    grades = own_grades()
    types = {(paper.document_type, grades[paper_id]) for paper_id, paper in demo.papers.items()}
    assert types == {
        (name, grade) for name in ("article", "conference paper", "review", "preprint") for grade in range(4)
    }


def test_corpus_names_no_query_criterion_or_grade() -> None:
    query_ids = {query["_id"] for query in read_lines("queries.jsonl")}
    metadata = {*UNKNOWN, "document_type"} - {"abstract"}
    for row in read_lines("corpus.jsonl.gz"):
        assert set(row) == {"_id", "title", "text", "metadata"}
        assert set(row["metadata"]) == metadata
        text = json.dumps(row).lower()
        assert not any(category in text for category in CATEGORIES)
        assert not query_ids & set(re.findall(r"[a-z]+-\d+", text))


def test_whole_folder_is_below_one_megabyte() -> None:
    assert sum(path.stat().st_size for path in Path(FOLDER).rglob("*") if path.is_file()) < 1_000_000


def test_readme_says_what_the_collection_is() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "made up for demonstration" in readme
    assert "says nothing about real performance" in readme
    assert "Apache-2.0" in readme
