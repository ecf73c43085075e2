"""Every setting of a grid, measured: similarities and reputations once, all else arithmetic on whole arrays.

The same functions and the same order of operations as in the stages, so that each figure is that of ``litgrade run``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from experiments.collections import Collection
from experiments.config import RunConfig
from experiments.grid_settings import Settings
from experiments.metrics import Unjudged
from experiments.metrics.agreement import gwet_ac2_batch
from pipeline.candidates import Candidates
from pipeline.errors import UserError
from pipeline.progress import progress
from pipeline.scoring import Score, Weights, final_score, normalize, similarity
from pipeline.stages import semantic

Floats = npt.NDArray[np.float64]
_ALL_PARTS = Weights(title=0.25, abstract=0.25, keywords=0.25, disciplines=0.25)  # so that none is left out


@dataclass(frozen=True)
class GridScores:
    """Metrics of all settings; NaN where a metric has no value."""

    macro: Mapping[str, Floats]  #: metric -> mean of area means, shape (settings,)
    objective: Floats  #: the objective by query, shape (settings, queries)
    query_ids: Sequence[str]
    area_of: Mapping[str, str]


def compared_pools(config: RunConfig, collection: Collection, largest: int) -> list[Candidates]:
    """Return the candidates of each query in BM25 order, as many as the largest cutoff, with their similarities."""
    (_, by_words), *_ = config.stages()
    by_meaning = _by_meaning(config)
    tables = by_words(collection.candidates())
    all_parts = semantic.Stage(_ALL_PARTS, by_meaning.score, by_meaning.embedder, by_meaning.abstract_query)
    return all_parts.compared([table.take(range(min(largest, len(table)))) for table in tables])


def semantic_order(config: RunConfig, tables: Sequence[Candidates]) -> list[Candidates]:
    """Return what the config's own BM25 cutoff keeps of compared tables, in the order of its own weights."""
    by_meaning = _by_meaning(config)
    return [by_meaning.ranked(table.take(range(min(config.cutoffs.bm25, len(table))))) for table in tables]


def _by_meaning(config: RunConfig) -> semantic.Stage:
    by_meaning = dict(config.stages())["semantic"]
    assert isinstance(by_meaning, semantic.Stage)  # noqa: S101 (read_grid)
    return by_meaning


def measure_grid(
    config: RunConfig, collection: Collection, tables: Sequence[Candidates], settings: Settings
) -> GridScores:
    """Measure all settings on the compared tables of all queries that have judgments."""
    judged = [table for table in tables if collection.judgments[table.query.query_id]]
    if not judged:
        raise UserError(f"{collection.name}: without judgments there is nothing to compare settings by")
    area_of = {table.query.query_id: table.query.area for table in judged}
    sizes = {area: list(area_of.values()).count(area) for area in dict.fromkeys(area_of.values())}
    sums: dict[tuple[str, str], tuple[Floats, Floats]] = {}
    by_query = np.full((len(settings), len(judged)), np.nan)
    with progress(len(judged), "grid") as step:
        for i, table in enumerate(judged):
            measured = _measure_query(config, table, collection.judgments[table.query.query_id], settings)
            by_query[:, i] = measured[config.objective]
            for name, values in measured.items():
                total, known = sums.get((area := table.query.area, name), (np.zeros(len(settings)),) * 2)
                sums[area, name] = total + np.nan_to_num(values), known + ~np.isnan(values)
            step(1)
    macro = {name: _macro([sums[area, name] for area in sizes]) for name in dict.fromkeys(name for _, name in sums)}
    return GridScores(macro, by_query, [table.query.query_id for table in judged], area_of)


