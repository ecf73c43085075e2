"""``litgrade run collection=snapshot``: ranked without judgments, measured as far as there are some."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from conftest import litgrade
from experiments.collections.snapshot import Loader
from experiments.snapshots import Snapshot, write_snapshot
from pipeline.errors import UserError
from pipeline.papers import Paper, Query

#: "wing" is rare among the papers for q1 and common among those for q2; q3 found nothing.
PAPERS = [
    Paper("a:1", "Wing design", "Flow over a wing.", citation_count=3, keywords=("wing",)),
    Paper("a:2", "Flow in pipes", "Heat and flow.", year=2020),
    Paper("a:3", "Heat", "Soil, rain and heat."),
    Paper("a:4", "Rain on soil", ""),
    Paper("a:5", "Law of taxes", "A tax, a law."),
    Paper("a:6", "Wing and wing", "A wing has flow."),
    Paper("a:7", "Wing beats", "Cells of a wing."),
    Paper("a:8", "Wing cells", "Genes of a cell."),
    Paper("a:9", "Gene flow", "Genes flow between cells."),
]
POOLS = {
    "q1": ["a:1", "a:2", "a:3", "a:4", "a:5"],
    "q2": ["a:1", "a:6", "a:7", "a:8", "a:9"],
    "q3": [],
}
QUERIES = [Query("q1", "wing flow", ("heat",), area="A"), Query("q2", "wing flow", area="B"), Query("q3", "dart")]
HEADER = "query-id\tcorpus-id\tscore\n"
RANKED = ["arm=bm25", "tracking=none", "hydra.run.dir=run"]


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("snapshots") / "wings"
    folder.mkdir()
    write_snapshot(Snapshot(QUERIES, PAPERS, POOLS, [], 9, {}), folder, "")
    return folder


@pytest.fixture
def snapshot(tmp_path: Path, frozen: Path) -> Path:
    """A copy to judge or to damage."""
    return Path(shutil.copytree(frozen, tmp_path / "wings"))


def run(snapshot: Path, *overrides: str) -> list[str]:
    """What the command line shows, without the folder in its last line."""
    chosen = ["collection=snapshot", f"collection.path={snapshot.name}"]
    return litgrade("run", *chosen, *RANKED, *overrides, cwd=snapshot.parent).stdout.splitlines()[:-1]


def refused(verb: str, snapshot: Path, *overrides: str) -> str:
    chosen = ["collection=snapshot", f"collection.path={snapshot.name}", "tracking=none"]
    done = litgrade(verb, *chosen, *overrides, cwd=snapshot.parent, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("litgrade: ")]
    return line


def judge(snapshot: Path, split: str = "test", **grades: Sequence[int]) -> None:
    """Judge the papers of a query's pool in their order."""
    lines = [f"{q}\t{p}\t{grade}\n" for q, given in grades.items() for p, grade in zip(POOLS[q], given, strict=True)]
    (snapshot / "qrels").mkdir(exist_ok=True)
    (snapshot / "qrels" / f"{split}.tsv").write_text(HEADER + "".join(lines))


def metrics(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run" / "metrics.json").read_text())
    return found


def ranking(folder: Path) -> dict[str, list[dict[str, Any]]]:
    rows = [json.loads(line) for line in (folder / "run" / "ranking.jsonl").read_text("utf-8").splitlines()]
    return {query.query_id: [row for row in rows if row["query_id"] == query.query_id] for query in QUERIES}


def test_without_judgments_papers_are_ranked_and_nothing_is_measured(tmp_path, snapshot):
    assert run(snapshot) == ["bm25 on wings", "3 of 3 queries have no judgments: nothing is measured"]
    found = metrics(tmp_path)
    counts = {"queries": 3, "queries_without_judgments": 3, "papers": 9, "judgments": 0, "ranked": 10}
    assert counts.items() <= found.pop("counts").items()
    assert found == {"collection": "wings", "queries": {}, "areas": {}, "areas_sd": {}, "macro": {}, "sd": {}}
    assert (tmp_path / "run" / "per_query.csv").read_text() == "collection,query_id,area\n"
    assert {query: {row["paper_id"] for row in rows} for query, rows in ranking(tmp_path).items()} == {
        query: {*pool} for query, pool in POOLS.items()
    }
    assert ranking(tmp_path)["q1"][0]["paper_id"] == "a:1"


def test_only_judged_queries_are_measured(tmp_path, snapshot):
    judge(snapshot, q1=[0, 3, 0, 0, 0])
    shown = run(snapshot)
    assert shown[:2] == ["bm25 on wings", "2 of 3 queries have no judgments: the others are measured"]
    found = metrics(tmp_path)
    assert list(found["queries"]) == ["q1"]
    assert list(found["areas"]) == ["A"]
    # a:1 has both words in title and abstract; the only relevant paper, a:2, comes next
    assert [row["paper_id"] for row in ranking(tmp_path)["q1"]][:2] == ["a:1", "a:2"]
    assert found["macro"]["mrr"] == 1 / 2
    assert f"{'mrr':<18} 0.500" in shown
    assert (found["counts"]["queries_without_judgments"], found["counts"]["judgments"]) == (2, 5)


def test_with_all_queries_judged_nothing_is_said_to_be_left_out(tmp_path, snapshot):
    judge(snapshot, q1=[0, 3, 0, 0, 0], q2=[1, 0, 0, 0, 2])
    qrels = snapshot / "qrels" / "test.tsv"
    qrels.write_text(f"{qrels.read_text()}q3\ta:1\t3\n")  # known to be relevant, and not found
    assert not [line for line in run(snapshot) if "judgments" in line]
    assert metrics(tmp_path)["queries"]["q3"]["mrr"] == 0
    assert metrics(tmp_path)["queries"]["q3"]["ndcg_at_10"] == 0


def test_word_statistics_are_those_of_each_pool(tmp_path, snapshot):
    run(snapshot)
    papers, found = {paper.paper_id: paper for paper in PAPERS}, ranking(tmp_path)
    for query in QUERIES[:2]:
        pool = [papers[paper_id] for paper_id in POOLS[query.query_id]]
        by_id = {row["paper_id"]: row for row in found[query.query_id]}
        for column, texts, words in (
            ("bm25_title", [paper.title for paper in pool], query.text),
            ("bm25_abstract", [paper.abstract for paper in pool], " ".join([query.text, *query.keywords])),
        ):
            okapi = BM25Okapi([re.findall(r"\w+", text.lower()) for text in texts], k1=1.5, b=0.75, epsilon=0.25)
            expected = okapi.get_scores(words.split())
            scores = [by_id[paper_id][column] for paper_id in POOLS[query.query_id]]
            np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-8)
    (in_q1,) = [row["bm25_title"] for row in found["q1"] if row["paper_id"] == "a:1"]
    (in_q2,) = [row["bm25_title"] for row in found["q2"] if row["paper_id"] == "a:1"]
    assert in_q1 > in_q2  # the same words and paper: "wing" is in one title of five, and in four of five


