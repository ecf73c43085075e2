"""The tables of a report: runs, areas, comparisons, costs, as text that the page lays out and escapes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.finished_runs import FinishedRun
from experiments.report_differences import Difference
from experiments.statistics import Comparison, compare_shared, holm, p_value_shared
from experiments.tables import COMPARISON_HEADER, comparison_cells, mean_text

Cell = str | Sequence[str]  #: a text, or several below each other


@dataclass(frozen=True)
class Table:
    """Header and rows; the first ``words`` columns hold words, the others numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    words: int = 1
    marked: frozenset[int] = field(default_factory=frozenset)  #: rows that stand out


@dataclass(frozen=True)
class Entry:
    """A run in a report, numbered by its place in the order of the objective."""

    number: int
    run: FinishedRun
    differences: Sequence[Difference]  #: from the paper

    @property
    def label(self) -> str:
        """The number and name by which the page calls the run."""
        return f"{self.number} · {self.run.name}"

    @property
    def arm(self) -> str:
        """The name of its arm."""
        return str(self.run.settings["arm"]["name"])

    def values(self, metric: str) -> dict[str, float]:
        """Return query -> value of a metric, without queries that have none."""
        found = {query_id: values.get(metric) for query_id, values in self.run.scores.queries.items()}
        return {query_id: value for query_id, value in found.items() if value is not None}

    def mean_and_sd(self, metric: str, area: str | None = None) -> tuple[float | None, float | None]:
        """Return mean and standard deviation, of an area or of the average; None where the run has no such metric."""
        scores = self.run.scores
        means, sds = (
            (scores.macro, scores.sd) if area is None else (scores.areas.get(area, {}), scores.areas_sd.get(area, {}))
        )
        return means.get(metric), sds.get(metric)


def label_of(metric: str) -> str:
    """Return a metric's name as papers print it: ``NDCG@10`` for ``ndcg_at_10``."""
    found = re.fullmatch(r"(\w+?)(_top)?_at_(\d+)", metric)
    name = found.group(1) if found else metric
    name = name.upper() if name in {"ac2", "ndcg", "map", "mrr"} else name
    return f"{name}@{found.group(3)}{' of retrieved' if found.group(2) else ''}" if found else name


def headline_metrics(entries: Sequence[Entry], objective: str) -> list[str]:
    """Return the objective and the metrics of the paper's table 15 that any of the runs has."""
    depth = entries[0].run.settings["cutoffs"]["evaluate"]
    names = [objective, "ac2", f"ndcg_at_{depth}", f"ndcg_top_at_{depth}", "map", f"judged_at_{depth}"]
    return [name for name in dict.fromkeys(names) if any(e.mean_and_sd(name)[0] is not None for e in entries)]


def table_of_runs(entries: Sequence[Entry], metrics: Sequence[str], common: Sequence[Difference]) -> Table:
    """Return the runs, best first, with what sets each apart from the paper beyond what all have in common."""
    has_arms = len({entry.arm for entry in entries}) > 1 and any(entry.arm != entry.run.name for entry in entries)
    rows: list[list[Cell]] = []
    for entry in entries:
        own = [str(difference) for difference in entry.differences if difference not in common]
        words = [
            str(entry.number),
            entry.run.name,
            *([entry.arm] if has_arms else []),
            own if len(own) > 3 else ", ".join(own) or "none",
        ]
        rows.append([*words, *(_figure(entry, name) for name in metrics)])
    settings = "settings other than the paper's" if not common else "more settings other than the paper's"
    header = ["", "run", *(["arm"] if has_arms else []), settings]
    return Table([*header, *map(label_of, metrics)], rows, len(header), frozenset({0}))


def _figure(entry: Entry, metric: str) -> Cell:
    text = mean_text(*entry.mean_and_sd(metric))
    low, high = ((entry.run.metrics.get("intervals") or {}).get(metric)) or (None, None)
    return text if low is None or high is None or low == high else [text, f"({low:.3f} to {high:.3f})"]


