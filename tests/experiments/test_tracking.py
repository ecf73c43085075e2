"""Runs in MLflow: complete, in the right place, and never said to be what they are not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from experiments.config import Mlflow, NoTracking
from experiments.tracking import flatten, legal_part, tracked_run
from pipeline.errors import UserError, without_secrets


def tracking(folder: Path, **settings) -> Mlflow:
    uri = f"sqlite:///{folder}/outputs/mlflow.db"
    return Mlflow(
        **{"backend": "mlflow", "uri": uri, "artifacts": folder / "outputs" / "artifacts", "experiment": "e"} | settings
    )


def runs(folder: Path) -> list:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder}/outputs/mlflow.db")
    assert {experiment.name for experiment in client.search_experiments()} <= {"Default", "e"}
    assert client.search_runs(["0"]) == []  # nothing strayed into another experiment
    return client.search_runs([client.get_experiment_by_name("e").experiment_id])


@pytest.mark.parametrize(
    ("error", "status"), [(None, "FINISHED"), (ValueError("no"), "FAILED"), (KeyboardInterrupt(), "KILLED")]
)
def test_a_run_is_closed_as_what_it_was(tmp_path, error, status):
    def work():
        with tracked_run(tracking(tmp_path), "name", {"arm": "bm25"}) as run:
            run.log({"a.b": 1}, {"ndcg_at_10": 0.5, f"{legal_part('Bio')}/map": 0.25}, {})
            if error:
                raise error

    if error:
        with pytest.raises(type(error)):
            work()
    else:
        work()
    (found,) = runs(tmp_path)
    assert found.info.status == status
    assert found.data.metrics == {"ndcg_at_10": 0.5, "Bio/map": 0.25}
    assert found.data.params == {"a.b": "1"}
    assert found.data.tags["arm"] == "bm25"
    assert not list((tmp_path / "outputs" / "artifacts" / "locks").glob(f"{'?' * 32}.lock"))


WORKER = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_tracking import tracking
from experiments.tracking import tracked_run
with tracked_run(tracking(Path(sys.argv[2])), sys.argv[3], {}) as run:
    run.log({f"p{i}": i for i in range(150)}, {f"m{i}": i for i in range(50)}, {})
    if sys.argv[3] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[3] == "terminated":
        os.kill(os.getpid(), signal.SIGTERM)
"""


def start(folder: Path, name: str, **environment: str) -> subprocess.Popen:
    setup = "from experiments import cli; import signal; signal.signal(signal.SIGTERM, cli._stop)\n"
    return subprocess.Popen(
        [sys.executable, "-c", setup + WORKER, str(Path(__file__).parent), str(folder), name],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}", **environment},
    )


def test_processes_start_at_once_on_nothing(tmp_path):
    workers = [start(tmp_path, f"worker {i}") for i in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    found = runs(tmp_path)
    assert [run.info.status for run in found] == ["FINISHED"] * 4
    assert {(len(run.data.params), len(run.data.metrics)) for run in found} == {(150, 50)}


def test_a_database_whose_making_was_killed_is_made_anew(tmp_path):
    killed = (
        "import os, signal\nfrom pathlib import Path\n"
        "Path.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n" + WORKER
    )
    command = [sys.executable, "-c", killed, str(Path(__file__).parent), str(tmp_path), "first"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / "outputs" / "mlflow.db").exists()
    with tracked_run(tracking(tmp_path), "second", {}):
        pass
    assert [run.info.status for run in runs(tmp_path)] == ["FINISHED"]
    assert not list((tmp_path / "outputs").glob(".mlflow.db.new*"))


def test_a_killed_run_is_marked_so_at_the_next_start(tmp_path):
    assert start(tmp_path, "killed").wait() == -signal.SIGKILL
    assert [run.info.status for run in runs(tmp_path)] == ["RUNNING"]
    with tracked_run(tracking(tmp_path), "alive", {}), tracked_run(tracking(tmp_path), "next", {}):
        pass
    status = {run.info.run_name: run.info.status for run in runs(tmp_path)}
    assert status == {"killed": "KILLED", "alive": "FINISHED", "next": "FINISHED"}


def test_a_terminated_run_is_killed(tmp_path):
    assert start(tmp_path, "terminated").wait() == 128 + signal.SIGTERM
    assert [run.info.status for run in runs(tmp_path)] == ["KILLED"]


def test_a_stray_run_id_in_the_shell_is_ignored(tmp_path, monkeypatch):
    with tracked_run(tracking(tmp_path), "first", {}) as first:
        pass
    monkeypatch.setenv("MLFLOW_RUN_ID", first.run_id)
    with tracked_run(tracking(tmp_path), "second", {}) as second:
        second.log({}, {"m": 1.0}, {})
    assert {run.info.run_name: dict(run.data.metrics) for run in runs(tmp_path)} == {"first": {}, "second": {"m": 1.0}}


def test_an_unreachable_server_is_one_line_without_the_password(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    settings = tracking(tmp_path, uri="http://me:secret@127.0.0.1:1")
    with (
        pytest.raises(UserError, match=r"MLflow at http://\*\*\*@") as refused,
        tracked_run(settings, "n", {}),
    ):
        pass
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_without_tracking_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with tracked_run(NoTracking(backend="none"), "n", {}) as run:
        run.log({"a": 1}, {"m": 1.0}, {})
        run.log_files(tmp_path, ["a"])
    assert list(tmp_path.iterdir()) == []


def test_passwords_are_hidden():
    assert without_secrets("mysql://me:secret@host:3306/runs") == "mysql://***@host:3306/runs"
    assert without_secrets("http://me:p@secret@host/x") == "http://***@host/x"
    assert without_secrets("http://secret@host failed") == "http://***@host failed"
    assert without_secrets("sqlite:///m.db?password=secret&x=1") == "sqlite:///m.db?password=***&x=1"
    assert without_secrets("sqlite:///outputs/mlflow.db") == "sqlite:///outputs/mlflow.db"


def test_areas_keep_names_of_their_own_that_mlflow_takes():
    assert legal_part("CSE") == "CSE"
    names = ["A/B (x)", "A/B [x]", "../x", "..", "a//b", "/a", "x" * 300]
    legal = [legal_part(name) for name in names]
    assert len(set(legal)) == len(names)
    assert not any("/" in name or name.startswith(".") or len(name) > 120 for name in legal)


def test_nested_settings_become_one_level():
    assert flatten({"cutoffs": {"bm25": 100}, "a": [1, {"b": 2}]}) == {"cutoffs.bm25": 100, "a": [1, {"b": 2}]}
