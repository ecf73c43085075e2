"""``litgrade report``: finished runs as one HTML page that needs nothing but a browser, and no network."""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pydantic import Field

from experiments import cli
from experiments.config import Mlflow, NoTracking, Section, checked
from experiments.files import write_lines
from experiments.finished_runs import FinishedRun, find_runs
from experiments.report_group import COMPARED, FEW, Group, Report, groups
from experiments.report_page import render
from experiments.report_provenance import command, config_text, date_of, facts
from pipeline.errors import UserError

log = logging.getLogger(__name__)

FILE = "report.html"


class ReportConfig(Section):
    """Which runs are reported, where they are looked for, and what is shown."""

    runs: Sequence[str]
    report: Report
    cache: Path
    tracking: Annotated[Mlflow | NoTracking, Field(discriminator="backend")]


@cli.job("report")
def main(composed: DictConfig) -> None:
    """Find the runs, put the page together, write it."""
    config = checked(ReportConfig, OmegaConf.to_container(composed, resolve=True))
    if not config.runs:
        raise UserError("no runs given: name an experiment, a sweep, runs or folders, as in litgrade report litgrade")
    runs = find_runs(config.runs, config.tracking, config.cache)
    page = render(_context(config, groups(runs, config.report), runs))
    path = Path(HydraConfig.get().runtime.output_dir) / FILE
    write_lines(path, [page])
    log.info("%d runs, %.1f MB", len(runs), path.stat().st_size / 1e6)
    print(path)  # noqa: T201


def _context(config: ReportConfig, found: Sequence[Group], runs: Sequence[FinishedRun]) -> dict[str, Any]:
    """Return what the page shows."""
    names = ", ".join(dict.fromkeys(group.name for group in found))
    dates = sorted({date for run in runs if (date := date_of(run))})
    days = [f"run {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}"] if dates else []
    arms = ", ".join(dict.fromkeys(entry.arm for group in found for entry in group.entries))
    more = f" and {len(config.runs) - 3} more" if len(config.runs) > 3 else ""
    return {
        "heading": f"{len(runs)} {'run' if len(runs) == 1 else 'runs'} on {names}",
        "about": [f"found as {', '.join(config.runs[:3])}{more}", f"arms: {arms}", *days],
        "notices": list(dict.fromkeys(group.notice for group in found if group.notice)),
        "groups": found,
        "compared": COMPARED,
        "few": FEW,
        "facts": facts,
        "command": command,
        "config_text": config_text,
        "version": importlib.metadata.version("litgrade"),
        "made": f"{datetime.now().astimezone():%Y-%m-%d %H:%M}",
    }


if __name__ == "__main__":
    import sys

    cli.main(["report", *sys.argv[1:]])
