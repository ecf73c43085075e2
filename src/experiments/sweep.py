"""The life of a Hydra multirun: what is kept before its first job, and what is shown after its last one."""

from __future__ import annotations

import json
import logging
import math
import shutil
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from experiments.config import NestedCv, Sections, Tuning, read_sections
from experiments.files import write_lines
from experiments.jobs import DEFINITION, FILE, Job, line_of, read_jobs, stopped
from experiments.tracking import described, git_commit, prepare, tracked_run
from pipeline.errors import UserError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Started:
    """A multirun that has begun."""

    folder: Path
    definition: dict[str, Any]  #: what is in ``sweep.json``
    sections: Sections
    lock: FileLock  #: on the folder


_started: list[Started] = []  # Hydra makes the callback itself, so this is how it tells `summarized`


class Sweep(Callback):
    """Hydra calls this in the process that starts the jobs."""

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Keep what is swept, and make MLflow's store before several jobs use it at once.

        An error ends the process: an exception would be no more than a warning to Hydra, and the jobs would start.
        """
        try:
            _started.append(_start(config))
        except Exception as error:  # noqa: BLE001 (told, and the end)
            if (line := line_of(error)) is None:
                traceback.print_exc()
            else:
                print(f"litgrade: {line}", file=sys.stderr)  # noqa: T201
            sys.exit(1 if line is None else 2)


def _start(config: DictConfig) -> Started:
    sections = read_sections(config)
    tuning = sections.tuning
    folder = Path(config.hydra.sweep.dir)
    choices = config.hydra.runtime.choices
    swept = _swept_keys(config)
    if of_all := [key for key in swept if key.split(".")[0] in {"tuning", "objective"}]:
        raise UserError(f"{of_all[0]}: it is one for all jobs of a sweep, which are judged by it; give a single value")
    if choices["hydra/sweeper"] == "optuna":
        _check_search(config, tuning)
    if choices["hydra/launcher"] == "submitit_slurm" and not shutil.which("srun"):
        raise UserError(
            "hydra/launcher=submitit_slurm: no command srun here; start it on a node of a Slurm cluster, or give "
            "hydra/launcher=submitit_local or joblib"
        )
    lock = _locked(folder)
    definition = {
        "sweep_id": f"{folder.parent.name}-{folder.name}",
        "swept": swept,
        "jobs": _n_jobs(config),
        "overrides": list(config.hydra.overrides.task),
        "sweeper": choices["hydra/sweeper"],
        "launcher": choices["hydra/launcher"],
        "params": OmegaConf.to_container(config.hydra.sweeper.get("params") or OmegaConf.create({})),
        "defaults": {key: _default(config, key) for key in swept},
        "objective": sections.objective,
        "tuning": tuning.model_dump(),
        "git_commit": git_commit(),
    }
    for left in folder.rglob(FILE):  # of an earlier sweep into this folder
        left.unlink()
    write_lines(folder / DEFINITION, [json.dumps(definition, indent=1, ensure_ascii=False)])
    prepare(sections.tracking)
    return Started(folder, definition, sections, lock)


def _locked(folder: Path) -> FileLock:
    """Keep other sweeps out of this folder as long as this process lives."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise UserError(f"hydra.sweep.dir={folder}: another sweep is writing there; name another folder") from error
    return lock


def _check_search(config: DictConfig, tuning: Tuning) -> None:
    if isinstance(tuning, NestedCv):
        raise UserError(
            "tuning=nested_cv with hydra/sweeper=optuna: a search would have to be repeated for every fold; "
            "give tuning=holdout"
        )
    if getattr(config.hydra.sweeper.direction, "name", config.hydra.sweeper.direction) != "maximize":
        raise UserError(
            "hydra/sweeper=optuna minimizes unless it is told otherwise, and every objective is better when higher; "
            "give hydra.sweeper.direction=maximize, or experiment=tune_weights, which says so"
        )


def _swept_keys(config: DictConfig) -> list[str]:
    parsed = OverridesParser.create().parse_overrides(list(config.hydra.overrides.task))
    given = [override.get_key_element().lstrip("+~") for override in parsed if override.is_sweep_override()]
    return list(dict.fromkeys([*(config.hydra.sweeper.get("params") or {}), *given]))


def _n_jobs(config: DictConfig) -> int | None:
    """Return how many jobs there will be; None where a glob decides."""
    if "n_trials" in config.hydra.sweeper:
        return int(config.hydra.sweeper.n_trials)
    params = [f"{key}={value}" for key, value in (config.hydra.sweeper.get("params") or {}).items()]
    parsed = OverridesParser.create().parse_overrides([*params, *config.hydra.overrides.task])
    values = {override.key_or_group: override for override in parsed}  # the last of a key counts
    swept = [override for override in values.values() if override.is_sweep_override()]
    if any(isinstance(override.value(), Glob) for override in swept):
        return None
    return math.prod(len(list(override.sweep_iterator())) for override in swept)


def _default(config: DictConfig, key: str) -> Any:
    """Return what a job would have without the sweep: a value, or the choice of a group."""
    value = config.hydra.runtime.choices.get(key, OmegaConf.select(config, key))
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


@contextmanager
def summarized() -> Iterator[None]:
    """Show, write and log what became of the jobs of the multirun in this block; exit with 2 or 1 if any failed.

    Where the block itself fails, as after a worker died, the jobs that were done are shown all the same.
    """
    _started.clear()
    try:
        yield
    except BaseException as error:
        if _started:
            _finish(_started[0])
        if type(error).__name__ == "TerminatedWorkerError":  # joblib's, whose import takes long
            raise UserError(
                "a worker process was killed, perhaps for want of memory; tracking.resume=true runs what is missing"
            ) from error
        if _started and (stopped or isinstance(error, KeyboardInterrupt)):  # none may say so
            how = f"killed by signal {stopped[0]}; " if stopped else ""
            print(f"litgrade: {how}tracking.resume=true runs what is missing", file=sys.stderr)  # noqa: T201
        raise
    if _started:
        failed = _finish(_started[0])
        _started[0].lock.release()
        if failed:
            sys.exit(1 if any(job.is_our_fault for job in failed) else 2)


def _finish(started: Started) -> list[Job]:
    """Return the jobs that did not end well, told as the last lines."""
    jobs = read_jobs(started.folder)
    if not jobs:
        return []
    from experiments.sweep_table import make_table, summary_text, table_text, write_table

    table = make_table(jobs, started.definition, started.sections.objective, started.sections.tuning)
    files = write_table(table, started.folder)
    print(table_text(table))  # noqa: T201
    print(started.folder)  # noqa: T201
    failed = [job for job, _ in jobs if job.status not in {"finished", "skipped"}]
    for job in failed:
        why = job.error or ("its process ended without a word" if job.status == "running" else job.status)
        print(f"litgrade: job {job.name}: {why}", file=sys.stderr)  # noqa: T201
    name = f"sweep {' '.join(started.definition['swept']) or 'of one setting'}"
    tags = {"sweep_id": started.definition["sweep_id"], "kind": "summary", "collection": table.collection}
    tags |= described(summary_text(table), "sweep.md")
    with tracked_run(started.sections.tracking, name, tags) as run:  # last: MLflow may be what failed
        run.log(table.params, table.metrics, {})
        run.log_files(started.folder, [*files, DEFINITION])
    return failed
