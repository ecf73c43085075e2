"""Finished runs held against the first of them: tables, files, and the words for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.files import write_lines
from experiments.finished_runs import FinishedRun
from experiments.moved import SCORES, Move, find_moves
from experiments.plots import plot_deltas
from experiments.statistics import Comparison, EffectSize, compare, effect_size, holm
from experiments.tables import COMPARISON_HEADER, comparison_cells, markdown, mean_text, write_csv
from experiments.tracking import flatten
from pipeline.errors import UserError, did_you_mean

FILES = ("comparison.md", "comparisons.csv", "per_query.csv", "moved.csv", "deltas.png")

_APART = ("tracking", "paths", "prices", "tuning", "objective")  # change no result
_MOST_DIFFERENCES, _MOST_DELTAS = 40, 10


@dataclass(frozen=True)
class Compared:
    """One metric of one run held against the first run."""

    metric: str
    run: FinishedRun
    deltas: Mapping[str, float]  #: query id -> run - first run
    left_out: int  #: queries that have no value in one of the two
    comparison: Comparison
    effect: EffectSize
    p_holm: float  #: corrected for the number of runs


@dataclass(frozen=True)
class Comparisons:
    """Runs of one collection, compared; the first is the baseline."""

    runs: Sequence[FinishedRun]
    metrics: Sequence[str]
    compared: Sequence[Compared]
    top: int

    @property
    def first(self) -> FinishedRun:
        """The run that the others are held against."""
        return self.runs[0]

    @cached_property
    def moves(self) -> dict[str, list[Move]]:
        """Return run name -> papers that entered or left the top."""
        return {run.name: find_moves(self.first, run, self.top) for run in self.runs[1:]}


def compare_runs(runs: Sequence[FinishedRun], metrics: Sequence[str], *, top: int, seed: int) -> Comparisons:
    """Compare every run with the first, metric by metric; raise ``UserError`` where they cannot be paired."""
    first = runs[0]
    for run in runs[1:]:
        if run.collection != first.collection:
            raise UserError(
                f"{first.name} is on {first.collection}, {run.name} on {run.collection}: runs are compared query by "
                "query, so name runs on the same collection"
            )
        if unpaired := sorted(run.scores.queries.keys() ^ first.scores.queries.keys()):
            raise UserError(
                f"query {unpaired[0]} was measured in only one of {first.name} and {run.name} ({len(unpaired)} such "
                "queries); compare runs on the same queries"
            )
    if not first.scores.queries:
        raise UserError(f"{first.name}: no query of it has judgments, so there is nothing to compare")
    names = _metrics(runs, metrics)
    compared = [entry for name in names for entry in _compare_metric(runs, name, seed)]
    return Comparisons(runs, names, compared, top)


def _metrics(runs: Sequence[FinishedRun], wanted: Sequence[str]) -> list[str]:
    shared = [name for name in runs[0].scores.macro if all(name in run.scores.macro for run in runs)]
    for name in wanted:
        if name not in shared:
            raise UserError(
                f"metrics={name}: expected a metric that all runs have, some of {', '.join(shared)}"
                f"{did_you_mean(name, shared)}"
            )
    if wanted:
        return list(wanted)
    measured = [name for name in shared if all(run.scores.macro[name] is not None for run in runs)]
    objective = str(runs[0].settings.get("objective", ""))
    heads = [name for name in measured if name.startswith(("ac2", "ndcg", "map", "recall"))]
    return [*([objective] if objective in measured else []), *(name for name in heads if name != objective)]


def _compare_metric(runs: Sequence[FinishedRun], name: str, seed: int) -> list[Compared]:
    first, found = runs[0], []
    for run in runs[1:]:
        pairs = {q: (values[name], first.scores.queries[q][name]) for q, values in run.scores.queries.items()}
        both = {q: (ours, theirs) for q, (ours, theirs) in pairs.items() if ours is not None and theirs is not None}
        if not both:
            raise UserError(f"{name}: no query has a value in both {first.name} and {run.name}; name other metrics")
        ours, theirs = ({q: pair[i] for q, pair in both.items()} for i in (0, 1))
        deltas = {q: round(ours[q] - theirs[q], 12) for q in sorted(both)}
        outcome = compare(ours, theirs, first.area_of, seed=seed)
        found.append((run, deltas, len(pairs) - len(both), outcome, effect_size(list(deltas.values()))))
    corrected = holm([outcome.p_value for _, _, _, outcome, _ in found])
    return [Compared(name, *entry, p) for entry, p in zip(found, corrected, strict=True)]


def comparison_text(compared: Comparisons, shown: int) -> str:
    """Return the whole comparison as Markdown; moved papers of the ``shown`` queries that changed most."""
    parts = [f"Against {compared.first.name}, on {compared.first.collection}", *_warnings(compared)]
    parts += ["**What differs in the settings**", _differences_text(compared)]
    parts += ["**Means**", markdown(*_means(compared)), "**Differences**", markdown(*_comparison_rows(compared))]
    if left_out := max(entry.left_out for entry in compared.compared):
        parts.append(f"Up to {left_out} queries are left out of a metric: they have no value in one of the runs.")
    parts.append(
        "Difference: mean over areas. Interval: paired bootstrap, stratified by area. p: Wilcoxon signed-rank test "
        "over queries (normal approximation), Holm-corrected over the runs of a metric. r: matched-pairs rank-biserial "
        "correlation; d: Cohen's d of the differences."
    )
    for run in compared.runs[1:]:
        parts += _query_parts(compared, run, shown)
    return "\n\n".join(parts)


def _warnings(compared: Comparisons) -> list[str]:
    prints = {run.name: _collection_fingerprint(run) for run in compared.runs}
    known = {value for value in prints.values() if value}
    if len(known) < 2:
        return []
    return ["**The runs read different versions of this collection: differences may come from the data.**"]


def _collection_fingerprint(run: FinishedRun) -> str | None:
    path = run.folder / "provenance.json"
    return json.loads(path.read_text(encoding="utf-8"))["collection"]["fingerprint"] if path.exists() else None


def _differences_text(compared: Comparisons) -> str:
    flat = [flatten({k: v for k, v in run.settings.items() if k not in _APART}) for run in compared.runs]
    keys = [
        key for key in dict.fromkeys(key for one in flat for key in one) if len({str(o.get(key)) for o in flat}) > 1
    ]
    keys = [key for key in keys if key != "arm.stages"] or keys  # the stages repeat what stands in other keys
    if not keys:
        return "Nothing."
    rows = [[key, *(_short(one.get(key, "—")) for one in flat)] for key in keys[:_MOST_DIFFERENCES]]
    more = f"\n\nand {len(keys) - len(rows)} more" if len(keys) > len(rows) else ""
    return markdown(["key", *(run.name for run in compared.runs)], rows) + more


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _means(compared: Comparisons) -> tuple[list[str], list[list[str]]]:
    rows = [
        [run.name, *(mean_text(*run.scores.mean_and_sd(None, m)) for m in compared.metrics)] for run in compared.runs
    ]
    return ["run", *compared.metrics], rows


def _comparison_rows(compared: Comparisons) -> tuple[list[str], list[list[str]]]:
    rows = []
    for e in compared.compared:
        cells = comparison_cells(e.comparison, e.p_holm)
        rows.append([e.metric, e.run.name, *cells, f"{e.effect.rank_biserial:+.2f}", _d_text(e.effect)])
    return ["metric", "run", *COMPARISON_HEADER, "r", "d"], rows


def _d_text(effect: EffectSize) -> str:
    return "—" if effect.cohen_d is None else f"{effect.cohen_d:+.2f}"


def _query_parts(compared: Comparisons, run: FinishedRun, shown: int) -> list[str]:
    entry = next(e for e in compared.compared if e.run is run)
    order = sorted(entry.deltas, key=lambda query_id: (-abs(entry.deltas[query_id]), query_id))
    changed = [query_id for query_id in order if entry.deltas[query_id]]
    if not changed:
        return [f"**{run.name}**: no query has another {entry.metric}."]
    better = sum(delta > 0 for delta in entry.deltas.values())
    worse = sum(delta < 0 for delta in entry.deltas.values())
    parts = [f"**{run.name}, {entry.metric}: {better} queries higher, {worse} lower; those that changed most**"]
    rows = [[query_id, compared.first.area_of[query_id], f"{entry.deltas[query_id]:+.3f}"] for query_id in changed]
    parts.append(markdown(["query", "area", "difference"], rows[:_MOST_DELTAS]))
    moves = [move for query_id in changed[:shown] for move in compared.moves[run.name] if move.query_id == query_id]
    if moves:
        parts.append(f"**Papers that entered or left the top {compared.top} there**")
        parts.append(markdown(*_move_rows(moves)))
    return parts


def _move_rows(moves: Sequence[Move]) -> tuple[list[str], list[list[str]]]:
    rows = [[m.query_id, m.what, _rank(m), m.paper_id, _short(m.title), m.why] for m in moves]
    return ["query", "", "rank", "paper", "title", "why"], rows


def _rank(move: Move) -> str:
    before, after = ("—" if rank is None else str(rank) for rank in (move.rank_before, move.rank_after))
    return f"{before} → {after}"


def write_comparison(compared: Comparisons, text: str, folder: Path) -> None:
    """Write the files of ``FILES``."""
    first = compared.first
    write_lines(folder / "comparison.md", [text])
    write_csv(folder / "comparisons.csv", *_exact_rows(compared))
    write_csv(
        folder / "per_query.csv",
        ["query_id", "area", "run", "metric", "first", "value", "difference"],
        [
            [q, first.area_of[q], e.run.name, e.metric, first.scores.queries[q][e.metric],
             e.run.scores.queries[q][e.metric], delta]
            for e in compared.compared
            for q, delta in e.deltas.items()
        ],
    )  # fmt: skip
    scores = [f"{side}.{name}" for side in ("before", "after") for name in SCORES]
    write_csv(
        folder / "moved.csv",
        ["run", "query_id", "paper_id", "title", "what", "rank_before", "rank_after", "why", *scores],
        [[name, *_exact_move(move)] for name, moves in compared.moves.items() for move in moves],
    )
    panels = [(f"{e.run.name}: {e.metric}", e.deltas) for e in compared.compared]
    plot_deltas(panels, first.area_of, f"against {first.name}, on {first.collection}", folder / "deltas.png")


def _exact_move(move: Move) -> list[Any]:
    sides = [side.get(name) for side in (move.before, move.after) for name in SCORES]
    return [move.query_id, move.paper_id, move.title, move.what, move.rank_before, move.rank_after, move.why, *sides]


def _exact_rows(compared: Comparisons) -> tuple[list[str], list[list[Any]]]:
    rows = []
    for e in compared.compared:
        c, low_high = e.comparison, e.comparison.interval or (None, None)
        rows.append(
            [e.metric, e.run.name, c.mean_difference, *low_high, c.w, c.n_nonzero, c.n_queries, c.p_value, e.p_holm,
             e.effect.rank_biserial, e.effect.cohen_d, e.left_out]
        )  # fmt: skip
    header = ["metric", "run", "difference", "low", "high", "w", "n_nonzero", "n_queries", "p", "p_holm"]
    return [*header, "rank_biserial", "cohen_d", "left_out"], rows
