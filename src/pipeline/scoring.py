"""From similarities, citations and impact factors to a score and an initial category (the paper, equations 3 to 8)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from pipeline.papers import CATEGORIES

Values = npt.NDArray[np.float64]
Fraction = Annotated[float, Field(ge=0, le=1, strict=True)]  #: strict: true is no 1

_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_STRICT)
class Weights:
    """Weights of the four similarities (equation 4), of the reputation (alpha, equation 7) and of its two parts (5)."""

    title: Fraction = 0.55
    abstract: Fraction = 0.35
    keywords: Fraction = 0.05
    disciplines: Fraction = 0.05
    alpha: Fraction = 0.15
    citations: Fraction = 0.6
    impact_factor: Fraction = 0.4

    @model_validator(mode="after")
    def _sum_to_one(self) -> Weights:
        for names in (("title", "abstract", "keywords", "disciplines"), ("citations", "impact_factor")):
            values = [float(getattr(self, name)) for name in names]
            if abs(sum(values) - 1) > 1e-6:
                shown = " + ".join(f"{name} {value:g}" for name, value in zip(names, values, strict=True))
                raise ValueError(f"{shown} sum to {sum(values):g}, expected 1; change the others to make room")
        return self


@dataclass(frozen=True, config=_STRICT)
class Score:
    """How the final score is normalized (equation 8) and where the initial categories begin (table 6).

    ``minmax`` is the paper's text; ``clip`` (to 0..1) is what the paper's published code does.
    """

    normalize: Literal["minmax", "clip"] = "minmax"
    highly: Fraction = 0.80
    moderately: Fraction = 0.60
    somewhat: Fraction = 0.40

    @model_validator(mode="after")
    def _ordered(self) -> Score:
        if not self.highly >= self.moderately >= self.somewhat:
            raise ValueError(
                f"highly {self.highly:g}, moderately {self.moderately:g}, somewhat {self.somewhat:g}: "
                "expected highly >= moderately >= somewhat"
            )
        return self


def min_max(values: Values) -> Values:
    """Scale to 0..1 over the last axis (equation 6). All values equal, or a single one: 0 for each, never NaN."""
    if not values.shape[-1]:
        return values
    low, high = values.min(axis=-1, keepdims=True), values.max(axis=-1, keepdims=True)
    return np.divide(values - low, high - low, out=np.zeros_like(values), where=low != high)


def similarity(parts: Values, weights: Values) -> Values:
    """Return STS (equation 4) of candidates, parts of shape (4, n), for weights of shape (..., 4) as (..., n).

    Summed part by part, so that one set of weights and many give the same bits. A missing part (NaN) counts as 0.
    """
    known = np.nan_to_num(parts)
    sts: Values = weights[..., 0, None] * known[0]
    for i in range(1, len(known)):
        sts = sts + weights[..., i, None] * known[i]
    return sts


def reputation(citation_counts: Values, impact_factors: Values, weights: Weights) -> Values:
    """Return R of each candidate (equation 5). An unknown value (NaN) counts as 0, as in the paper's table 5."""
    citations, impact = (min_max(np.nan_to_num(values, nan=0.0)) for values in (citation_counts, impact_factors))
    return weights.citations * citations + weights.impact_factor * impact


def final_score(sts: Values, reputation: Values, alpha: float | Values) -> Values:
    """Return S = STS + alpha R (equation 7), not yet normalized."""
    return sts + alpha * reputation


def normalize(scores: Values, how: Literal["minmax", "clip"]) -> Values:
    """Bring S into 0..1, over the candidates of one query (equation 8)."""
    return min_max(scores) if how == "minmax" else np.clip(scores, 0.0, 1.0)


def categorize(scores: Values, score: Score) -> npt.NDArray[np.object_]:
    """Return the initial category of each normalized score (table 6); a threshold belongs to the higher category."""
    grades = np.digitize(scores, [score.somewhat, score.moderately, score.highly])
    return np.array(CATEGORIES, dtype=object)[grades]
