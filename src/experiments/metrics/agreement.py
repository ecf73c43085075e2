"""Gwet's AC2: chance-corrected agreement on ordered grades (the paper, equations 9 and 10).

The four grades are always the scale, whichever of them occur: a grade left out would change the number of
categories, the weights and so the coefficient. Ratings on another scale, such as the 0..2 of the single raters of
cystic_fibrosis, give another coefficient; the two cannot be compared.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from experiments.judgments import GRADES
from experiments.metrics import Depths, GradedRanking


def measure(ranking: GradedRanking, depths: Depths) -> dict[str, float | None]:
    """Return ``ac2``: agreement of the arm's categories with the judgments over the top papers.

    None for an arm without categories and for a top without a graded paper; 0 for a query that returned nothing.
    """
    if ranking.categories is None:
        return {"ac2": None}
    if ranking.is_judged.size == 0:
        return {"ac2": 0.0}
    top = slice(depths.evaluate)
    return {"ac2": gwet_ac2(np.column_stack([ranking.categories[top], ranking.grades[top]]))}


def gwet_ac2(ratings: npt.ArrayLike) -> float | None:
    """Return Gwet's AC2 with linear weights of a table of items x raters, NaN where a rater gave no grade.

    Computed by irrCAC, as in the paper; None where no item has two ratings. A rating that is no grade is a ValueError.
    """
    table = _checked(ratings)
    rated = table[~np.isnan(table).all(axis=1)]
    if not (np.count_nonzero(~np.isnan(rated), axis=1) >= 2).any():
        return None
    if len(rated) == 1:  # irrCAC divides by n - 1 for a variance that nobody asked for
        return float(gwet_ac2_batch(rated))
    import pandas as pd
    from irrCAC.raw import CAC

    # The list must be ascending: irrCAC makes its weights from the sorted list, but counts in the given order.
    result = CAC(pd.DataFrame(rated), weights="linear", categories=list(GRADES), digits=12).gwet()
    return float(result["est"]["coefficient_value"])


def gwet_ac2_batch(ratings: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the AC2 of each table in an array of shape (..., items, raters); NaN where no item has two ratings.

    The same coefficient as ``gwet_ac2``, for many tables at once (K. Gwet, Handbook of Inter-Rater Reliability,
    4th ed., 2014, chapter 5). An item with one rating counts for the expected agreement only.
    """
    table = _checked(ratings)
    grades = np.array(GRADES)
    q = len(grades)
    weights = 1 - np.abs(grades[:, None] - grades) / (q - 1)
    counts = (table[..., None] == grades).sum(axis=-2).astype(np.float64)  # (..., items, grades)
    n_raters = counts.sum(axis=-1)
    agreement = (counts * (counts @ weights - 1)).sum(axis=-1) / np.maximum(n_raters * (n_raters - 1), 1)
    shares = counts / np.maximum(n_raters, 1)[..., None]
    with np.errstate(invalid="ignore"):  # 0 / 0 where nothing is rated is the NaN that is promised
        observed = agreement.sum(axis=-1) / (n_raters >= 2).sum(axis=-1)
        prevalence = shares.sum(axis=-2) / (n_raters >= 1).sum(axis=-1)[..., None]
    expected = weights.sum() / (q * (q - 1)) * (prevalence * (1 - prevalence)).sum(axis=-1)
    ac2: npt.NDArray[np.float64] = (observed - expected) / (1 - expected)
    return ac2


def _checked(ratings: npt.ArrayLike) -> npt.NDArray[np.float64]:
    # irrCAC counts a rating outside the scale as missing, without a word.
    table = np.asarray(ratings, dtype=np.float64)
    outside = table[~np.isin(table, GRADES) & ~np.isnan(table)]
    if outside.size:
        raise ValueError(f"rating {outside[0]:g} is not a grade; expected one of {', '.join(map(str, GRADES))}")
    return table
