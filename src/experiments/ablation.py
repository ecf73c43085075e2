"""``litgrade ablation``: the arms side by side, as in the paper's table 15, with significance, tables and a plot."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pydantic import NonNegativeInt, model_validator

from experiments import cli
from experiments.arm_table import FILES, ArmTable, make_table, table_text, write_table
from experiments.config import RunConfig, Section, checked, read_config
from experiments.run import RunResult, estimate_lines, perform
from experiments.tracking import tracked_run
from pipeline.errors import MissingError, UserError

log = logging.getLogger(__name__)


class Ablation(Section):
    """Which arms are compared, and against which of them significance is tested."""

    arms: list[str]
    baseline: str
    missing: Literal["skip", "fail"]
    seed: NonNegativeInt

    @model_validator(mode="after")
    def _has_its_baseline(self) -> Ablation:
        if self.baseline not in self.arms:
            raise ValueError(f"baseline={self.baseline} is not among the arms {', '.join(self.arms)}")
        if len(set(self.arms)) < len(self.arms):
            raise ValueError(f"arms={', '.join(self.arms)}: an arm is named twice")
        return self


def _arm_configs(arms: Sequence[str]) -> dict[str, RunConfig]:
    """Compose the config of each arm, as ``litgrade run arm=ARM`` with the other overrides of this command would."""
    overrides = HydraConfig.get().overrides.task
    if arm := next((o for o in overrides if o.startswith("arm=")), None):
        raise UserError(f"{arm}: an ablation runs several arms; give ablation.arms=[...] instead")
    of_runs = [override for override in overrides if not override.startswith("ablation.")]
    return {arm: read_config(hydra.compose("config", overrides=[*of_runs, f"arm={arm}"])) for arm in arms}


@cli.job("ablation")
def main(composed: DictConfig) -> None:
    """Run the arms one after the other, then compare, show, write and log."""
    ablation = checked(Ablation, OmegaConf.to_container(composed.ablation, resolve=True), within="ablation")
    configs = _arm_configs(ablation.arms)
    folder = Path(HydraConfig.get().runtime.output_dir)
    if any(config.llm.mode == "estimate" for config in configs.values()):
        with contextlib.suppress(OSError):
            folder.rmdir()
        for config in configs.values():
            print("\n".join(estimate_lines(config)))  # noqa: T201
        return
    sweep = {"sweep_id": f"ablation-{folder.parent.name}-{folder.name}"}
    results, not_run = {}, {}
    for arm, config in configs.items():
        log.info("arm %s", arm)
        try:
            results[arm] = perform(config, folder / arm, sweep)
            _check_is_measured(results[arm])
        except MissingError as error:
            if ablation.missing == "fail":
                raise
            not_run[arm] = str(error)
            log.warning("arm %s not run: %s", arm, error)
    if not results:
        raise MissingError("no arm could run: " + "; ".join(not_run.values()))
    table = make_table(ablation.arms, results, not_run, ablation.baseline, ablation.seed)
    write_table(table, folder)
    _log_summary(table, folder, sweep)
    print(table_text(table))  # noqa: T201
    print(folder)  # noqa: T201


def _check_is_measured(result: RunResult) -> None:
    if not result.scores.macro:
        raise UserError(
            f"{result.collection.name}: without judgments there is nothing to compare arms by; "
            "add qrels/test.tsv to it, or rank with litgrade run"
        )
    if n_without := result.counts["queries_without_judgments"]:
        log.warning("%d of %d queries have no judgments: the others are measured", n_without, result.counts["queries"])


def _log_summary(table: ArmTable, folder: Path, sweep: Mapping[str, str]) -> None:
    config, name = table.any_result.config, table.any_result.collection.name
    with tracked_run(config.tracking, f"ablation {name}", {**sweep, "kind": "summary", "collection": name}) as run:
        means = {f"{arm}/{m}": r.scores.macro[m] for arm, r in table.results.items() for m, _ in table.metrics}
        run.log({"arms": ", ".join(table.results)}, {k: v for k, v in means.items() if v is not None}, {})
        run.log_files(folder, FILES)


if __name__ == "__main__":
    import sys

    cli.main(["ablation", *sys.argv[1:]])
