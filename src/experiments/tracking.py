"""MLflow: one run for each arm and config, flat, tied by tags. The life of a run is one context manager.

Only ``MlflowClient`` is used, never MLflow's global state, so a stray ``MLFLOW_RUN_ID`` or another run in the same
process cannot receive our figures.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from experiments.config import Mlflow, NoTracking
from pipeline.errors import UserError, first_line, without_secrets

if TYPE_CHECKING:
    from mlflow import MlflowClient

_LONGEST_NOTE = 7_500  # characters: MLflow cuts tags at 8,000
_PARAMS_A_CALL = 100  # MLflow's limit
_LOCKS = Path("locks")


@dataclass(frozen=True)
class Run:
    """An open run; without tracking every call does nothing."""

    client: MlflowClient | None = None
    run_id: str = ""

    def log(self, params: Mapping[str, object], metrics: Mapping[str, float], tags: Mapping[str, str]) -> None:
        """Log these in few calls. Names must be legal in MLflow, see ``legal_part``."""
        if self.client is None:
            return
        from mlflow.entities import Metric, Param, RunTag

        entries = [Param(key, str(value)) for key, value in params.items()]
        for start in range(0, len(entries), _PARAMS_A_CALL):
            self.client.log_batch(self.run_id, params=entries[start : start + _PARAMS_A_CALL])
        points = [Metric(key, float(value), 0, 0) for key, value in metrics.items()]
        self.client.log_batch(self.run_id, metrics=points, tags=[RunTag(key, value) for key, value in tags.items()])

    def log_collection(self, name: str, fingerprint: str, counts: Mapping[str, int], notice: str | None) -> None:
        """Name the data the run is on, as MLflow shows and filters data sets."""
        if self.client is None:
            return
        from mlflow.entities import Dataset, DatasetInput, InputTag

        dataset = Dataset(
            name=name[:500],
            digest=fingerprint[:36],  # MLflow's limit
            source_type="litgrade",
            source=json.dumps({"fingerprint": fingerprint}),
            profile=json.dumps({**counts, **({"notice": notice} if notice else {})}),
        )
        self.client.log_inputs(self.run_id, datasets=[DatasetInput(dataset, [InputTag("mlflow.data.context", "eval")])])

    def log_files(self, folder: Path, names: Iterable[str]) -> None:
        """Keep a copy of these files of the folder as artifacts."""
        if self.client is not None:
            for name in names:
                self.client.log_artifact(self.run_id, str(folder / name))


@contextmanager
def tracked_run(tracking: Mlflow | NoTracking, name: str, tags: Mapping[str, str]) -> Iterator[Run]:
    """Open a run and close it as what it was: FINISHED, FAILED on an error, KILLED when it was interrupted."""
    if isinstance(tracking, NoTracking):
        yield Run()
        return
    with _told_in_one_line(tracking.uri):
        client, experiment_id, locks = _connect(tracking)
        named = {**tags, "git_commit": git_commit()}
        run_id = client.create_run(experiment_id, run_name=name, tags=named).info.run_id
        status = "KILLED"
        with FileLock(locks / f"{run_id}.lock"):  # held as long as this process lives, see _close_dead_runs
            try:
                yield Run(client, run_id)
                status = "FINISHED"
            except Exception as error:
                status = "FAILED"
                client.set_tag(run_id, "error", without_secrets(f"{type(error).__name__}: {error}")[:5000])
                raise
            finally:
                client.set_terminated(run_id, status)
                (locks / f"{run_id}.lock").unlink(missing_ok=True)


def described(text: str, whole: str) -> dict[str, str]:
    """Return the tag that MLflow shows as a run's description; a long one is cut and names the file ``whole``."""
    short = text if len(text) <= _LONGEST_NOTE else f"{text[:_LONGEST_NOTE]}…\n\n(whole: {whole})"
    return {"mlflow.note.content": short}


def prepare(tracking: Mlflow | NoTracking) -> None:
    """Make store and experiment, if they are not there, before several processes use them at once."""
    if isinstance(tracking, Mlflow):
        with _told_in_one_line(tracking.uri):
            _connect(tracking)


@contextmanager
def open_client(tracking: Mlflow) -> Iterator[MlflowClient]:
    """Give a client to read with; what goes wrong with MLflow in this block is told in one line."""
    with _told_in_one_line(tracking.uri):
        yield _connect(tracking)[0]


def existing_experiments(client: MlflowClient) -> dict[str, str]:
    """Return id -> name of every experiment."""
    return {str(experiment.experiment_id): str(experiment.name) for experiment in client.search_experiments()}


def find_finished(tracking: Mlflow, tags: Mapping[str, str]) -> str | None:
    """Return the id of the latest finished run with these tags, or None."""
    with _told_in_one_line(tracking.uri):
        client, experiment_id, _ = _connect(tracking)
        wanted = " and ".join([*(f"tags.{name} = '{value}'" for name, value in tags.items()), "status = 'FINISHED'"])
        found = client.search_runs([experiment_id], wanted, max_results=1)
    return str(found[0].info.run_id) if found else None


