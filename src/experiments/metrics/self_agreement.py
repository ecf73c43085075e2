"""How far a model agrees with itself when it is asked several times: what "temperature 0, seed 42" is worth."""

from __future__ import annotations

from experiments.metrics import Depths, GradedRanking
from experiments.metrics.agreement import gwet_ac2


def measure(ranking: GradedRanking, depths: Depths) -> dict[str, float | None]:
    """Return ``self_agreement``: AC2 between the samples of the top papers, None for an arm with a single sample."""
    if ranking.samples is None:
        return {}
    return {"self_agreement": gwet_ac2(ranking.samples[: depths.evaluate])}
