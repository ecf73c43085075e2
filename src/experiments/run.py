"""``litgrade run``: one collection through one arm, measured, written to the job's folder and logged."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from experiments import cli
from experiments.collections import Collection
from experiments.config import RunConfig, read_config
from experiments.files import write_lines
from experiments.metrics import Scores, aggregate, grade_ranking, measure_query
from experiments.tables import mean_text, write_csv
from experiments.tracking import flatten, legal_part, tracked_run
from pipeline.candidates import Candidates
from pipeline.errors import without_secrets

log = logging.getLogger(__name__)


#: What a run leaves in its folder, in the order of writing; the last one tells that all is there.
FILES = ("config.yaml", "ranking.jsonl", "run.trec", "per_query.csv", "metrics.json")


@dataclass(frozen=True)
class RunResult:
    """What an arm made of a collection, and how good it is."""

    config: RunConfig
    collection: Collection
    rankings: list[Candidates]
    scores: Scores
    counts: dict[str, int]
    seconds: dict[str, float]  #: stage name -> wall time


def perform(config: RunConfig, folder: Path, tags: Mapping[str, str]) -> RunResult:
    """Run, measure, write to ``folder`` and log, with these tags on the run."""
    collection = config.loader().load()
    (folder / FILES[-1]).unlink(missing_ok=True)  # of an earlier run in this folder
    named = {**tags, "kind": "run", "arm": config.arm.name, "collection": collection.name}
    named["model"] = ", ".join(encoder.model.name for encoder in config.encoders()) or "none"
    with tracked_run(config.tracking, f"{config.arm.name} {collection.name}", named) as run:
        result = measure(config, collection)
        write_folder(result, folder)
        run.log(_params(result), _metrics(result), {"notice": collection.notice} if collection.notice else {})
        run.log_files(folder, FILES)
    return result


def measure(config: RunConfig, collection: Collection) -> RunResult:
    """Send the collection through the arm and hold the rankings against the judgments."""
    rankings, seconds = collection.candidates(), {}
    for position, (name, stage) in enumerate(config.stages()):
        started = time.perf_counter()
        rankings = stage(rankings)
        seconds[f"{position}_{name}"] = time.perf_counter() - started
    graded = {
        table.query.query_id: grade_ranking(table, collection.judgments[table.query.query_id], config.metrics.unjudged)
        for table in rankings
    }
    measured = {query_id: measure_query(ranking, config.depths) for query_id, ranking in graded.items()}
    scores = aggregate(measured, {query.query_id: query.area for query in collection.queries})
    top = config.cutoffs.evaluate
    counts = {
        "queries": len(collection.queries),
        "papers": len(collection.papers),
        "judgments": sum(len(collection.judgments[query.query_id]) for query in collection.queries),
        "ranked": sum(len(table) for table in rankings),
        f"unjudged_in_top_{top}": sum(int((~ranking.is_judged[:top]).sum()) for ranking in graded.values()),
        "ranked_truncated": sum(int(t.columns[c].sum()) for t in rankings for c in _TRUNCATED if c in t.columns),
    }
    return RunResult(config, collection, rankings, scores, counts, seconds)


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
    named = {"collection": result.collection.name, **asdict(result.scores), "counts": result.counts}
    write_lines(folder / "metrics.json", [json.dumps(named, indent=1, allow_nan=False)])


def _trec_lines(result: RunResult) -> Iterator[str]:
    """Yield the run in TREC format. Scores count down to 1: readers sort by score, and ours may tie."""
    tag = result.config.arm.name
    for table in result.rankings:
        for rank, paper in enumerate(table.papers, start=1):
            yield f"{table.query.query_id} Q0 {paper.paper_id} {rank} {len(table) - rank + 1} {tag}"


def public_settings(config: RunConfig) -> dict[str, Any]:
    """Return the resolved config without secrets; Hydra reads it back."""
    settings: dict[str, Any] = config.model_dump(mode="json", exclude_none=True)
    if "uri" in settings["tracking"]:
        settings["tracking"]["uri"] = without_secrets(settings["tracking"]["uri"])
    return settings


def _params(result: RunResult) -> dict[str, object]:
    settings = public_settings(result.config)
    for encoder in ("embedder", "cross_encoder"):
        del settings[encoder]["model"]["files"]
    settings["embedder"]["model"]["fingerprint"] = result.config.embedder.model.fingerprint
    settings["collection"] |= {"name": result.collection.name, "fingerprint": result.collection.fingerprint}
    settings["arm"]["stages"] = " > ".join(_stage_text(entry) for entry in result.config.arm.stages)
    return flatten({**settings, "counts": result.counts})


def _stage_text(entry: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a stage as ``cut(keep=50)``: what the arm really ran with, whatever the groups above say."""
    ((name, settings),) = entry.items()
    flat = flatten({key: value for key, value in settings.items() if key not in {"embedder", "encoder"}})
    return f"{name}({', '.join(f'{key}={value}' for key, value in flat.items())})"


def _metrics(result: RunResult) -> dict[str, float]:
    scores = result.scores
    named = dict(scores.macro) | {f"{name}.sd": value for name, value in scores.sd.items()}
    named |= {
        f"{legal_part(area)}/{name}": value for area, values in scores.areas.items() for name, value in values.items()
    }
    named |= {f"seconds/{stage}": seconds for stage, seconds in result.seconds.items()}
    return {name: value for name, value in named.items() if value is not None}


def summary_lines(result: RunResult) -> list[str]:
    """Return the macro figures, one metric a line."""
    scores = result.scores
    return [f"{name:<18} {mean_text(mean, scores.sd[name])}" for name, mean in scores.macro.items()]


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
    result = perform(config, folder, sweep_tags())
    if result.collection.notice:
        print(f"Note: {result.collection.notice}")  # noqa: T201
    print("\n".join([f"{config.arm.name} on {result.collection.name}", *summary_lines(result)]))  # noqa: T201
    print(folder)  # noqa: T201


if __name__ == "__main__":
    import sys

    cli.main(["run", *sys.argv[1:]])