def fetch_files(tracking: Mlflow, run_id: str, folder: Path) -> None:
    """Bring a copy of all files of a run here."""
    with _told_in_one_line(tracking.uri):
        _connect(tracking)[0].download_artifacts(run_id, "", str(folder))


def join_sweep(tracking: Mlflow, run_id: str, sweep_id: str) -> None:
    """Tie a finished run to another sweep, which takes it over; those before stay in the tag ``earlier_sweep_ids``."""
    with _told_in_one_line(tracking.uri):
        client = _connect(tracking)[0]
        tags = client.get_run(run_id).data.tags
        earlier = dict.fromkeys([*tags.get("earlier_sweep_ids", "").split(), tags.get("sweep_id", "")])
        client.set_tag(run_id, "earlier_sweep_ids", " ".join(filter(None, earlier)))
        client.set_tag(run_id, "sweep_id", sweep_id)


@contextmanager
def _told_in_one_line(uri: str) -> Iterator[None]:
    for name in ("mlflow", "alembic"):  # they report every plug-in and table
        logging.getLogger(name).setLevel(logging.WARNING)
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")  # MLflow's seven take minutes on a dead server
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"  # it would print the password of a server
    from alembic.util.exc import CommandError
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, CommandError) as error:
        reason = first_line(error)
        raise UserError(f"MLflow at {without_secrets(uri)}: {reason}; tracking=none runs without it") from error


def _connect(tracking: Mlflow) -> tuple[MlflowClient, str, Path]:
    """Return a client, the experiment and the folder of run locks; first use is made safe by a lock between processes.

    MLflow breaks its database, or logs to another experiment, when several processes create either at once.
    """
    from mlflow import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.WARNING)  # its import sets it anew
    locks = tracking.artifacts / _LOCKS
    locks.mkdir(parents=True, exist_ok=True)
    database = _sqlite_file(tracking.uri)
    with FileLock(f"{database}.lock" if database else locks / "first_use.lock"):
        if database and not database.exists():
            _make_database(database)
        client = MlflowClient(tracking_uri=tracking.uri)
        experiment_id = _experiment(client, tracking)
        _close_dead_runs(client, experiment_id, locks)
    return client, experiment_id, locks


def _sqlite_file(uri: str) -> Path | None:
    if not uri.startswith("sqlite:///"):
        return None
    database = Path(uri.removeprefix("sqlite:///").split("?")[0])
    database.parent.mkdir(parents=True, exist_ok=True)
    return database


def _make_database(database: Path) -> None:
    """Make MLflow's tables under another name first: killed half-way, they could never be used again."""
    from mlflow import MlflowClient

    new = database.with_name(f".{database.name}.new")
    for leftover in database.parent.glob(f"{new.name}*"):
        leftover.unlink()
    MlflowClient(tracking_uri=f"sqlite:///{new}").search_experiments(max_results=1)
    new.rename(database)


def _experiment(client: MlflowClient, tracking: Mlflow) -> str:
    found = client.get_experiment_by_name(tracking.experiment)
    if found is not None:
        return str(found.experiment_id)
    # stored once and for all by MLflow, hence absolute; a server chooses its own place
    location = None if tracking.uri.startswith("http") else tracking.artifacts.resolve().as_uri()
    return str(client.create_experiment(tracking.experiment, artifact_location=location))


def _close_dead_runs(client: MlflowClient, experiment_id: str, locks: Path) -> None:
    """Mark runs of killed processes, which still say RUNNING, as KILLED: nobody holds their lock any more."""
    for run in client.search_runs([experiment_id], "attributes.status = 'RUNNING'"):
        path = locks / f"{run.info.run_id}.lock"
        if not path.exists():
            continue  # not started on this machine
        try:
            with FileLock(path, timeout=0):
                client.set_terminated(run.info.run_id, "KILLED")
            path.unlink(missing_ok=True)
        except Timeout:
            continue  # alive


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Return nested settings as one level, ``{"cutoffs.bm25": 100}``; a list is one value."""
    flat: dict[str, object] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


@functools.cache
def git_commit() -> str:
    """Return the commit of this code, with ``-dirty`` where files differ or are new; ``unknown`` outside a checkout.

    As it was when the process first asked: that is the code which is running.
    """
    try:
        return _git("rev-parse", "HEAD") + ("-dirty" if _git("status", "--porcelain") else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
    return done.stdout.strip()


def legal_part(name: str) -> str:
    """Return one part of a metric's name as MLflow takes it; a changed one gets a mark that keeps it distinct."""
    legal = re.sub(r"[^\w\-. ]", "_", name).strip(". ")[:100] or "_"
    return legal if legal == name else f"{legal}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
