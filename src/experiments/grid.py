"""``litgrade grid``: every combination of weights, alpha, cutoffs and normalization, in one process.

Similarities and reputations are computed once; what is then left of a setting is arithmetic.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import cast

import numpy as np
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf, open_dict

from experiments import cli
from experiments.config import read_config
from experiments.files import replacing, write_lines
from experiments.grid_cost import cost_of_a_paper
from experiments.grid_plots import plot_all
from experiments.grid_scores import compared_pools, measure_grid
from experiments.grid_settings import Settings, read_grid
from experiments.grid_summary import Summary
from experiments.jobs import sweep_id
from experiments.tracking import described, tracked_run
from experiments.tuning import Measured, write_splits
from experiments.verdict import judge_settings
from pipeline.errors import UserError

log = logging.getLogger(__name__)

TABLE, OBJECTIVE, SPLITS, SUMMARY = "grid.parquet", "objective.parquet", "splits.json", "grid.md"


@cli.job("grid")
def main(composed: DictConfig) -> None:
    """Measure all settings, then judge, draw, write, log and show."""
    plain = cast("dict[str, object]", OmegaConf.to_container(composed, resolve=True))
    with open_dict(composed):
        del composed["grid"]
    config = read_config(composed)
    settings = Settings(read_grid(plain["grid"], config))
    folder, collection = Path(HydraConfig.get().runtime.output_dir), config.loader().load()
    tables = compared_pools(config, collection, max(*settings.grid.bm25, config.cutoffs.bm25))
    log.info("%d settings on %s", len(settings), collection.name)
    scores = measure_grid(config, collection, tables, settings)
    baseline = settings.index_of(config)
    measured = Measured(scores.objective, scores.query_ids, scores.area_of, baseline)
    if np.isnan(scores.objective).all():
        raise UserError(f"{collection.name}: no setting has a value of objective={config.objective}; name another")
    verdict = judge_settings(measured, settings.name, config.tuning, config.objective)
    summary = Summary(config, collection, settings, scores, verdict)
    _write(summary, folder)
    plots = plot_all(summary, tables, cost_of_a_paper(config, tables), folder)
    _log(summary, folder, [TABLE, OBJECTIVE, SPLITS, SUMMARY, *plots])
    print("\n\n".join(summary.parts(is_terminal=sys.stdout.isatty())))  # noqa: T201
    print(folder)  # noqa: T201


def _write(summary: Summary, folder: Path) -> None:
    import pandas as pd

    settings, scores = summary.settings, summary.scores
    table = pd.DataFrame({**settings.columns(), **scores.macro})
    by_query = pd.DataFrame(scores.objective.astype(np.float32), columns=list(scores.query_ids))
    for frame, name in ((table, TABLE), (by_query, OBJECTIVE)):
        with replacing(folder / name) as partial:
            frame.to_parquet(partial, index=False)
    write_splits(summary.verdict.splits, folder / SPLITS)
    write_lines(folder / SUMMARY, ["\n\n".join(summary.parts(is_terminal=False))])


def _log(summary: Summary, folder: Path, files: list[str]) -> None:
    config, collection = summary.config, summary.collection
    tags = {
        "kind": "grid",
        "collection": collection.name,
        "arm": config.arm.name,
        "model": ", ".join(config.model_names()),
        "sweep_id": sweep_id() or f"grid-{folder.parent.name}-{folder.name}",
        **described("\n\n".join(summary.parts(is_terminal=False)), SUMMARY),
    }
    with tracked_run(config.tracking, f"grid {collection.name}", tags) as run:
        grid = {f"grid.{key}": value for key, value in summary.settings.grid.model_dump(mode="json").items()}
        about = {"settings": len(summary.settings), "objective": config.objective, "tuning": config.tuning.method}
        run.log({**grid, **about, "collection": collection.name, "arm": config.arm.name}, summary.metrics, {})
        counts = {"queries": len(collection.queries), "papers": len(collection.papers)}
        run.log_collection(collection.name, collection.fingerprint, counts, collection.notice)
        run.log_files(folder, files)


if __name__ == "__main__":
    cli.main(["grid", *sys.argv[1:]])
