"""A folder becomes a collection, or one line that says which file and line to mend."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from experiments.collections import Collection
from experiments.collections.beir import Loader
from pipeline.errors import UserError
from pipeline.papers import Paper, Query

HEADER = "query-id\tcorpus-id\tscore\n"
PAPERS = '{"_id": "p1", "title": "One", "text": "First."}\n{"_id": "p2", "title": "Two", "text": "Second."}\n'
QUERIES = '{"_id": "q1", "text": "ones"}\n{"_id": "q2", "text": "twos"}\n'
POOL = '{"query_id": "q1", "candidates": ["p2", "p1"]}\n'
VALID = {
    "corpus.jsonl": PAPERS,
    "queries.jsonl": QUERIES,
    "qrels/test.tsv": HEADER + "q1\tp1\t3\nq1\tp2\t0\nq2\tp2\t1\n",
    "pools.jsonl": POOL + '{"query_id": "q2", "candidates": ["p2"]}\n',
    "references.jsonl": '{"paper_id": "p2", "references": ["p1", "10.1/outside"]}\n',
}


def write(folder: Path, **changed: str | bytes | None) -> Path:
    """Write the valid collection, with the files named by their stem changed; ``None`` leaves the file out."""
    for name, valid in VALID.items():
        content = changed.get(Path(name).stem, valid)
        if content is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def load(folder: Path, **changed: str | bytes | None) -> Collection:
    return Loader(write(folder, **changed)).load()


def message(folder: Path, split: str = "test") -> str:
    """Return the error of loading a folder, which is one line and says what was expected."""
    with pytest.raises(UserError) as caught:
        Loader(folder, split).load()
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert "expected" in text
    return text


def corpus_of(**metadata: Any) -> str:
    """Return the corpus with this metadata in its first paper."""
    first = json.dumps({"_id": "p1", "title": "One", "text": "First.", "metadata": metadata})
    return "\n".join([first, *PAPERS.splitlines()[1:]])


def queries_of(**metadata: Any) -> str:
    return json.dumps({"_id": "q1", "text": "ones", "metadata": metadata}) + "\n"


def load_paper(folder: Path, **metadata: Any) -> Paper:
    return load(folder, corpus=corpus_of(**metadata)).papers["p1"]


def test_valid_folder_becomes_a_collection(tmp_path: Path) -> None:
    collection = load(tmp_path / "tiny")
    assert collection.name == "tiny"
    assert collection.queries == (Query("q1", "ones"), Query("q2", "twos"))
    assert list(collection.papers) == ["p1", "p2"]
    assert collection.papers["p2"] == Paper("p2", "Two", "Second.", references=("p1", "10.1/outside"))
    assert collection.judgments.grades == {"q1": {"p1": 3, "p2": 0}, "q2": {"p2": 1}}
    assert collection.pools == {"q1": ("p2", "p1"), "q2": ("p2",)}
    assert [[paper.paper_id for paper in table.papers] for table in collection.candidates()] == [["p2", "p1"], ["p2"]]
    assert collection.notice is None


def test_without_pools_the_pool_is_the_corpus(tmp_path: Path) -> None:
    collection = load(tmp_path, pools=None)
    assert collection.pools is None
    assert [paper.paper_id for paper in collection.candidates()[1].papers] == ["p1", "p2"]


def test_metadata_fills_the_fields_of_a_paper(tmp_path: Path) -> None:
    paper = load_paper(
        tmp_path,
        authors=["A", " B "],
        keywords=["k", ""],
        disciplines=["d"],
        references=["p9"],
        year=2020.0,
        citation_count=7,
        impact_factor=2,
        is_open_access=False,
        venue=" Annals ",
        doi="",
        sentences=[{"unknown": "key"}],
        title="not the title",
        paper_id="not the id",
    )
    assert paper == Paper(
        "p1",
        "One",
        "First.",
        authors=("A", "B"),
        keywords=("k",),
        disciplines=("d",),
        references=("p9",),
        year=2020,
        citation_count=7,
        impact_factor=2.0,
        is_open_access=False,
        venue="Annals",
    )
    assert isinstance(paper.year, int)
    assert isinstance(paper.impact_factor, float)


def test_null_is_unknown(tmp_path: Path) -> None:
    assert load_paper(tmp_path, year=None, keywords=None, venue=None) == Paper("p1", "One", "First.")


def test_metadata_may_be_null_and_text_is_stripped(tmp_path: Path) -> None:
    papers = '{"_id": "p1", "title": " One\\n", "text": null, "metadata": null}\n{"_id": "p2", "title": "", "text": ""}'
    collection = load(tmp_path, corpus=papers, references=None)
    assert collection.papers == {"p1": Paper("p1", "One"), "p2": Paper("p2")}


def test_references_file_wins_over_metadata(tmp_path: Path) -> None:
    corpus = PAPERS.replace('"Second."}', '"Second.", "metadata": {"references": ["x"]}}')
    assert load(tmp_path, corpus=corpus).papers["p2"].references == ("p1", "10.1/outside")


def test_metadata_fills_the_fields_of_a_query(tmp_path: Path) -> None:
    queries = queries_of(keywords=["k"], domain="Life", fields=["Law"], area="LSH", paper_id="p1", facet="x")
    collection = load(tmp_path, queries=queries, test=HEADER + "q1\tp2\t2\n", pools=None)
    assert collection.queries == (Query("q1", "ones", ("k",), "Life", ("Law",), "LSH", "p1"),)
    assert [paper.paper_id for paper in collection.candidates()[0].papers] == ["p2"]


def test_qrels_columns_come_in_any_order_and_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    qrels = "score\tcorpus-id\trater\tquery-id\r\n2\tp1\tA\tq1\r\n\r\n1\tp2\tA\tq2\r\n"
    corpus = b"\xef\xbb\xbf" + PAPERS.replace("\n", "\r\n").encode()
    assert load(tmp_path, test=qrels, corpus=corpus).judgments.grades == {"q1": {"p1": 2}, "q2": {"p2": 1}}


def test_abstract_may_hold_a_unicode_line_separator(tmp_path: Path) -> None:
    corpus = PAPERS.replace("First.", "First.\u2028Still \U0001f600 first.")
    assert load(tmp_path, corpus=corpus).papers["p1"].abstract == "First.\u2028Still \U0001f600 first."


def test_split_chooses_the_judgments(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "qrels" / "dev.tsv").write_text(HEADER + "q1\tp1\t1\nq2\tp1\t2\n")
    collection = Loader(tmp_path, split="dev").load()
    assert collection.judgments.grades == {"q1": {"p1": 1}, "q2": {"p1": 2}}
    assert collection.fingerprint != Loader(tmp_path).load().fingerprint


def test_gzip_is_read_like_plain(tmp_path: Path) -> None:
    plain = load(tmp_path / "plain" / "tiny")
    folder = write(tmp_path / "gzipped" / "tiny")
    for name in VALID:
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
        (folder / name).unlink()
    assert Loader(folder).load() == plain


@pytest.mark.parametrize("name", VALID)
def test_fingerprint_follows_every_file(tmp_path: Path, name: str) -> None:
    before = load(tmp_path).fingerprint
    with (tmp_path / name).open("a") as file:
        file.write("\n")
    assert Loader(tmp_path).load().fingerprint != before


def test_fingerprint_knows_where_a_file_ends(tmp_path: Path) -> None:
    left = load(tmp_path / "left", corpus=PAPERS + "\n", queries=QUERIES)
    right = load(tmp_path / "right", corpus=PAPERS, queries="\n" + QUERIES)
    assert left.fingerprint != right.fingerprint


def test_unknown_setting_is_refused(tmp_path: Path) -> None:
    settings: Mapping[str, Any] = {"path": tmp_path, "splitt": "dev"}
    with pytest.raises(ValidationError, match="splitt"):
        Loader(**settings)


# One fault each: the file, its broken content, the line of the fault, and what the error says (... stands for more).
FAULTS = [
    ("corpus", PAPERS + "{_id: 1}\n", 3, "not JSON ... expected one object a line"),
    ("corpus", PAPERS + '{"_id": "p3"\n', 3, "not JSON ... expected one object a line"),
    ("corpus", "\n" + PAPERS + "[1, 2]\n", 4, "[1, 2] is not an object; expected one object a line"),
    ("corpus", "[" * 100_000, 1, "not JSON ... expected one object a line"),
    ("corpus", '{"title": "One", "text": ""}\n', 1, "no key '_id' among ['title', 'text']; expected '_id'"),
    (
        "corpus",
        PAPERS + '{"_id": "p3", "text": ""}\n',
        3,
        "no key 'title' among ['_id', 'text']; expected 'title', a text",
    ),
    (
        "corpus",
        PAPERS + '{"_id": "p3", "title": ""}\n',
        3,
        "no key 'text' among ['_id', 'title']; expected 'text', a text",
    ),
    ("corpus", PAPERS.replace('"p2"', "7"), 2, "_id is 7; expected a text without blanks"),
    ("corpus", PAPERS.replace('"p2"', "null"), 2, "_id is null; expected a text without blanks"),
    ("corpus", PAPERS.replace("p2", ""), 2, "_id is ''; expected a text without blanks"),
    ("corpus", PAPERS.replace("p2", "p 2"), 2, "_id is 'p 2'; expected a text without blanks"),
    ("corpus", PAPERS.replace('"Two"', "2"), 2, "title is 2; expected a text"),
    ("corpus", PAPERS.replace('"Second."', '["Second."]'), 2, "text is ['Second.']; expected a text"),
    ("corpus", PAPERS.replace("p2", "p1"), 2, "_id 'p1' is already on line 1; expected every _id once"),
    ("corpus", PAPERS.encode() + b"caf\xe9\n", 3, "byte 0xe9 is not UTF-8; expected a file saved as UTF-8"),
    ("corpus", PAPERS.replace("Two", "\\ud83d"), 2, "surrogate pair ... expected whole Unicode characters"),
    ("corpus", "", 1, "the file is empty; expected at least one line"),
    ("corpus", " \n\n", 1, "the file is empty; expected at least one line"),
    ("corpus", PAPERS.replace("}", ', "metadata": []}'), 1, "metadata is []; expected an object"),
    ("corpus", corpus_of(year="2020"), 1, "metadata.year is '2020'; expected a whole number"),
    ("corpus", corpus_of(year=2020.5), 1, "metadata.year is 2020.5; expected a whole number"),
    ("corpus", corpus_of(citation_count=True), 1, "metadata.citation_count is True; expected a whole number"),
    ("corpus", corpus_of(impact_factor="high"), 1, "metadata.impact_factor is 'high'; expected a number"),
    ("corpus", corpus_of(impact_factor=float("nan")), 1, "NaN is not a number ... expected one object a line"),
    ("corpus", corpus_of(impact_factor=10**400), 1, "metadata.impact_factor is 1000 ... expected a number"),
    ("corpus", corpus_of(authors="A, B"), 1, "metadata.authors is 'A, B'; expected a list of texts"),
    ("corpus", corpus_of(keywords=["a", 1]), 1, "metadata.keywords is ['a', 1]; expected a list of texts"),
    ("corpus", corpus_of(venue=["x\ny"]), 1, "metadata.venue is ['x\\ny']; expected a text"),
    ("corpus", corpus_of(is_open_access="no"), 1, "metadata.is_open_access is 'no'; expected true or false"),
    ("queries", "", 1, "the file is empty; expected at least one line"),
    ("queries", QUERIES + '{"_id": "q3"}\n', 3, "no key 'text' among ['_id']; expected 'text', a text"),
    ("queries", QUERIES + '{"text": "threes"}\n', 3, "no key '_id' among ['text']; expected '_id'"),
    ("queries", QUERIES.replace("q2", "q1"), 2, "_id 'q1' is already on line 1; expected every _id once"),
    (
        "queries",
        QUERIES.replace('"twos"', "null"),
        2,
        "the text of query 'q2' is empty; expected what the query asks for",
    ),
    ("queries", QUERIES.replace('"twos"', "2"), 2, "text is 2; expected a text"),
    ("queries", queries_of(paper_id=7), 1, "metadata.paper_id is 7; expected a text"),
    ("queries", queries_of(keywords="k"), 1, "metadata.keywords is 'k'; expected a list of texts"),
    ("queries", queries_of(area=1), 1, "metadata.area is 1; expected a text"),
    (
        "queries",
        QUERIES + '{"_id": "q3", "text": "x"}\n',
        3,
        "query 'q3' has no judgment; expected at least one in ... test.tsv",
    ),
    ("test", "", 1, "the file is empty; expected at least one line"),
    (
        "test",
        "q1\tp1\t3\n",
        1,
        "no column query-id, corpus-id, score in ... expected query-id, corpus-id, score, split by tabs",
    ),
    ("test", HEADER.replace("\t", ","), 1, "in the header 'query-id,corpus-id,score'; expected ... split by tabs"),
    ("test", HEADER.replace("corpus-id", "doc"), 1, "no column corpus-id in ... expected query-id, corpus-id, score"),
    ("test", HEADER + "q1\tp1\n", 2, "2 cells in 'q1\\tp1'; expected query-id, corpus-id, score"),
    ("test", HEADER + "q1\tp1\t4\n", 2, "score is '4'; expected one of 0, 1, 2, 3"),
    ("test", HEADER + "q1\tp1\t-1\n", 2, "score is '-1'; expected one of 0, 1, 2, 3"),
    ("test", HEADER + "q1\tp1\thigh\n", 2, "score is 'high'; expected one of 0, 1, 2, 3"),
    ("test", HEADER + "q1\tp1\t3\nq1\tp9\t0\n", 3, "an unknown paper 'p9'; expected an _id of corpus.jsonl"),
    ("test", HEADER + "q9\tp1\t0\n", 2, "an unknown query 'q9'; expected an _id of queries.jsonl"),
    ("test", HEADER + "q1\tp1\t3\nq2\tp1\t1\nq1\tp1\t3\n", 4, "already on line 2; expected every pair once"),
    ("pools", POOL.replace("q1", "q9"), 1, "unknown query 'q9'; expected an _id of queries.jsonl"),
    ("pools", POOL.replace("p2", "p9"), 1, "unknown paper 'p9' in the pool; expected an _id of corpus.jsonl"),
    ("pools", POOL.replace("p2", "p1"), 1, "paper 'p1' is in the pool twice; expected every candidate once"),
    ("pools", '{"query_id": "q1", "candidates": []}', 1, "the pool is empty; expected at least one candidate"),
    ("pools", '{"query_id": "q1", "candidates": "p1"}', 1, "candidates is 'p1'; expected a list of paper ids"),
    ("pools", '{"query_id": "q1"}', 1, "no key 'candidates' ... expected 'candidates', a list of paper ids"),
    ("pools", POOL + POOL, 2, "query_id 'q1' is already on line 1; expected every query_id once"),
    ("references", '{"paper_id": "p9", "references": []}', 1, "unknown paper 'p9'; expected an _id of corpus.jsonl"),
    ("references", '{"paper_id": "p1", "references": 3}', 1, "references is 3; expected a list of texts"),
    ("references", '{"paper_id": "p1"}', 1, "no key 'references' ... expected 'references', a list of texts"),
]


@pytest.mark.parametrize(("stem", "content", "line", "says"), FAULTS)
def test_fault_names_file_line_and_expectation(
    tmp_path: Path, stem: str, content: str | bytes, line: int, says: str
) -> None:
    text = message(write(tmp_path, **{stem: content}))
    (name,) = (name for name in VALID if Path(name).stem == stem)
    assert text.startswith(f"{tmp_path / name}:{line}: ")
    assert all(part in text for part in says.split(" ... "))


def test_query_without_a_pool_is_named(tmp_path: Path) -> None:
    text = message(write(tmp_path, pools='{"query_id": "q1", "candidates": ["p1"]}'))
    assert text == f"{tmp_path}/queries.jsonl:2: query 'q2' has no pool; expected one in {tmp_path}/pools.jsonl"


def test_long_value_is_cut(tmp_path: Path) -> None:
    assert len(message(write(tmp_path, corpus=corpus_of(authors="x" * 10_000)))) < len(str(tmp_path)) + 200


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_missing_file_lists_what_is_there(tmp_path: Path, name: str) -> None:
    text = message(write(tmp_path, **{Path(name).stem: None}))
    there = ", ".join(sorted({"corpus.jsonl", "pools.jsonl", "qrels", "queries.jsonl", "references.jsonl"} - {name}))
    assert text == f"{tmp_path}: no {name}; expected {name} or {name}.gz; {tmp_path} holds {there}"


def test_missing_split_lists_the_splits(tmp_path: Path) -> None:
    text = message(write(tmp_path), split="dev")
    assert "no qrels/dev.tsv; expected qrels/dev.tsv or qrels/dev.tsv.gz" in text
    assert text.endswith("qrels holds test.tsv")


def test_missing_qrels_folder_is_named(tmp_path: Path) -> None:
    write(tmp_path)
    shutil.rmtree(tmp_path / "qrels")
    assert message(tmp_path).endswith(f"there is no {tmp_path / 'qrels'} either")


def test_missing_folder_lists_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path / "tiny")
    text = message(tmp_path / "tny")
    assert text.startswith(f"{tmp_path / 'tny'}: no such folder; expected the folder of a collection")
    assert text.endswith(f"{tmp_path} holds tiny")


def test_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    text = message(write(tmp_path) / "corpus.jsonl")
    assert text == f"{tmp_path}/corpus.jsonl: this is a file; expected the folder of a collection"


def test_plain_and_gzip_together_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(PAPERS.encode()))
    assert "both corpus.jsonl and corpus.jsonl.gz are there; expected one of them" in message(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"not gzip at all", gzip.compress(PAPERS.encode())[:-9], gzip.compress(PAPERS.encode())[:10] + b"\x07" * 30],
    ids=["no-gzip", "truncated", "damaged"],
)
def test_broken_gzip_is_named(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, corpus=None)
    (tmp_path / "corpus.jsonl.gz").write_bytes(content)
    text = message(tmp_path)
    assert text.startswith(f"{tmp_path}/corpus.jsonl.gz: broken or truncated gzip (")
    assert text.endswith("expected a whole gzip file")


def test_faults_in_gzip_name_the_line_inside(tmp_path: Path) -> None:
    write(tmp_path, corpus=None)
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress((PAPERS + "{}\n").encode()))
    assert message(tmp_path).startswith(f"{tmp_path}/corpus.jsonl.gz:3: no key '_id' among []")


# The table of ../shared/data/README.md: papers, queries and pairs; grades 3 / 2 / 1 / 0.
REAL = [
    ("csfcube", (4205, 30, 3789), (48, 258, 843, 2640)),
    ("cranfield", (1400, 113, 971), (390, 395, 186, 0)),
    ("cystic_fibrosis", (1239, 60, 3040), (708, 443, 1889, 0)),
    ("slr_screening", (19654, 10, 13227), (580, 0, 1368, 11279)),
    ("cacm", (3204, 31, 463), (463, 0, 0, 0)),
    ("scifact", (5183, 150, 165), (165, 0, 0, 0)),
]


@pytest.mark.parametrize(("name", "sizes", "grades"), REAL)
def test_real_collection_has_its_counts(
    shared_data: Path, name: str, sizes: tuple[int, ...], grades: tuple[int, ...]
) -> None:
    collection = Loader(shared_data / name).load()
    counts = Counter(grade for judged in collection.judgments.grades.values() for grade in judged.values())
    assert collection.name == name
    assert (len(collection.papers), len(collection.queries), counts.total()) == sizes
    assert tuple(counts[grade] for grade in (3, 2, 1, 0)) == grades
    assert (collection.pools is not None) == (name in {"csfcube", "slr_screening"})


def test_own_paper_of_a_csfcube_query_is_left_out(shared_data: Path) -> None:
    collection = Loader(shared_data / "csfcube").load()
    for table in collection.candidates():
        assert table.query.paper_id in collection.papers
        assert table.query.paper_id not in {paper.paper_id for paper in table.papers}


def test_citation_links_of_cystic_fibrosis_are_read(shared_data: Path) -> None:
    papers = Loader(shared_data / "cystic_fibrosis").load().papers.values()
    assert sum(len(paper.references) for paper in papers) == 3009
    assert sum(bool(paper.references) for paper in papers) == 762
