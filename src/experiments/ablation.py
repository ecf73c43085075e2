"""``litgrade ablation``: the arms side by side, as in the paper's table 15, with significance, tables and a plot."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pydantic import NonNegativeInt, ValidationError, model_validator

from experiments import cli
from experiments.config import RunConfig, Section, read_config
from experiments.explain import explain_validation
from experiments.files import write_lines
from experiments.metrics import Scores
from experiments.plots import AVERAGE, plot_arms
from experiments.run import RunResult, perform
from experiments.statistics import Comparison, compare, holm
from experiments.tables import latex, markdown, write_csv
from experiments.tracking import tracked_run
from pipeline.errors import UserError, WeightsError

log = logging.getLogger(__name__)


class Ablation(Section):
    """Which arms are compared, and against which of them significance is tested."""

    arms: list[str]
    baseline: str
    missing_weights: Literal["skip", "fail"]
    seed: NonNegativeInt

    @model_validator(mode="after")
    def _has_its_baseline(self) -> Ablation:
        if self.baseline not in self.arms:
            raise ValueError(f"baseline={self.baseline} is not among the arms {', '.join(self.arms)}")
        if len(set(self.arms)) < len(self.arms):
            raise ValueError(f"arms={', '.join(self.arms)}: an arm is named twice")
        return self


@dataclass(frozen=True)
class Table:
    """What the arms reached, and why others did not run."""

    results: Mapping[str, RunResult]  #: arm -> result, in the order asked for
    not_run: Mapping[str, str]  #: arm -> reason
    baseline: str
    metrics: Sequence[tuple[str, str]]  #: (name, label)
    comparisons: Mapping[tuple[str, str], tuple[Comparison, float]]  #: (metric, arm) -> comparison, p after Holm


def shown_metrics(evaluate: int) -> list[tuple[str, str]]:
    """Return the metrics of the table with their labels, for lists evaluated at this depth."""
    return [
        ("ac2", "AC2"),
        (f"ndcg_at_{evaluate}", f"NDCG@{evaluate}, ideal over all judged papers"),
        (f"ndcg_top_at_{evaluate}", f"NDCG@{evaluate}, ideal over the retrieved {evaluate} (the paper's)"),
        (f"judged_at_{evaluate}", f"judged@{evaluate}"),
    ]


def compare_arms(
    results: Mapping[str, RunResult], baseline: str, metrics: Sequence[tuple[str, str]], seed: int
) -> dict[tuple[str, str], tuple[Comparison, float]]:
    """Compare every arm with the baseline, metric by metric; p-values are corrected over the arms of a metric."""
    compared: dict[tuple[str, str], tuple[Comparison, float]] = {}
    for name, _ in metrics:
        found = {}
        for arm, result in results.items():
            ours, theirs = _values(result, name), _values(results[baseline], name) if baseline in results else None
            if arm != baseline and ours and theirs:
                areas = {query.query_id: query.area for query in result.collection.queries}
                both = ours.keys() & theirs.keys()  # an unjudged top under metrics.unjudged=skip has no AC2
                found[arm] = compare({q: ours[q] for q in both}, {q: theirs[q] for q in both}, areas, seed=seed)
        adjusted = holm([comparison.p_value for comparison in found.values()])
        compared |= {(name, arm): (found[arm], p) for arm, p in zip(found, adjusted, strict=True)}
    return compared


def _values(result: RunResult, name: str) -> dict[str, float] | None:
    values = {query_id: of_query[name] for query_id, of_query in result.scores.queries.items()}
    return {q: v for q, v in values.items() if v is not None} or None


def table_text(table: Table) -> str:
    """Return the whole report as Markdown: a table a metric, the comparisons, and notes."""
    parts = [_notice(table)] if _notice(table) else []
    for name, label in table.metrics:
        parts += [f"**{label}**", markdown(*_grid(table, name))]
    parts += [f"**Against {table.baseline}**", markdown(*_comparison_rows(table)), _legend(table)]
    parts += [f"Not run: {arm} ({reason})" for arm, reason in table.not_run.items()]
    return "\n\n".join(parts)


def _notice(table: Table) -> str:
    notices = [f"Note: {r.collection.notice}" for r in table.results.values() if r.collection.notice]
    return notices[0] if notices else ""


def _grid(table: Table, name: str) -> tuple[list[str], list[list[str]]]:
    areas = list(next(iter(table.results.values())).scores.areas)
    rows = [[area, *(_cell(r.scores, area, name) for r in table.results.values())] for area in areas]
    if len(areas) > 1:
        rows.append([AVERAGE, *(_cell(r.scores, AVERAGE, name) for r in table.results.values())])
    for column, arm in enumerate(table.results, start=1):
        rows[-1][column] += _marks(table, name, arm)
    header = ["area", *table.results, *table.not_run]
    return header, [[*row, *["not run"] * len(table.not_run)] for row in rows]


def _cell(scores: Scores, area: str, name: str) -> str:
    means, sds = (scores.macro, scores.sd) if area == AVERAGE else (scores.areas[area], scores.areas_sd[area])
    mean, sd = means[name], sds[name]
    return "—" if mean is None else f"{mean:.3f}" + ("" if sd is None else f" ± {sd:.3f}")


def _marks(table: Table, name: str, arm: str) -> str:
    if (name, arm) not in table.comparisons:
        return ""
    p = table.comparisons[name, arm][1]
    return " " + "*" * sum(p < level for level in (0.05, 0.01, 0.001)) if p < 0.05 else ""


def _comparison_rows(table: Table) -> tuple[list[str], list[list[str]]]:
    rows = []
    for (name, arm), (c, p_holm) in table.comparisons.items():
        interval = "—" if c.interval is None else f"{c.interval[0]:+.3f} to {c.interval[1]:+.3f}"
        numbers = [f"{c.mean_difference:+.3f}", interval, f"{c.w:g}", f"{c.n_nonzero} of {c.n_queries}"]
        rows.append([name, arm, *numbers, f"{c.p_value:.3g}", f"{p_holm:.3g}"])
    return ["metric", "arm", "difference", "95% interval", "W", "queries that differ", "p", "p (Holm)"], rows


def _exact_comparisons(table: Table) -> tuple[list[str], list[list[object]]]:
    name = next(iter(table.results.values())).collection.name
    rows: list[list[object]] = []
    for (metric, arm), (c, p_holm) in table.comparisons.items():
        numbers = [c.mean_difference, *(c.interval or (None, None)), c.w, c.n_nonzero, c.n_queries, c.p_value, p_holm]
        rows.append([name, metric, arm, table.baseline, *numbers])
    header = "collection metric arm baseline difference low high w n_nonzero n_queries p_value p_holm"
    return header.split(), rows


def _legend(table: Table) -> str:
    scores = next(iter(table.results.values())).scores
    average = "Average: mean of the area means ± mean of their standard deviations. " if len(scores.areas) > 1 else ""
    return (
        f"{average}* p < 0.05, ** p < 0.01, *** p < 0.001 against {table.baseline}: paired Wilcoxon signed-rank "
        "test over queries (normal approximation, as in the paper), Holm-corrected over the arms of a metric. "
        "Interval: paired bootstrap, stratified by area. An arm is held against the judgments of its own top papers. "
        "—: the arm has no relevance categories, hence no AC2."
    )


def write_table(table: Table, folder: Path) -> None:
    """Write table.md, table.csv, table.tex, comparisons.csv and table.png."""
    write_lines(folder / "table.md", [table_text(table)])
    grids = [latex(*_grid(table, name)) for name, _ in table.metrics]
    titles = [f"% {label}" for _, label in table.metrics]
    notes = [f"% {note}" for note in (_notice(table), _legend(table)) if note]
    write_lines(folder / "table.tex", notes + [line for pair in zip(titles, grids, strict=True) for line in pair])
    collection = next(iter(table.results.values())).collection
    means = [[collection.name, *row] for row in _long_rows(table)]
    write_csv(folder / "table.csv", ["collection", "metric", "area", "arm", "mean", "sd"], means)
    write_csv(folder / "comparisons.csv", *_exact_comparisons(table))
    scores = {arm: result.scores for arm, result in table.results.items()}
    footnote = "Error bars: standard deviation over queries; of the average, the mean of the areas'. " + _notice(table)
    plot_arms(scores, table.metrics[:3], f"Arms on {collection.name}", footnote, folder / "table.png")


def _long_rows(table: Table) -> list[list[object]]:
    rows: list[list[object]] = []
    for name, _ in table.metrics:
        for arm, result in table.results.items():
            scores = result.scores
            rows += [[name, area, arm, scores.areas[area][name], scores.areas_sd[area][name]] for area in scores.areas]
            rows.append([name, AVERAGE, arm, scores.macro[name], scores.sd[name]])
    return rows


def _arm_configs(arms: Sequence[str]) -> dict[str, RunConfig]:
    """Compose the config of each arm, as ``litgrade run arm=ARM`` with the other overrides of this command would."""
    overrides = HydraConfig.get().overrides.task
    if arm := next((o for o in overrides if o.startswith("arm=")), None):
        raise UserError(f"{arm}: an ablation runs several arms; give ablation.arms=[...] instead")
    of_runs = [override for override in overrides if not override.startswith("ablation.")]
    return {arm: read_config(hydra.compose("config", overrides=[*of_runs, f"arm={arm}"])) for arm in arms}


@cli.job("ablation")
def main(composed: DictConfig) -> None:
    """Run the arms one after the other, then compare, show, write and log."""
    try:
        ablation = Ablation.model_validate(OmegaConf.to_container(composed.ablation, resolve=True))
    except ValidationError as error:
        raise UserError(explain_validation(error, within="ablation")) from error
    configs = _arm_configs(ablation.arms)
    folder = Path(HydraConfig.get().runtime.output_dir)
    sweep = {"sweep_id": f"ablation-{folder.parent.name}-{folder.name}"}
    results, not_run = {}, {}
    for arm, config in configs.items():
        log.info("arm %s", arm)
        try:
            results[arm] = perform(config, folder / arm, sweep)
        except WeightsError as error:
            if ablation.missing_weights == "fail":
                raise
            not_run[arm] = str(error)
            log.warning("arm %s not run: %s", arm, error)
    if not results:
        raise WeightsError("no arm could run: " + "; ".join(not_run.values()))
    metrics = shown_metrics(next(iter(configs.values())).cutoffs.evaluate)
    comparisons = compare_arms(results, ablation.baseline, metrics[:3], ablation.seed)
    table = Table(results, not_run, ablation.baseline, metrics, comparisons)
    write_table(table, folder)
    _log_summary(table, next(iter(configs.values())), folder, sweep)
    print(table_text(table))  # noqa: T201
    print(folder)  # noqa: T201


def _log_summary(table: Table, config: RunConfig, folder: Path, sweep: Mapping[str, str]) -> None:
    name = next(iter(table.results.values())).collection.name
    tags = {**sweep, "kind": "summary", "collection": name}
    with tracked_run(config.tracking, f"ablation {name}", tags) as run:
        means = {f"{arm}/{m}": r.scores.macro[m] for arm, r in table.results.items() for m, _ in table.metrics}
        run.log({"arms": ", ".join(table.results)}, {k: v for k, v in means.items() if v is not None}, {})
        run.log_files(folder)


if __name__ == "__main__":
    import sys

    cli.main(["ablation", *sys.argv[1:]])
