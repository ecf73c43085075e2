"""The difference of every query, drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.plots import new_figure, plain, save_figure
from experiments.statistics import Comparison
from experiments.tables import signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_COLUMNS = 4
_MOST_NAMED, _LONGEST_NAME = 30, 12  #: queries whose ids can be read below their bars, and characters of an id
_WIDTH, _HEIGHT = 4.2, 2.4  #: of a panel, inches


@dataclass(frozen=True)
class Panel:
    """One metric of one run, held against the first run."""

    run: str
    metric: str
    deltas: Mapping[str, float]
    comparison: Comparison


def plot_deltas(panels: Sequence[Panel], area_of: Mapping[str, str], title: str, path: Path) -> None:
    """Draw a panel a metric and run, its queries from the worst to the best; a run begins a row, a color is an area."""
    from matplotlib import colormaps
    from matplotlib.patches import Patch

    areas = sorted({area_of[query_id] for panel in panels for query_id in panel.deltas})
    palette = colormaps["tab10" if len(areas) <= 10 else "tab20"]
    colors = {area: palette(i % palette.N) for i, area in enumerate(areas)}
    runs = dict.fromkeys(panel.run for panel in panels)
    by_run = [[panel for panel in panels if panel.run == run] for run in runs]
    ranges = {panel.metric: _range(panels, panel.metric) for panel in panels}
    most = max(map(len, by_run))
    columns = math.ceil(most / math.ceil(most / _MOST_COLUMNS))  # 4 stand in one row, 5 as 3 and 2
    rows = [of_run[i : i + columns] for of_run in by_run for i in range(0, len(of_run), columns)]
    figure = new_figure(_WIDTH * columns, _HEIGHT * len(rows) + 0.9)
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for axes_of_row, row in zip(grid, rows, strict=True):
        for axes, panel in zip(axes_of_row, row, strict=False):
            bar_colors = {query_id: colors[area_of[query_id]] for query_id in panel.deltas}
            begins_a_run = len(by_run) > 1 and any(panel is of_run[0] for of_run in by_run)
            _draw(axes, panel, bar_colors, above=f"{panel.run}\n" if begins_a_run else "")
            axes.set_ylim(ranges[panel.metric])
        for axes in axes_of_row[len(row) :]:
            axes.set_visible(False)
    if len(areas) > 1:
        patches = [Patch(color=color, label=plain(area)) for area, color in colors.items()]
        ncols = min(len(areas), 4 * columns)
        figure.legend(handles=patches, loc="outside lower center", ncols=ncols, frameon=False, fontsize="small")
    figure.suptitle(plain(f"{title}\n(dashed: mean; grey: its 95 % interval)"), fontsize="medium")
    save_figure(figure, path)


def _range(panels: Sequence[Panel], metric: str) -> tuple[float, float]:
    """Return where the axis of a metric begins and ends, the same for all runs."""
    deltas = [delta for panel in panels if panel.metric == metric for delta in panel.deltas.values()]
    low, high = min([*deltas, -0.01]), max([*deltas, 0.01])
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def _draw(axes: Axes, panel: Panel, colors: Mapping[str, object], *, above: str) -> None:
    order = sorted(panel.deltas, key=lambda query_id: (panel.deltas[query_id], query_id))
    values = [panel.deltas[query_id] for query_id in order]
    axes.bar(range(len(order)), values, width=0.85, color=[colors[query_id] for query_id in order])
    mean, interval = panel.comparison.mean_difference, panel.comparison.interval
    axes.axhline(0, color="black", lw=0.8)
    if interval is not None:
        axes.axhspan(*interval, color="black", alpha=0.12, lw=0, zorder=0)
    axes.axhline(mean, color="black", lw=0.8, ls="--")
    axes.set_xlim(-0.8, len(order) - 0.2)
    is_named = len(order) <= _MOST_NAMED and max(map(len, order)) <= _LONGEST_NAME
    axes.set_xticks(range(len(order)) if is_named else [], [plain(q) for q in order] if is_named else [], rotation=90)
    axes.tick_params(labelsize="x-small")
    n_lower, n_higher = sum(value < 0 for value in values), sum(value > 0 for value in values)
    counts = f"{n_lower} lower, {len(values) - n_lower - n_higher} equal, {n_higher} higher"
    axes.set_xlabel(counts, fontsize="small")
    bounds = "" if interval is None else f" [{signed(interval[0])}, {signed(interval[1])}]"
    axes.set_title(plain(f"{above}{panel.metric}  {signed(mean)}{bounds}"), loc="left", fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
