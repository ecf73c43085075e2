"""Pictures of a grid: weights, alpha and cutoffs, recall against cost, and where the config's own setting stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from experiments.grid_cost import Cost
from experiments.grid_scores import semantic_order
from experiments.grid_summary import Summary
from experiments.plots import new_figure, plain, save_figure
from pipeline.candidates import Candidates
from pipeline.stages.semantic import PARTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

# The setting of the config.
_OWN: dict[str, Any] = {"marker": "*", "ms": 13, "mfc": "white", "mec": "black", "ls": "none"}


def plot_all(summary: Summary, tables: Sequence[Candidates], cost: Cost | None, folder: Path) -> list[str]:
    """Draw every picture into the folder and return the names of the files."""
    pictures: dict[str, Callable[[], Figure]] = {
        "weights.png": lambda: weights_figure(summary),
        "recall.png": lambda: recall_figure(summary, tables, cost),
        "settings.png": lambda: settings_figure(summary),
    }
    for name, draw in pictures.items():
        save_figure(draw(), folder / name)
    return list(pictures)


def weights_figure(summary: Summary) -> Figure:
    """Draw title against abstract weight, one panel an alpha; what both leave goes to keywords and disciplines.

    Color: the mean of the objective over the ways to share that rest out. Cutoffs and normalization are the config's.
    """
    grid, weights = summary.settings.grid, summary.settings.weights
    config, own = summary.config, summary.own
    wanted = (config.score.normalize, config.cutoffs.bm25, config.cutoffs.semantic)
    outer = [block for block in summary.settings.outer if block[:3] == wanted]
    first = wanted if outer else summary.settings.outer[0][:3]
    values = summary.values.reshape(-1, len(weights))
    panels = {b[3]: values[i] for i, b in enumerate(summary.settings.outer) if b[:3] == first}
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(3.1 * columns + 0.8, 2.9 * rows + 0.9)
    n = round(1 / grid.step)
    at = np.rint(weights[:, :2] * n).astype(int)
    means = {alpha: _means_by_cell(at, of_alpha, n) for alpha, of_alpha in panels.items()}
    # A cell or two far below the rest, as where nothing at all is compared, would take all contrast from the others.
    everything = np.stack(list(means.values()))
    low, high = np.nanquantile(everything, 0.02), np.nanmax(everything)
    all_axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    edges = (np.arange(n + 2) - 0.5) / n
    for axes, (alpha, cells) in zip(all_axes, means.items(), strict=False):
        mesh = axes.pcolormesh(edges, edges, cells.T, vmin=low, vmax=high, cmap="viridis", rasterized=True)
        axes.set_title(f"alpha {alpha:g}", loc="left", fontsize="medium")
        axes.set_aspect("equal")
        axes.spines[["top", "right"]].set_visible(False)
        if own is not None and alpha == config.weights.alpha:
            axes.plot(config.weights.title, config.weights.abstract, **_OWN)
            place = (config.weights.title, config.weights.abstract)
            line = {"arrowstyle": "-", "lw": 0.6}
            axes.annotate(summary.own_name, place, (0.42, 0.88), fontsize="small", arrowprops=line)
    for axes in all_axes[max(0, len(means) - columns) : len(means)]:
        axes.tick_params(labelbottom=True)  # also where the row below has fewer panels
    for axes in all_axes[len(means) :]:
        axes.set_visible(False)
    figure.colorbar(mesh, ax=list(all_axes), label=summary.config.objective, shrink=0.8, extend="min")
    figure.supxlabel("weight of the title", fontsize="medium")
    figure.supylabel("weight of the abstract", fontsize="medium")
    figure.suptitle(plain(_weights_title(summary, first)), fontsize="medium")
    return figure


def _weights_title(summary: Summary, cutoffs: tuple[str, int, int]) -> str:
    """Say what is drawn, and what is not there to be seen."""
    normalization, bm25, semantic = cutoffs
    rest = f"the rest of the weight: {PARTS[2]} and {PARTS[3]}, mean over the ways to share it"
    lines = [f"{summary.collection.name}, cutoffs {bm25}/{semantic}, {normalization}; {rest}"]
    if summary.missing_parts:
        lines.append(f"here nothing can be compared by {' or '.join(summary.missing_parts)}")
    if summary.own is None:
        lines.append(f"{summary.own_name} {summary.why_not_marked}")
    return "\n".join(lines)


def _means_by_cell(at: npt.NDArray[np.int64], values: Floats, n: int) -> Floats:
    sums, counts = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
    np.add.at(sums, (at[:, 0], at[:, 1]), np.nan_to_num(values))
    np.add.at(counts, (at[:, 0], at[:, 1]), ~np.isnan(values))
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def recall_figure(summary: Summary, tables: Sequence[Candidates], cost: Cost | None) -> Figure:
    """Draw recall against the number of papers kept, and above what grading so many papers a query costs."""
    config = summary.config
    (_, by_words), *_ = config.stages()
    of_words = _recall_curve(summary, by_words(summary.collection.candidates()))
    of_meaning = _recall_curve(summary, semantic_order(config, tables))
    figure = new_figure(8.0, 5.0)
    axes = figure.subplots()
    axes.plot(np.arange(1, len(of_words) + 1), of_words, color="C0", label="BM25 order: what its cutoff lets through")
    label = f"semantic order of the first {config.cutoffs.bm25}: what grading would see"
    axes.plot(np.arange(1, len(of_meaning) + 1), of_meaning, color="C1", label=label)
    for cutoff, curve, color, shift in (
        (config.cutoffs.bm25, of_words, "C0", (6, -14)),
        (config.cutoffs.semantic, of_meaning, "C1", (-8, 8)),
    ):
        value = curve[min(cutoff, len(curve)) - 1]
        named = f"cutoffs of {summary.own_name}" if curve is of_words else None
        axes.plot(cutoff, value, **{**_OWN, "mec": color}, label=named)
        side = "left" if shift[0] > 0 else "right"
        text = f"{cutoff}: {value:.3f}"
        axes.annotate(text, (cutoff, value), shift, textcoords="offset points", fontsize="small", ha=side)
    axes.set_xscale("log")
    last = max(len(of_words), config.cutoffs.bm25)
    ticks = [k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000) if k <= last]
    axes.set_xticks(ticks, [f"{k:,}" for k in ticks])
    axes.minorticks_off()
    axes.set_xlabel("papers kept a query")
    axes.set_ylabel(f"recall, grade {config.metrics.min_grade} and above")
    axes.set_ylim(0, 1.04)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize="small")
    if cost is not None:
        _add_cost(axes, ticks, cost)
    figure.suptitle(plain(summary.collection.name), fontsize="medium")
    return figure


def _add_cost(axes: Any, ticks: Sequence[int], cost: Cost) -> None:
    """Write the cost of grading so many papers above each tick: it is in proportion to their number."""
    above = axes.secondary_xaxis("top")
    dollars = ["" if cost.usd is None else f"\n${cost.usd * k:.2g}" for k in ticks]
    above.set_xticks(ticks, [_short(cost.tokens * k) + usd for k, usd in zip(ticks, dollars, strict=True)])
    above.minorticks_off()
    above.tick_params(labelsize="small", colors="C3")
    what = "tokens" if cost.usd is None else "tokens and US dollars"
    above.set_xlabel(
        f"{what} for grading so many papers a query by {cost.model.split('/')[-1]}, at most\n"
        f"(about {cost.tokens:,.0f} tokens a paper, from the prompts for {cost.papers:,} papers of {cost.queries} "
        "queries)",
        color="C3",
        fontsize="small",
    )


def _short(number: float) -> str:
    """Return ``336k`` or ``3.4M``."""
    return f"{number / 1e6:.1f}M" if number >= 999_500 else f"{number / 1e3:.0f}k"


def _recall_curve(summary: Summary, tables: Sequence[Candidates]) -> Floats:
    """Return recall after 1, 2, ... papers, the mean of area means over the queries that have judgments."""
    judgments, min_grade = summary.collection.judgments, summary.config.metrics.min_grade
    longest = max(len(table) for table in tables)
    areas: dict[str, list[Floats]] = {}
    for table in tables:
        grades = judgments[table.query.query_id]
        if not grades:
            continue
        n_relevant = max(1, sum(grade >= min_grade for grade in grades.values()))
        found = np.cumsum([grades.get(paper.paper_id, 0) >= min_grade for paper in table.papers]) / n_relevant
        padded = np.pad(found, (0, longest - len(found)), mode="edge") if len(found) else np.zeros(longest)
        areas.setdefault(table.query.area, []).append(padded)
    curve: Floats = np.mean([np.mean(curves, axis=0) for curves in areas.values()], axis=0)
    return curve


def settings_figure(summary: Summary) -> Figure:
    """Draw the objective against alpha, against the cutoffs, and its distribution over all settings."""
    columns, values, own = summary.settings.columns(), summary.values, summary.own
    keys = [key for key in columns if key.split(".")[1] in {"alpha", "bm25", "semantic", "normalize"}]
    known = values[~np.isnan(values)]
    keys = [key for key in keys if len(np.unique(columns[key])) > 1]
    figure = new_figure(3.3 * (len(keys) + 1) + 0.6, 3.8)
    *panels, last = figure.subplots(1, len(keys) + 1, squeeze=False)[0]
    lowest: list[float] = []
    for axes, key in zip(panels, keys, strict=True):
        ticks = list(dict.fromkeys(columns[key].tolist()))
        groups = [values[columns[key] == tick] for tick in ticks]
        x = np.arange(len(ticks))
        bounds = np.array([_quantiles(group) for group in groups]).T
        lowest.append(bounds[0].min())
        axes.fill_between(x, bounds[0], bounds[2], alpha=0.25, color="C0", label="5 to 95 % of the settings")
        axes.plot(x, bounds[1], color="C0", label="median")
        axes.plot(x, bounds[3], color="C1", label="highest")
        if own is not None:
            same = _same_otherwise(columns, key, own)
            at = [ticks.index(tick) for tick in columns[key][same].tolist()]
            lowest.append(np.nanmin(values[same]))
            axes.plot(at, values[same], color="black", lw=1, label=f"{summary.own_name}, only this changed")
            axes.plot(ticks.index(columns[key][own].item()), values[own], **_OWN)
        axes.set_xticks(x, [f"{tick:g}" if isinstance(tick, float) else str(tick) for tick in ticks])
        axes.set_xlabel(key)
        axes.grid(axis="y", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels:
        margin = 0.05 * (known.max() - min(lowest)) + 1e-9
        axes.set_ylim(min(lowest) - margin, known.max() + margin)
    last.hist(known, bins=60, color="C0", alpha=0.7)
    if own is not None and summary.shares is not None:
        last.axvline(values[own], color="black", lw=1.2)
        last.set_title(
            f"{summary.own_name}: {values[own]:.3f}, better than {summary.shares[0]:.1f} %",
            loc="left",
            fontsize="small",
        )
    else:
        last.set_title(f"{summary.own_name} {summary.why_not_marked}", loc="left", fontsize="small")
    last.set_xlabel(summary.config.objective)
    last.set_ylabel(f"settings, of {len(known):,}")
    last.spines[["top", "right"]].set_visible(False)
    if panels:
        panels[0].set_ylabel(summary.config.objective)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    figure.suptitle(plain(summary.collection.name), fontsize="medium")
    return figure


def _quantiles(values: Floats) -> Floats:
    """Return the 5, 50, 95 and 100 % quantiles of the values that there are."""
    known = values[~np.isnan(values)]
    found: Floats = np.quantile(known, [0.05, 0.5, 0.95, 1]) if known.size else np.full(4, np.nan)
    return found


def _same_otherwise(columns: dict[str, npt.NDArray[Any]], key: str, own: int) -> npt.NDArray[np.intp]:
    """Return the settings that differ from this one in no other key, in the order of that key."""
    same = np.all([values == values[own] for name, values in columns.items() if name != key], axis=0)
    return np.flatnonzero(same)
