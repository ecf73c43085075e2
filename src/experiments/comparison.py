"""Finished runs held against the first of them, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.collections import Collection
from experiments.compared_settings import differing_settings
from experiments.finished_runs import FinishedRun
from experiments.metrics import DEFINING_METRICS, aggregate
from experiments.moved import Move, find_moves
from experiments.statistics import Comparison, EffectSize, compare, effect_size, holm
from pipeline.errors import UserError, did_you_mean

_HEADLINES = ("ac2", "ndcg", "map")


@dataclass(frozen=True)
class Compared:
    """One metric of one run held against the first run, over the queries that have a value in both."""

    metric: str
    run: FinishedRun
    deltas: Mapping[str, float]  #: query id -> run - first run
    means: tuple[float, float]  #: of the first run and of this one, over areas
    left_out: int  #: queries that have no value in one of the two
    comparison: Comparison
    effect: EffectSize
    p_holm: float  #: corrected for the number of runs


@dataclass(frozen=True)
class Comparisons:
    """Runs of one collection, compared; the first is the baseline."""

    runs: Sequence[FinishedRun]
    metrics: Sequence[str]
    compared: Sequence[Compared]
    top: int
    settings: Mapping[str, Sequence[str]]  #: those that differ: key -> value in each run
    moves: Mapping[str, Sequence[Move]]  #: run name -> papers that entered or left the top
    collection: Collection | None  #: None where it cannot be read
    warnings: Sequence[str]

    @property
    def first(self) -> FinishedRun:
        """The run that the others are held against."""
        return self.runs[0]

    def of(self, run: FinishedRun) -> list[Compared]:
        """Return what was found for a run, by metric."""
        return [entry for entry in self.compared if entry.run is run]

    def grade(self, move: Move) -> int | None:
        """Return the judgment of a moved paper, or None where there is none."""
        return None if self.collection is None else self.collection.judgments[move.query_id].get(move.paper_id)


def compare_runs(runs: Sequence[FinishedRun], wanted: Sequence[str], *, top: int, seed: int) -> Comparisons:
    """Compare every run with the first, metric by metric; raise ``UserError`` where they cannot be paired.

    Without ``wanted`` metrics, the headline metrics that all runs have are compared, the objective first.
    """
    for run in runs[1:]:
        _check_is_pair(runs[0], run)
    metrics = _wanted(runs, wanted) if wanted else _headlines(runs)
    settings = differing_settings(runs)
    warnings = _warnings(runs, settings)
    collection, unread = _collection(runs[0])
    return Comparisons(
        runs=runs,
        metrics=metrics,
        compared=[entry for name in metrics for entry in _compare_metric(runs, name, seed)],
        top=top,
        settings=settings,
        moves={run.name: find_moves(runs[0], run, top) for run in runs[1:]},
        collection=collection,
        warnings=[*warnings, *([unread] if unread else [])],
    )


def _check_is_pair(first: FinishedRun, run: FinishedRun) -> None:
    if run.collection != first.collection:
        raise UserError(
            f"{first.name} is on {first.collection}, {run.name} on {run.collection}: runs are compared query by query, "
            "so name runs on the same collection"
        )
    if unpaired := sorted(run.scores.queries.keys() ^ first.scores.queries.keys()):
        one, other = (run, first) if unpaired[0] in run.scores.queries else (first, run)
        raise UserError(
            f"query {unpaired[0]} is measured in {one.name} and not in {other.name} ({len(unpaired)} such queries "
            "between the two); compare runs that were measured on the same queries"
        )


def _shared(runs: Sequence[FinishedRun]) -> list[str]:
    return [name for name in runs[0].scores.macro if all(name in run.scores.macro for run in runs)]


def _wanted(runs: Sequence[FinishedRun], wanted: Sequence[str]) -> list[str]:
    shared = _shared(runs)
    for name in wanted:
        if name not in shared:
            known = ", ".join(shared) or "none, for no query has judgments"
            raise UserError(f"metrics={name}: expected metrics that all runs have: {known}{did_you_mean(name, shared)}")
        for run in runs[1:]:
            if not _pairs(runs[0], run, name):
                raise UserError(f"metrics={name}: no query has it in both {runs[0].name} and {run.name}; name others")
    return list(dict.fromkeys(wanted))


def _headlines(runs: Sequence[FinishedRun]) -> list[str]:
    """Return the objective, the metrics of the paper, MAP and the deepest recall, as far as any two runs share them."""
    shared = [name for name in _shared(runs) if all(_pairs(runs[0], run, name) for run in runs[1:])]
    heads = [name for name in shared if name.startswith(_HEADLINES)]
    recalls = [name for name in shared if name.startswith("recall_at_")]
    objective = str(runs[0].settings.get("objective", ""))
    return list(dict.fromkeys([*([objective] if objective in shared else []), *heads, *recalls[-1:]]))


def _pairs(first: FinishedRun, run: FinishedRun, name: str) -> dict[str, tuple[float, float]]:
    """Return query id -> values in both runs, in the order of the ids, without queries that lack one."""
    found = {}
    for query_id in sorted(first.scores.queries):
        theirs, ours = first.scores.queries[query_id].get(name), run.scores.queries[query_id].get(name)
        if theirs is not None and ours is not None:
            found[query_id] = (theirs, ours)
    return found


def _compare_metric(runs: Sequence[FinishedRun], name: str, seed: int) -> list[Compared]:
    first, found = runs[0], []
    for run in runs[1:]:
        pairs = _pairs(first, run, name)
        theirs, ours = ({query_id: pair[i] for query_id, pair in pairs.items()} for i in (0, 1))
        deltas = {query_id: round(b - a, 12) for query_id, (a, b) in pairs.items()}  # float noise is no difference
        means = _mean(theirs, first.area_of), _mean(ours, first.area_of)
        outcome = compare(ours, theirs, first.area_of, seed=seed)
        left_out = len(first.scores.queries) - len(pairs)
        found.append((run, deltas, means, left_out, outcome, effect_size(list(deltas.values()))))
    corrected = holm([outcome.p_value for *_, outcome, _ in found])
    return [Compared(name, *entry, p) for entry, p in zip(found, corrected, strict=True)]


def _mean(values: Mapping[str, float], area_of: Mapping[str, str]) -> float:
    mean = aggregate({query_id: {"": value} for query_id, value in values.items()}, area_of).macro[""]
    return float("nan") if mean is None else mean


def _warnings(runs: Sequence[FinishedRun], settings: Mapping[str, Sequence[str]]) -> list[str]:
    found = []
    prints = {run.collection_fingerprint for run in runs} - {None}
    if len(prints) > 1:
        found.append("The collection was not the same for all runs: its files, and with them its fingerprint, changed.")
    if names := [key for key in settings if f"{key}.".startswith(DEFINING_METRICS)]:
        found.append(f"Metrics of one name are not the same in all runs: {', '.join(names)} differ.")
    return found


def _collection(run: FinishedRun) -> tuple[Collection | None, str | None]:
    try:
        return run.load_collection(), None
    except (UserError, OSError) as error:
        return None, f"Without queries' texts and judgments of papers: the collection cannot be read ({error})."
