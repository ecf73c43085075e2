"""Runs that were done before: found by folder, id, name, sweep or experiment, and read back."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import TypeAdapter

from experiments import jobs
from experiments.collections import Collection
from experiments.config import Mlflow, NoTracking, loader_of
from experiments.metrics import Scores
from experiments.provenance import FILE as PROVENANCE
from experiments.tables import read_csv
from experiments.tracking import existing_experiments, open_client
from pipeline.errors import UserError, did_you_mean, without_secrets

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_NEEDED = ("config.yaml", "metrics.json", "ranking.jsonl", "per_query.csv")
_SUMMARIES = tuple(field.name for field in fields(Scores))
_SHORTEST_PREFIX = 8  # characters of a run id


@dataclass(frozen=True)
class FinishedRun:
    """A run as it was written; nothing is computed anew."""

    name: str  #: distinct among those found together
    folder: Path  #: holds the run's files, or a copy of them
    settings: Mapping[str, Any]  #: config.yaml
    scores: Scores
    counts: Mapping[str, int]
    area_of: Mapping[str, str]  #: query id -> area
    metrics: Mapping[str, Any]  #: metrics.json, whole
    tags: Mapping[str, str]  #: those of MLflow; none for a folder
    run_id: str | None = None

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return str(self.metrics["collection"])

    @property
    def origin(self) -> Mapping[str, Any]:
        """What provenance.json says; nothing where a run of an earlier version left none."""
        path = self.folder / PROVENANCE
        origin: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return origin

    @property
    def collection_fingerprint(self) -> str | None:
        """The fingerprint of the collection's content, where it is known."""
        return (self.origin.get("collection") or {}).get("fingerprint")

    def load_collection(self) -> Collection:
        """Read the collection; raise ``UserError`` where it is not here or not the one that the run read."""
        collection = loader_of(self.settings["collection"]).load()
        if self.collection_fingerprint not in {None, collection.fingerprint}:
            raise UserError(f"{self.collection}: the collection has changed since run {self.name}")
        return collection

    def rankings(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of ranking.jsonl by query, in rank order."""
        rows: dict[str, list[dict[str, Any]]] = {}
        with _readable(self.folder):
            with (self.folder / "ranking.jsonl").open(encoding="utf-8") as file:
                for line in file:
                    row = json.loads(line)
                    rows.setdefault(row["query_id"], []).append(row)
            if (n := sum(map(len, rows.values()))) != self.counts["ranked"]:
                raise ValueError(f"ranking.jsonl has {n} rows, {self.counts['ranked']} were written")
            return {query_id: sorted(of_query, key=lambda row: row["rank"]) for query_id, of_query in rows.items()}


def find_runs(references: Sequence[str], tracking: Mlflow | NoTracking, cache: Path) -> list[FinishedRun]:
    """Return the runs that these references name, in their order, each once.

    A reference is a folder of a run, or one that holds such folders (of a sweep or an ablation); in MLflow a run's id,
    the beginning of it, a run's name, a sweep id, or the name of an experiment. Copies of files go to ``cache``.
    """
    found: dict[Path, FinishedRun] = {}
    for reference in references:
        for run in _of_folder(Path(reference)) or _of_mlflow(reference, tracking, cache):
            found.setdefault(run.folder.resolve(), run)
    return _distinct(list(found.values()))


def _distinct(runs: list[FinishedRun]) -> list[FinishedRun]:
    """Give runs of one name longer ones, no longer than it takes to tell them apart."""
    longer: list[Callable[[FinishedRun], str]] = [
        lambda run: f"{run.name} ({run.run_id[:_SHORTEST_PREFIX] if run.run_id else run.folder.resolve().parent.name})",
        lambda run: f"{run.name} ({run.run_id or run.folder.resolve()})",
    ]
    names = [run.name for run in runs]
    for lengthen in longer:
        often = Counter(names)
        names = [lengthen(run) if often[name] > 1 else name for run, name in zip(runs, names, strict=True)]
    return [replace(run, name=name) for run, name in zip(runs, names, strict=True)]


def _of_folder(folder: Path) -> list[FinishedRun]:
    """Return the runs in a folder; none where it is no such folder, for it may have the name of an experiment."""
    if (folder / "metrics.json").exists():
        return [read_run(folder)]
    return [read_run(path.parent) for path in sorted(folder.glob("*/metrics.json"), key=_by_number)]


def _by_number(path: Path) -> tuple[int, str]:
    name = path.parent.name
    return (int(name), "") if name.isdecimal() else (-1, name)


def read_run(folder: Path, run: Run | None = None) -> FinishedRun:
    """Read what a run left in its folder; ``run`` is what MLflow knows of it."""
    if missing := _missing(folder):
        raise UserError(f"{folder}: {missing} is missing, so the run cannot be read; run it again")
    with _readable(folder):
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        settings = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
        scores = TypeAdapter(Scores).validate_python({name: metrics[name] for name in _SUMMARIES})
        area_of = {row["query_id"]: row["area"] for row in read_csv(folder / "per_query.csv")}
        if scores.queries.keys() != area_of.keys():
            raise ValueError("per_query.csv and metrics.json are not on the same queries")
        counts, _, _ = metrics["counts"], metrics["collection"], settings["arm"]["name"]
        name = _name_of(folder)
    if run is None:
        return FinishedRun(name, folder, settings, scores, counts, area_of, metrics, tags={})
    tags = {key: value for key, value in run.data.tags.items() if not key.startswith("mlflow.")}
    name, run_id = str(run.info.run_name), str(run.info.run_id)
    return FinishedRun(name, folder, settings, scores, counts, area_of, metrics, tags, run_id)


@contextlib.contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Tell files that do not hold what a run writes in one line."""
    try:
        yield
    except (ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UserError(f"{folder}: its files cannot be read ({reason}); run it again") from error


def _missing(folder: Path) -> str | None:
    return next((name for name in _NEEDED if not (folder / name).exists()), None)


def _name_of(folder: Path) -> str:
    """Return what sets a job apart in its sweep, as in MLflow; of any other run the name of its folder."""
    path = folder / jobs.FILE
    job = jobs.Job(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None
    return job.name if job and job.settings else folder.resolve().name


def _of_mlflow(reference: str, tracking: Mlflow | NoTracking, cache: Path) -> list[FinishedRun]:
    if isinstance(tracking, NoTracking):
        found = "no finished run is in this folder" if Path(reference).is_dir() else "no such folder"
        raise UserError(f"{reference}: {found}; with tracking=none expected folders of runs, which hold a metrics.json")
    with open_client(tracking) as client:
        experiments = existing_experiments(client)
        chosen = _chosen(reference, list(_finished(client, experiments)), experiments)
        return [read_run(_copy(client, run, cache), run) for run in chosen]


def _finished(client: MlflowClient, experiments: Mapping[str, str]) -> Iterator[Run]:
    token = None
    while experiments:
        wanted = "tags.kind = 'run' and attributes.status = 'FINISHED'"
        page = client.search_runs(list(experiments), wanted, order_by=["attributes.start_time ASC"], page_token=token)
        yield from page
        if not (token := page.token):
            return


def _chosen(reference: str, runs: Sequence[Run], experiments: Mapping[str, str]) -> list[Run]:
    """Return the runs that a reference names; ``experiments`` is id -> name."""
    ways = {
        "id": [run for run in runs if run.info.run_id == reference],
        "sweep": [run for run in runs if reference in _sweep_ids(run)],
        "experiment": [run for run in runs if experiments.get(run.info.experiment_id) == reference],
        "name": [run for run in runs if run.info.run_name == reference],
        "beginning": [
            run for run in runs if len(reference) >= _SHORTEST_PREFIX and run.info.run_id.startswith(reference)
        ],
    }
    way = next((way for way, found in ways.items() if found), None)
    if way in {"name", "beginning"} and len(ways[way]) > 1:
        ids = ", ".join(run.info.run_id for run in ways[way][-3:])
        raise UserError(f"{reference}: {len(ways[way])} finished runs have this {way}; give an id, such as {ids}")
    if way is None and reference in experiments.values():
        raise UserError(f"{reference}: no run of this experiment is finished; see them with make ui")
    if way is None:
        near = [*experiments.values(), *(str(run.info.run_name) for run in runs), *(run.info.run_id for run in runs)]
        raise UserError(
            f"{reference}: neither a folder with a finished run nor, among {len(runs)} finished runs in MLflow, "
            f"a run's id (or {_SHORTEST_PREFIX} characters of it), its name, a sweep id or an experiment"
            f"{did_you_mean(reference, near)}"
        )
    return ways[way]


def _sweep_ids(run: Run) -> list[str]:
    """Return the ids of the sweeps that a run was part of; a later one may have taken it over."""
    tags = run.data.tags
    return [*tags.get("sweep_id", "").split(), *tags.get("earlier_sweep_ids", "").split()]


def _copy(client: MlflowClient, run: Run, cache: Path) -> Path:
    """Return a folder with the run's files, fetched where it is not there yet: a finished run changes no more."""
    folder = cache / "runs" / str(run.info.run_id)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as name:
            partial = Path(name) / "run"  # whole, or not there: another process may read at the same time
            partial.mkdir()
            for entry in client.list_artifacts(run.info.run_id):
                client.download_artifacts(run.info.run_id, entry.path, str(partial))
            if missing := _missing(partial):
                where = without_secrets(str(run.info.artifact_uri))
                raise UserError(f"run {run.info.run_id}: {missing} is not among its artifacts at {where}; run it again")
            with contextlib.suppress(OSError):  # another process was faster
                partial.rename(folder)
    return folder