@pytest.mark.parametrize("arm", ["bm25_mpnet", "cross_encoder"])
def test_an_empty_pool_and_missing_fields_break_no_arm(tmp_path, snapshot, small, arm):
    of_models = [override for override in small if not override.startswith("collection")]
    shown = run(snapshot, *of_models, "cutoffs.bm25=10", "cutoffs.semantic=10", f"arm={arm}")
    assert shown[-1] == "3 of 3 queries have no judgments: nothing is measured"
    assert {query: len(rows) for query, rows in ranking(tmp_path).items()} == {"q1": 5, "q2": 5, "q3": 0}


def test_arms_cannot_be_compared_without_judgments(snapshot):
    line = refused("ablation", snapshot, "ablation.arms=[bm25]", "ablation.baseline=bm25")
    assert line.startswith("litgrade: wings: without judgments there is nothing to compare arms by; add qrels/test.tsv")


def test_a_snapshot_is_the_same_collection_in_another_folder(snapshot, frozen):
    assert Loader(snapshot).load().fingerprint == Loader(frozen).load().fingerprint
    judge(snapshot, q1=[0, 3, 0, 0, 0])
    assert Loader(snapshot).load().fingerprint != Loader(frozen).load().fingerprint


def test_another_split_has_other_judgments(snapshot):
    judge(snapshot, q1=[0, 3, 0, 0, 0])
    judge(snapshot, "dev", q2=[1, 1, 1, 1, 1])
    assert [len(Loader(snapshot, split).load().judgments["q1"]) for split in ("test", "dev")] == [5, 0]


def test_a_split_that_is_not_there_is_told_where_others_are(snapshot):
    judge(snapshot, q1=[0, 3, 0, 0, 0])
    line = refused("run", snapshot, *RANKED, "collection.split=tset")
    assert line == "litgrade: wings/qrels: no tset.tsv; expected one of test.tsv"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("q4\ta:1\t1", r"test.tsv:2: judgment for an unknown query 'q4'"),
        ("q1\ta:0\t1", r"test.tsv:2: judgment for an unknown paper 'a:0'"),
        ("q1\ta:1\t4", r"test.tsv:2: score is '4'"),
    ],
)
def test_a_judgment_of_something_else_is_told(snapshot, row, told):
    judge(snapshot)
    (snapshot / "qrels" / "test.tsv").write_text(f"{HEADER}{row}\n")
    with pytest.raises(UserError, match=told):
        Loader(snapshot).load()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("corpus.jsonl.gz", b"damaged", "wings/corpus.jsonl.gz: not the file that was frozen; make it again with"),
        ("pools.jsonl", None, "wings/pools.jsonl: not the file that was frozen; make it again with"),
        ("manifest.json", b"{", "expected the manifest of a snapshot"),
        ("manifest.json", None, "wings: no manifest.json, expected a snapshot made by litgrade collect"),
    ],
)
def test_a_damaged_snapshot_is_told(snapshot, name, content, told):
    if content is None:
        (snapshot / name).unlink()
    else:
        (snapshot / name).write_bytes(content)
    with pytest.raises(UserError, match=told):
        Loader(snapshot).load()


def test_a_damaged_snapshot_is_one_line_of_the_command(snapshot):
    (snapshot / "corpus.jsonl.gz").write_bytes(b"damaged")
    assert refused("run", snapshot, *RANKED) == (
        "litgrade: wings/corpus.jsonl.gz: not the file that was frozen; make it again with litgrade collect "
        "sources.mode=replay snapshot=wings"
    )


def test_a_folder_that_is_not_there_is_told(tmp_path):
    assert "nowhere: no manifest.json" in refused("run", tmp_path / "nowhere", *RANKED)
