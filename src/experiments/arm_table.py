"""The table of arms side by side: cells, marks of significance, and the files it is written to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.files import write_lines
from experiments.model_use import ungraded
from experiments.plots import AVERAGE, plot_arms
from experiments.run import RunResult
from experiments.statistics import Comparison, compare_shared, holm
from experiments.tables import (
    COMPARISON_HEADER,
    comparison_cells,
    comparison_legend,
    latex,
    markdown,
    mean_text,
    write_csv,
)

#: The files of ``write_table``.
FILES = ("table.md", "table.tex", "table.csv", "comparisons.csv", "table.png")


@dataclass(frozen=True)
class ArmTable:
    """What the arms reached on one collection, and why others did not run."""

    arms: Sequence[str]  #: the columns, in order; an arm is in ``results`` or in ``not_run``
    results: Mapping[str, RunResult]
    not_run: Mapping[str, str]  #: arm -> reason
    baseline: str
    metrics: Sequence[tuple[str, str]]  #: (name, label); the last is shown but not compared
    comparisons: Mapping[tuple[str, str], tuple[Comparison, float]]  #: (metric, arm) -> comparison, p after Holm

    @property
    def any_result(self) -> RunResult:
        """One of the results, for what all of them share."""
        return next(iter(self.results.values()))


def make_table(
    arms: Sequence[str], results: Mapping[str, RunResult], not_run: Mapping[str, str], baseline: str, seed: int
) -> ArmTable:
    """Compare the arms and put the table together; ``results`` holds at least one arm."""
    shown = _shown_metrics(next(iter(results.values())).config.cutoffs.evaluate)
    metrics = [m for m in shown if any(result.scores.macro[m[0]] is not None for result in results.values())]
    comparisons = _compare_arms(results, baseline, metrics[:-1], seed)
    return ArmTable(arms, results, not_run, baseline, metrics, comparisons)


def _shown_metrics(evaluate: int) -> list[tuple[str, str]]:
    """Return the metrics of the table with their labels, for lists evaluated at this depth."""
    return [
        ("ac2", "AC2"),
        (f"ndcg_at_{evaluate}", f"NDCG@{evaluate}, ideal over all judged papers"),
        (f"ndcg_top_at_{evaluate}", f"NDCG@{evaluate}, ideal over the retrieved {evaluate} (the paper's)"),
        (f"judged_at_{evaluate}", f"judged@{evaluate}"),
    ]


def _compare_arms(
    results: Mapping[str, RunResult], baseline: str, metrics: Sequence[tuple[str, str]], seed: int
) -> dict[tuple[str, str], tuple[Comparison, float]]:
    """Compare every arm with the baseline, metric by metric; p-values are corrected over the arms of a metric."""
    compared: dict[tuple[str, str], tuple[Comparison, float]] = {}
    for name, _ in metrics:
        found = {}
        for arm, result in results.items():
            ours, theirs = _values(result, name), _values(results[baseline], name) if baseline in results else {}
            areas = {query.query_id: query.area for query in result.collection.queries}
            # under metrics.unjudged=skip a query may have no AC2
            if arm != baseline and (comparison := compare_shared(ours, theirs, areas, seed=seed)):
                found[arm] = comparison
        adjusted = holm([comparison.p_value for comparison in found.values()])
        compared |= {(name, arm): (found[arm], p) for arm, p in zip(found, adjusted, strict=True)}
    return compared


def _values(result: RunResult, name: str) -> dict[str, float]:
    values = {query_id: of_query[name] for query_id, of_query in result.scores.queries.items()}
    return {query_id: value for query_id, value in values.items() if value is not None}


def table_text(table: ArmTable) -> str:
    """Return the whole report as Markdown: a table a metric, the comparisons, and notes."""
    parts = [f"Arms on {table.any_result.collection.name}", *([_notice(table)] if _notice(table) else [])]
    for name, label in table.metrics:
        parts += [f"**{label}**", markdown(*_grid(table, name))]
    parts += [f"**Against {table.baseline}**", markdown(*_comparison_rows(table)), _legend(table)]
    parts += [f"{arm}: {_model_note(result, result.use)}" for arm, result in table.results.items() if result.use]
    parts += [f"Not run: {arm} ({reason})" for arm, reason in table.not_run.items()]
    return "\n\n".join(parts)


def _notice(table: ArmTable) -> str:
    notice = table.any_result.collection.notice
    return f"Note: {notice}" if notice else ""


def _model_note(result: RunResult, use: Mapping[str, Any]) -> str:
    """Return which model graded how much, and what the metrics could be if it had graded the rest."""
    papers, missing = use["run"]["papers"], ungraded(use)
    note = f"{result.config.asked_model} graded {papers - missing} of {papers} papers"
    note += f", {papers / max(1, len(result.rankings)):.0f} a query"
    if result.intervals:
        low, high = (of_bound.macro for of_bound in result.intervals)
        spans = [f"{name} {low[name]:.3f} to {high[name]:.3f}" for name in low if low[name] is not None]
        note += f"; whatever the other {missing} are: {', '.join(spans)}"
    if result.thresholds:
        note += "; categories by thresholds of the expected grade, learned on the queries of the other folds"
    return note


def _grid(table: ArmTable, name: str) -> tuple[list[str], list[list[str]]]:
    """Return header and rows for one metric; the last row carries the marks of significance."""
    areas = list(table.any_result.scores.areas)
    rows = [[area, *(_cell(table, arm, area, name) for arm in table.arms)] for area in areas]
    if len(areas) > 1:
        rows.append([AVERAGE, *(_cell(table, arm, None, name) for arm in table.arms)])
    rows[-1][1:] = [cell + _marks(table, arm, name) for cell, arm in zip(rows[-1][1:], table.arms, strict=True)]
    return ["area", *table.arms], rows


def _cell(table: ArmTable, arm: str, area: str | None, name: str) -> str:
    if arm in table.not_run:
        return "not run"
    return mean_text(*table.results[arm].scores.mean_and_sd(area, name))


def _marks(table: ArmTable, arm: str, name: str) -> str:
    if (name, arm) not in table.comparisons:
        return ""
    stars = "*" * sum(table.comparisons[name, arm][1] < level for level in (0.05, 0.01, 0.001))
    return f" {stars}" if stars else ""


def _comparison_rows(table: ArmTable) -> tuple[list[str], list[list[str]]]:
    rows = []
    for (name, arm), (c, p_holm) in table.comparisons.items():
        rows.append([name, arm, *comparison_cells(c, p_holm)])
    return ["metric", "arm", *COMPARISON_HEADER], rows


def _exact_comparisons(table: ArmTable) -> tuple[list[str], list[list[object]]]:
    name = table.any_result.collection.name
    rows: list[list[object]] = []
    for (metric, arm), (c, p_holm) in table.comparisons.items():
        numbers = [c.mean_difference, *(c.interval or (None, None)), c.w, c.n_nonzero, c.n_queries, c.p_value, p_holm]
        rows.append([name, metric, arm, table.baseline, *numbers])
    header = "collection metric arm baseline difference low high w n_nonzero n_queries p_value p_holm"
    return header.split(), rows


def _legend(table: ArmTable) -> str:
    scores = table.any_result.scores
    average = "Average: mean of the area means ± mean of their standard deviations. " if len(scores.areas) > 1 else ""
    return (
        f"{average}* p < 0.05, ** p < 0.01, *** p < 0.001 against {table.baseline}: "
        f"{comparison_legend('arms')} An arm is held against the judgments of its own top papers. "
        "—: no value; an arm without relevance categories has no AC2, an area with a single query gives no interval."
    )


def write_table(table: ArmTable, folder: Path) -> None:
    """Write table.md, table.csv, table.tex, comparisons.csv and table.png."""
    write_lines(folder / "table.md", [table_text(table)])
    grids = [latex(*_grid(table, name)) for name, _ in table.metrics]
    titles = [f"% {label}" for _, label in table.metrics]
    notes = [f"% {note}" for note in (_notice(table), _legend(table)) if note]
    write_lines(folder / "table.tex", notes + [line for pair in zip(titles, grids, strict=True) for line in pair])
    collection = table.any_result.collection
    write_csv(folder / "table.csv", ["collection", "metric", "area", "arm", "mean", "sd"], _long_rows(table))
    write_csv(folder / "comparisons.csv", *_exact_comparisons(table))
    scores = {arm: result.scores for arm, result in table.results.items()}
    footnote = "Error bars: standard deviation over queries; of the average, the mean of the areas'.\n" + _notice(table)
    plot_arms(scores, table.metrics[:-1], f"Arms on {collection.name}", footnote, folder / "table.png")


def _long_rows(table: ArmTable) -> list[list[object]]:
    return [
        [result.collection.name, name, AVERAGE if area is None else area, arm, *result.scores.mean_and_sd(area, name)]
        for name, _ in table.metrics
        for arm, result in table.results.items()
        for area in [*result.scores.areas, None]
    ]
