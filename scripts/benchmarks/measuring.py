"""How time and memory are measured, and how a line of the table looks."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")


def timed(work: Callable[[], object]) -> float:
    """Return the wall time of one go."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the shortest wall time of several goes."""
    return min(timed(work) for _ in range(repeats))


def in_own_process(function: Callable[..., Value], *arguments: object) -> Value:
    """Return what the function returns in a process that has done nothing else."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def peak_mb(work: Callable[[], object]) -> float:
    """Return the most resident memory that the process takes on for this work, as Linux counts it.

    ``ru_maxrss`` will not do: a process starts with that of its parent, and it never falls.
    """
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _resident_mb("VmRSS")
    kept = work()
    peak = _resident_mb("VmHWM") - before
    del kept
    return peak


def _resident_mb(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def litgrade(verb: str, *arguments: str, folder: Path) -> None:
    """Run a verb in this folder, as a user would."""
    command = [sys.executable, "-m", f"experiments.{verb}", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")


def row(what: str, other: str, theirs: float, ours: float) -> list[str]:
    """Return one line of the table."""
    return [what, other, f"{theirs:.3g}", f"{ours:.3g}", f"{theirs / ours:.1f}"]
