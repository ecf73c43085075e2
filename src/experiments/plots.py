"""Bar charts of arms side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.files import replacing
from experiments.metrics import Scores

AVERAGE = "Average"


def plot_arms(
    scores: Mapping[str, Scores], metrics: Sequence[tuple[str, str]], title: str, footnote: str, path: Path
) -> None:
    """Draw one panel a metric, one group of bars an area and the average, one bar an arm; error bars are ± sd.

    ``metrics`` holds (name, label) pairs. An arm without a metric has no bar in its panel.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    areas = list(next(iter(scores.values())).areas)
    groups = [*areas, AVERAGE] if len(areas) > 1 else areas
    figure = Figure(figsize=(max(6.0, 1.3 * len(groups) + 2), 2.6 * len(metrics) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (name, label) in zip(figure.subplots(len(metrics), 1, squeeze=False)[:, 0], metrics, strict=True):
        width = 0.8 / len(scores)
        for i, (arm, of_arm) in enumerate(scores.items()):
            bars = [(x, *value) for x, group in enumerate(groups) if (value := _mean_and_sd(of_arm, group, name))]
            if bars:
                positions, means, sds = zip(*bars, strict=True)
                axes.bar(
                    [x + (i - (len(scores) - 1) / 2) * width for x in positions],
                    means,
                    width,
                    yerr=sds,
                    capsize=2,
                    color=f"C{i}",
                    label=arm,
                    error_kw={"linewidth": 0.8},
                )
        axes.set_xticks(range(len(groups)), groups)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = figure.axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(scores), frameon=False, title=title)
    figure.supxlabel(footnote, fontsize="small")
    with replacing(path) as partial:
        figure.savefig(partial, dpi=150, metadata={"Software": None})


def _mean_and_sd(scores: Scores, group: str, name: str) -> tuple[float, float] | None:
    means, sds = (scores.macro, scores.sd) if group == AVERAGE else (scores.areas[group], scores.areas_sd[group])
    mean = means[name]
    return None if mean is None else (mean, sds[name] or 0.0)
