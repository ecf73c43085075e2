"""What sets a run apart from the paper: its settings held against those that conf/ gives."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from experiments.config import config_dir, unread_overrides
from experiments.tracking import flatten

#: What says on what, where and how fast a run computed, and changes no figure of it.
_OUTSIDE = ("arm", "collection", "objective", "paths", "prices", "tracking", "tuning")
_PLACES = {"attempts", "backoff_s", "base_url", "batch_size", "batch_tokens", "concurrency", "deadline_s", "device"}
_PLACES |= {"files", "folder", "key_env", "max_usd", "mode", "packages", "path", "prices", "recording", "store"}
#: What hangs on the language model and its endpoint.
_OF_MODEL = ("provider", "response_format", "context_window")

_ABSENT = object()


@dataclass(frozen=True, order=True)
class Difference:
    """One setting that a run has otherwise than the paper."""

    key: str
    paper: str
    run: str

    def __str__(self) -> str:
        return f"{self.key} {self.paper} → {self.run}"


def differences(settings: Mapping[str, Any]) -> list[Difference]:
    """Return what differs from the paper and is read by the arm of the run, in the order of the config."""
    arm = str(settings["arm"]["name"])
    composed, papers, unread = _paper(
        arm if (config_dir() / "arm" / f"{arm}.yaml").exists() else None, _has_judge(settings)
    )
    ours = _comparable(settings)
    shared = [key for key in ours if key in papers and key not in unread]
    differing = [key for key in shared if not _same(ours[key], papers[key])]
    renamed = [key.removesuffix("name") for key in differing if key.endswith(".name")]  # of another model all differs
    renamed += [
        f"{key.removesuffix('model')}{of}" for key in differing if key.endswith("llm.model") for of in _OF_MODEL
    ]
    found = [
        Difference(key.removesuffix(".model.name").removesuffix(".name"), _text(papers[key]), _text(ours[key]))
        for key in differing
        if key.endswith(".name") or not key.startswith(tuple(renamed))
    ]
    return [*found, *_of_stages(settings, composed)]


def _has_judge(settings: Mapping[str, Any]) -> bool:
    return bool(settings.get("judge", {}).get("kind", "none") != "none")


@functools.cache
def _paper(arm: str | None, has_judge: bool) -> tuple[DictConfig, dict[str, object], set[str]]:  # noqa: FBT001
    """Return the paper's settings, composed and flat, and those that the arm does not read.

    They are the defaults of conf/, with the paper's own models for grading and judging.
    """
    choices = [
        *(["arm=" + arm] if arm else []),
        "llm=mistral",
        "tracking=none",
        *(["judge=ragas"] if has_judge else []),
    ]
    composed = hydra.compose("config", overrides=choices)
    plain: dict[str, Any] = OmegaConf.to_container(composed, resolve=True)  # type: ignore[assignment]  # has keys
    flat = _comparable(plain)
    return composed, flat, set(unread_overrides(composed, list(flat)))


def _comparable(settings: Mapping[str, Any]) -> dict[str, object]:
    flat = flatten({key: value for key, value in settings.items() if key not in _OUTSIDE})
    apart = ("grade.llm.", "grade.prompt.")  # the same as llm and prompt, which the arm refers to
    return {k: v for k, v in flat.items() if not k.startswith(apart) and not _PLACES & set(k.split("."))}


def _of_stages(settings: Mapping[str, Any], composed: DictConfig) -> list[Difference]:
    """Return what the stages have otherwise than their arm's file gives them with the settings of the run."""
    if str(settings["arm"]["name"]) != composed.arm.name:
        return [Difference("arm", "not in conf/", str(settings["arm"]["name"]))]
    of_file = OmegaConf.create({**settings, "arm": OmegaConf.to_container(composed.arm, resolve=False)})
    ours, papers = _flat_stages(settings["arm"]), _flat_stages(OmegaConf.to_container(of_file.arm, resolve=True))
    keys = dict.fromkeys([*papers, *ours])
    pairs = [(key, papers.get(key, _ABSENT), ours.get(key, _ABSENT)) for key in keys]
    return [Difference(key, _text(p), _text(o)) for key, p, o in pairs if not _same(o, p)]


def _flat_stages(arm: Any) -> dict[str, object]:
    """Return ``{"arm.stages.1.cut.keep": 100}``."""
    stages = {str(i): stage for i, stage in enumerate(arm["stages"])}
    flat = flatten({"arm": {**arm, "stages": stages}})
    return {key: value for key, value in flat.items() if not _PLACES & set(key.split("."))}


def _same(a: object, b: object) -> bool:
    if a is _ABSENT or b is _ABSENT:  # a setting that came or went with a version and is not set
        return (b if a is _ABSENT else a) in (None, _ABSENT)
    return a == b


def _text(value: object) -> str:
    """Return a setting as it would be typed; of a long text only its length."""
    if value is _ABSENT:
        return "none"
    if isinstance(value, float):
        return f"{value:.10g}"  # not the 0.7000000000000001 of a search
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False).removesuffix(".0")
    return text if len(text) <= 60 else f"a text of {len(text)} characters"
