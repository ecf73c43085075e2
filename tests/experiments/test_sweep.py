"""Several runs with -m: tied, told apart, finished whatever fails, taken over where they are done, and counted."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

from conftest import ROOT, litgrade
from experiments.config import Holdout, Mlflow
from experiments.finished_runs import find_runs
from experiments.jobs import Job
from experiments.sweep_table import make_table
from experiments.tuning import make_splits
from run_folders import write_run


def sweep(cwd: Path, small: list[str], *arguments: str, check: bool = True):
    mlflow = [argument for argument in small if argument != "tracking=none"]
    return litgrade("run", "-m", *mlflow, *arguments, cwd=cwd, check=check)


def runs(cwd: Path) -> list:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{cwd}/outputs/mlflow.db")
    return client.search_runs([client.get_experiment_by_name("litgrade").experiment_id], max_results=1000)


def of_kind(cwd: Path, kind: str) -> list:
    return [run for run in runs(cwd) if run.data.tags["kind"] == kind]


def folder_of(done) -> str:
    return next(line for line in reversed(done.stdout.splitlines()) if line.startswith("outputs/sweeps/"))


def table_of(cwd: Path, done) -> list[dict[str, str]]:
    with (cwd / folder_of(done) / "sweep.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def failing(tmp_path_factory, small_collection, tiny_models):
    """Four jobs in two processes, of which the second and the third cannot be."""
    cwd = tmp_path_factory.mktemp("sweep")
    chosen = ["collection=beir", f"collection.path={small_collection}", "embedder=folder", "embedder.max_tokens=64"]
    chosen += [f"embedder.model.path={tiny_models['embedder']}", "cutoffs.bm25=30", "cutoffs.semantic=20"]
    swept = ["weights.alpha=0,2,3,0.15", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    return cwd, sweep(cwd, chosen, *swept, check=False)


def test_a_failed_job_leaves_the_others_alone(failing):
    cwd, done = failing
    assert done.returncode == 2
    rows = table_of(cwd, done)
    assert sorted(row["status"] for row in rows) == ["failed", "failed", "finished", "finished"]
    assert {row["weights.alpha"] for row in rows if row["status"] == "failed"} == {"2", "3"}
    assert [row["status"] for row in rows[:2]] == ["finished", "finished"]  # what has no value comes last
    assert float(rows[0]["ndcg_at_10"]) >= float(rows[1]["ndcg_at_10"])
    assert "Traceback" not in done.stderr


def test_every_failure_is_told_at_once_and_again_in_the_last_lines(failing):
    _, done = failing
    lines = [f"job weights.alpha={x}: weights.alpha={x}: expected a number less than or equal to 1" for x in (2, 3)]
    assert done.stderr.splitlines()[-2:] == [f"litgrade: {line}" for line in lines]
    assert all(done.stderr.count(line) == 2 for line in lines)


def test_jobs_of_all_processes_are_tied_and_failed_ones_marked(failing):
    cwd, done = failing
    found = of_kind(cwd, "run")
    assert {run.data.tags["sweep_id"] for run in runs(cwd)} == {"-".join(Path(folder_of(done)).parts[-2:])}
    by_name = {run.info.run_name: run for run in found}
    assert sorted(by_name) == [f"weights.alpha={x}" for x in ("0", "0.15", "2", "3")]  # what differs, and no more
    assert by_name["weights.alpha=0"].info.status == "FINISHED"
    assert by_name["weights.alpha=2"].info.status == "FAILED"
    assert "expected a number less than or equal to 1" in by_name["weights.alpha=2"].data.tags["error"]


def test_the_summary_run_has_definition_table_and_counts(failing):
    cwd, done = failing
    (summary,) = of_kind(cwd, "summary")
    assert summary.data.params["swept.weights.alpha"] == "0, 2, 3, 0.15"
    assert summary.data.params["launcher"] == "joblib"
    assert summary.data.metrics["jobs/finished"] == 2
    assert summary.data.metrics["jobs/failed"] == 2
    note = summary.data.tags["mlflow.note.content"]
    assert "| weights.alpha |" in note
    assert "chosen on the queries it is measured on" in note
    assert len(note) < 8_000
    definition = json.loads((cwd / folder_of(done) / "sweep.json").read_text())
    assert definition["swept"] == ["weights.alpha"]
    assert definition["defaults"] == {"weights.alpha": 0.15}


def test_every_run_has_the_same_parameters_within_the_limits_of_mlflow(failing):
    finished = [run for run in of_kind(failing[0], "run") if run.info.status == "FINISHED"]
    first, second = (run.data.params for run in finished)
    assert first.keys() == second.keys()
    assert {key for key in first if first[key] != second[key]} == {"weights.alpha"}
    assert all(len(key) <= 250 and len(value) <= 6_000 for key, value in first.items())
    assert not [key for key in first if "path" in key or "uri" in key or "store" in key]
    (dataset,) = finished[0].inputs.dataset_inputs
    assert dataset.dataset.name == "small"


def test_a_rerun_takes_what_is_finished_and_runs_the_rest(tmp_path, small):
    first = sweep(tmp_path, small, "arm=bm25", "bm25.k1=1,2")
    again = sweep(tmp_path, small, "arm=bm25", "bm25.k1=1,2,1.5", "tracking.resume=true", "objective=map")
    rows = {row["bm25.k1"]: row for row in table_of(tmp_path, again)}
    assert {k1: row["status"] for k1, row in rows.items()} == {"1": "skipped", "2": "skipped", "1.5": "finished"}
    before = {row["bm25.k1"]: row for row in table_of(tmp_path, first)}
    assert rows["1"]["run_id"] == before["1"]["run_id"]
    assert rows["1"]["map"] == before["1"]["map"]
    assert len(of_kind(tmp_path, "run")) == 3  # two and one
    settings = [(tmp_path / folder_of(again) / str(i) / "config.yaml").read_text() for i in range(3)]
    assert all("objective: map\n" in text for text in settings)  # by which the sweep that took them is reported
    sweep_id = "-".join(Path(folder_of(again)).parts[-2:])
    assert {run.data.tags["sweep_id"] for run in of_kind(tmp_path, "run")} == {sweep_id}
    earlier = "-".join(Path(folder_of(first)).parts[-2:])
    mlflow = Mlflow(
        backend="mlflow", uri=f"sqlite:///{tmp_path}/outputs/mlflow.db", artifacts=tmp_path / "a", experiment="litgrade"
    )
    assert [run.name for run in find_runs([earlier], mlflow, tmp_path / "cache")] == ["bm25.k1=1", "bm25.k1=2"]
    text = (tmp_path / folder_of(first) / "0" / "ranking.jsonl").read_bytes()
    assert (tmp_path / folder_of(again) / "0" / "ranking.jsonl").read_bytes() == text


@pytest.mark.parametrize("damage", ["cut", "deleted"])
def test_a_finished_run_whose_files_are_lost_is_run_again(tmp_path, small, damage):
    sweep(tmp_path, small, "arm=bm25", "bm25.k1=1")
    (artifacts,) = (tmp_path / "outputs" / "mlartifacts").glob("*/artifacts/metrics.json")
    artifacts.write_text("{") if damage == "cut" else shutil.rmtree(artifacts.parent)
    for status in ("finished", "skipped"):  # the next one takes what is whole again
        again = sweep(tmp_path, small, "arm=bm25", "bm25.k1=1", "tracking.resume=true")
        assert [row["status"] for row in table_of(tmp_path, again)] == [status]
        assert ("; it is run again" in again.stderr) is (status == "finished")


def test_a_run_with_another_collection_is_not_taken(tmp_path, small, small_collection):
    sweep(tmp_path, small, "arm=bm25", "bm25.k1=1")
    other = tmp_path / "small"
    shutil.copytree(small_collection, other)
    qrels = (other / "qrels" / "test.tsv").read_text().splitlines()
    (other / "qrels" / "test.tsv").write_text("\n".join(qrels[:-1]))
    again = sweep(tmp_path, small, f"collection.path={other}", "arm=bm25", "bm25.k1=1", "tracking.resume=true")
    assert [row["status"] for row in table_of(tmp_path, again)] == ["finished"]


def test_with_tuning_the_best_is_reported_on_other_queries(tmp_path, small):
    done = sweep(tmp_path, small, "weights.alpha=0,0.15,0.3", "tuning=nested_cv", "tuning.folds=3")
    assert "Held-out ndcg_at_10 of the chosen settings" in done.stdout
    splits = json.loads((tmp_path / folder_of(done) / "splits.json").read_text())
    assert sorted(q for split in splits for q in split["test"]) == [f"q{i}" for i in range(6)]
    (summary,) = of_kind(tmp_path, "summary")
    assert {"held_out", "best_in_sample"} <= summary.data.metrics.keys()


def test_of_settings_equal_on_development_queries_the_first_job_is_chosen(tmp_path):
    """Not the one that is better on the test queries, which is the first in the table."""
    areas = {f"q{i}": "A" for i in range(4)}
    (split,) = make_splits(Holdout(method="holdout", share=0.5, seed=1), areas)
    jobs = []
    for number, on_test in enumerate((0.1, 0.9)):
        folder = tmp_path / str(number)
        write_run(folder, {q: {"map": on_test if q in split.test else 0.5} for q in areas}, areas)
        (folder / "provenance.json").write_text(json.dumps({"run_id": None}))
        jobs.append((Job(number, {"bm25.k1": str(number)}, status="finished"), folder))
    definition = {"sweep_id": "s", "swept": ["bm25.k1"], "jobs": 2, "defaults": {"bm25.k1": 1.5}}
    table = make_table(jobs, definition, "map", Holdout(method="holdout", share=0.5, seed=1))
    assert [row.job.number for row in table.rows] == [1, 0]
    assert table.verdict.metrics["held_out"] == pytest.approx(0.1)


def test_no_setting_is_best_where_metrics_of_one_name_are_not_the_same(tmp_path, small):
    done = sweep(tmp_path, small, "arm=bm25", "metrics.min_grade=1,2")
    assert (
        "metrics.min_grade differs, so metrics of one name are not the same: no setting is called best." in done.stdout
    )
    assert "Best by" not in done.stdout


@pytest.mark.parametrize("value", ["'@a'", "'%b'", "'*c'", '"it\'s"'])
def test_any_value_can_be_swept(tmp_path, small, value):
    done = sweep(tmp_path, small, "arm=bm25", f"tracking.experiment={value},litgrade")
    assert [row["status"] for row in table_of(tmp_path, done)] == ["finished"] * 2


def test_a_search_without_values_has_no_best(tmp_path, small):
    search = ["hydra/sweeper=optuna", "hydra.sweeper.direction=maximize", "hydra.sweeper.n_trials=2"]
    done = sweep(tmp_path, small, *search, "arm=bm25", "objective=ac2", "bm25.k1=1,2", check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("no job has a value of the objective, so none is the best")
    assert "No job has a value of ac2." in done.stdout
    assert len(table_of(tmp_path, done)) == 2


def test_a_sweep_that_cannot_begin_runs_no_job(tmp_path, small):
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "mlartifacts").touch()
    done = sweep(tmp_path, small, "arm=bm25", "bm25.k1=1,2", check=False)
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if line.startswith("litgrade:")] == done.stderr.splitlines()
    assert not list(tmp_path.rglob("job.json"))


def test_two_sweeps_are_not_in_one_folder(tmp_path, small):
    folder = tmp_path / "sweep"
    folder.mkdir()
    with FileLock(folder / ".lock"):
        done = sweep(tmp_path, small, "arm=bm25", "bm25.k1=1,2", f"hydra.sweep.dir={folder}", check=False)
    assert (done.returncode, "another sweep is writing there" in done.stderr) == (2, True)
    assert not (folder / "sweep.json").exists()


def test_a_search_maximizes_on_development_queries_only(tmp_path, small):
    done = sweep(tmp_path, small, "experiment=tune_weights", "hydra.sweeper.n_trials=3")
    rows = table_of(tmp_path, done)
    assert len(rows) == 3
    told = {
        key: float(value)
        for key, value in re.findall(r"^job (.*): ndcg_at_10 on development queries (\S+)$", done.stderr, re.MULTILINE)
    }
    (split,) = json.loads((tmp_path / folder_of(done) / "splits.json").read_text())
    for row in rows:
        scores = json.loads((tmp_path / folder_of(done) / row["folder"] / "metrics.json").read_text())["queries"]
        areas = [[scores[q]["ndcg_at_10"] for q in split["development"] if int(q[1:]) % 2 == i] for i in (0, 1)]
        mean = sum(sum(values) / len(values) for values in areas) / 2
        name = " ".join(f"{key}={row[key]}" for key in row if key.startswith("weights."))
        assert told[name] == pytest.approx(mean, abs=1e-4)
    best = re.search(
        r"^best_value: (\S+)$", (tmp_path / folder_of(done) / "optimization_results.yaml").read_text(), re.M
    )
    assert float(best.group(1)) == pytest.approx(max(told.values()), abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["hydra/sweeper=optuna"], "hydra.sweeper.direction=maximize"),
        pytest.param(
            ["arm=bm25", "hydra/launcher=submitit_slurm"],
            "submitit_slurm: no command srun here",
            marks=pytest.mark.skipif(shutil.which("srun") is not None, reason="this is a node of a Slurm cluster"),
        ),
        (["experiment=tune_weights", "tuning=nested_cv"], "give tuning=holdout"),
        (["arm=bm25", "tuning=holdout,nested_cv"], "tuning: it is one for all jobs of a sweep"),
        (["arm=bm25_mpnet_llm_expected", "objective=ac2", "tuning=holdout"], "give calibration.folds=0 or another"),
        (["arm=bm25", "objective=ndgc_at_10"], "did you mean ndcg_at_10?"),
        (["arm=bm25", "hydra/launcher=jobib"], "did you mean joblib?"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(tmp_path, small, arguments, line):
    done = sweep(tmp_path, small, *arguments, "bm25.k1=1,2", check=False)
    assert done.returncode == 2
    assert line in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unexpected_error_of_one_job_is_told_as_ours_and_leaves_the_others_alone(tmp_path, small):
    (tmp_path / "broken.py").write_text(
        "import experiments.run as run\n"
        "measure = run.measure\n"
        "def broken(config, collection):\n"
        "    if config.bm25.k1 == 1: raise ZeroDivisionError('no')\n"
        "    return measure(config, collection)\n"
        "run.measure = broken\n"
        "from experiments import cli\n"
        "import sys\n"
        "cli.main(['run', *sys.argv[1:]])\n"
    )
    done = subprocess.run(
        [sys.executable, "broken.py", "-m", *small, "arm=bm25", "bm25.k1=1,2"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.returncode == 1
    assert "job bm25.k1=1: ZeroDivisionError: no; the traceback is in the job's log" in done.stderr
    assert [row["status"] for row in table_of(tmp_path, done)] == ["finished", "failed"]


def test_a_worker_that_is_killed_is_counted_and_the_finished_jobs_are_shown(tmp_path, small):
    (tmp_path / "dying.py").write_text(
        "import os, signal, sys\n"
        "import experiments.run as run\n"
        "from experiments import cli\n"
        "measure = run.measure\n"
        "def dying(config, collection):\n"
        "    if config.bm25.k1 == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return measure(config, collection)\n"
        "run.measure = dying\n"
        "if __name__ == '__main__': cli.main(['run', *sys.argv[1:]])\n"
    )
    arguments = [*small, "arm=bm25", "bm25.k1=1,2,3", f"hydra.sweep.dir={tmp_path}/outputs/sweeps/day/time"]
    command = [sys.executable, "dying.py", "-m", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == -signal.SIGKILL
    states = [
        json.loads(path.read_text())["status"] for path in sorted(tmp_path.glob("outputs/sweeps/day/time/*/job.json"))
    ]
    assert states == ["finished", "running"]  # it could not say more


def test_a_sweep_that_is_stopped_shows_what_was_done(tmp_path, small):
    values = ",".join(str(1 + i / 100) for i in range(60))
    arguments = [*small, "arm=bm25", f"bm25.k1={values}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.run", "-m", *arguments],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("outputs/sweeps/*/*/*/metrics.json"))) < 3 and time.monotonic() < deadline:
        assert process.poll() is None
    process.terminate()
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert stdout.count("finished") >= 2  # the third had its figures, but perhaps not its end
    assert "killed" in stderr


@pytest.mark.parametrize("launcher", ["submitit_local", "ray"])
def test_launchers_of_clusters_run_jobs_as_well(tmp_path, small, launcher):
    pytest.importorskip("submitit" if launcher == "submitit_local" else "ray")
    done = sweep(tmp_path, small, "arm=bm25", "bm25.k1=1,-1", f"hydra/launcher={launcher}", check=False)
    assert done.returncode == 2
    assert [row["status"] for row in table_of(tmp_path, done)] == ["finished", "failed"]
    assert len({run.data.tags["sweep_id"] for run in runs(tmp_path)}) == 1
    assert sorted(run.info.status for run in of_kind(tmp_path, "run")) == ["FAILED", "FINISHED"]


def test_four_workers_on_one_new_database_lose_no_run_and_no_metric(tmp_path, small):
    values = ",".join(str(round(1 + i / 10, 1)) for i in range(12))
    done = sweep(tmp_path, small, "arm=bm25", f"bm25.k1={values}", "hydra/launcher=joblib", "hydra.launcher.n_jobs=4")
    found = of_kind(tmp_path, "run")
    assert sorted(run.info.run_name for run in found) == sorted(f"bm25.k1={value}" for value in values.split(","))
    assert {run.info.status for run in found} == {"FINISHED"}
    by_name = {run.info.run_name: run for run in found}
    for row in table_of(tmp_path, done):
        run = by_name[f"bm25.k1={row['bm25.k1']}"]
        scores = json.loads((tmp_path / folder_of(done) / row["folder"] / "metrics.json").read_text())
        expected = {name for name, value in scores["macro"].items() if value is not None}
        assert expected <= run.data.metrics.keys()
        assert len(run.data.metrics) == len(found[0].data.metrics)
        assert run.data.metrics["map"] == pytest.approx(scores["macro"]["map"])
