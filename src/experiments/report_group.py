"""What a report says of the runs on one collection, put together for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field, NonNegativeInt

from experiments.collections import Collection
from experiments.config import NoTuning, Section
from experiments.finished_runs import FinishedRun
from experiments.report_differences import Difference, differences
from experiments.report_figures import Figure, against_settings, bars
from experiments.report_queries import QueryPage, query_pages
from experiments.report_tables import (
    Entry,
    Table,
    headline_metrics,
    label_of,
    table_of_areas,
    table_of_comparisons,
    table_of_costs,
    table_of_explanations,
    table_of_runs,
)
from experiments.report_tuning import agreed_tuning, on_other_queries
from experiments.tables import mean_text
from pipeline.errors import UserError

COMPARED = 10  #: runs that are held against the baseline, at most
FEW = 8  #: runs whose figures for a query are shown without being asked for, at most
_FEW_ROWS = 1_500  #: ranked papers that are shown of all runs rather than of the best


class Report(Section):
    """What is shown of the runs."""

    rankings: Annotated[int, Field(ge=0)]
    top: Annotated[int, Field(ge=1)]
    queries: Annotated[int, Field(ge=0)]
    baseline: str | None
    seed: NonNegativeInt


@dataclass(frozen=True)
class Group:
    """The runs on one collection, best first."""

    name: str  #: of the collection
    notice: str | None
    unread: str | None  #: why the collection's texts and judgments are not shown
    objective: str
    entries: Sequence[Entry]
    common: Sequence[Difference]  #: from the paper, the same in all runs
    runs: Table
    best: str
    is_in_sample: bool  #: whether the best setting was chosen on the queries it is measured on
    tuning: Sequence[str]  #: what the best setting is worth on other queries
    folds: Table | None
    areas: Sequence[tuple[str, Table]]
    bars: Figure | None
    against: Figure | None  #: the objective against swept numbers
    baseline: Entry
    comparisons: Sequence[tuple[str, Table]]
    costs: Table
    explanations: Table
    queries: Sequence[QueryPage]
    left_out: Sequence[str]
    summary: str | None  #: what the sweep or ablation wrote of itself


def groups(runs: Sequence[FinishedRun], report: Report) -> list[Group]:
    """Return one group a collection, in the order in which the runs were found."""
    if report.baseline is not None and not any(_is_named(run, report.baseline) for run in runs):
        names = ", ".join(run.name for run in runs)
        raise UserError(f"report.baseline={report.baseline}: expected a run, by name, id or arm, among {names}")
    of_collection: dict[tuple[str, str], list[FinishedRun]] = {}
    for run in runs:
        of_collection.setdefault((run.collection, run.collection_fingerprint or ""), []).append(run)
    return [_group(name, of_one, report) for (name, _), of_one in of_collection.items()]


def _group(name: str, runs: Sequence[FinishedRun], report: Report) -> Group:
    objective = _objective(runs[0])
    entries = _entries(runs, objective)
    collection, unread = _collection(entries[0].run)
    metrics = headline_metrics(entries, objective) or [objective]
    common = [d for d in entries[0].differences if len(entries) > 1 and all(d in e.differences for e in entries)]
    tuning = agreed_tuning(entries)
    told, folds = on_other_queries(entries, objective, tuning)
    shown, left_out = _shown(entries, report)
    baseline = _baseline(entries, runs, report.baseline)
    tested = [metric for metric in metrics if not metric.startswith("judged")]
    tables = [(metric, table_of_comparisons(entries, baseline, metric, report.seed, COMPARED)) for metric in tested]
    pages = query_pages(entries, shown, metrics, report.top, collection)
    if len(pages) > report.queries:
        left_out.append(f"{len(pages) - report.queries} more queries: report.queries={len(pages)} shows them all.")
    notice = collection.notice if collection else next((t for run in runs if (t := run.tags.get("notice"))), None)
    return Group(
        name=name,
        notice=notice,
        unread=unread,
        objective=label_of(objective),
        entries=entries,
        common=common,
        runs=table_of_runs(entries, metrics, common),
        best=mean_text(*entries[0].mean_and_sd(objective)),
        is_in_sample=isinstance(tuning, NoTuning) and len(entries) > 1,
        tuning=told,
        folds=folds,
        areas=[(label_of(metric), table_of_areas(entries, metric)) for metric in metrics],
        bars=bars(entries, metrics, name),
        against=against_settings(entries, objective, name),
        baseline=baseline,
        comparisons=[(label_of(metric), table) for metric, table in tables if table.rows],
        costs=table_of_costs(entries),
        explanations=table_of_explanations(entries),
        queries=pages[: report.queries],
        left_out=left_out,
        summary=_summary(runs),
    )


def _objective(run: FinishedRun) -> str:
    return str(run.settings.get("objective", f"ndcg_at_{run.settings['cutoffs']['evaluate']}"))


def _entries(runs: Sequence[FinishedRun], objective: str) -> list[Entry]:
    """Return the runs by the objective, highest first; equal ones as they were found, those without a value last."""
    values = [run.scores.macro.get(objective) for run in runs]
    order = np.argsort([np.inf if value is None else -round(value, 12) for value in values], kind="stable")
    return [Entry(n, runs[i], differences(runs[i].settings)) for n, i in enumerate(order, start=1)]


def _collection(run: FinishedRun) -> tuple[Collection | None, str | None]:
    """Return the collection of the run, or why its texts cannot be shown."""
    try:
        return run.load_collection(), None
    except (UserError, OSError) as error:
        return None, f"The collection could not be read ({error}), so queries are shown by id and without judgments."


def _shown(entries: Sequence[Entry], report: Report) -> tuple[list[Entry], list[str]]:
    """Return the runs whose rankings are shown: all if that is little, else the best; and what is left out."""
    n_queries = max(entry.run.counts["queries"] for entry in entries)
    few = n_queries * len(entries) * report.top <= _FEW_ROWS
    shown = list(entries if few and report.rankings else entries[: report.rankings])
    left_out = [f"Rankings show the first {report.top} papers: report.top=20 shows twenty."]
    if len(shown) < len(entries):
        left_out.insert(
            0,
            f"Rankings of the best {len(shown)} of {len(entries)} runs are shown: report.rankings={len(entries)} shows "
            "all; every run's whole ranking is ranking.jsonl in its folder.",
        )
    return shown, left_out


def _baseline(entries: Sequence[Entry], runs: Sequence[FinishedRun], wanted: str | None) -> Entry:
    """Return the run that others are held against: the named one, the earlier system, or the one nearest the paper."""
    if named := [entry for entry in entries if wanted is not None and _is_named(entry.run, wanted)]:
        return named[0]
    found = {id(run): i for i, run in enumerate(runs)}
    return min(entries, key=lambda e: (e.arm != "previous", len(e.differences), found[id(e.run)]))


def _is_named(run: FinishedRun, wanted: str) -> bool:
    return wanted in {run.name, run.run_id, run.settings["arm"]["name"]}


def _summary(runs: Sequence[FinishedRun]) -> str | None:
    """Return what stands in the folder of the sweep or ablation that all these runs are in."""
    (folder, *others) = {run.folder.parent for run in runs}
    found = [] if others else [path for name in ("sweep.md", "table.md") if (path := folder / name).exists()]
    return found[0].read_text(encoding="utf-8") if found else None
