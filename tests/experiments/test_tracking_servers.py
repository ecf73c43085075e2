"""Runs logged to a PostgreSQL database and to an MLflow server over HTTP, by several processes at once."""

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import pytest

from conftest import litgrade

K1 = ["1", "1.2", "1.4", "1.6", "1.8", "2", "2.2", "2.4"]


def sweep(cwd: Path, small: list[str], uri: str):
    chosen = [argument for argument in small if argument != "tracking=none"]
    launcher = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=4"]
    return litgrade(
        "run", "-m", *chosen, "arm=bm25", f"bm25.k1={','.join(K1)}", *launcher, cwd=cwd, MLFLOW_TRACKING_URI=uri
    )


def check_all_are_there(uri: str, cwd: Path, done) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("litgrade")
    runs = client.search_runs([experiment.experiment_id])
    jobs = {run.data.params["bm25.k1"]: run for run in runs if run.data.tags["kind"] == "run"}
    assert sorted(jobs) == sorted(str(float(k1)) for k1 in K1)
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert len({run.data.tags["sweep_id"] for run in runs}) == 1
    assert len({len(run.data.metrics) for run in jobs.values()}) == 1
    run = jobs["1.2"]
    copied = Path(client.download_artifacts(run.info.run_id, "metrics.json", str(cwd)))
    assert json.loads(copied.read_text())["macro"]["map"] == pytest.approx(run.data.metrics["map"])
    assert "finished" in done.stdout


@pytest.fixture
def postgresql():
    """A new database of the server on this machine, dropped afterwards."""
    psycopg = pytest.importorskip("psycopg")
    server = "postgresql://postgres@127.0.0.1:5432"
    try:
        connection = psycopg.connect(f"{server}/postgres", connect_timeout=5, autocommit=True)
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL on 127.0.0.1:5432 that lets postgres in: {error}")
    name = f"litgrade_test_{uuid.uuid4().hex[:12]}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    yield f"{server}/{name}"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
    connection.close()


def test_workers_share_a_new_postgresql_database(tmp_path, small, postgresql):
    done = sweep(tmp_path, small, postgresql)
    check_all_are_there(postgresql, tmp_path, done)
    assert litgrade("compare", *_two_runs(postgresql), cwd=tmp_path, MLFLOW_TRACKING_URI=postgresql).stdout


@pytest.fixture
def mlflow_server(tmp_path):
    """An MLflow server with its own store and artifacts."""
    folder = tmp_path / "server"
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
        "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "artifacts"),
    ]  # fmt: skip
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise AssertionError(log.read_text())
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                assert answer.status == 200
                return
        except (urllib.error.URLError, ConnectionError):
            try:
                process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue
    raise AssertionError(f"no answer from {url}: {log.read_text()}")


def test_workers_share_a_server_over_http(tmp_path, small, mlflow_server):
    done = sweep(tmp_path, small, mlflow_server)
    check_all_are_there(mlflow_server, tmp_path, done)
    assert list((tmp_path / "server" / "artifacts").rglob("metrics.json"))  # sent over HTTP, not written past it
    assert litgrade("compare", *_two_runs(mlflow_server), cwd=tmp_path, MLFLOW_TRACKING_URI=mlflow_server).stdout


def _two_runs(uri: str) -> list[str]:
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    found = client.search_runs([client.get_experiment_by_name("litgrade").experiment_id], "tags.kind = 'run'")
    return [run.info.run_id for run in found[:2]]
