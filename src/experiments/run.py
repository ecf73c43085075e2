"""``litgrade run``: one collection through one arm, measured, written to the job's folder and logged."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from experiments import cli
from experiments.calibration import cross_fit
from experiments.collections import Collection
from experiments.config import Ragas, RunConfig, read_config
from experiments.explanations import JudgedExplanation, judge_use, summarize, summary_metrics, summary_text
from experiments.files import write_lines
from experiments.intervals import bounds
from experiments.judge import judge_explanations
from experiments.metrics import Scores, Values, aggregate, grade_ranking, measure_query
from experiments.model_use import model_use, use_line, use_text
from experiments.tables import mean_text, write_csv
from experiments.tracking import flatten, legal_part, tracked_run
from pipeline.cache import content_key
from pipeline.candidates import Candidates
from pipeline.errors import UserError, without_secrets
from pipeline.grading import Thresholds
from pipeline.llm.estimates import EstimateOnly
from pipeline.stages import grade

log = logging.getLogger(__name__)


#: What a run leaves in its folder, in the order of writing; the last one tells that all is there.
METRICS = "metrics.json"  #: written last
FILES = ("config.yaml", "ranking.jsonl", "run.trec", "per_query.csv", "explanations.jsonl", METRICS)


@dataclass(frozen=True)
class RunResult:
    """What an arm made of a collection, and how good it is."""

    config: RunConfig
    collection: Collection
    rankings: list[Candidates]
    scores: Scores
    counts: dict[str, int]
    seconds: dict[str, float]  #: stage name -> wall time
    intervals: tuple[Scores, Scores] | None = None  #: least and greatest scores, where papers are left ungraded
    thresholds: Mapping[str, Thresholds] = field(default_factory=dict)  #: of expected grades, by query, where learned
    use: Mapping[str, Any] | None = None  #: what a language model took
    judged: Sequence[JudgedExplanation] | None = None  #: explanations, where a judge was asked


def perform(config: RunConfig, folder: Path, tags: Mapping[str, str]) -> RunResult:
    """Run, measure, write to ``folder`` and log, with these tags on the run."""
    collection = config.loader().load()
    (folder / METRICS).unlink(missing_ok=True)  # of an earlier run in this folder
    named = {**tags, "kind": "run", "arm": config.arm.name, "collection": collection.name}
    named["model"] = ", ".join(config.model_names()) or "none"
    with tracked_run(config.tracking, f"{config.arm.name} {collection.name}", named) as run:
        result = measure(config, collection)
        write_folder(result, folder)
        run.log(_params(result), _metrics(result), {"notice": collection.notice} if collection.notice else {})
        run.log_files(folder, [name for name in FILES if (folder / name).exists()])
    return result


def measure(config: RunConfig, collection: Collection) -> RunResult:
    """Send the collection through the arm and hold the rankings against the judgments."""
    rankings, seconds = collection.candidates(), {}
    for position, (name, stage) in enumerate(config.stages()):
        started = time.perf_counter()
        rankings = stage(rankings)
        seconds[f"{position}_{name}"] = time.perf_counter() - started
    calibrated = cross_fit(rankings, collection.judgments, config.calibration.folds)
    rankings = calibrated.rankings
    judged = [table for table in rankings if collection.judgments[table.query.query_id]]
    graded = {
        table.query.query_id: grade_ranking(table, collection.judgments[table.query.query_id], config.metrics.unjudged)
        for table in judged
    }
    measured = {query_id: measure_query(ranking, config.depths) for query_id, ranking in graded.items()}
    areas = {query.query_id: query.area for query in collection.queries}
    top = config.cutoffs.evaluate
    counts = {
        "queries": len(collection.queries),
        "queries_without_judgments": len(rankings) - len(judged),
        "papers": len(collection.papers),
        "judgments": sum(len(collection.judgments[query.query_id]) for query in collection.queries),
        "ranked": sum(len(table) for table in rankings),
        f"unjudged_in_top_{top}": sum(int((~ranking.is_judged[:top]).sum()) for ranking in graded.values()),
        "ranked_truncated": sum(int(t.columns[c].sum()) for t in rankings for c in _TRUNCATED if c in t.columns),
    }
    return RunResult(
        config,
        collection,
        rankings,
        aggregate(measured, areas),
        counts,
        seconds,
        _intervals(config, collection, judged, measured, areas),
        calibrated.thresholds,
        model_use(rankings),
        judge_explanations(rankings, config.judge) if isinstance(config.judge, Ragas) and config.explains else None,
    )


def _intervals(
    config: RunConfig,
    collection: Collection,
    rankings: Sequence[Candidates],
    measured: Mapping[str, Values],
    areas: Mapping[str, str],
) -> tuple[Scores, Scores] | None:
    """Return the scores at their least and at their greatest, over the grades that ungraded papers might have."""
    found = {
        (query_id := table.query.query_id): bounds(
            table, collection.judgments[query_id], config.metrics.unjudged, config.depths
        )
        for table in rankings
    }
    if all(of_query is None for of_query in found.values()):
        return None
    low = {query_id: measured[query_id] if b is None else b.low for query_id, b in found.items()}
    high = {query_id: measured[query_id] if b is None else b.high for query_id, b in found.items()}
    return aggregate(low, areas), aggregate(high, areas)


_TRUNCATED = ("abstract_truncated", "text_truncated")  # columns that tell what did not fit into a model's window


def write_folder(result: RunResult, folder: Path) -> None:
    """Write what every run leaves (see docs/architecture.md); metrics.json comes last and tells that all is there."""
    settings = public_settings(result.config)
    write_lines(folder / "config.yaml", [yaml.safe_dump(settings, sort_keys=False, allow_unicode=True).rstrip()])
    rows = (row for table in result.rankings for row in table.rows())
    write_lines(folder / "ranking.jsonl", (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows))
    write_lines(folder / "run.trec", _trec_lines(result))
    names = list(result.scores.macro)
    areas = {query.query_id: query.area for query in result.collection.queries}
    queries = result.scores.queries.items()
    write_csv(
        folder / "per_query.csv",
        ["collection", "query_id", "area", *names],
        [[result.collection.name, query_id, areas[query_id], *map(values.get, names)] for query_id, values in queries],
    )
    (folder / "explanations.jsonl").unlink(missing_ok=True)
    if result.judged is not None:
        judged = (json.dumps(asdict(entry), ensure_ascii=False, allow_nan=False) for entry in result.judged)
        write_lines(folder / "explanations.jsonl", judged)
    named = {"collection": result.collection.name, **asdict(result.scores), "counts": result.counts}
    named |= {key: value for key, value in _of_model(result).items() if value}
    write_lines(folder / METRICS, [json.dumps(named, indent=1, allow_nan=False)])


def _of_model(result: RunResult) -> dict[str, Any]:
    """Return what metrics.json adds for an arm with a language model."""
    low, high = result.intervals or (None, None)
    return {
        "model_use": result.use,
        "thresholds": result.thresholds,
        "explanations": result.judged and summarize(result.judged),
        "judge_use": result.judged and judge_use(result.judged),
        "intervals": low and high and {name: [low.macro[name], high.macro[name]] for name in low.macro},
    }


def _trec_lines(result: RunResult) -> Iterator[str]:
    """Yield the run in TREC format. Scores count down to 1: readers sort by score, and ours may tie."""
    tag = result.config.arm.name
    for table in result.rankings:
        for rank, paper in enumerate(table.papers, start=1):
            yield f"{table.query.query_id} Q0 {paper.paper_id} {rank} {len(table) - rank + 1} {tag}"


def public_settings(config: RunConfig) -> dict[str, Any]:
    """Return the resolved config without secrets; Hydra reads it back."""
    settings: dict[str, Any] = config.model_dump(mode="json")
    if "uri" in settings["tracking"]:
        settings["tracking"]["uri"] = without_secrets(settings["tracking"]["uri"])
    return settings


def _params(result: RunResult) -> dict[str, object]:
    settings = public_settings(result.config)
    del settings["prices"], settings["grade"]["llm"], settings["grade"]["prompt"], settings["llm"]["prices"]
    settings["prompt"] = {"fingerprint": content_key(settings["prompt"]).hex()}  # the text is in config.yaml
    for encoder in ("embedder", "cross_encoder"):
        del settings[encoder]["model"]["files"]
    settings["embedder"]["model"]["fingerprint"] = result.config.embedder.model.fingerprint
    settings["collection"] |= {"name": result.collection.name, "fingerprint": result.collection.fingerprint}
    settings["arm"]["stages"] = " > ".join(_stage_text(entry) for entry in result.config.arm.stages)
    return flatten({**settings, "counts": result.counts})


def _stage_text(entry: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a stage as ``cut(keep=50)``: what the arm really ran with, whatever the groups above say."""
    ((name, settings),) = entry.items()
    apart = {"embedder", "encoder", "llm", "prompt"}  # logged by themselves
    flat = flatten({key: value for key, value in settings.items() if key not in apart})
    return f"{name}({', '.join(f'{key}={value}' for key, value in flat.items())})"


