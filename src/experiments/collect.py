"""``litgrade collect``: queries go to all sources at once; what they answer is merged, completed and frozen."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from filelock import FileLock, Timeout
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from pydantic import TypeAdapter

from experiments import cli
from experiments.collect_config import CollectConfig, read_collect_config
from experiments.collect_plan import Plan, begin, package_versions, resume
from experiments.snapshots import MANIFEST, REPORTS, RESPONSES, Snapshot, ids_that_go, write_snapshot
from experiments.tables import markdown
from experiments.tracking import flatten, legal_part, tracked_run
from pipeline.collecting.client import Client
from pipeline.collecting.collector import Collector, replay
from pipeline.collecting.reports import Report, Stop
from pipeline.collecting.responses import Responses
from pipeline.enrich import Enrich, Enrichment
from pipeline.errors import UserError
from pipeline.event_loop import EventLoop
from pipeline.impact import impacts_at_hand
from pipeline.merging.merge import Merge, merge_papers
from pipeline.papers import Query

log = logging.getLogger(__name__)


async def ask(plan: Plan, config: CollectConfig, client: Client, responses: Responses) -> None:
    """Ask the sources for every query, one query after the other, so that each has the whole budget."""
    collector = Collector(client, responses)
    for query in plan.queries:
        reports = await collector.collect(plan.walks(query), config.sources.budget_s)
        told = ", ".join(f"{report.source} {report.records}" for report in reports)
        log.info("%s: %s", query.query_id, told)


async def build(plan: Plan, responses: Responses, budget_s: float, client: Client | None) -> Snapshot:
    """Merge, complete and deal into pools what was answered; without a client only what is kept counts."""
    walks = [replay(walk, responses) for query in plan.queries for walk in plan.walks(query)]
    merge = TypeAdapter(Merge).validate_python(plan.settings["merge"])
    ranks: dict[str, int] = {}
    for walk in walks:
        for rank, paper in enumerate(walk.papers):
            ranks[paper.paper_id] = min(rank, ranks.get(paper.paper_id, rank))
    enrichment = Enrichment(
        TypeAdapter(Enrich).validate_python(plan.settings["enrich"]),
        merge,
        plan.sources,
        plan.settings["sources"]["names"],
        responses,
        budget_s * len(plan.queries),
        ranks,
        client,
    )
    merged = merge_papers((paper for walk in walks for paper in walk.papers), merge)
    papers = sorted(await enrichment.complete(merged), key=lambda paper: paper.paper_id)
    place = {record: paper.paper_id for paper in papers for record in paper.records}
    pools: dict[str, set[str]] = {query.query_id: set() for query in plan.queries}
    for walk in walks:
        pools[walk.query.query_id] |= {place[paper.paper_id] for paper in walk.papers}
    reports = [report for walk in walks if (report := responses.report(walk.name)) is not None]
    if len(reports) < len(walks):
        raise responses.unfinished()
    for walk, report in zip(walks, reports, strict=True):
        if len(walk.papers) < report.records:
            raise responses.incomplete(f"{report.records - len(walk.papers)} records of {walk.name}")
    facts = {"settings": plan.settings, "days": plan.days}
    facts |= {"collected_by": responses.fact("versions"), "made_by": package_versions()}
    n_records = sum(len(walk.papers) for walk in walks)
    sorted_pools = {query_id: sorted(ids) for query_id, ids in pools.items()}
    return Snapshot(plan.queries, papers, sorted_pools, [*reports, *enrichment.reports], n_records, facts)


async def collect(config: CollectConfig, queries: Sequence[Query], responses: Responses) -> Snapshot:
    """Ask what is not kept yet, then build."""
    plan = begin(config, queries, responses)
    log.info("collecting into %s", config.snapshot)
    async with Client(config.sources.patience, importlib.metadata.version("litgrade")) as client:
        await ask(plan, config, client, responses)
        return await build(plan, responses, config.enrich.budget_s, client)


def replayed(config: CollectConfig, responses: Responses) -> Snapshot:
    """Build from what is kept, with the settings that are kept, without network."""
    allowed = ("sources.mode=", "snapshot=", "tracking", "hydra.")
    for override in HydraConfig.get().overrides.task if HydraConfig.initialized() else ():
        if not override.startswith(allowed):
            raise UserError(f"{override}: a replay takes every setting from {config.snapshot}; leave it out")
    return _run(build(resume(responses), responses, 0, None))


def _run(collecting: Coroutine[Any, Any, Snapshot]) -> Snapshot:
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(collecting)


@contextmanager
def open_responses(config: CollectConfig) -> Iterator[Responses]:
    """Open the answers of a snapshot, which one process at a time may do."""
    path = config.snapshot / RESPONSES
    is_replay = config.sources.mode == "replay"
    if is_replay and not path.is_file():
        raise UserError(f"{config.snapshot}: no {RESPONSES} to replay; give snapshot=FOLDER of a snapshot")
    config.snapshot.mkdir(parents=True, exist_ok=True)
    others = [entry.name for entry in config.snapshot.iterdir() if entry.name not in {".lock", "collect.log"}]
    if others and not path.is_file():
        raise UserError(f"{config.snapshot} holds {sorted(others)[0]} but no {RESPONSES}; give another folder")
    lock = FileLock(config.snapshot / ".lock", timeout=0)
    try:
        with lock:
            responses = Responses(path, is_read_only=is_replay)
            try:
                yield responses
            finally:
                responses.close()
    except Timeout as error:
        raise UserError(f"{config.snapshot}: another process collects into this snapshot") from error


@cli.job("collect")
def main(composed: DictConfig) -> None:
    """Collect or replay, freeze, show."""
    if HydraConfig.get().mode == RunMode.MULTIRUN:
        raise UserError("a snapshot is collected by one command: give queries=FILE in place of -m")
    config = read_collect_config(composed)
    name, is_replay = config.snapshot.resolve().name, config.sources.mode == "replay"
    queries = () if is_replay else _read_inputs(config)  # before there is anything to leave behind
    with (
        open_responses(config) as responses,
        tracked_run(config.tracking, f"collect {name}", {"kind": "collect", "collection": name}) as run,
    ):
        snapshot = replayed(config, responses) if is_replay else _run(collect(config, queries, responses))
        print(report_table(snapshot))  # noqa: T201
        failures = [report for report in snapshot.reports if report.stop.is_failure]
        if config.sources.strict and failures:
            raise UserError("\n".join(f"{line} (sources.strict=true)" for line in _lines(failures)))
        if not snapshot.papers:
            raise UserError("\n".join([*_lines(failures), "no source gave any paper"]))
        if gone := ids_that_go(snapshot, config.snapshot):
            log.warning("%d papers have another id now, such as %s: rename them in judgments", len(gone), gone[0])
        write_snapshot(snapshot, config.snapshot, responses.fingerprint())
        run.log(
            _params(snapshot) | {"snapshot": config.snapshot},
            _metrics(snapshot),
            {f"stopped.{legal_part(source)}": stop for source, stop in _stops(snapshot).items()},
        )
        run.log_files(config.snapshot, [MANIFEST, REPORTS])
    for line in _lines([*failures, *(report for report in snapshot.reports if report.stop == Stop.SHORT)]):
        log.warning("%s", line)
    counted = f"{len(snapshot.queries)} queries, {snapshot.n_records} records, {len(snapshot.papers)} papers"
    print(f"{counted}\n{config.snapshot}")  # noqa: T201


def _read_inputs(config: CollectConfig) -> tuple[Query, ...]:
    """Return the queries; raise ``UserError`` also for impact factors that could not be read once all was asked."""
    if config.enrich.impact in {"csv", "impact_factor"}:
        impacts_at_hand(config.enrich.impact, config.enrich.impact_csv, ())
    return config.read_queries()


def report_table(snapshot: Snapshot) -> str:
    """Return one row a source: answers, records, seconds, and why it stopped, over all queries."""
    rows, stops = [], _stops(snapshot)
    for name in stops:
        reports = [report for report in snapshot.reports if report.source == name]
        declared = [report.declared for report in reports if report.declared is not None]
        rows.append(
            [
                name,
                str(sum(report.pages for report in reports)),
                str(sum(report.records for report in reports)),
                str(sum(declared)) if declared else "N/A",
                f"{max(report.seconds for report in reports):.1f}",
                stops[name],
            ]
        )
    return markdown(["source", "answers", "records", "it has", "longest, s", "stopped by"], rows)


def _stops(snapshot: Snapshot) -> dict[str, str]:
    """Return why each source stopped, such as ``done 19, partial 1``."""
    counted: dict[str, Counter[str]] = {}
    for report in snapshot.reports:
        counted.setdefault(report.source, Counter())[report.stop] += 1
    return {
        source: ", ".join(f"{stop} {n}" if stops.total() > 1 else str(stop) for stop, n in stops.items())
        for source, stops in counted.items()
    }


def _lines(reports: Sequence[Report]) -> list[str]:
    """Return a line for each thing that happened, with the queries that it happened to."""
    queries: dict[str, list[str]] = {}
    for report in reports:
        what = f"{report.source}: {report.stop}" + (f": {report.detail}" if report.detail else "")
        queries.setdefault(what, []).append(report.query_id)
    return [
        what if not ids[0] else f"{what} ({ids[0]})" if len(ids) == 1 else f"{what} ({len(ids)} queries)"
        for what, ids in queries.items()
    ]


def _params(snapshot: Snapshot) -> dict[str, object]:
    settings = snapshot.facts["settings"]
    chosen = {name: value for name, value in settings["sources"].items() if name != "available"}
    return flatten({"sources": chosen, "merge": settings["merge"], "enrich": settings["enrich"]})


def _metrics(snapshot: Snapshot) -> dict[str, float]:
    metrics: Counter[str] = Counter(papers=len(snapshot.papers), records=snapshot.n_records)
    metrics["failures"] = sum(report.stop.is_failure for report in snapshot.reports)
    for report in snapshot.reports:
        metrics[f"records/{report.source}"] += report.records
        metrics[f"answers/{report.source}"] += report.pages
    return {name: float(value) for name, value in metrics.items()}


if __name__ == "__main__":
    import sys

    cli.main(["collect", *sys.argv[1:]])
