"""Binary measures as trec_eval defines them; a paper of at least ``min_grade`` is relevant."""

from __future__ import annotations

import numpy as np

from experiments.metrics import Depths, GradedRanking


def measure(ranking: GradedRanking, depths: Depths) -> dict[str, float | None]:
    """Return ``recall_at_k`` and ``precision_at_k`` for each recall depth, and ``map`` and ``mrr`` over the whole list.

    Precision divides by k even where the list is shorter. All are 0 for a query that has no relevant paper.
    """
    is_relevant = ranking.grades >= depths.min_grade
    n_relevant = max(1, int((ranking.judged >= depths.min_grade).sum()))
    hits = [int(is_relevant[:k].sum()) for k in depths.recall]
    ranks = np.flatnonzero(is_relevant) + 1
    return {
        **{f"recall_at_{k}": n / n_relevant for k, n in zip(depths.recall, hits, strict=True)},
        **{f"precision_at_{k}": n / k for k, n in zip(depths.recall, hits, strict=True)},
        "map": float((np.arange(1, len(ranks) + 1) / ranks).sum()) / n_relevant,
        "mrr": 1 / int(ranks[0]) if len(ranks) else 0.0,
    }
