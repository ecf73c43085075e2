"""Bar charts of arms side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.files import replacing
from experiments.metrics import Scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AVERAGE = "Average"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, sizes in inches, that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, without the version of matplotlib, so that equal pictures are equal files."""
    with replacing(path) as partial:
        figure.savefig(partial, dpi=150, metadata={"Software": None})


def plot_arms(
    scores: Mapping[str, Scores], metrics: Sequence[tuple[str, str]], title: str, footnote: str, path: Path
) -> None:
    """Draw one panel a metric, one group of bars an area and the average, one bar an arm; error bars are ± sd.

    ``metrics`` holds (name, label) pairs. An arm without a metric has no bar in its panel.
    """
    from matplotlib.patches import Patch

    colors = {arm: f"C{i}" for i, arm in enumerate(scores)}
    areas = list(next(iter(scores.values())).areas)
    groups: list[str | None] = [*areas, None] if len(areas) > 1 else [*areas]  # None: the average
    figure = new_figure(max(7.0, 1.3 * len(groups) + 2), 2.4 * len(metrics) + 0.8)
    for axes, (name, label) in zip(figure.subplots(len(metrics), 1, squeeze=False)[:, 0], metrics, strict=True):
        measured = [arm for arm, of_arm in scores.items() if of_arm.macro[name] is not None]
        width = 0.8 / max(1, len(measured))
        for i, arm in enumerate(measured):
            bars = [(x, *value) for x, group in enumerate(groups) if (value := _bar(scores[arm], group, name))]
            positions, means, sds = zip(*bars, strict=True)
            axes.bar(
                [x + (i - (len(measured) - 1) / 2) * width for x in positions],
                means,
                width,
                yerr=sds,
                capsize=2,
                color=colors[arm],
                error_kw={"linewidth": 0.8},
            )
        axes.set_title(label, loc="left", fontsize="medium")
        axes.set_xticks(range(len(groups)), [AVERAGE if group is None else plain(group) for group in groups])
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.spines[["top", "right"]].set_visible(False)
    patches = [Patch(color=color, label=arm) for arm, color in colors.items()]
    figure.legend(handles=patches, loc="outside upper center", ncols=len(scores), frameon=False, title=plain(title))
    figure.supxlabel(plain(footnote), fontsize="small")
    save_figure(figure, path)


def plot_sweep(points: Sequence[tuple[Mapping[str, str], float]], metric: str, title: str, path: Path) -> None:
    """Draw one panel a swept key: every job's value of the metric, and the best at each value of the key."""
    keys = list(dict.fromkeys(key for settings, _ in points for key in settings))
    figure = new_figure(max(5.0, 3.6 * len(keys)), 3.6)
    for axes, key in zip(figure.subplots(1, len(keys), squeeze=False, sharey=True)[0], keys, strict=True):
        at = [(settings[key], value) for settings, value in points if key in settings]
        ticks = sorted({text for text, _ in at}, key=_tick_order)
        axes.plot([ticks.index(text) for text, _ in at], [value for _, value in at], "o", color="C0", alpha=0.45, ms=5)
        best = [max(value for text, value in at if text == tick) for tick in ticks]
        axes.plot(range(len(ticks)), best, "-", color="C1", label="best at this value")
        axes.set_xticks(range(len(ticks)), [plain(tick[:24]) for tick in ticks], rotation=45 if len(ticks) > 6 else 0)
        axes.set_xlabel(plain(key))
        axes.grid(axis="y", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel(plain(metric))
    figure.axes[0].legend(frameon=False, fontsize="small")
    figure.suptitle(plain(title), fontsize="medium")
    save_figure(figure, path)


def _tick_order(text: str) -> tuple[float, str]:
    try:
        return float(text), text
    except ValueError:
        return float("inf"), text


def _bar(scores: Scores, area: str | None, name: str) -> tuple[float, float] | None:
    mean, sd = scores.mean_and_sd(area, name)
    return None if mean is None else (mean, sd or 0.0)


def plain(text: str) -> str:
    """Return the text as matplotlib shows it letter by letter."""
    return text.replace("$", r"\$")  # or matplotlib reads a formula