def _macro(of_areas: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Return the mean of area means, over the areas that have one."""
    with np.errstate(invalid="ignore"):
        means = np.stack([total / known for total, known in of_areas])
        macro: Floats = np.nansum(means, axis=0) / (~np.isnan(means)).sum(axis=0)
    return macro


def _measure_query(
    config: RunConfig, table: Candidates, judgments: Mapping[str, int], settings: Settings
) -> dict[str, Floats]:
    """Return metric -> value of every setting for one query."""
    lists = _Lists(table, judgments, config.metrics.unjudged)
    depths = sorted({*config.depths.recall, *settings.grid.bm25, *settings.grid.semantic})
    blocks = []
    for normalization, first, second, alpha in settings.outer:
        pool = table.take(range(min(first, len(table))))
        sts = similarity(semantic.similarities(pool), settings.weights)
        standing = semantic.reputations(pool, config.weights)
        score = Score(normalization, config.score.highly, config.score.moderately, config.score.somewhat)  # type: ignore[arg-type]
        scores = normalize(final_score(sts, standing, alpha), score.normalize).round(9)
        order = np.argsort(-scores, axis=-1, kind="stable")[:, :second]
        ranked = lists.ranked(order, np.take_along_axis(scores, order, axis=-1), score)
        blocks.append(ranked.measure(config.cutoffs.evaluate, depths, config.metrics.min_grade))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


class _Lists:
    """The judgments of one query's candidates, by position."""

    def __init__(self, table: Candidates, judgments: Mapping[str, int], unjudged: Unjudged) -> None:
        ids = [paper.paper_id for paper in table.papers]
        self.is_judged = np.array([paper_id in judgments for paper_id in ids], dtype=np.bool_)
        self.grades = np.array([judgments.get(paper_id, 0) for paper_id in ids], dtype=np.int64)
        self.all_grades = np.array(sorted(judgments.values(), reverse=True), dtype=np.int64)
        self.unjudged, self.query_id, self.ids = unjudged, table.query.query_id, ids

    def ranked(self, order: npt.NDArray[np.intp], scores: Floats, score: Score) -> _Ranked:
        """Hold rankings, positions of shape (settings, k), against the judgments."""
        is_judged, grades = self.is_judged[order], self.grades[order]
        categories = np.digitize(scores, [score.somewhat, score.moderately, score.highly]).astype(np.float64)
        kept = np.ones_like(is_judged)
        if self.unjudged == "error" and not is_judged.all():
            paper_id = self.ids[int(order[~is_judged][0])]
            raise UserError(
                f"query {self.query_id}: paper {paper_id} is ranked but not judged;"
                " judge it, or set metrics.unjudged to low (grade 0) or skip (left out)"
            )
        if self.unjudged == "skip":  # judged papers first, in their order; what is left out fills up the end
            front = np.argsort(~is_judged, axis=-1, kind="stable")
            kept, grades = np.take_along_axis(is_judged, front, axis=-1), np.take_along_axis(grades, front, axis=-1)
            categories = np.take_along_axis(categories, front, axis=-1)
        return _Ranked(is_judged, kept, np.where(kept, grades, 0), categories, self.all_grades)


@dataclass(frozen=True)
class _Ranked:
    """Rankings of one query under many settings, each array of shape (settings, k)."""

    is_judged: npt.NDArray[np.bool_]  #: in rank order, before the rule for unjudged papers
    is_kept: npt.NDArray[np.bool_]  #: False where a list has ended
    grades: npt.NDArray[np.int64]  #: 0 where a list has ended
    categories: Floats
    all_grades: npt.NDArray[np.int64]  #: every grade of the query, descending

    def measure(self, evaluate: int, depths: Sequence[int], min_grade: int) -> dict[str, Floats]:
        """Return every metric of ``metrics/``, by the same names, for each setting."""
        is_relevant = (self.grades >= min_grade) & self.is_kept
        n_relevant = max(1, int((self.all_grades >= min_grade).sum()))
        hits = np.cumsum(is_relevant, axis=-1)
        n, k = is_relevant.shape
        at = {depth: hits[:, min(depth, k) - 1] if k else np.zeros(n) for depth in depths}
        ranks = np.arange(1, k + 1)
        first = np.where(is_relevant.any(axis=-1), 1 / (is_relevant.argmax(axis=-1) + 1), 0.0) if k else np.zeros(n)
        top = slice(evaluate)
        gains = _dcg(self.grades[:, top])
        ideal, ideal_top = _dcg(self.all_grades[None, top]), _dcg(-np.sort(-self.grades[:, top], axis=-1))
        return {
            "ac2": self._agreement(evaluate),
            f"judged_at_{evaluate}": self.is_judged[:, top].mean(axis=-1) if k else np.zeros(n),
            f"ndcg_at_{evaluate}": gains / ideal if ideal[0] > 0 else np.zeros(n),
            f"ndcg_top_at_{evaluate}": np.divide(gains, ideal_top, out=np.zeros(n), where=ideal_top > 0),
            **{f"recall_at_{depth}": found / n_relevant for depth, found in at.items()},
            **{f"precision_at_{depth}": found / depth for depth, found in at.items()},
            "map": (np.where(is_relevant, hits, 0) / ranks).sum(axis=-1) / n_relevant,
            "mrr": first,
        }

    def _agreement(self, evaluate: int) -> Floats:
        n, k = self.grades.shape
        if not k:
            return np.zeros(n)
        kept = self.is_kept[:, :evaluate]
        pairs = np.stack([self.categories[:, :evaluate], self.grades[:, :evaluate].astype(np.float64)], axis=-1)
        # Tops repeat: the rarer work of finding them out is less than rating each.
        distinct, back = np.unique(np.where(kept[..., None], pairs, -1.0), axis=0, return_inverse=True)
        rated: Floats = gwet_ac2_batch(np.where(distinct < 0, np.nan, distinct))[back.reshape(-1)]
        return rated


def _dcg(grades: npt.NDArray[np.int64]) -> Floats:
    """Return the discounted cumulative gain of each row (the paper, equation 11)."""
    dcg: Floats = ((np.exp2(grades) - 1) / np.log2(np.arange(grades.shape[-1]) + 2)).sum(axis=-1)
    return dcg
