"""A sweep of 48 runs over the demo collection, everything computed before: on one worker and on two."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

from benchmarks.measuring import litgrade, row, timed
from experiments.models import registered_models

ALPHAS, CUTOFFS = range(0, 60, 5), (50, 100, 200, 400)
SWEPT = [
    f"weights.alpha={','.join(str(alpha / 100) for alpha in ALPHAS)}",
    f"cutoffs.bm25={','.join(map(str, CUTOFFS))}",
]


def rows() -> list[list[str]]:
    """Sweep with either launcher, each into an MLflow store of its own; an error where a run is missing."""
    models = registered_models()["mpnet"].folder.resolve()
    with tempfile.TemporaryDirectory() as folder:
        shared = [f"paths.models={models}", f"paths.cache={folder}/cache"]
        litgrade("run", *shared, "tracking=none", folder=Path(folder))
        one = _sweep_s(Path(folder) / "one", *shared, "hydra/launcher=basic")
        two = _sweep_s(Path(folder) / "two", *shared, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    n = len(ALPHAS) * len(CUTOFFS)
    return [row(f"sweep of {n} runs over the demo collection, two workers, s", "one worker", one, two)]


def _sweep_s(folder: Path, *overrides: str) -> float:
    folder.mkdir()
    sweep = folder / "sweep"
    took = timed(lambda: litgrade("run", "-m", *SWEPT, *overrides, f"hydra.sweep.dir={sweep}", folder=folder))
    with (sweep / "sweep.csv").open() as file:
        finished = sum(bool(job["ndcg_at_10"]) for job in csv.DictReader(file))
    if finished != len(ALPHAS) * len(CUTOFFS):
        raise ValueError(f"{finished} runs are in the table of {sweep}")
    return took
