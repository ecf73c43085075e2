"""Why a paper stands elsewhere in another run: its scores, what cut it, or what others did."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from experiments.finished_runs import FinishedRun
from experiments.tables import signed
from pipeline.stages.semantic import PARTS

Row = Mapping[str, Any]  #: of ranking.jsonl
Ranking = Mapping[str, Row]  #: paper id -> row, in rank order
What = Literal["entered", "left"]

_SAME = 1e-9  # rankings are rounded to so much


@dataclass(frozen=True)
class Pair:
    """The rankings of one query in two runs."""

    first: FinishedRun
    second: FinishedRun
    before: Ranking
    after: Ranking

    def why(self, paper_id: str, what: What) -> str:
        """Say in words why the paper entered or left the top."""
        before, after = self.before.get(paper_id), self.after.get(paper_id)
        if before is not None and after is None:
            return f"not ranked by {self.second.name}{self._cut(before, self.second, self.after)}"
        if before is None or after is None:
            return f"not ranked by {self.first.name}{self._cut(after or {}, self.first, self.before)}"
        if before.get("category") != after.get("category"):
            return f"the model: {before.get('category') or 'no category'} → {after.get('category') or 'no category'}"
        kinds = [_scoring(run)[0] for run in (self.first, self.second)]
        if kinds[0] != kinds[1]:
            return f"ranked by {kinds[1]}, before by {kinds[0]}"
        return self._why_by_shares(paper_id, what) or self._why_by_others(before, after, what)

    def _why_by_shares(self, paper_id: str, what: What) -> str | None:
        """Name the part of the score that lifted or lowered this paper most against those that it changed places with.

        What all papers gain or lose alike moves none of them. None where it changed places with no paper of both runs.
        """
        ranks = {p: (row["rank"], self.after[p]["rank"]) for p, row in self.before.items() if p in self.after}
        old, new = ranks[paper_id]
        sign = 1 if what == "entered" else -1
        passed = [p for p, (b, a) in ranks.items() if sign * (b - old) < 0 < sign * (a - new)]
        if not passed:
            return None
        own, others = self._changes(paper_id), [self._changes(other) for other in passed]
        means = {part: float(np.mean([of_one[part] for of_one in others])) for part in own}
        part = max(own, key=lambda name: sign * (own[name] - means[name]))
        if sign * (own[part] - means[part]) <= _SAME:
            return None  # the scores do not say it: they are equal, or a model's categories go before them
        which = "those it passed" if what == "entered" else "those that passed it"
        return f"{part} {signed(own[part])}, of {which} {signed(means[part])}"

    def _changes(self, paper_id: str) -> dict[str, float]:
        """Return how much each part of the score changed; the score alone where the runs add up other parts."""
        before, after = _shares(self.before[paper_id], self.first), _shares(self.after[paper_id], self.second)
        if before.keys() != after.keys():
            return {"score": sum(after.values()) - sum(before.values())}
        return {part: after[part] - before[part] for part in before}

    def _cut(self, row: Row, run: FinishedRun, ranking: Ranking) -> str:
        """Say which cut can have taken a paper away that ``run`` does not rank; ``row`` is of the other run."""
        cuts = _cuts(run)
        if cuts and len(ranking) < cuts[-1][1]:
            cuts.pop()  # it was left with fewer than it keeps
        if len(cuts) > 1 and cuts[0][0] == "bm25" and self._is_same_bm25:
            lowest = min((other["bm25"] for other in ranking.values()), default=np.inf)
            cuts = cuts[1:] if row.get("bm25", -np.inf) > lowest else cuts
        words = " or ".join(f"the first {keep} by {stage}" for stage, keep in cuts)
        return f": not among {words}" if words else ""

    @property
    def _is_same_bm25(self) -> bool:
        of_runs = [[stage for stage in _stages(run) if stage[0] == "bm25"] for run in (self.first, self.second)]
        return of_runs[0] == of_runs[1]

    def _why_by_others(self, before: Row, after: Row, what: What) -> str:
        ahead, elsewhere = (before, self.after) if what == "entered" else (after, self.before)
        ranking = self.before if what == "entered" else self.after
        n_gone = sum(row["rank"] < ahead["rank"] and paper_id not in elsewhere for paper_id, row in ranking.items())
        if not n_gone:
            return "others fell behind it" if what == "entered" else "others passed it"
        papers = "1 paper" if n_gone == 1 else f"{n_gone} papers"
        if what == "entered":
            return f"{papers} before it {'is' if n_gone == 1 else 'are'} not ranked by {self.second.name}"
        return f"{papers} before it {'was' if n_gone == 1 else 'were'} not ranked by {self.first.name}"


def _cuts(run: FinishedRun) -> list[tuple[str, int]]:
    """Return the stages after which papers are cut, with how many are kept; not cuts that leave all there are."""
    cuts: list[tuple[str, int]] = []
    for (before, _), (name, settings) in itertools.pairwise(_stages(run)):
        if name == "cut" and (not cuts or settings["keep"] < cuts[-1][1]):
            cuts.append((before, settings["keep"]))
    return cuts


def _stages(run: FinishedRun) -> list[tuple[str, Mapping[str, Any]]]:
    return [(name, settings or {}) for entry in run.settings["arm"]["stages"] for name, settings in entry.items()]


def _scoring(run: FinishedRun) -> tuple[str, Mapping[str, Any]]:
    """Return the stage that ordered the papers, before a language model graded them."""
    nothing: tuple[str, Mapping[str, Any]] = ("nothing", {})
    return next((entry for entry in reversed(_stages(run)) if entry[0] not in {"cut", "grade"}), nothing)


def _shares(row: Row, run: FinishedRun) -> dict[str, float]:
    """Return the parts that sum to the score of a paper, a missing one as 0.

    They are weight times similarity and alpha times reputation (equations 4 and 7), the BM25 of title and abstract
    (equation 2), or the score itself where a stage has no parts.
    """
    stage, settings = _scoring(run)
    if stage == "semantic":
        weights = settings["weights"]
        parts = {part: weights[part] * (row.get(f"sts_{part}") or 0.0) for part in PARTS}
        return {**parts, "reputation": weights["alpha"] * (row.get("reputation") or 0.0)}
    if stage == "bm25" and "bm25_title" in row:
        return {"BM25 of the title": row["bm25_title"], "BM25 of the abstract": row["bm25_abstract"]}
    return {f"{stage} score": row.get("score") or 0.0}
