"""What differs in the settings of finished runs: what their stages really ran with, and how they were measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.finished_runs import FinishedRun
from experiments.tracking import flatten

#: What changes no result, and what the stages of the arm hold as well.
_APART = {"arm", "objective", "paths", "prices", "tracking", "tuning"}
_IN_STAGES = {"bm25", "cross_encoder", "embedder", "grade", "llm", "prompt", "score", "weights"}
_PLACES = {"batch_size", "batch_tokens", "files", "folder", "packages", "store"}
_LONGEST = 60

_ABSENT, _NOTHING = object(), "—"


def differing_settings(runs: Sequence[FinishedRun]) -> dict[str, list[str]]:
    """Return each setting that is not the same in all runs, with its value in every run."""
    shared = [_outside_stages(run) for run in runs]
    arms = [{"arm": run.settings["arm"]["name"], "stages": " > ".join(_stage_names(run))} for run in runs]
    versions = [{"code": str(code)[:12]} if (code := run.origin.get("code")) else {} for run in runs]
    outside = _differing(arms) | _differing(shared)
    inside = {key: values for key, values in _differing(_of_stages(runs)).items() if not _repeats(values, outside)}
    return outside | inside | _differing(versions)


def _repeats(values: Sequence[str], outside: Mapping[str, Sequence[str]]) -> bool:
    """Whether a stage has, in every run that has it, what another setting says: a cut has the cutoff it was given."""
    pairs = (zip(values, others, strict=True) for others in outside.values())
    return any(all(value in {_NOTHING, other} for value, other in pair) for pair in pairs)


def _outside_stages(run: FinishedRun) -> dict[str, object]:
    settings = {key: value for key, value in run.settings.items() if key not in _APART | _IN_STAGES}
    return {key: value for key, value in flatten(settings).items() if key != "collection.path"}


def _stage_names(run: FinishedRun) -> list[str]:
    return [name for entry in run.settings["arm"]["stages"] for name in entry]


def _of_stages(runs: Sequence[FinishedRun]) -> list[dict[str, object]]:
    """Return ``{"semantic.weights.alpha": 0.15, "cut after semantic.keep": 50}`` of each run.

    What only one of two semantic stages sets is at its default in the other; what a run has no stage for is not there.
    """
    labelled = [_labelled_stages(run) for run in runs]
    flat = [flatten(stages) for stages in labelled]
    keys = [key for key in dict.fromkeys(key for one in flat for key in one) if not _PLACES & set(key.split("."))]
    return [
        {key: one.get(key, "default") for key in keys if key.split(".")[0] in stages}
        for one, stages in zip(flat, labelled, strict=True)
    ]


def _labelled_stages(run: FinishedRun) -> dict[str, Mapping[str, Any]]:
    names = _stage_names(run)
    labels = [f"cut after {names[i - 1]}" if name == "cut" and i else name for i, name in enumerate(names)]
    stages = (settings or {} for entry in run.settings["arm"]["stages"] for settings in entry.values())
    return dict(zip(labels, stages, strict=True))


def _differing(flat: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the keys whose values differ among the runs that have them; what a run lacks is told by its stages."""
    found = {}
    for key in dict.fromkeys(key for one in flat for key in one):
        values = [one.get(key, _ABSENT) for one in flat]
        given = [value for value in values if value is not _ABSENT]
        if any(value != given[0] for value in given):
            found[key] = [_text(value) for value in values]
    return found


def _text(value: object) -> str:
    if value is _ABSENT:
        return _NOTHING
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _LONGEST and "\n" not in text:
        return text
    return f"{len(text):,} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:8]}"
