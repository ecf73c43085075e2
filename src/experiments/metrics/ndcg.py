"""Normalized discounted cumulative gain, with the ideal over all judged papers and, as in the paper, over the top only.

The two answer different questions and have different names: a top of ten equally bad papers scores 1.0 on the second.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from experiments.metrics import Depths, GradedRanking


def measure(ranking: GradedRanking, depths: Depths) -> dict[str, float | None]:
    """Return ``ndcg_at_K`` (ideal: all judged papers) and ``ndcg_top_at_K`` (ideal: the K retrieved; equation 12).

    Both are 0 where the ideal is 0.
    """
    k = depths.evaluate
    top = ranking.grades[:k]
    return {
        f"ndcg_at_{k}": _ndcg(top, ideal=ranking.judged[:k]),
        f"ndcg_top_at_{k}": _ndcg(top, ideal=-np.sort(-top)),
    }


def dcg(grades: npt.NDArray[np.int64]) -> float:
    """Return the discounted cumulative gain of grades in rank order, gain 2^grade - 1 (the paper, equation 11)."""
    gains = np.exp2(grades) - 1
    return float((gains / np.log2(np.arange(len(grades)) + 2)).sum())


def _ndcg(grades: npt.NDArray[np.int64], *, ideal: npt.NDArray[np.int64]) -> float:
    best = dcg(ideal)
    return dcg(grades) / best if best > 0 else 0.0
