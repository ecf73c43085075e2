"""Papers that entered or left the top of a ranking between two runs, with the scores that explain it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from experiments.finished_runs import FinishedRun
from pipeline.stages.semantic import PARTS

#: The columns of a ranking that say why a paper stands where it does.
SCORES = (
    "bm25",
    "sts_title",
    "sts_abstract",
    "sts_keywords",
    "sts_disciplines",
    "sts",
    "reputation",
    "raw_score",
    "score",
    "initial_category",
    "category",
)


@dataclass(frozen=True)
class Move:
    """One paper of one query that is in the top of one run and not of the other."""

    query_id: str
    paper_id: str
    title: str
    what: Literal["entered", "left"]
    rank_before: int | None  #: None: not ranked, an earlier stage had cut it
    rank_after: int | None
    before: Mapping[str, Any]  #: the row of scores in the first run, empty where it is not ranked
    after: Mapping[str, Any]
    why: str


def find_moves(first: FinishedRun, second: FinishedRun, top: int) -> list[Move]:
    """Return the papers that entered or left the first ``top`` papers of each query, entered ones first."""
    before, after = first.rankings(), second.rankings()
    moves: list[Move] = []
    for query_id in sorted(before.keys() | after.keys()):
        rows = [{row["paper_id"]: row for row in of_run.get(query_id, [])} for of_run in (before, after)]
        tops = [[paper_id for paper_id, row in of_run.items() if row["rank"] <= top] for of_run in rows]
        whats: list[tuple[Literal["entered", "left"], list[str]]] = [
            ("entered", [paper_id for paper_id in tops[1] if paper_id not in tops[0]]),
            ("left", [paper_id for paper_id in tops[0] if paper_id not in tops[1]]),
        ]
        for what, paper_ids in whats:
            for paper_id in paper_ids:
                one, other = (of_run.get(paper_id, {}) for of_run in rows)
                why = _why(one, other, first, second)
                title = str((other or one).get("title", ""))
                moves.append(Move(query_id, paper_id, title, what, one.get("rank"), other.get("rank"), one, other, why))
    return moves


def _why(before: Mapping[str, Any], after: Mapping[str, Any], first: FinishedRun, second: FinishedRun) -> str:
    if not before or not after:
        run = second if not after else first
        return f"not ranked by {run.name}: cut before"
    if before.get("category") != after.get("category"):
        return f"the model calls it {after.get('category')}, before {before.get('category')}"
    if before.get("sts") is None or after.get("sts") is None:
        return f"score {before.get('score')} → {after.get('score')}, of different kinds"
    shares = dict(_shares(before, after, first, second))
    part = max(shares, key=lambda name: abs(shares[name]))
    if abs(shares[part]) < 1e-9:
        return "its own score is the same: others moved past it"
    against = (after["rank"] < before["rank"]) != (sum(shares.values()) > 0)
    return f"mostly its {part}: {shares[part]:+.3f} of S" + (", others changed more" if against else "")


def _shares(
    before: Mapping[str, Any], after: Mapping[str, Any], first: FinishedRun, second: FinishedRun
) -> Iterator[tuple[str, float]]:
    """Yield how much each part of S = STS + alpha R (equation 7) changed: weight times value, a missing value is 0."""
    weights = [run.settings["weights"] for run in (first, second)]
    named = [(part, part, f"sts_{part}") for part in PARTS] + [("reputation", "alpha", "reputation")]
    for name, weight, column in named:
        values = [row.get(column) or 0.0 for row in (before, after)]
        yield name, weights[1][weight] * values[1] - weights[0][weight] * values[0]
