"""What the best setting of a sweep or grid is worth: on queries it was not chosen on, or said to be optimistic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from experiments.config import NestedCv, NoTuning, Tuning
from experiments.statistics import Comparison, compare_shared
from experiments.tables import markdown
from experiments.tuning import Chosen, Measured, Split, choose, make_splits

_RED, _PLAIN = "\x1b[31m", "\x1b[0m"


@dataclass(frozen=True)
class Verdict:
    """The best setting by all queries, and what was chosen and reported on different ones."""

    metric: str
    measured: Measured
    name_of: Callable[[int], str]  #: a setting as a reader knows it
    tuning: Tuning
    splits: Sequence[Split]

    @cached_property
    def chosen(self) -> list[Chosen]:
        """What was chosen in each split."""
        return choose(self.measured, self.splits)

    @cached_property
    def held_out(self) -> dict[str, float]:
        """Return the value of each test query under the setting that was chosen without it."""
        return {q: v for c in self.chosen for q, v in self.measured.of(c.setting, c.split.test).items()}

    @cached_property
    def against_baseline(self) -> Comparison | None:
        """Return held-out values compared with those of the baseline on the same queries."""
        baseline = self.measured.baseline
        if baseline is None or not self.chosen:
            return None
        return compare_shared(self.held_out, self.measured.of(baseline), self.measured.area_of, seed=42)

    @property
    def held_out_mean(self) -> float:
        """Return the mean of the held-out values, over areas."""
        values = np.array([[self.held_out.get(q, np.nan) for q in self.measured.query_ids]])
        held = [q for q in self.measured.query_ids if q in self.held_out]
        return float(Measured(values, self.measured.query_ids, self.measured.area_of).means(held)[0])

    @property
    def metrics(self) -> dict[str, float]:
        """Return what MLflow keeps."""
        found = {"best_in_sample": float(self.measured.means()[self.measured.best()])}
        if self.chosen:
            found["held_out"] = self.held_out_mean
        if self.against_baseline is not None:
            found["held_out_difference"] = self.against_baseline.mean_difference
        return found

    def lines(self, *, is_terminal: bool) -> list[str]:
        """Return paragraphs of Markdown; that a best setting was chosen in sample is red on a terminal."""
        best = self.measured.best()
        means = self.measured.means().round(12)
        queries = f"all {len(self.measured.query_ids)} queries"
        found = f"Best by {self.metric} on {queries}: {self.name_of(best)}, {means[best]:.3f}"
        if others := int((means == means[best]).sum()) - 1:
            found += f", as good as {others:,} other{'s' if others > 1 else ''}"
        if isinstance(self.tuning, NoTuning):
            warning = (
                "This setting was chosen on the queries it is measured on, so its figure is too good by an unknown "
                "amount: tuning=nested_cv or tuning=holdout reports on queries it was not chosen on."
            )
            return [f"{found}.", f"{_RED}{warning}{_PLAIN}" if is_terminal else f"**{warning}**"]
        settings = ", ".join(f"{key}={value}" for key, value in self.tuning.model_dump().items())
        title = f"Chosen on development queries, reported on the others ({settings}):"
        return [f"{found} (in sample, too good by an unknown amount).", title, self._folds(), self._held_out_text()]

    def _folds(self) -> str:
        rows = []
        for i, c in enumerate(self.chosen):
            baseline = "—" if c.baseline_test is None else f"{c.baseline_test:.3f}"
            sizes = f"{len(c.split.development)} / {len(c.split.test)}"
            rows.append([str(i + 1), sizes, self.name_of(c.setting), f"{c.development:.3f}", f"{c.test:.3f}", baseline])
        header = ["fold", "queries dev / test", "chosen setting", "dev", "test", "default on test"]
        return markdown(header, rows)

    def _held_out_text(self) -> str:
        text = f"Held-out {self.metric} of the chosen settings: {self.held_out_mean:.3f}"
        if self.against_baseline is None:
            return f"{text}; the default setting is not among those compared."
        baseline = self.held_out_mean - self.against_baseline.mean_difference
        text = f"{text}, of the default setting on the same queries {baseline:.3f}: {self.against_baseline}."
        if not isinstance(self.tuning, NestedCv):
            return text
        return (
            f"{text} The folds share queries to choose on, which ties their values to each other: p is smaller and the "
            "interval narrower than they should be."
        )


def judge_settings(measured: Measured, name_of: Callable[[int], str], tuning: Tuning, metric: str) -> Verdict:
    """Choose and report as ``tuning`` says."""
    known = {query_id: measured.area_of[query_id] for query_id in measured.query_ids}
    return Verdict(metric, measured, name_of, tuning, make_splits(tuning, known))
