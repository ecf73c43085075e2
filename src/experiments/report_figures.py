"""The plots of a report, as data URIs, so that the page is one file."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.plots import plot_arms, plot_sweep
from experiments.report_tables import Entry, label_of
from experiments.tracking import flatten

_MOST_BARS = 8  # runs in one bar chart
_LEGEND = 70  # characters that fit above it
_MOST_PANELS = 6  # swept keys


@dataclass(frozen=True)
class Figure:
    """A picture with the words that stand for it."""

    uri: str  #: data:image/png;base64,...
    caption: str


def bars(entries: Sequence[Entry], metrics: Sequence[str], collection: str) -> Figure | None:
    """Return the first two metrics by area, a bar a run; of many runs the best."""
    measured = _measured(entries, metrics[0])[:_MOST_BARS]
    shared = [name for name in metrics if all(name in entry.run.scores.macro for entry in measured)]
    if not measured:
        return None
    labels = [(name, label_of(name)) for name in shared[:2]]
    fits = sum(len(entry.label) for entry in measured) < _LEGEND
    scores = {entry.label if fits else str(entry.number): entry.run.scores for entry in measured}
    of = f"the best {len(measured)} of {len(entries)} runs" if len(measured) < len(entries) else "the runs"
    caption = (
        f"{' and '.join(label for _, label in labels)} of {of} by area; error bars: standard deviation over queries."
    )
    caption += "" if fits else " Numbers are those of the table of runs."
    return Figure(_drawn(lambda path: plot_arms(scores, labels, collection, "", path)), caption)


def against_settings(entries: Sequence[Entry], metric: str, collection: str) -> Figure | None:
    """Return the metric against every number in which the settings of the runs differ."""
    measured = _measured(entries, metric)
    keys = _varying_numbers(measured)[:_MOST_PANELS]
    if not keys:
        return None
    points = []
    for entry in measured:
        value, flat = entry.mean_and_sd(metric)[0], flatten(entry.run.settings)
        if value is not None:
            points.append(({key: str(flat[key]) for key in keys}, value))
    uri = _drawn(lambda path: plot_sweep(points, label_of(metric), collection, path))
    return Figure(uri, f"{label_of(metric)} against {', '.join(keys)}: one point a run.")


def _measured(entries: Sequence[Entry], metric: str) -> list[Entry]:
    return [entry for entry in entries if entry.mean_and_sd(metric)[0] is not None]


def _varying_numbers(entries: Sequence[Entry]) -> list[str]:
    """Return the settings with different numbers in different runs, by the keys of the command line."""
    keys = dict.fromkeys(difference.key for entry in entries for difference in entry.differences)
    return [key for key in keys if len(found := _values(entries, key)) > 1 and all(map(_is_number, found))]


def _values(entries: Sequence[Entry], key: str) -> set[str]:
    return {json.dumps(flatten(entry.run.settings).get(key)) for entry in entries}


def _is_number(text: str) -> bool:
    return isinstance(json.loads(text), int | float) and text not in {"true", "false"}


def _drawn(draw: Callable[[Path], None]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plot.png"
        draw(path)
        return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
