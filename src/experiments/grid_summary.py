"""What a grid says: where the config's own setting stands, how flat the top is, and what choosing is worth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from experiments.collections import Collection
from experiments.config import RunConfig
from experiments.grid_scores import GridScores
from experiments.grid_settings import Settings
from experiments.statistics import RESAMPLES, generator
from experiments.tables import markdown
from experiments.verdict import Verdict
from pipeline.scoring import Weights
from pipeline.stages.semantic import PARTS

Floats = npt.NDArray[np.float64]

_NEAR = (0.005, 0.01, 0.02)  # how far below the best a setting may be and be called near
_TOP = 10


@dataclass(frozen=True)
class Summary:
    """A measured grid and its verdict."""

    config: RunConfig
    collection: Collection
    settings: Settings
    scores: GridScores
    verdict: Verdict

    @cached_property
    def values(self) -> Floats:
        """The objective of every setting, the mean of its area means; -inf where it has no value."""
        values: Floats = np.nan_to_num(self.verdict.measured.means(), nan=-np.inf)
        return values

    @property
    def own_name(self) -> str:
        """How the setting of the config is called."""
        config = self.config
        is_paper = (config.weights, config.score.normalize) == (Weights(), "minmax")
        cutoffs = (config.cutoffs.bm25, config.cutoffs.semantic)
        return "the paper's setting" if is_paper and cutoffs == (100, 50) else "this config"

    @property
    def percentile(self) -> float | None:
        """The share of settings that the config's own setting beats, ties counted by half, 0 to 100."""
        if (own := self.verdict.measured.baseline) is None:
            return None
        rounded = self.values.round(12)
        return float(100 * ((rounded < rounded[own]).mean() + (rounded == rounded[own]).mean() / 2))

    @property
    def metrics(self) -> dict[str, float]:
        """Return what MLflow keeps."""
        found = {**self.verdict.metrics, "settings": float(len(self.settings))}
        if self.percentile is not None:
            found["own_setting"] = float(self.values[self.verdict.measured.baseline])
            found["own_percentile"] = self.percentile
        return found | {f"near_best/{by:g}": float((self.values >= self.values.max() - by).mean()) for by in _NEAR}

    def parts(self, *, is_terminal: bool) -> list[str]:
        """Return paragraphs of Markdown."""
        title = f"{len(self.settings):,} settings on {self.collection.name}, by {self.config.objective}"
        parts = [title, *([f"Note: {self.collection.notice}"] if self.collection.notice else [])]
        parts += [self._places(), self._flatness(), *self._missing_parts()]
        parts += [f"**The {_TOP} highest that differ in any query**", markdown(*self._table())]
        return [*parts, "**What choosing is worth**", *self.verdict.lines(is_terminal=is_terminal)]

    def _places(self) -> str:
        own = self.verdict.measured.baseline
        if own is None:
            return "The setting of this config is not in the grid, so it has no place in it."
        name, value = self.settings.name(own), self.values[own]
        gap = self.values.max() - value
        return (
            f"{self.own_name.capitalize()}, {name}: {value:.3f}, better than {self.percentile:.1f} % of all settings, "
            f"{gap:.3f} below the highest (which is chosen in sample)."
        )

    def _flatness(self) -> str:
        near = ", ".join(f"{by:g}: {(self.values >= self.values.max() - by).mean():.1%}" for by in _NEAR)
        quantiles = np.quantile(self.values, [0.05, 0.5, 0.95])
        alike = _indistinguishable(self.verdict, self.values)
        return (
            f"How flat it is: 5 %, 50 % and 95 % of the settings reach at most {quantiles[0]:.3f}, {quantiles[1]:.3f} "
            f"and {quantiles[2]:.3f}. Settings within so much of the highest: {near}. Settings that a paired bootstrap "
            f"over queries cannot tell from the highest (95 % interval of the difference holds 0): {alike:.1%}."
        )

    def _missing_parts(self) -> list[str]:
        papers = self.collection.papers.values()
        missing = [part for part in PARTS if not any(getattr(paper, part) for paper in papers)]
        missing += [] if any(paper.citation_count for paper in papers) else ["citation counts"]
        missing += [] if any(paper.impact_factor for paper in papers) else ["impact factors"]
        if not missing:
            return []
        return [
            f"No paper of this collection has {', '.join(missing)}: their weights only take weight from the others."
        ]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return the highest settings, one for all those that measure alike in every query, and the config's own."""
        order = np.argsort(-self.values, kind="stable")
        alike: dict[bytes, list[int]] = {}
        for i in order:
            if (key := self.scores.objective[i].round(9).tobytes()) in alike or len(alike) < _TOP:
                alike.setdefault(key, []).append(int(i))
        shown = [(found[0], len(found)) for found in alike.values()]
        own = self.verdict.measured.baseline
        shown += [] if own is None or any(own in found for found in alike.values()) else [(own, 1)]
        names = list(dict.fromkeys([self.config.objective, "ac2", *_headlines(self.scores)]))
        places = np.argsort(order)
        rows = []
        for i, n_alike in shown:
            values = [f"{v:g}" if isinstance(v, float) else str(v) for v in self.settings.values(i).values()]
            place = f"{places[i] + 1:,}" + (f" ({self.own_name})" if i == own else "")
            rows.append([place, *values, *(f"{self.scores.macro[name][i]:.3f}" for name in names), f"{n_alike:,}"])
        return ["place", *(key.split(".")[1] for key in self.settings.values(0)), *names, "settings alike"], rows


def _headlines(scores: GridScores) -> list[str]:
    return [name for name in scores.macro if name.startswith("ndcg") or name == "map"]


def _indistinguishable(verdict: Verdict, values: Floats) -> float:
    """Return the share of settings whose difference to the best has a 95 % bootstrap interval that holds 0.

    Queries are resampled within areas, the same for all settings.
    """
    measured = verdict.measured
    best = int(np.argmax(values))
    differences = np.nan_to_num(measured.values - measured.values[best])
    areas: dict[str, list[int]] = {}
    for i, query_id in enumerate(measured.query_ids):
        areas.setdefault(measured.area_of[query_id], []).append(i)
    n_resamples = RESAMPLES // 10
    weights = np.zeros((len(measured.query_ids), n_resamples))
    for area, columns in areas.items():
        drawn = generator(42, "grid", area).integers(len(columns), size=(n_resamples, len(columns)))
        for resample, picks in enumerate(drawn):
            counts = np.bincount(picks, minlength=len(columns))
            weights[columns, resample] = counts / len(columns) / len(areas)
    holds_zero = 0
    for start in range(0, len(differences), 2_000):
        resampled = differences[start : start + 2_000] @ weights
        holds_zero += int((np.quantile(resampled, 0.975, axis=1) >= -1e-12).sum())
    return holds_zero / len(differences)
