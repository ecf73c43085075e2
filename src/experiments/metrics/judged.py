"""How much of the top was judged at all: what the other metrics of a ranking rest on."""

from __future__ import annotations

from experiments.metrics import Depths, GradedRanking


def measure(ranking: GradedRanking, depths: Depths) -> dict[str, float | None]:
    """Return ``judged_at_K``: the judged share of the top K, or of the whole list where it is shorter; 0 if empty.

    Counted before the rule for unjudged papers, so that ``skip`` and ``low`` do not hide them.
    """
    top = ranking.is_judged[: depths.evaluate]
    return {f"judged_at_{depths.evaluate}": float(top.mean()) if top.size else 0.0}
