"""AC2 of many tables against irrCAC, table by table."""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import row, seconds
from experiments.metrics.agreement import gwet_ac2, gwet_ac2_batch

N_TABLES = 500


def rows() -> list[list[str]]:
    """Compare irrCAC with the vectorized form."""
    ratings = np.random.default_rng(0).integers(0, 4, size=(N_TABLES, 10, 2)).astype(float)
    one_by_one = seconds(lambda: [gwet_ac2(table) for table in ratings])
    return [row(f"AC2 of {N_TABLES} tables, s", "irrCAC", one_by_one, seconds(lambda: gwet_ac2_batch(ratings)))]
