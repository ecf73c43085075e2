"""``litgrade compare RUN_A RUN_B [...]``: per-query differences, significance, and which papers moved."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pydantic import Field, NonNegativeInt, ValidationError

from experiments import cli
from experiments.comparison import FILES, Comparisons, compare_runs, comparison_text, write_comparison
from experiments.config import Mlflow, NoTracking, Section
from experiments.explain import explain_validation
from experiments.finished_runs import find_runs
from experiments.tracking import tracked_run
from pipeline.errors import UserError
from pipeline.llm.settings import Count


class CompareConfig(Section):
    """Which runs are compared, and how."""

    runs: tuple[str, ...]
    metrics: tuple[str, ...]
    top: Count
    shown: NonNegativeInt
    seed: NonNegativeInt
    cache: Path
    tracking: Annotated[Mlflow | NoTracking, Field(discriminator="backend")]


@cli.job("compare")
def main(composed: DictConfig) -> None:
    """Find the runs, compare them, show, write and log."""
    try:
        config = CompareConfig.model_validate(OmegaConf.to_container(composed, resolve=True))
    except ValidationError as error:
        raise UserError(explain_validation(error)) from error
    if not config.runs:
        raise UserError("which runs? litgrade compare RUN_A RUN_B: folders, MLflow run ids, names, or a sweep id")
    runs = find_runs(config.runs, config.tracking, config.cache)
    if len(runs) < 2:
        raise UserError(f"{', '.join(config.runs)}: that is one run; name another one to compare it with")
    compared = compare_runs(runs, config.metrics, top=config.top, seed=config.seed)
    folder = Path(HydraConfig.get().runtime.output_dir)
    text = comparison_text(compared, config.shown)
    write_comparison(compared, text, folder)
    _log(config, compared, folder)
    print(text)  # noqa: T201
    print(folder)  # noqa: T201


def _log(config: CompareConfig, compared: Comparisons, folder: Path) -> None:
    names = [run.name for run in compared.runs]
    tags = {"kind": "comparison", "collection": compared.runs[0].collection}
    with tracked_run(config.tracking, f"compare {', '.join(names)}"[:250], tags) as run:
        run.log({"runs": ", ".join(run.run_id or str(run.folder) for run in compared.runs)[:5_000]}, {}, {})
        run.log_files(folder, FILES)


if __name__ == "__main__":
    cli.main(["compare", *sys.argv[1:]])