def _metrics(result: RunResult) -> dict[str, float]:
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
    named |= {f"seconds/{stage}": seconds for stage, seconds in result.seconds.items()}
    return {name: value for name, value in named.items() if value is not None}


def summary_lines(result: RunResult) -> list[str]:
    """Return the macro figures, one metric a line."""
    scores, lines = result.scores, []
    if n_without := result.counts["queries_without_judgments"]:
        left_out = "nothing is measured" if n_without == result.counts["queries"] else "the others are measured"
        lines.append(f"{n_without} of {result.counts['queries']} queries have no judgments: {left_out}")
    lines += [f"{name:<18} {mean_text(mean, scores.sd[name])}" for name, mean in scores.macro.items()]
    if result.intervals:
        low, high = (of_bound.macro for of_bound in result.intervals)
        intervals = [_interval_text(low[name], high[name]) for name in low]
        lines[-len(low) :] = [line + text for line, text in zip(lines[-len(low) :], intervals, strict=True)]
    if result.use:
        lines.append(use_text(result.use))
    if result.judged:
        lines += ["", summary_text(summarize(result.judged)), use_line("judge", judge_use(result.judged))]
    return lines


def _interval_text(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"  ({low:.3f} to {high:.3f}, whatever the ungraded papers are)"


def estimate_lines(config: RunConfig) -> list[str]:
    """Return what the arm would ask a language model, without asking."""
    if config.asked_model is None:
        return [f"arm {config.arm.name} asks no language model"]
    rankings = config.loader().load().candidates()
    try:
        for _, stage in config.stages():
            rankings = stage(rankings)
    except EstimateOnly as found:
        later = "not estimated, because it hangs on the answers: asking for explanations after grading"
        judge = "not estimated, because it holds explanations that are not given yet: judging them"
        explains_later = any(isinstance(s, grade.Stage) and s.explains_later for _, s in config.stages())
        notes = [*([later] if explains_later else []), *([judge] if isinstance(config.judge, Ragas) else [])]
        return [str(found), *notes, "nothing was asked"]
    raise AssertionError("a stage that asks a model raises in place of asking")


def sweep_tags() -> dict[str, str]:
    """Return the tag that ties the jobs of one Hydra multirun."""
    settings = HydraConfig.get()
    folder = Path(settings.sweep.dir)
    return {"sweep_id": f"{folder.parent.name}-{folder.name}"} if settings.mode == RunMode.MULTIRUN else {}


@cli.job("config")
def main(composed: DictConfig) -> None:
    """Compose, check, run, show."""
    config = read_config(composed)
    folder = Path(HydraConfig.get().runtime.output_dir)
    if isinstance(config.judge, Ragas) and not config.explains:
        raise UserError(
            f"judge={config.judge.kind}: arm {config.arm.name} gives no explanations to judge; use arm=bm25_mpnet_llm "
            "with grade.explain=all or shown"
        )
    if config.llm.mode == "estimate":
        with contextlib.suppress(OSError):  # it holds something already
            folder.rmdir()
        print("\n".join(estimate_lines(config)))  # noqa: T201
        return
    result = perform(config, folder, sweep_tags())
    if result.collection.notice:
        print(f"Note: {result.collection.notice}")  # noqa: T201
    print("\n".join([f"{config.arm.name} on {result.collection.name}", *summary_lines(result)]))  # noqa: T201
    print(folder)  # noqa: T201


if __name__ == "__main__":
    import sys

    cli.main(["run", *sys.argv[1:]])
