"""Papers that entered or left the top of a ranking between two runs, and what moved them."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.finished_runs import FinishedRun
from experiments.move_reasons import Pair, Row, What
from pipeline.stages.semantic import PARTS

#: The columns of a ranking that say why a paper stands where it does.
SCORES = (
    "bm25",
    *(f"sts_{part}" for part in PARTS),
    "sts",
    "reputation",
    "raw_score",
    "score",
    "initial_category",
    "expected_grade",
    "category",
)


@dataclass(frozen=True)
class Move:
    """One paper of one query that is in the top of one run and not of the other."""

    query_id: str
    paper_id: str
    title: str
    what: What
    before: Row  #: its row in the first run, empty where it is not ranked there
    after: Row
    why: str


def find_moves(first: FinishedRun, second: FinishedRun, top: int) -> list[Move]:
    """Return the papers that entered or left the first ``top`` papers of each query, best ranks first."""
    rankings = first.rankings(), second.rankings()
    moves: list[Move] = []
    for query_id in sorted(rankings[0].keys() | rankings[1].keys()):
        before, after = ({row["paper_id"]: row for row in of_run.get(query_id, [])} for of_run in rankings)
        tops = [{paper_id for paper_id, row in of_run.items() if row["rank"] <= top} for of_run in (before, after)]
        pair = Pair(first, second, before, after)
        whats: list[tuple[What, list[str]]] = [
            ("entered", [paper_id for paper_id in after if paper_id in tops[1] - tops[0]]),
            ("left", [paper_id for paper_id in before if paper_id in tops[0] - tops[1]]),
        ]
        moves += [_move(pair, query_id, paper_id, what) for what, paper_ids in whats for paper_id in paper_ids]
    return moves


def _move(pair: Pair, query_id: str, paper_id: str, what: What) -> Move:
    before, after = pair.before.get(paper_id, {}), pair.after.get(paper_id, {})
    title = str((after or before).get("title") or "")
    return Move(query_id, paper_id, title, what, before, after, pair.why(paper_id, what))
