"""Where the figures of a report come from, run by run, and how to get them again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from experiments.finished_runs import FinishedRun
from experiments.tracking import flatten


def facts(run: FinishedRun) -> dict[str, str]:
    """Return what a reader needs to tell this run from others, in words; what is not known is left out."""
    origin = run.origin
    collection = origin.get("collection", {})
    known = {
        "run": run.run_id or origin.get("run_id"),
        "sweep": run.tags.get("sweep_id") or origin.get("sweep_id"),
        "date": date_of(run),
        "folder": str(run.folder),
        "collection": _pair(run.metrics.get("collection"), collection.get("fingerprint")),
        "fingerprint": run.tags.get("fingerprint") or origin.get("fingerprint"),
        "models": ", ".join(f"{name} {sha}" for name, sha in origin.get("models", {}).items()),
        "code": run.tags.get("git_commit") or origin.get("git_commit"),
        "python": origin.get("python"),
        "libraries": ", ".join(f"{name} {version}" for name, version in origin.get("libraries", {}).items()),
        "seeds": ", ".join(f"{key} {value}" for key, value in _seeds(run.settings).items()),
        "counts": ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in run.counts.items()),
    }
    return {name: text for name, text in known.items() if text}


def date_of(run: FinishedRun) -> str | None:
    """Return the day of the run as its sweep or folder is named after, or None."""
    found = re.search(r"\d{4}-\d\d-\d\d", f"{run.tags.get('sweep_id', '')} {run.folder}")
    return found.group() if found else None


def command(run: FinishedRun) -> str:
    """Return what repeats the run, from the working directory that it ran in."""
    folder = shlex.quote(str(run.folder))
    return f'litgrade run --config-path "$(realpath {folder})" --config-name config'


def config_text(run: FinishedRun) -> str:
    """Return the whole config."""
    return yaml.safe_dump(dict(run.settings), sort_keys=False, allow_unicode=True, width=110)


def _pair(name: str | None, fingerprint: str | None) -> str | None:
    return f"{name}, {fingerprint}" if name and fingerprint else name


def _seeds(settings: Mapping[str, Any]) -> dict[str, object]:
    flat = flatten(settings)
    return {k: v for k, v in flat.items() if k.split(".")[-1] == "seed" and not k.startswith("grade.llm.")}
