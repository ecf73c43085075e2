"""``litgrade compare RUN_A RUN_B [...]``: per-query differences, significance, and which papers moved."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pydantic import Field, NonNegativeInt

from experiments import cli
from experiments.comparison import Comparisons, compare_runs
from experiments.comparison_files import write_comparison
from experiments.comparison_text import comparison_text
from experiments.config import Mlflow, NoTracking, Section, checked
from experiments.finished_runs import find_runs
from experiments.tracking import described, legal_part, tracked_run
from pipeline.errors import UserError
from pipeline.llm.settings import Count


class Paths(Section):
    """Where copies of what MLflow keeps are put."""

    cache: Path


class CompareConfig(Section):
    """Which runs are compared, and how."""

    runs: tuple[str, ...]
    metrics: tuple[str, ...]
    top: Count
    shown: NonNegativeInt
    seed: NonNegativeInt
    paths: Paths
    tracking: Annotated[Mlflow | NoTracking, Field(discriminator="backend")]


@cli.job("compare")
def main(composed: DictConfig) -> None:
    """Find the runs, compare them, show, write and log."""
    config = checked(CompareConfig, OmegaConf.to_container(composed, resolve=True))
    if not config.runs:
        raise UserError("which runs? litgrade compare RUN_A RUN_B: folders, MLflow run ids, names, or a sweep id")
    runs = find_runs(config.runs, config.tracking, config.paths.cache)
    if len(runs) < 2:
        raise UserError(f"{', '.join(config.runs)}: that is one run; name another one to compare it with")
    compared = compare_runs(runs, config.metrics, top=config.top, seed=config.seed)
    text = comparison_text(compared, config.shown)
    folder = Path(HydraConfig.get().runtime.output_dir)
    files = write_comparison(compared, text, folder)
    _log(config, compared, text, folder, files)
    print(text)  # noqa: T201
    print(folder)  # noqa: T201


def _log(config: CompareConfig, compared: Comparisons, text: str, folder: Path, files: list[str]) -> None:
    first, others = compared.first, compared.runs[1:]
    names = f"{others[0].name} and {len(others) - 1} more" if len(others) > 1 else others[0].name
    tags = {
        "kind": "comparison",
        "collection": first.collection,
        **described(text, "comparison.md"),
    }
    params = {"baseline": first.name, "metrics": ", ".join(compared.metrics), "top": compared.top, "seed": config.seed}
    params |= {f"run_{i}": run.run_id or str(run.folder) for i, run in enumerate(compared.runs)}
    figures: dict[str, float] = {}
    for entry in compared.compared:
        prefix = f"{legal_part(entry.run.name)}/{entry.metric}"
        figures |= {f"{prefix}.difference": entry.comparison.mean_difference, f"{prefix}.p_holm": entry.p_holm}
    with tracked_run(config.tracking, f"compare {first.name} with {names}"[:250], tags) as run:
        run.log(params, figures, {})
        run.log_files(folder, files)


if __name__ == "__main__":
    cli.main(["compare", *sys.argv[1:]])
