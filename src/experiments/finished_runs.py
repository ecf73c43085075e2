"""Runs that were done before: found by folder, id, name, sweep or experiment, and read back."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from experiments.config import Mlflow, NoTracking
from experiments.metrics import Scores
from experiments.tracking import existing_experiments, open_client
from pipeline.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_NEEDED = ("config.yaml", "metrics.json", "ranking.jsonl", "per_query.csv")
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

    def rankings(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of ranking.jsonl by query, in rank order."""
        rows: dict[str, list[dict[str, Any]]] = {}
        with (self.folder / "ranking.jsonl").open(encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                rows.setdefault(row["query_id"], []).append(row)
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
    often = Counter(run.name for run in runs)
    return [
        replace(run, name=f"{run.name} ({(run.run_id or run.folder.parent.name)[:8]})") if often[run.name] > 1 else run
        for run in runs
    ]


def _of_folder(folder: Path) -> list[FinishedRun]:
    if not folder.is_dir():
        return []
    inside = [path.parent for path in folder.glob("*/metrics.json")]
    folders = [folder] if (folder / "metrics.json").exists() else sorted(inside, key=_by_number)
    if not folders:
        raise UserError(f"{folder}: no finished run is in this folder, which would hold a metrics.json")
    return [read_run(one) for one in folders]


def _by_number(folder: Path) -> tuple[int, str]:
    return (int(folder.name), "") if folder.name.isdecimal() else (-1, folder.name)


def read_run(folder: Path, run: Run | None = None) -> FinishedRun:
    """Read what a run left in its folder; ``run`` is what MLflow knows of it."""
    if missing := [name for name in _NEEDED if not (folder / name).exists()]:
        whose = f"run {run.info.run_id}" if run is not None else str(folder)
        raise UserError(f"{whose}: {missing[0]} is missing, so the run cannot be read; run it again")
    try:
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        settings = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
        parts = (metrics[name] for name in ("queries", "areas", "areas_sd", "macro", "sd"))
        scores = Scores(*parts)
    except (ValueError, KeyError, yaml.YAMLError) as error:
        raise UserError(
            f"{folder}: its files cannot be read ({type(error).__name__}: {error}); run it again"
        ) from error
    with (folder / "per_query.csv").open(encoding="utf-8", newline="") as file:
        area_of = {row["query_id"]: row["area"] for row in csv.DictReader(file)}
    name = folder.name if run is None else str(run.info.run_name)
    tags = {} if run is None else {key: value for key, value in run.data.tags.items() if not key.startswith("mlflow.")}
    run_id = None if run is None else str(run.info.run_id)
    return FinishedRun(name, folder, settings, scores, metrics["counts"], area_of, metrics, tags, run_id)


def _of_mlflow(reference: str, tracking: Mlflow | NoTracking, cache: Path) -> list[FinishedRun]:
    if isinstance(tracking, NoTracking):
        raise UserError(f"{reference}: no such folder; with tracking=none runs are named by their folders only")
    with open_client(tracking) as client:
        runs = list(_finished(client))
        chosen = _chosen(reference, runs, existing_experiments(client))
        return [read_run(_copy(client, run, cache), run) for run in chosen]


def _finished(client: MlflowClient) -> Iterator[Run]:
    experiments = existing_experiments(client)
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
        "run": [run for run in runs if run.info.run_id == reference],
        "sweep": [run for run in runs if run.data.tags.get("sweep_id") == reference],
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
    if way is None:
        near = [*experiments.values(), *(str(run.info.run_name) for run in runs), *(run.info.run_id for run in runs)]
        raise UserError(
            f"{reference}: neither a folder of a run nor, among {len(runs)} finished runs in MLflow, "
            f"a run's id or name, a sweep id or an experiment{did_you_mean(reference, near)}"
        )
    return ways[way]


def _copy(client: MlflowClient, run: Run, cache: Path) -> Path:
    """Return a folder with the run's files, fetched where it is not there yet: a finished run changes no more."""
    folder = cache / "runs" / str(run.info.run_id)
    if not (folder / "metrics.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        names = [entry.path for entry in client.list_artifacts(run.info.run_id)]
        for name in sorted(names, key=lambda name: name == "metrics.json"):  # last: it tells that all is there
            client.download_artifacts(run.info.run_id, name, str(folder))
    return folder
