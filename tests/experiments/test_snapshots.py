"""What is written into a snapshot: the same bytes for the same papers, nothing unknown, and whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest

from experiments.collections.beir.layout import read_snapshot
from experiments.snapshots import FILES, MANIFEST, RESPONSES, Snapshot, check_files, ids_that_go, write_snapshot
from pipeline.collecting.reports import Report, Stop
from pipeline.errors import UserError
from pipeline.papers import Paper, Query

FULL = Paper(
    paper_id="doi:10.5555/a",
    title="Flutter, “quoted” \u2028 and 学习",
    abstract='Two\nlines, a \\ and a "quote".',
    year=2024,
    authors=("Ana Müller", "Bo Ğ"),
    citation_count=0,
    disciplines=("Computer Science",),
    document_type="article",
    journal_name="Annals",
    journal_volume="3",
    journal_pages="1-9",
    conference_name="Flutter Days",
    publication_type="journal-article",
    venue="Annals",
    publication_date="2024-03",
    is_open_access=False,
    pdf_url="https://flutter.example/a.pdf",
    pdf_available=True,
    url="https://flutter.example/a",
    doi="10.5555/a",
    keywords=("dart", "wings"),
    source="crossref",
    issn="1234-5679",
    impact_factor=0.0,
    references=("10.5555/b",),
    published_as="10.5555/c",
    preprints=("10.5555/d",),
    records=("crossref:10.5555/a", "doaj:1"),
    provenance={"title": "crossref:10.5555/a"},
)
BARE = Paper("arxiv:2401.00001")
QUERIES = (Query("q1", "learning, flutter", ("dart",), "CS", ("AI",), "all"), Query("q2", "nothing"))
REPORTS = (
    Report("q1", "arxiv", Stop.DONE, "", 1, 1, 1, 0.25),
    Report("q1", "doaj", Stop.HTTP_ERROR, 'HTTP 500: "a, b"'),
)
SNAPSHOT = Snapshot(QUERIES, (BARE, FULL), {"q1": [BARE.paper_id, FULL.paper_id], "q2": []}, REPORTS, 3, {"days": {}})


def written(folder: Path, snapshot: Snapshot = SNAPSHOT) -> Path:
    folder.mkdir(exist_ok=True)
    write_snapshot(snapshot, folder, "f" * 64)
    return folder


def told(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        check_files(folder)
    return str(caught.value)


def test_every_field_is_filled_here():
    assert [field.name for field in fields(Paper) if getattr(FULL, field.name) in (None, "", (), {})] == []


def test_what_is_written_is_read_back_the_same(tmp_path):
    collection = read_snapshot(written(tmp_path / "s"))
    assert tuple(collection.papers.values()) == (BARE, FULL)
    assert collection.queries == QUERIES
    assert collection.pools == {"q1": (BARE.paper_id, FULL.paper_id), "q2": ()}
    assert collection.word_statistics == "pool"
    assert collection.judgments["q1"] == {}


def test_what_is_unknown_is_not_written(tmp_path):
    corpus = gzip.decompress((written(tmp_path / "s") / "corpus.jsonl.gz").read_bytes()).decode()
    bare, full = map(json.loads, corpus.split("\n")[:-1])
    assert bare == {"_id": "arxiv:2401.00001", "title": "", "text": "", "metadata": {}}
    assert full["metadata"]["citation_count"] == 0
    assert full["metadata"]["is_open_access"] is False


def test_the_same_snapshot_is_the_same_bytes_in_any_folder(tmp_path):
    one, other = written(tmp_path / "one"), written(tmp_path / "other")
    written(other)
    for name in (*FILES, MANIFEST):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    assert {path.name for path in other.iterdir()} == {*FILES, MANIFEST}


def test_the_manifest_counts_and_names_the_sha256_of_every_file(tmp_path):
    manifest = json.loads((written(tmp_path / "s") / MANIFEST).read_text("utf-8"))
    whole = {"queries": 2, "records": 3, "papers": 2}
    some = dict.fromkeys(("with_abstract", "with_doi", "with_pdf", "with_impact_factor"), 1)
    assert manifest["counts"] == whole | some
    assert manifest["files"] == {
        name: hashlib.sha256((tmp_path / "s" / name).read_bytes()).hexdigest() for name in FILES
    }
    assert (manifest["responses"], manifest["days"]) == ("f" * 64, {})


def test_reports_are_a_row_each(tmp_path):
    assert (written(tmp_path / "s") / "reports.csv").read_text("utf-8").splitlines() == [
        "query_id,source,stop,detail,pages,records,declared,seconds",
        "q1,arxiv,done,,1,1,1,0.25",
        'q1,doaj,HTTP error,"HTTP 500: ""a, b""",0,0,,0.0',
    ]


def test_a_whole_snapshot_passes(tmp_path):
    check_files(written(tmp_path / "s"))


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_differs_or_is_gone_is_told(tmp_path, name):
    folder = written(tmp_path / "s")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content + b"\n")
    again = f"litgrade collect sources.mode=replay snapshot={folder}"
    line = f"{folder / name}: not the file that was frozen; make it again with {again}"
    assert told(folder) == line
    (folder / name).unlink()
    assert told(folder) == line


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'"files"', b"{}", b'{"files": 5}', b'{"files": ["ab"]}', b'\xff{"files": {}}', b"null"],
)
def test_a_damaged_manifest_is_told(tmp_path, content):
    folder = written(tmp_path / "s")
    (folder / MANIFEST).write_bytes(content)
    assert told(folder).startswith(str(folder))
    assert "\n" not in told(folder)


def test_a_manifest_that_vouches_for_nothing_vouches_for_nothing(tmp_path):
    folder = written(tmp_path / "s")
    (folder / MANIFEST).write_text('{"files": {}}')
    assert "corpus.jsonl.gz: not the file that was frozen" in told(folder)


def test_a_folder_without_a_manifest_is_no_snapshot(tmp_path):
    assert told(tmp_path) == f"{tmp_path}: no manifest.json, expected a snapshot made by litgrade collect"
    (tmp_path / RESPONSES).write_bytes(b"")
    assert told(tmp_path).endswith("; its collection was not finished, run it again")


class Interrupted(Sequence[Paper]):
    """Papers of which the second never comes."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: object) -> Paper:
        raise IndexError

    def __iter__(self) -> Iterator[Paper]:
        yield FULL
        raise KeyboardInterrupt


def test_writing_that_is_interrupted_leaves_no_snapshot_and_no_half_of_a_file(tmp_path):
    folder = written(tmp_path / "s")
    before = (folder / "corpus.jsonl.gz").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        written(folder, replace(SNAPSHOT, papers=Interrupted()))
    assert (folder / "corpus.jsonl.gz").read_bytes() == before
    assert {path.name for path in folder.iterdir()} == {*FILES}
    assert "no manifest.json" in told(folder)


def test_ids_that_papers_no_longer_have_are_found(tmp_path):
    folder = written(tmp_path / "s")
    assert ids_that_go(SNAPSHOT, folder) == []
    first = SNAPSHOT.papers[0]
    renamed = replace(SNAPSHOT, papers=[replace(first, paper_id="doi:10.9999/new"), *SNAPSHOT.papers[1:]])
    assert ids_that_go(renamed, folder) == [first.paper_id]
    assert ids_that_go(renamed, tmp_path / "nowhere") == []
    (folder / "pools.jsonl").write_text("{damaged")
    assert ids_that_go(renamed, folder) == []
