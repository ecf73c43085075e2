"""The table of a sweep: a row a job, best first, with what the best setting is worth on other queries."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hydra.core.override_parser.overrides_parser import OverridesParser

from experiments.config import Tuning
from experiments.files import write_lines
from experiments.jobs import Job
from experiments.metrics import DEFINING_METRICS
from experiments.tables import markdown, mean_text, read_csv, write_csv
from experiments.tuning import Measured, write_splits
from experiments.verdict import Verdict, judge_settings

_NOTE_ROWS = 25  # MLflow shows the text of a run, and takes 8,000 characters


@dataclass(frozen=True)
class Row:
    """One job with what it measured; ``scores`` is its metrics.json, None where there is none."""

    job: Job
    folder: Path
    scores: Mapping[str, Any] | None
    run_id: str | None

    def value(self, metric: str) -> float | None:
        """Return the mean of a metric over areas, or None."""
        return None if self.scores is None else self.scores["macro"].get(metric)


@dataclass(frozen=True)
class SweepTable:
    """All jobs of a sweep, by the objective, highest first; those without a value come last."""

    definition: Mapping[str, Any]
    objective: str
    rows: Sequence[Row]
    collection: str  #: its name, several joined by commas
    verdict: Verdict | None  #: of the best setting; None where settings cannot be compared query by query

    @property
    def params(self) -> dict[str, object]:
        """What MLflow keeps of the definition."""
        keys = ("sweeper", "launcher", "objective")
        swept = {f"swept.{key}": _swept_text(self, key) for key in self.definition["swept"]}
        return {key: self.definition[key] for key in keys} | {"tuning": self.definition["tuning"]["method"]} | swept

    @property
    def missing(self) -> int:
        """How many jobs never began, as far as their number was known."""
        return max(0, (self.definition["jobs"] or 0) - len(self.rows))

    @property
    def metrics(self) -> dict[str, float]:
        """Counts of jobs by what became of them, and the best value."""
        found = {f"jobs/{status}": 0.0 for status in ("finished", "skipped", "failed", "killed", "running")}
        for row in self.rows:
            found[f"jobs/{row.job.status}"] += 1
        found["jobs/missing"] = float(self.missing)
        best = self.rows[0].value(self.objective)
        found |= {} if best is None else {"objective": best}
        return found | ({} if self.verdict is None else self.verdict.metrics)


def make_table(
    jobs: Sequence[tuple[Job, Path]], definition: Mapping[str, Any], objective: str, tuning: Tuning
) -> SweepTable:
    """Read what the jobs of a sweep left in their folders and put it together."""
    rows = [_row(job, folder) for job, folder in jobs]
    verdict = _verdict(rows, definition, objective, tuning)  # before they are sorted, which looks at all queries
    order = [-(value if (value := row.value(objective)) is not None else -np.inf) for row in rows]
    rows = [rows[i] for i in np.argsort(order, kind="stable")]
    names = dict.fromkeys(row.scores["collection"] for row in rows if row.scores)
    return SweepTable(definition, objective, rows, ", ".join(names), verdict)


def _row(job: Job, folder: Path) -> Row:
    if job.status not in {"finished", "skipped"} or not (folder / "metrics.json").exists():
        return Row(job, folder, None, None)
    scores = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    origin = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    return Row(job, folder, scores, origin["run_id"])


def _verdict(rows: Sequence[Row], definition: Mapping[str, Any], objective: str, tuning: Tuning) -> Verdict | None:
    """Say what the best setting is worth; None where fewer than two were measured alike and on the same queries.

    ``rows`` are in the order of the jobs: of settings that are equal on development queries the first is chosen.
    """
    if _of_metrics(definition):
        return None
    measured = [row for row in rows if row.value(objective) is not None]
    asked = {(row.scores["collection"], *sorted(row.scores["queries"])) for row in measured if row.scores}
    if len(measured) < 2 or len(asked) > 1:
        return None
    area_of = {entry["query_id"]: entry["area"] for entry in read_csv(measured[0].folder / "per_query.csv")}
    queries = [q for q in area_of if any(row.scores and q in row.scores["queries"] for row in measured)]
    values = np.array(
        [[_number(row.scores["queries"][q].get(objective)) for q in queries] for row in measured if row.scores]
    )
    baseline = next((i for i, row in enumerate(measured) if _is_default(row.job, definition)), None)
    names = [row.job.name for row in measured]
    return judge_settings(Measured(values, queries, area_of, baseline), names.__getitem__, tuning, objective)


def _of_metrics(definition: Mapping[str, Any]) -> list[str]:
    return [key for key in definition["swept"] if f"{key}.".startswith(DEFINING_METRICS)]


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _is_default(job: Job, definition: Mapping[str, Any]) -> bool:
    """Whether the job has the values that a run without this sweep would have."""
    parser = OverridesParser.create()
    values = {key: parser.parse_override(f"value={value}").value() for key, value in job.settings.items()}
    return all(value == definition["defaults"][key] for key, value in values.items())


def _swept_text(table: SweepTable, key: str) -> str:
    values = list(
        dict.fromkeys(row.job.settings.get(key, "") for row in sorted(table.rows, key=lambda r: r.job.number))
    )
    if len(values) <= 20:
        return ", ".join(values)
    return f"{len(values)} values from {min(values, key=_by_size)} to {max(values, key=_by_size)}"


def _by_size(value: str) -> tuple[float, str]:
    try:
        return float(value), ""
    except ValueError:
        return np.inf, value


def _shown_metrics(table: SweepTable) -> list[str]:
    """Return the objective and the headline metrics that all measured jobs share."""
    measured = [set(row.scores["macro"]) for row in table.rows if row.scores]
    if not measured:
        return []
    shared = set.intersection(*measured)
    first = next((list(row.scores["macro"]) for row in table.rows if row.scores), [])
    heads = [name for name in first if name in shared and name.startswith(("ac2", "ndcg", "map"))]
    return list(dict.fromkeys([table.objective, *heads]))


def _grid(table: SweepTable, rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    keys, metrics = table.definition["swept"], _shown_metrics(table)
    body = []
    for row in rows:
        found = [mean_text(row.value(m), row.scores["sd"].get(m)) if row.scores else "—" for m in metrics]
        body.append([str(row.job.number), *(row.job.settings.get(key, "") for key in keys), *found, row.job.status])
    return ["job", *keys, *metrics, "status"], body


def table_text(table: SweepTable) -> str:
    """Return the whole table as Markdown, and what the best setting is worth; red on a terminal where it must be.

    Failures are not in it: they are the last lines of what a sweep tells.
    """
    return "\n\n".join(_parts(table, table.rows, is_terminal=sys.stdout.isatty(), failures=False))


def summary_text(table: SweepTable) -> str:
    """Return the text that MLflow shows with the summary run: the first rows of the table."""
    text = "\n\n".join(_parts(table, table.rows[:_NOTE_ROWS], is_terminal=False))
    more = len(table.rows) - _NOTE_ROWS
    return text + (f"\n\nand {more} more in sweep.csv" if more > 0 else "")


def _parts(table: SweepTable, rows: Sequence[Row], *, is_terminal: bool, failures: bool = True) -> list[str]:
    parts = [f"Sweep {table.definition['sweep_id']} of {', '.join(table.definition['swept']) or 'one setting'}"]
    parts[0] += f" on {table.collection}, by {table.objective}" if table.collection else ""
    parts.append(markdown(*_grid(table, rows)))
    if taken := sum(row.job.status == "skipped" for row in table.rows):
        parts.append(f"{taken} skipped: finished in an earlier sweep, whose figures are taken.")
    if table.missing:
        n = table.definition["jobs"]
        parts.append(f"**{table.missing} of {n} jobs were not run**, so the best of all may not be here.")
    if any(row.scores for row in table.rows) and all(row.value(table.objective) is None for row in table.rows):
        parts.append(f"No job has a value of {table.objective}.")
    if failures and (failed := [row.job for row in rows if row.job.error]):
        parts.append("\n".join(f"- job {job.number} failed: {job.error}" for job in failed))
    if keys := _of_metrics(table.definition):
        differ = "differs" if len(keys) == 1 else "differ"
        parts.append(f"{', '.join(keys)} {differ}, so metrics of one name are not the same: no setting is called best.")
    if table.verdict is not None:
        parts += table.verdict.lines(is_terminal=is_terminal)
    return parts


def write_table(table: SweepTable, folder: Path) -> list[str]:
    """Write sweep.csv and sweep.md, and where they hold something sweep.png and splits.json; return their names."""
    keys = table.definition["swept"]
    metrics = list(dict.fromkeys(name for row in table.rows if row.scores for name in row.scores["macro"]))
    header = ["job", *keys, "status", "error", "seconds", "run_id", "folder", *metrics]
    body = [
        [
            row.job.number,
            *(row.job.settings.get(key) for key in keys),
            row.job.status,
            row.job.error,
            row.job.seconds,
            row.run_id,
            row.folder.name,
            *(row.value(name) for name in metrics),
        ]
        for row in table.rows
    ]
    write_csv(folder / "sweep.csv", header, body)
    write_lines(folder / "sweep.md", ["\n\n".join(_parts(table, table.rows, is_terminal=False))])
    files = ["sweep.csv", "sweep.md"]
    points = [(row.job.settings, value) for row in table.rows if (value := row.value(table.objective)) is not None]
    if keys and len(points) > 1:
        from experiments.plots import plot_sweep

        plot_sweep(points, table.objective, f"Sweep on {table.collection}", folder / "sweep.png")
        files.append("sweep.png")
    if table.verdict is not None and table.verdict.splits:
        write_splits(table.verdict.splits, folder / "splits.json")
        files.append("splits.json")
    return files
