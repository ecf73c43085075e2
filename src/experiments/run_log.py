"""What MLflow keeps of a run: the same short parameters for every run, one scheme of metric names, the collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments.explanations import judge_use, summarize, summary_metrics
from experiments.tracking import flatten, legal_part
from pipeline.cache import content_key

if TYPE_CHECKING:
    from experiments.run import RunResult

_SECTIONS = ("cutoffs", "weights", "bm25", "score", "grade", "calibration", "metrics")


def params(result: RunResult) -> dict[str, object]:
    """Return the parameters, named by their keys on the command line.

    Every run has all of them, whatever its arm reads: the compare view draws a run that lacks one beyond the axis. What
    is long (prompts) stands as its hash; what changes no result (paths, connections) is in config.yaml only.
    """
    config = result.config
    settings = config.model_dump(mode="json", include={*_SECTIONS, "judge", "prompt"})
    del settings["grade"]["llm"], settings["grade"]["prompt"]
    judge, prompt = settings.pop("judge"), settings.pop("prompt")
    return {
        "arm": config.arm.name,
        "collection": result.collection.name,
        "embedder": config.embedder.model.name,
        **{f"embedder.{key}": getattr(config.embedder, key) for key in ("precision", "max_tokens")},
        "cross_encoder": config.cross_encoder.model.name,
        "llm": config.llm.model,
        **{f"llm.{key}": getattr(config.llm, key) for key in ("temperature", "seed", "max_tokens", "provider")},
        "prompt": content_key(prompt).hex()[:16],
        "judge": judge["llm"]["model"] if judge["kind"] != "none" else "none",
        **flatten(settings),
    }


def stages_text(result: RunResult) -> str:
    """Return what the arm really ran, as ``bm25(k1=1.5) > cut(keep=100)``: a tag, which no plot takes for an axis."""
    return " > ".join(_stage_text(entry) for entry in result.config.arm.stages)[:5_000]


def _stage_text(entry: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a stage as ``cut(keep=50)``: what the arm really ran with, whatever the groups above say."""
    ((name, settings),) = entry.items()
    apart = {"embedder", "encoder", "llm", "prompt"}  # logged by themselves
    flat = flatten({key: value for key, value in settings.items() if key not in apart})
    return f"{name}({', '.join(f'{key}={value}' for key, value in flat.items())})"


def metrics(result: RunResult) -> dict[str, float]:
    """Return ``NAME`` and ``NAME.sd`` over areas, ``AREA/NAME``, ``count/...``, ``seconds/...`` and those of models."""
    scores = result.scores
    named = dict(scores.macro) | {f"{name}.sd": value for name, value in scores.sd.items()}
    named |= {
        f"{legal_part(area)}/{name}": value for area, values in scores.areas.items() for name, value in values.items()
    }
    if result.intervals:
        for bound, of_bound in zip(("low", "high"), result.intervals, strict=True):
            named |= {f"{name}.{bound}": value for name, value in of_bound.macro.items()}
    if result.use:
        run = result.use["run"]
        named |= {f"model/{name}": value for name, value in run.items() if not isinstance(value, dict)}
        named |= {f"model/outcome_{kind}": count for kind, count in run["outcomes"].items()}
    if result.judged:
        named |= summary_metrics(summarize(result.judged))
        named |= {f"judge/{name}": value for name, value in judge_use(result.judged).items()}
    named |= {f"count/{name}": float(count) for name, count in result.counts.items()}
    named |= {f"seconds/{stage}": seconds for stage, seconds in result.seconds.items()}
    return {name: value for name, value in named.items() if value is not None}
