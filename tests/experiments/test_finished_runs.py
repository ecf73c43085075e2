"""Finished runs are found by whatever names them, and nothing else is taken for one."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from experiments.config import Mlflow, NoTracking
from experiments.finished_runs import find_runs
from experiments.jobs import Job
from experiments.tracking import tracked_run
from pipeline.errors import UserError
from run_folders import write_run

NOWHERE = NoTracking(backend="none")
FILES = ("config.yaml", "metrics.json", "per_query.csv", "ranking.jsonl", "provenance.json")


def a_run(folder: Path, value: float = 0.5) -> Path:
    return write_run(folder, {"q1": {"map": value}}, {"q1": "A"}, {"q1": [{"paper_id": "p1"}]})


def names(references, tracking=NOWHERE, cache=Path("unused")):
    return [run.name for run in find_runs([str(reference) for reference in references], tracking, cache)]


def test_a_folder_is_read_back(tmp_path):
    (run,) = find_runs([str(a_run(tmp_path / "one"))], NOWHERE, tmp_path)
    assert (run.name, run.collection, run.run_id, run.tags) == ("one", "made by hand", None, {})
    assert (run.scores.macro, run.scores.queries) == ({"map": 0.5}, {"q1": {"map": 0.5}})
    assert (run.area_of, run.counts, run.collection_fingerprint) == ({"q1": "A"}, {"queries": 1, "ranked": 1}, "f1")
    assert run.settings["arm"]["name"] == "by_hand"
    assert [row["paper_id"] for row in run.rankings()["q1"]] == ["p1"]


def test_rankings_are_in_rank_order_whatever_the_order_of_the_file(tmp_path):
    rankings = {q: [{"paper_id": f"{q}{rank}"} for rank in (1, 2, 3)] for q in ("b", "a")}
    folder = write_run(tmp_path / "one", {"a": {"map": 1.0}}, {"a": "A"}, rankings)
    lines = (folder / "ranking.jsonl").read_text().splitlines()
    (folder / "ranking.jsonl").write_text("\n".join(lines[i] for i in (5, 2, 4, 0, 1, 3)))
    (run,) = find_runs([str(folder)], NOWHERE, tmp_path)
    assert [row["paper_id"] for row in run.rankings()["a"]] == ["a1", "a2", "a3"]


def test_folders_of_a_sweep_are_in_the_order_of_their_numbers_and_named_by_what_differs(tmp_path):
    for number in (10, 9, 2):
        folder = a_run(tmp_path / "sweep" / str(number))
        job = Job(number, {"cutoffs.bm25": str(number)}, status="finished")
        (folder / "job.json").write_text(json.dumps(asdict(job)))
    (tmp_path / "sweep" / "3").mkdir()  # a failed job
    assert names([tmp_path / "sweep"]) == ["cutoffs.bm25=2", "cutoffs.bm25=9", "cutoffs.bm25=10"]


def test_runs_of_one_name_are_told_apart(tmp_path):
    folders = [a_run(tmp_path / place / "mpnet") for place in ("a", "b", "c/b")]
    assert names(folders[:2]) == ["mpnet (a)", "mpnet (b)"]
    found = names(folders)
    assert found[0] == "mpnet (a)"
    assert len(set(found)) == 3


def test_each_run_is_found_once_and_in_the_order_asked(tmp_path):
    first, second = a_run(tmp_path / "x" / "b"), a_run(tmp_path / "x" / "a")
    assert names([first, tmp_path / "x", second, first]) == ["b", "a"]


def test_a_query_id_like_a_formula_keeps_its_area(tmp_path):
    write_run(tmp_path / "one", {"=q1": {"map": 1.0}, "'+q": {"map": 0.0}}, {"=q1": "-A", "'+q": "@B"})
    (run,) = find_runs([str(tmp_path / "one")], NOWHERE, tmp_path)
    assert run.area_of == {"=q1": "-A", "'+q": "@B"}


@pytest.mark.parametrize("text", ["", '{"query_id": "q1", "ra', '{"query_id": "q1"}\n'])
def test_a_ranking_that_is_not_whole_is_one_line(tmp_path, text):
    folder = a_run(tmp_path / "one")
    (run,) = find_runs([str(folder)], NOWHERE, tmp_path)
    (folder / "ranking.jsonl").write_text(text)
    with pytest.raises(UserError, match=r"one: its files cannot be read .*; run it again$"):
        run.rankings()


def test_a_value_that_is_no_number_is_one_line(tmp_path):
    folder = a_run(tmp_path / "one")
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics["queries"]["q1"]["map"] = "high"
    (folder / "metrics.json").write_text(json.dumps(metrics))
    with pytest.raises(UserError, match="its files cannot be read"):
        names([folder])


@pytest.mark.parametrize("missing", FILES[:4])
def test_a_missing_file_is_named(tmp_path, missing):
    folder = a_run(tmp_path / "one")
    (folder / missing).unlink()
    expected = "no finished run is in this folder" if missing == "metrics.json" else f"{missing} is missing"
    with pytest.raises(UserError, match=expected):
        names([folder])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("metrics.json", "{"),
        ("metrics.json", "[]"),
        ("metrics.json", "{}"),
        ("config.yaml", "{"),
        ("config.yaml", ""),
        ("per_query.csv", "collection,query_id,are"),
        ("per_query.csv", "collection,query_id,area\n"),
        ("per_query.csv", "collection,query_id,area\nmade by hand,q2,A\n"),
        ("job.json", "{"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path, file, text):
    folder = a_run(tmp_path / "one")
    (folder / file).write_text(text)
    with pytest.raises(UserError, match="its files cannot be read") as error:
        names([folder])
    assert str(folder) in str(error.value)


def test_no_such_folder_without_tracking(tmp_path):
    with pytest.raises(UserError, match="no such folder; with tracking=none"):
        names([tmp_path / "nothing"])


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> tuple[Path, Mlflow, dict[str, str]]:
    """Runs in two experiments of MLflow, and their ids by label."""
    folder = tmp_path_factory.mktemp("store")
    tracking = Mlflow(
        backend="mlflow", uri=f"sqlite:///{folder}/mlflow.db", artifacts=folder / "artifacts", experiment="first"
    )
    other = tracking.model_copy(update={"experiment": "second"})
    ids = {}

    def log(label, tracking, name, tags, files=FILES, error=None):
        run_folder = a_run(folder / "runs" / label, value=len(ids) / 10)
        try:
            with tracked_run(tracking, name, {"kind": "run", **tags}) as run:
                ids[label] = run.run_id
                run.log_files(run_folder, files)
                if error:
                    raise error
        except ValueError:
            pass
        shutil.rmtree(run_folder)

    log("a", tracking, "bm25", {"sweep_id": "s-1", "arm": "bm25"})
    log("b", tracking, "mpnet", {"sweep_id": "s-1"})
    log("twin", other, "mpnet", {})
    log("failed", tracking, "failed", {"sweep_id": "s-1"}, error=ValueError("no"))
    log("summary", tracking, "table", {"sweep_id": "s-1", "kind": "summary"})
    log("bare", other, "bare", {}, files=FILES[:2])
    return folder, tracking, ids


@pytest.mark.parametrize(
    ("reference", "labels"),
    [("{a}", "a"), ("{a:.8}", "a"), ("bm25", "a"), ("s-1", "a b"), ("first", "a b"), ("{twin}", "twin")],
)
def test_every_kind_of_reference(store, tmp_path, reference, labels):
    _, tracking, ids = store
    found = find_runs([reference.format(**ids)], tracking, tmp_path)
    assert [run.run_id for run in found] == [ids[label] for label in labels.split()]
    assert all(run.folder == tmp_path / "runs" / run.run_id for run in found)
    assert [run.rankings()["q1"][0]["paper_id"] for run in found] == ["p1"] * len(found)


def test_what_mlflow_knows_of_a_run(store, tmp_path):
    _, tracking, ids = store
    (run,) = find_runs(["bm25"], tracking, tmp_path)
    assert (run.name, run.run_id, run.tags["arm"]) == ("bm25", ids["a"], "bm25")
    assert not any(key.startswith("mlflow.") for key in run.tags)


def test_runs_of_one_name_in_mlflow_are_told_apart_by_their_ids(store, tmp_path):
    _, tracking, ids = store
    found = find_runs([ids["b"], ids["twin"]], tracking, tmp_path)
    assert [run.name for run in found] == [f"mpnet ({ids['b'][:8]})", f"mpnet ({ids['twin'][:8]})"]


def test_a_copy_is_fetched_once(store, tmp_path):
    _, tracking, ids = store
    (before,) = find_runs([ids["a"]], tracking, tmp_path)
    (tmp_path / "runs" / ids["a"] / "mine").touch()
    (again,) = find_runs([ids["a"]], tracking, tmp_path)
    assert (again.folder / "mine").exists()
    assert again.scores == before.scores
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [ids["a"]]  # no half of one is left


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("bm52", "among 4 finished runs in MLflow.*did you mean bm25"),
        ("{a:.7}", "neither a folder with a finished run nor"),  # too short to be meant
        ("{failed}", "neither a folder"),
        ("{summary}", "neither a folder"),
        ("table", "neither a folder"),
        ("Default", "no run of this experiment is finished"),
        ("mpnet", "2 finished runs have this name; give an id, such as {b}, {twin}"),
        ("bare", "run {bare}: ranking.jsonl is not among its artifacts at .*artifacts"),
    ],
)
def test_a_reference_that_names_no_run_is_one_line(store, tmp_path, reference, told):
    _, tracking, ids = store
    reference = reference.format(**ids)
    with pytest.raises(UserError, match=told.format(**ids)) as error:
        find_runs([reference], tracking, tmp_path)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.glob("runs/*"))


def test_a_folder_with_the_name_of_an_experiment_does_not_hide_it(store, tmp_path, monkeypatch):
    _, tracking, ids = store
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first").mkdir()
    assert [run.run_id for run in find_runs(["first"], tracking, tmp_path)] == [ids["a"], ids["b"]]


def test_an_ambiguous_beginning_is_told():
    from types import SimpleNamespace

    from experiments.finished_runs import _chosen

    infos = [SimpleNamespace(run_id=f"abcdefgh{i}", run_name=f"r{i}", experiment_id="1") for i in range(2)]
    runs = [SimpleNamespace(info=info, data=SimpleNamespace(tags={})) for info in infos]
    with pytest.raises(
        UserError, match="2 finished runs have this beginning; give an id, such as abcdefgh0, abcdefgh1"
    ):
        _chosen("abcdefgh", runs, {})
    assert _chosen("abcdefgh1", runs, {}) == [runs[1]]
