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
from experiments.statistics import CONFIDENCE, RESAMPLES, generator
from experiments.tables import markdown
from experiments.tuning import Measured
from experiments.verdict import Verdict
from pipeline.scoring import Weights
from pipeline.stages.semantic import PARTS

Floats = npt.NDArray[np.float64]

_NEAR = (0.005, 0.01, 0.02)  # how far below the best a setting may be and be called near
_TOP = 10
_CHUNK = 500  # settings that are resampled at once
_SEED = 42  # as the verdict compares


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
        """The objective of every setting, the mean of its area means; NaN where it has no value."""
        return self.verdict.measured.means()

    @cached_property
    def best_value(self) -> float:
        """The highest value of the objective, chosen in sample."""
        return float(np.nanmax(self.values))

    @property
    def own(self) -> int | None:
        """The setting of the config, where it is in the grid and has a value."""
        own = self.verdict.measured.baseline
        return None if own is None or np.isnan(self.values[own]) else own

    @property
    def own_name(self) -> str:
        """How the setting of the config is called."""
        config = self.config
        is_paper = (config.weights, config.score.normalize) == (Weights(), "minmax")
        cutoffs = (config.cutoffs.bm25, config.cutoffs.semantic)
        return "the paper's setting" if is_paper and cutoffs == (100, 50) else "this config"

    @cached_property
    def shares(self) -> tuple[float, float] | None:
        """The shares, 0 to 100, of settings that the config's own beats, and of others that have the same value."""
        if (own := self.own) is None:
            return None
        rounded = self.values.round(12)
        alike = (rounded == rounded[own]).sum() - 1
        return float(100 * (rounded < rounded[own]).mean()), float(100 * alike / len(rounded))

    @cached_property
    def alike(self) -> list[list[int]]:
        """Settings by their value, highest first, those together whose objective is the same in every query."""
        found: dict[bytes, list[int]] = {}
        for i in np.argsort(-self.values, kind="stable"):
            found.setdefault(self.scores.objective[i].round(9).tobytes(), []).append(int(i))
        return list(found.values())

    @property
    def metrics(self) -> dict[str, float]:
        """Return what MLflow keeps."""
        found = {**self.verdict.metrics, "settings": float(len(self.settings))}
        if self.shares is not None:
            found["own_setting"] = float(self.values[self.own])
            found["own_better_than"], found["own_as_good_as"] = self.shares
        if self.like_best is not None:
            found["like_best"] = self.like_best
        return found | {f"near_best/{by:g}": self._share_near(by) for by in _NEAR}

    @cached_property
    def like_best(self) -> float | None:
        """The share of settings that cannot be told from the highest; None where that cannot be said."""
        return _share_like_best(self.verdict.measured, int(np.nanargmax(self.values)))

    def _share_near(self, by: float) -> float:
        return float((self.values >= self.best_value - by).mean())

    def parts(self, *, is_terminal: bool) -> list[str]:
        """Return paragraphs of Markdown."""
        title = f"{len(self.settings):,} settings on {self.collection.name}, by {self.config.objective}"
        title += f", {len(self.alike):,} of which differ in any query"
        parts = [title, *([f"Note: {self.collection.notice}"] if self.collection.notice else [])]
        parts += [self._places(), self._flatness(), *self._without_effect()]
        parts += [f"**The {_TOP} highest that differ in any query**", markdown(*self._table())]
        return [*parts, "**What choosing is worth**", *self.verdict.lines(is_terminal=is_terminal)]

    @property
    def why_not_marked(self) -> str:
        """Say why the setting of the config has no place."""
        return "is not in the grid" if self.verdict.measured.baseline is None else "has no value in the grid"

    def _places(self) -> str:
        own, shares = self.own, self.shares
        if own is None or shares is None:
            return f"{self.own_name.capitalize()} {self.why_not_marked}, so it has no place in it."
        name, value = self.settings.name(own), self.values[own]
        gap = self.best_value - value
        return (
            f"{self.own_name.capitalize()}, {name}: {value:.3f}, better than {shares[0]:.1f} % of all settings, "
            f"as good as {shares[1]:.1f} %, {gap:.3f} below the highest (which is chosen in sample)."
        )

    def _flatness(self) -> str:
        near = ", ".join(f"{by:g}: {self._share_near(by):.1%}" for by in _NEAR)
        quantiles = np.nanquantile(self.values, [0.05, 0.5, 0.95])
        text = (
            f"How flat it is: 5 %, 50 % and 95 % of the settings reach at most {quantiles[0]:.3f}, {quantiles[1]:.3f} "
            f"and {quantiles[2]:.3f}. Settings within so much of the highest: {near}."
        )
        if n_without := int(np.isnan(self.values).sum()):
            text += f" {n_without:,} settings have no value of {self.config.objective}."
        if self.like_best is None:
            return f"{text} An area with a single query gives no interval of the difference to the highest."
        return (
            f"{text} Settings that a paired bootstrap over queries cannot tell from the highest (95 % interval of the "
            f"difference holds 0): {self.like_best:.0%}."
        )

    @cached_property
    def missing_parts(self) -> list[str]:
        """The similarities that no paper has with any query, since either side lacks the part."""
        papers, queries = self.collection.papers.values(), self.collection.queries
        asked = {"keywords": any(query.keywords for query in queries), "disciplines": any(q.subject for q in queries)}
        return [part for part in PARTS if not (asked.get(part, True) and any(getattr(paper, part) for paper in papers))]

    def _without_effect(self) -> list[str]:
        papers = self.collection.papers.values()
        found = []
        if self.missing_parts:
            found.append(
                f"In this collection nothing can be compared by {' or '.join(self.missing_parts)}, which papers or "
                "queries lack: such a weight only takes weight from the others."
            )
        if not any(paper.citation_count or paper.impact_factor for paper in papers):
            found.append("No paper has a citation count or an impact factor, so that alpha changes nothing.")
        return found

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return the highest settings, one for all those that measure alike in every query, and the config's own."""
        own = self.own
        first = [(found[0], len(found)) for found in self.alike[:_TOP]]
        shown = first + [(own, len(found)) for found in self.alike if own in found and found[0] not in dict(first)]
        names = list(dict.fromkeys([self.config.objective, "ac2", *_headlines(self.scores)]))
        places = np.argsort(np.argsort(-self.values, kind="stable"))
        rows = []
        for i, n_alike in shown:
            values = [f"{v:g}" if isinstance(v, float) else str(v) for v in self.settings.values(i).values()]
            place = f"{places[i] + 1:,}" + (f" ({self.own_name})" if i == own else "")
            rows.append([place, *values, *(f"{self.scores.macro[name][i]:.3f}" for name in names), f"{n_alike:,}"])
        return ["place", *(key.split(".")[1] for key in self.settings.values(0)), *names, "objective alike"], rows


