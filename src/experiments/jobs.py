"""The jobs of one Hydra multirun: what becomes of each, kept in its folder, whatever process or machine it ran on.

A job that fails is told at once and leaves the others alone: nothing is raised to Hydra, which would stop the batch
and tell the first fault only.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from experiments.config import config_dir
from experiments.explain import CONFIG_ERRORS, explain_config_error, explain_os_error
from experiments.files import write_lines
from pipeline.errors import UserError

log = logging.getLogger(__name__)

FILE = "job.json"
DEFINITION = "sweep.json"  #: what was swept; in the folder of the sweep, written before the first job starts

#: The signal that ends this process, if one does. Libraries make errors of their own of a SystemExit that meets them.
stopped: list[int] = []

Status = Literal["running", "finished", "skipped", "failed", "killed"]


@dataclass(frozen=True)
class JobResult:
    """What a task gives back: the value that a search maximizes, and whether an earlier run was taken instead."""

    objective: float | None = None
    is_skipped: bool = False


@dataclass(frozen=True)
class Job:
    """One job: its number, what sets it apart from the others of its sweep, and what became of it."""

    number: int
    settings: dict[str, str]  #: swept key -> value, as on the command line
    status: Status = "running"
    error: str | None = None
    is_our_fault: bool = False  #: an error that the user cannot mend
    seconds: float | None = None

    @property
    def name(self) -> str:
        """What sets the job apart, as ``cutoffs.bm25=50 weights.alpha=0``."""
        return " ".join(f"{key}={value}" for key, value in self.settings.items()) or f"job {self.number}"


def is_multirun() -> bool:
    """Whether this is a job of a multirun."""
    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def sweep_id() -> str | None:
    """Return the id that ties the jobs of this multirun, the same in every process; None in a single run."""
    if not is_multirun():
        return None
    folder = Path(HydraConfig.get().sweep.dir)
    return f"{folder.parent.name}-{folder.name}"


def this_job() -> Job:
    """Return the job that runs in this process. In a single run it has no settings that set it apart."""
    if not is_multirun():
        return Job(0, {})
    hydra = HydraConfig.get()
    swept = json.loads((Path(hydra.sweep.dir) / DEFINITION).read_text(encoding="utf-8"))["swept"]
    pairs = (override.lstrip("+~").partition("=") for override in hydra.overrides.task)
    return Job(int(hydra.job.num), {key: _rounded(value) for key, _, value in pairs if key in swept})


def _rounded(value: str) -> str:
    """Return ``0.7`` for the ``0.7000000000000001`` of a range."""
    return f"{float(value):.10g}" if re.fullmatch(r"-?\d+\.\d{11,}", value) else value


def carry_out(task: Callable[[DictConfig], JobResult | None], composed: DictConfig) -> float | None:
    """Run the task of one job and keep in its folder what became of it. Nothing but an interrupt is raised."""
    job, folder, started = this_job(), Path(HydraConfig.get().runtime.output_dir), time.perf_counter()
    _write(job, folder)
    try:
        result = task(composed) or JobResult()
        job = replace(job, status="skipped" if result.is_skipped else "finished")
    except Exception as error:
        if stopped:
            _write(replace(job, status="killed"), folder)
            sys.exit(128 + stopped[0])
        result, line = JobResult(), line_of(error)
        if line is None:
            log.exception("job %s", job.name)
            line = f"{type(error).__name__}: {error}; the traceback is in the job's log"
            job = replace(job, is_our_fault=True)
        log.error("job %s: %s", job.name, line)  # at once, and in the job's own log
        job = replace(job, status="failed", error=line)
    except BaseException:
        _write(replace(job, status="killed"), folder)
        raise
    _write(replace(job, seconds=round(time.perf_counter() - started, 3)), folder)
    return result.objective


def line_of(error: BaseException) -> str | None:
    """Return the line for an error that a user can mend, raised in a job or before the first; None for any other."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError):
        return explain_os_error(error)
    if isinstance(error, CONFIG_ERRORS):  # an interpolation, which is resolved where it is read
        overrides = HydraConfig.get().overrides.task if HydraConfig.initialized() else []
        return explain_config_error(error, overrides, config_dir())
    return None


def _write(job: Job, folder: Path) -> None:
    write_lines(folder / FILE, [json.dumps(asdict(job), ensure_ascii=False)])


def read_jobs(sweep_folder: Path) -> list[tuple[Job, Path]]:
    """Return the jobs of a sweep that have started, with their folders, by number."""
    found: list[tuple[Job, Path]] = []
    for path in sweep_folder.rglob(FILE):
        fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found.append((Job(**fields), path.parent))
    return sorted(found, key=lambda entry: entry[0].number)