def table_of_areas(entries: Sequence[Entry], metric: str) -> Table:
    """Return one metric: a row a run, a column an area."""
    areas = list(dict.fromkeys(area for entry in entries for area in entry.run.scores.areas))
    columns = [*areas, None] if len(areas) > 1 else areas  # None: the average
    rows = [[entry.label, *(mean_text(*entry.mean_and_sd(metric, of)) for of in columns)] for entry in entries]
    return Table(["run", *("average" if of is None else of for of in columns)], rows)


def table_of_comparisons(entries: Sequence[Entry], baseline: Entry, metric: str, seed: int, shown: int) -> Table:
    """Hold the first ``shown`` runs against the baseline by one metric; p-values are corrected over all runs."""
    others = [entry for entry in entries if entry is not baseline]
    found = {entry.label: c for entry in others[:shown] if (c := _compare(entry, baseline, metric, seed))}
    further = (p_value_shared(entry.values(metric), baseline.values(metric)) for entry in others[shown:])
    adjusted = holm([*(c.p_value for c in found.values()), *(p for p in further if p is not None)])[: len(found)]
    rows = [
        [label, *comparison_cells(comparison, p_holm)]
        for (label, comparison), p_holm in zip(found.items(), adjusted, strict=True)
    ]
    marked = frozenset(i for i, p_holm in enumerate(adjusted) if p_holm < 0.05)
    return Table(["run", *COMPARISON_HEADER], rows, 1, marked)


def _compare(entry: Entry, baseline: Entry, metric: str, seed: int) -> Comparison | None:
    return compare_shared(entry.values(metric), baseline.values(metric), entry.run.area_of, seed=seed)


def table_of_costs(entries: Sequence[Entry]) -> Table:
    """Return what grading and judging took, a row a model and run; nothing where no model was asked."""
    rows: list[list[Cell]] = []
    for entry in entries:
        metrics, settings = entry.run.metrics, entry.run.settings
        if metrics.get("model_use"):
            use = metrics["model_use"]["run"]
            outcomes = [f"{kind} {count:,}" for kind, count in use["outcomes"].items()]
            rows.append([entry.label, "grading", settings["llm"]["model"], outcomes or "—", *_amounts(use)])
        if metrics.get("judge_use"):
            rows.append(
                [entry.label, "judging", settings["judge"]["llm"]["model"], "—", *_amounts(metrics["judge_use"])]
            )
    header = ["run", "for", "model", "papers", "requests", "tokens in", "tokens out", "paid", "saved", "in all"]
    return Table(header, rows, words=4)


def _amounts(use: Mapping[str, Any]) -> list[str]:
    counts = [_known(use.get(name), "{:,.0f}") for name in ("requests", "input_tokens", "output_tokens")]
    usd, paid = use.get("usd"), use.get("paid_usd")
    saved = None if usd is None or paid is None else usd - paid
    return [*counts, *(_known(value, "${:,.4f}") for value in (paid, saved, usd))]


def _known(value: float | None, form: str) -> str:
    return "unknown" if value is None else form.format(value)


def table_of_explanations(entries: Sequence[Entry]) -> Table:
    """Return how the judge scored explanations (the paper's table 14), for runs with a judge."""
    rows: list[list[Cell]] = []
    for entry in entries:
        if summary := entry.run.metrics.get("explanations"):
            for area, scores in [*summary["areas"].items(), ("average", summary["average"])]:
                rows.append([entry.label, area, *(_judged(score) for score in scores.values())])
    return Table(["run", "area", "faithfulness (0 to 1)", "relevance (1 to 3)"], rows, words=2)


def _judged(score: Mapping[str, Any]) -> Cell:
    faults = [f"{reason} {count}" for reason, count in score["faults"].items()]
    return [f"{mean_text(score['mean'], score['sd'])} (n = {score['n']} of {score['of']})", *faults]
