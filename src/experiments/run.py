"""``litgrade run``: one collection through one arm, measured, written to the job's folder and logged."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from experiments import cli, jobs, run_log
from experiments.calibration import cross_fit
from experiments.collections import Collection, Loader
from experiments.config import Holdout, Mlflow, NoTuning, Ragas, RunConfig, read_config, read_sections
from experiments.explanations import JudgedExplanation, judge_use, summarize, summary_text
from experiments.files import write_lines
from experiments.finished_runs import read_run
from experiments.intervals import bounds
from experiments.jobs import JobResult
from experiments.judge import judge_explanations
from experiments.metrics import Scores, Values, aggregate, grade_ranking, measure_query
from experiments.model_use import model_use, use_line, use_text
from experiments.provenance import FILE as PROVENANCE
from experiments.provenance import code_fingerprint, fingerprint, provenance
from experiments.tables import mean_text, write_csv
from experiments.tracking import fetch_files, find_finished, join_sweep, tracked_run
from experiments.tuning import make_splits
from pipeline.candidates import Candidates
from pipeline.errors import UserError, without_secrets
from pipeline.grading import Thresholds
from pipeline.llm.estimates import EstimateOnly
from pipeline.stages import grade

log = logging.getLogger(__name__)


#: What a run leaves in its folder, in the order of writing; the last one tells that all is there.
METRICS = "metrics.json"  #: written last
FILES = ("config.yaml", "ranking.jsonl", "run.trec", "per_query.csv", "explanations.jsonl", PROVENANCE, METRICS)


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


def perform(config: RunConfig, folder: Path, tags: Mapping[str, str], name: str | None = None) -> RunResult:
    """Run, measure, write to ``folder`` and log, with these tags and this name (else arm and collection) on the run."""
    collection = load(config.loader())
    (folder / METRICS).unlink(missing_ok=True)  # of an earlier run in this folder
    named = {**tags, "kind": "run", "arm": config.arm.name, "collection": collection.name}
    origin = provenance(config, collection, tags.get("sweep_id"))
    named |= {"model": ", ".join(config.model_names()) or "none"}
    named |= {key: origin[key] for key in ("fingerprint", "code")}
    with tracked_run(config.tracking, name or f"{config.arm.name} {collection.name}", named) as run:
        result = measure(config, collection)
        write_folder(result, folder, {"run_id": run.run_id or None, **origin})
        further = {
            "stages": run_log.stages_text(result),
            **({"notice": collection.notice} if collection.notice else {}),
        }
        run.log(run_log.params(result), run_log.metrics(result), further)
        counts = {name: result.counts[name] for name in ("queries", "papers", "judgments")}
        run.log_collection(collection.name, collection.fingerprint, counts, collection.notice)
        run.log_files(folder, [name for name in FILES if (folder / name).exists()])
    return result


@functools.lru_cache(maxsize=1)
def load(loader: Loader) -> Collection:
    """Return the collection; jobs of one process that are on the same collection read it once."""
    return loader.load()


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


def write_settings(config: RunConfig, folder: Path) -> None:
    """Write ``config.yaml``, from which Hydra can repeat the run."""
    settings = yaml.safe_dump(public_settings(config), sort_keys=False, allow_unicode=True)
    write_lines(folder / "config.yaml", [settings.rstrip()])


def write_folder(result: RunResult, folder: Path, origin: Mapping[str, Any]) -> None:
    """Write what every run leaves (see docs/architecture.md); metrics.json comes last and tells that all is there."""
    write_settings(result.config, folder)
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
    write_lines(folder / PROVENANCE, [json.dumps(origin, indent=1)])
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


@cli.job("config")
def main(composed: DictConfig) -> JobResult | None:
    """Compose, check, run, show; in a sweep, take a run that is finished already where that is wanted."""
    sweep_id = jobs.sweep_id()
    tags = {} if sweep_id is None else {"sweep_id": sweep_id}
    name = jobs.this_job().name if sweep_id else None
    try:
        config = _checked_config(composed)
    except UserError:
        if sweep_id is None:
            raise
        with tracked_run(read_sections(composed).tracking, str(name), {**tags, "kind": "run"}):
            raise  # a job that could not begin stands in MLflow as failed, with this error
    folder = Path(HydraConfig.get().runtime.output_dir)
    if config.llm.mode == "estimate":
        with contextlib.suppress(OSError):  # it holds something already
            folder.rmdir()
        print("\n".join(estimate_lines(config)))  # noqa: T201
        return None
    tracking = config.tracking
    if isinstance(tracking, Mlflow) and tracking.resume and _take_finished(config, tracking, folder, sweep_id):
        return JobResult(_objective(config, folder), is_skipped=True)
    if sweep_id is None:
        _warn_of_what_is_for_sweeps(config)
    result = perform(config, folder, tags, name)
    if sweep_id is None:
        _show(result)
        print(folder)  # noqa: T201
        return None
    objective = _objective(config, folder)
    where = " on development queries" if isinstance(config.tuning, Holdout) else ""
    value = "has no value" if objective is None else f"{objective:.4f}"
    log.info("job %s: %s%s %s", name, config.objective, where, value)
    return JobResult(objective)


def _warn_of_what_is_for_sweeps(config: RunConfig) -> None:
    if params := HydraConfig.get().sweeper.get("params"):
        log.warning("without -m this is one run: the values of %s are not tried", ", ".join(params))
    if not isinstance(config.tuning, NoTuning):
        log.warning("tuning=%s has no effect on a single run", config.tuning.method)


def _checked_config(composed: DictConfig) -> RunConfig:
    config = read_config(composed)
    if isinstance(config.judge, Ragas) and not config.explains:
        raise UserError(
            f"judge={config.judge.kind}: arm {config.arm.name} gives no explanations to judge; use arm=bm25_mpnet_llm "
            "with grade.explain=all or shown"
        )
    load(config.loader())
    return config


def _take_finished(config: RunConfig, tracking: Mlflow, folder: Path, sweep_id: str | None) -> bool:
    """Bring here what a finished run of the same fingerprint and code left, if there is one that can be read."""
    wanted = {"fingerprint": fingerprint(config, load(config.loader())), "code": code_fingerprint(), "kind": "run"}
    run_id = find_finished(tracking, wanted)
    if run_id is None:
        return False
    try:
        fetch_files(tracking, run_id, folder)
        read_run(folder)
    except (UserError, OSError) as error:
        log.warning("run %s is finished, but %s; it is run again", run_id, error)
        return False
    write_settings(config, folder)  # which may name another objective and tuning
    if sweep_id is not None:
        join_sweep(tracking, run_id, sweep_id)
    log.info("finished already, as run %s", run_id)
    return True


def _objective(config: RunConfig, folder: Path) -> float | None:
    """Return what a search maximizes: the objective, with ``tuning=holdout`` over development queries only."""
    scores = json.loads((folder / METRICS).read_text(encoding="utf-8"))
    if not isinstance(config.tuning, Holdout):
        value: float | None = scores["macro"][config.objective]
        return value
    areas = {
        query.query_id: query.area for query in load(config.loader()).queries if query.query_id in scores["queries"]
    }
    (split,) = make_splits(config.tuning, areas)
    of_split = {query_id: scores["queries"][query_id] for query_id in split.development}
    return aggregate(of_split, areas).macro[config.objective]


def _show(result: RunResult) -> None:
    if result.collection.notice:
        print(f"Note: {result.collection.notice}")  # noqa: T201
    title = f"{result.config.arm.name} on {result.collection.name}"
    print("\n".join([title, *summary_lines(result)]))  # noqa: T201


if __name__ == "__main__":
    import sys

    cli.main(["run", *sys.argv[1:]])
