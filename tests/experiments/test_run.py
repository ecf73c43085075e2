"""What a run leaves behind: complete, the same each time, and readable by other tools."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import ir_measures
import pytest

from conftest import ROOT, litgrade

RANKINGS = ("ranking.jsonl", "run.trec")


def run(folder: Path, *overrides: str, **environment: str) -> Path:
    litgrade("run", *overrides, f"hydra.run.dir={folder}", cwd=folder.parent, **environment)
    return folder


def metrics(folder: Path) -> dict:
    return json.loads((folder / "metrics.json").read_text())


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small_collection, tiny_models) -> tuple[Path, list[str]]:
    """One run of the default arm, and the overrides it was made with."""
    overrides = [
        "collection=beir", f"collection.path={small_collection}", "embedder=folder", "cutoffs.bm25=30",
        f"embedder.model.path={tiny_models['embedder']}", "embedder.max_tokens=64", "cutoffs.semantic=20",
        "cross_encoder=folder", f"cross_encoder.model.path={tiny_models['cross_encoder']}",
        "cross_encoder.max_tokens=64", "tracking=none",
    ]  # fmt: skip
    return run(tmp_path_factory.mktemp("finished") / "run", *overrides), overrides


def test_a_run_leaves_its_files_and_names_its_folder_last(tmp_path, small):
    done = litgrade("run", *small, "arm=bm25", cwd=tmp_path)
    folder = Path(done.stdout.splitlines()[-1])
    assert folder.is_relative_to(tmp_path / "outputs" / "runs")
    left = {path.name for path in folder.iterdir()} - {"run.log"}
    assert left == {"config.yaml", "metrics.json", "per_query.csv", "provenance.json", "ranking.jsonl", "run.trec"}
    assert not [path for path in tmp_path.iterdir() if path.name != "outputs"]


def test_metrics_have_every_level(finished):
    found = metrics(finished[0])
    assert {"macro", "sd", "areas", "areas_sd", "queries", "counts", "collection"} == set(found)
    assert list(found["areas"]) == ["A", "B"]
    assert list(found["queries"]) == [f"q{i}" for i in range(6)]
    assert {"ac2", "ndcg_at_10", "ndcg_top_at_10", "recall_at_10", "recall_at_20", "recall_at_30", "precision_at_20",
            "map", "mrr", "judged_at_10"} <= set(found["macro"])  # fmt: skip
    assert found["counts"]["queries"] == 6
    assert found["counts"]["ranked"] == 6 * 20


def test_one_row_tells_the_whole_story(finished):
    rows = [json.loads(line) for line in (finished[0] / "ranking.jsonl").read_text().splitlines()]
    assert set(rows[0]) == {
        "query_id", "rank", "paper_id", "title", "bm25_title", "bm25_abstract", "bm25", "sts_title", "sts_abstract",
        "sts_keywords", "sts_disciplines", "sts", "reputation", "raw_score", "score", "initial_category",
        "abstract_truncated",
    }  # fmt: skip
    assert [row["rank"] for row in rows[:20]] == list(range(1, 21))
    assert rows[0]["sts_disciplines"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"overrides": ["embedder.batch_tokens=100"]},
        {"PYTHONHASHSEED": "1"},
        {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "2"},
    ],
)
def test_runs_are_byte_identical_whatever_the_batches_hash_seed_and_threads(tmp_path, finished, change):
    before, overrides = finished
    change = dict(change)
    after = run(tmp_path / "run", *overrides, *change.pop("overrides", []), **change)  # an empty store: all is computed
    for name in RANKINGS:
        assert (after / name).read_bytes() == (before / name).read_bytes()


def test_other_tools_read_the_run_file_and_agree(finished, small_collection):
    folder = finished[0]
    lines = (small_collection / "qrels" / "test.tsv").read_text().splitlines()[1:]
    qrels = [ir_measures.Qrel(q, p, int(grade)) for q, p, grade in (line.split("\t") for line in lines)]
    trec = list(ir_measures.read_trec_run(str(folder / "run.trec")))
    assert len({(entry.query_id, entry.score) for entry in trec}) == len(trec)  # no ties to break
    ours = metrics(folder)["queries"]
    gains = {grade: 2**grade - 1 for grade in range(4)}
    for name, measure in {
        "ndcg_at_10": ir_measures.nDCG(gains=gains) @ 10,
        "recall_at_20": ir_measures.R @ 20,
        "precision_at_10": ir_measures.P @ 10,
        "map": ir_measures.AP,
        "mrr": ir_measures.RR,
        "judged_at_10": ir_measures.Judged @ 10,
    }.items():
        theirs = {value.query_id: value.value for value in ir_measures.iter_calc([measure], qrels, trec)}
        assert {query_id: values[name] for query_id, values in ours.items()} == pytest.approx(theirs), name


def test_a_saved_config_runs_again_to_the_same_ranking(tmp_path, finished):
    litgrade(
        "run", "--config-path", str(finished[0]), "--config-name", "config", f"hydra.run.dir={tmp_path / 'again'}",
        cwd=tmp_path,
    )  # fmt: skip
    assert (tmp_path / "again" / "run.trec").read_bytes() == (finished[0] / "run.trec").read_bytes()


@pytest.mark.parametrize("arm", ["bm25", "mpnet", "previous", "cross_encoder"])
def test_every_arm_runs(tmp_path, small, arm):
    found = metrics(run(tmp_path / "run", *small, f"arm={arm}"))["macro"]
    assert (found["ac2"] is None) == (arm in {"bm25", "cross_encoder"})
    assert 0 < found["ndcg_at_10"] <= 1


def test_a_pool_is_all_that_is_ranked_and_the_own_paper_is_not(tmp_path, small, small_collection):
    import shutil

    folder = tmp_path / "pooled"
    shutil.copytree(small_collection, folder)
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    queries[0]["metadata"]["paper_id"] = "p1"
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    pools = [{"query_id": f"q{i}", "candidates": [f"p{j}" for j in range(12)]} for i in range(6)]
    (folder / "pools.jsonl").write_text("\n".join(map(json.dumps, pools)))
    out = run(tmp_path / "run", *small, "arm=bm25", f"collection.path={folder}")
    ranked = [line.split() for line in (out / "run.trec").read_text().splitlines()]
    assert {line[2] for line in ranked if line[0] == "q1"} == {f"p{j}" for j in range(12)}
    assert {line[2] for line in ranked if line[0] == "q0"} == {f"p{j}" for j in range(12)} - {"p1"}


KILLED = """
import os, signal, sys
from pipeline import cache
from experiments import cli, files
left = int(sys.argv[2])
def kill_before(module, name):
    real = getattr(module, name)
    def last(*arguments, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    setattr(module, name, last)
kill_before(*{"store": (cache.VectorStore, "write"), "file": (files.os, "replace")}[sys.argv[1]])
cli.main(["run", *sys.argv[3:]])
"""


@pytest.mark.parametrize(("where", "after"), [("store", 0), ("store", 1), ("file", 0), ("file", 3)])
def test_a_killed_run_started_again_ends_like_an_undisturbed_one(tmp_path, finished, where, after):
    expected, overrides = finished
    arguments = [*overrides, f"hydra.run.dir={tmp_path / 'run'}"]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, where, str(after), *arguments],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "run" / "metrics.json").exists()
    again = run(tmp_path / "run", *overrides)
    for name in (*RANKINGS, "metrics.json", "per_query.csv"):
        assert (again / name).read_bytes() == (expected / name).read_bytes()
