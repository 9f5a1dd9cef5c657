"""Tables of the comparison and their splits.

Columns are known by ranges fixed in code, targets too. Private fits see columns moved
to [-1, 1] by these, peers the published units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from benchmarks.cd.problems import case

from tacit._random import as_generator
from tacit.data.features import FeatureBounds
from tacit.datasets import load

TRAIN_SHARE = 0.8
# 1,000 rows and columns, of which ten matter
SQUARE = "sparse_square"
SETS = ("california_housing", "abalone", "wine_quality", "diabetes", SQUARE)


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to fit and to score, features in [-1, 1]; both also as published."""

    name: str
    run: int
    bounds: FeatureBounds
    y_range: tuple[float, float]
    published: np.ndarray
    y: np.ndarray
    published_test: np.ndarray
    y_test: np.ndarray

    @property
    def X(self) -> np.ndarray:
        return self.bounds.to_unit(self.published)

    @property
    def X_test(self) -> np.ndarray:
        return self.bounds.to_unit(self.published_test)

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def x_norm(self) -> float:
        return float(np.sqrt(self.published.shape[1]))

    @property
    def delta(self) -> float:
        return 1 / self.n_rows**2

    def clipped(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that a peer is sent."""
        return self.published, self.published_test

    def r2(self, predictions: np.ndarray) -> float:
        """Return the part of the variance of the targets that is explained.

        Whatever predicts, predictions are cut to the public range of the targets.
        """
        error = np.mean((self.y_test - np.clip(predictions, *self.y_range)) ** 2)
        return float(1 - error / np.var(self.y_test))


@lru_cache(maxsize=1)
def table(name: str):
    """Return rows, targets, ranges of the columns and of the targets."""
    if name == SQUARE:
        found = case("square")
        return found.X, found.y, [(-b, b) for b in found.bounds], found.y_range
    found = load(name, scaled=False)
    return found.X, found.y, found.feature_bounds, found.y_range


@lru_cache(maxsize=1)
def split(name: str, run: int) -> Split:
    """Return the split of a run, the same for every method."""
    X, y, ranges, y_range = table(name)
    order = as_generator(1000 + run).permutation(len(y))
    train, test = np.split(order, [int(TRAIN_SHARE * len(y))])
    low, high = np.array(ranges).T
    bounds = FeatureBounds(tuple(low), tuple(high))
    return Split(name, run, bounds, y_range, X[train], y[train], X[test], y[test])
