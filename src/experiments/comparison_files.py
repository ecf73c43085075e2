"""The files of a comparison: the text, exact figures as CSV, and the differences of every query drawn."""

from __future__ import annotations

from pathlib import Path

from experiments.compare_plots import Panel, plot_deltas
from experiments.comparison import Comparisons
from experiments.comparison_text import MOST_DETAILED
from experiments.files import write_lines
from experiments.moved import SCORES
from experiments.tables import write_csv


def write_comparison(compared: Comparisons, text: str, folder: Path) -> list[str]:
    """Write the comparison and return the names of the files; without figures there is nothing to draw."""
    write_lines(folder / "comparison.md", [text])
    _write_comparisons(compared, folder / "comparisons.csv")
    _write_queries(compared, folder / "per_query.csv")
    _write_moves(compared, folder / "moved.csv")
    files = ["comparison.md", "comparisons.csv", "per_query.csv", "moved.csv"]
    if not compared.compared:
        return files
    drawn = compared.runs[1 : 1 + MOST_DETAILED]
    part = f", the first {len(drawn)} of {len(compared.runs) - 1} runs" if len(drawn) < len(compared.runs) - 1 else ""
    title = f"Queries on {compared.first.collection}: difference to {compared.first.name}{part}"
    panels = [
        Panel(run.name, entry.metric, entry.deltas, entry.comparison) for run in drawn for entry in compared.of(run)
    ]
    plot_deltas(panels, compared.first.area_of, title, folder / "deltas.png")
    return [*files, "deltas.png"]


def _write_comparisons(compared: Comparisons, path: Path) -> None:
    header = (
        "collection metric run baseline mean_baseline mean_run difference low high w n_nonzero n_queries left_out "
        "p_value p_holm rank_biserial cohen_d"
    )
    rows = []
    for entry in compared.compared:
        c, effect, (low, high) = entry.comparison, entry.effect, entry.comparison.interval or (None, None)
        names = [compared.first.collection, entry.metric, entry.run.name, compared.first.name]
        figures = [*entry.means, c.mean_difference, low, high, c.w, c.n_nonzero, c.n_queries, entry.left_out]
        rows.append([*names, *figures, c.p_value, entry.p_holm, effect.rank_biserial, effect.cohen_d])
    write_csv(path, header.split(), rows)


def _write_queries(compared: Comparisons, path: Path) -> None:
    first = compared.first
    header = [
        "collection",
        "query_id",
        "area",
        "metric",
        "run",
        "baseline",
        "value_baseline",
        "value_run",
        "difference",
    ]
    rows = []
    for entry in compared.compared:
        for query_id in sorted(first.scores.queries):
            values = [run.scores.queries[query_id].get(entry.metric) for run in (first, entry.run)]
            names = [first.collection, query_id, first.area_of[query_id], entry.metric, entry.run.name, first.name]
            rows.append([*names, *values, entry.deltas.get(query_id)])
    write_csv(path, header, rows)


def _write_moves(compared: Comparisons, path: Path) -> None:
    header = ["collection", "query_id", "area", "run", "baseline", "paper_id", "title", "what", "why", "grade"]
    columns = ["rank", *SCORES]
    rows = []
    for run in compared.runs[1:]:
        for move in compared.moves[run.name]:
            area = compared.first.area_of.get(move.query_id)
            names = [compared.first.collection, move.query_id, area, run.name, compared.first.name, move.paper_id]
            words = [move.title, move.what, move.why, compared.grade(move)]
            rows.append([*names, *words, *(side.get(name) for name in columns for side in (move.before, move.after))])
    sides = [f"{name}_{side}" for name in columns for side in ("baseline", "run")]
    write_csv(path, [*header, *sides], rows)
