"""The settings of a grid: every weight vector of a simplex, times alphas, cutoffs and normalizations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import comb
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator

from experiments.config import Cutoffs, RunConfig, Section, checked
from pipeline.errors import UserError
from pipeline.llm.settings import Count
from pipeline.scoring import Fraction
from pipeline.stages.semantic import PARTS

_MOST = 1_000_000  # settings; every metric of each is held in memory


class Grid(Section):
    """What is varied. Every list is taken with every other."""

    step: Annotated[float, Field(gt=0, le=1, strict=True)]
    alphas: tuple[Fraction, ...]
    bm25: tuple[Count, ...]
    semantic: tuple[Count, ...]
    normalize: tuple[Literal["minmax", "clip"], ...]

    @field_validator("step")
    @classmethod
    def _divides_one(cls, step: float) -> float:
        if abs(round(1 / step) * step - 1) > 1e-9:
            raise ValueError(f"step={step:g} does not divide 1; expected 0.05, 0.1, 0.2, 0.25 or the like")
        return step

    @field_validator("alphas", "bm25", "semantic", "normalize")
    @classmethod
    def _are_different(cls, values: tuple[object, ...]) -> tuple[object, ...]:
        if not values:
            raise ValueError("the list is empty; expected at least one value")
        if len(set(values)) < len(values):
            raise ValueError(f"{list(values)}: a value is named twice")
        return values


@dataclass(frozen=True)
class Settings:
    """All settings, by their index: normalization, cutoffs, alpha and weights, the last varying fastest."""

    grid: Grid

    @property
    def n(self) -> int:
        """How many settings there are, also where ``len`` could not hold their number."""
        return len(self.outer) * comb(self.steps + 3, 3)

    def __len__(self) -> int:
        return self.n

    @property
    def steps(self) -> int:
        """How many steps there are from 0 to 1."""
        return round(1 / self.grid.step)

    @cached_property
    def weights(self) -> npt.NDArray[np.float64]:
        """Return every vector of four weights on the grid of the step that sums to 1, shape (vectors, 4)."""
        n = self.steps
        counts = [
            (i, j, k, n - i - j - k) for i in range(n + 1) for j in range(n + 1 - i) for k in range(n + 1 - i - j)
        ]
        vectors: npt.NDArray[np.float64] = (np.array(counts) / n).round(12)
        return vectors

    @cached_property
    def outer(self) -> list[tuple[str, int, int, float]]:
        """Return normalization, cutoffs after BM25 and after semantic ranking, and alpha of each block of weights."""
        grid = self.grid
        return list(product(grid.normalize, grid.bm25, grid.semantic, grid.alphas))

    def columns(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the settings as columns of a table, named by their keys on the command line."""
        repeated = [np.repeat(np.array(values), len(self.weights)) for values in zip(*self.outer, strict=True)]
        names = ("score.normalize", "cutoffs.bm25", "cutoffs.semantic", "weights.alpha")
        weights = {f"weights.{part}": np.tile(self.weights[:, i], len(self.outer)) for i, part in enumerate(PARTS)}
        return {**dict(zip(names, repeated, strict=True)), **weights}

    def overrides(self, index: int) -> list[str]:
        """Return what makes ``litgrade run`` run this setting."""
        return [f"{name}={value}" for name, value in self.values(index).items()]

    def values(self, index: int) -> dict[str, object]:
        """Return one setting by the keys of the command line."""
        block, vector = divmod(index, len(self.weights))
        normalize, bm25, semantic, alpha = self.outer[block]
        weights = {f"weights.{part}": float(self.weights[vector, i]) for i, part in enumerate(PARTS)}
        return {
            "score.normalize": normalize,
            "cutoffs.bm25": bm25,
            "cutoffs.semantic": semantic,
            "weights.alpha": alpha,
            **weights,
        }

    def name(self, index: int) -> str:
        """Return one setting as a reader wants it: ``0.55/0.35/0.05/0.05 alpha 0.15, 100/50, minmax``."""
        block, vector = divmod(index, len(self.weights))
        normalize, bm25, semantic, alpha = self.outer[block]
        weights = "/".join(f"{weight:g}" for weight in self.weights[vector])
        return f"{weights} alpha {alpha:g}, {bm25}/{semantic}, {normalize}"

    def index_of(self, config: RunConfig) -> int | None:
        """Return the index of a config's own setting, or None where the grid does not hold it."""
        cutoffs = (config.score.normalize, config.cutoffs.bm25, config.cutoffs.semantic, config.weights.alpha)
        vector = np.array([getattr(config.weights, part) for part in PARTS])
        near = np.flatnonzero(np.abs(self.weights - vector).max(axis=1) < 1e-9)
        blocks = [i for i, block in enumerate(self.outer) if block == cutoffs]
        return int(blocks[0] * len(self.weights) + near[0]) if blocks and len(near) else None


def read_grid(plain: object, config: RunConfig) -> Grid:
    """Check the grid, alone and with the config of the run that it varies."""
    grid = checked(Grid, plain, within="grid")
    if (n := Settings(grid).n) > _MOST:
        raise UserError(f"grid: {n:,} settings are too many, expected at most {_MOST:,}; give a larger grid.step")
    for bm25, semantic in product(grid.bm25, grid.semantic):
        checked(Cutoffs, {**config.cutoffs.model_dump(), "bm25": bm25, "semantic": semantic}, within="grid")
    names: Sequence[str] = [name for name, _ in config.stages()]
    if names != ["bm25", "cut", "semantic", "cut"]:
        raise UserError(
            f"arm={config.arm.name}: a grid varies the stages bm25 > cut > semantic > cut, this arm has "
            f"{' > '.join(names)}; give arm=bm25_mpnet"
        )
    return grid