def _headlines(scores: GridScores) -> list[str]:
    return [name for name in scores.macro if name.startswith("ndcg") or name == "map"]


def _share_like_best(measured: Measured, best: int) -> float | None:
    """Return the share of settings whose difference to the best has a 95 % bootstrap interval that holds 0.

    The interval is that of ``statistics.compare``, from the same draws, for all settings at once; there is none where
    an area has a single query. A query without a value counts as one that does not differ.
    """
    areas: dict[str, list[int]] = {}
    for query_id, column in sorted((query_id, i) for i, query_id in enumerate(measured.query_ids)):
        areas.setdefault(measured.area_of[query_id], []).append(column)
    if any(len(columns) < 2 for columns in areas.values()):
        return None
    shares = np.zeros((len(measured.query_ids), RESAMPLES))  # of each query in the mean of a resample
    for area, columns in areas.items():
        n = len(columns)
        drawn = generator(_SEED, "bootstrap", area).integers(n, size=(RESAMPLES, n))
        counts = np.stack([(drawn == i).sum(axis=1) for i in range(n)])
        shares[columns] = (1 / n + np.sqrt(n / (n - 1)) * (counts / n - 1 / n)) / len(areas)
    differences = np.nan_to_num(measured.values - measured.values[best]).round(12)
    distinct, n_alike = np.unique(differences, axis=0, return_counts=True)
    holds_zero = 0
    for start in range(0, len(distinct), _CHUNK):
        is_below = distinct[start : start + _CHUNK] @ shares < -1e-12
        holds_zero += int(n_alike[start : start + _CHUNK][is_below.mean(axis=1) <= (1 + CONFIDENCE) / 2].sum())
    return holds_zero / len(differences)
