"""Clipped and standardized views of rows for adaptive moments, and shrinkage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.convex.objective import chunks

__all__ = ["SPARSE", "View", "ViewMoments", "ViewSpreads", "ViewSums", "believed"]

Array = NDArray[np.float64]

# Rows are clipped to this, as their norms are rounded
ALMOST_ONE = 1 - 1e-12
# Rows moved at once, as a moved row may be wider than it was
VIEW_ROWS = 1024


@dataclass(frozen=True, eq=False)
class View:
    """A way to look at rows: every one in a unit ball, with a residual in [-1, 1].

    Features less ``center`` are multiplied by ``stretch``, a factor for each or a
    matrix with a row for each; a constant column at the end is left out. Targets are
    centered and divided by a unit, in which ``weights`` predict them from moved
    features; the prediction is subtracted.

    Notes
    -----
    **Bound.** Each row goes through sums and products of its own entries only, one at
    a time and in one order, and is then clipped: the numbers that come out depend on no
    other row to the last digit, and are within their bounds as they are stored.
    """

    center: Array
    stretch: Array
    target_center: float = 0.0
    target_unit: float = 1.0
    weights: Array | None = None

    def rows(self, part: Any, targets: NDArray[Any]) -> tuple[Array, Array]:
        """Return the moved rows of a chunk, and their residuals, both clipped."""
        dense = part.toarray() if sparse.issparse(part) else part
        moved = self._moved(dense[:, : len(self.center)] - self.center)
        residuals = (targets - self.target_center) / self.target_unit
        if self.weights is not None:
            for j in range(moved.shape[1]):
                residuals -= moved[:, j] * self.weights[j]
        moved *= (ALMOST_ONE / np.maximum(row_norms(moved), ALMOST_ONE))[:, None]
        return moved, np.clip(residuals, -1.0, 1.0)

    def _moved(self, centered: Array) -> Array:
        if self.stretch.ndim == 1:
            moved: Array = centered * self.stretch
            return moved
        # not a product of matrices, whose last digits depend on where a row stands
        moved = np.zeros((len(centered), self.stretch.shape[1]))
        for j, factors in enumerate(self.stretch):
            moved += centered[:, j, None] * factors
        return moved

    @property
    def size(self) -> int:
        """Number of features after the move."""
        return int(self.stretch.shape[-1])


def row_norms(rows: Array) -> Array:
    """Return the norm of each row, from sums in one order."""
    squares = np.zeros(len(rows))
    for j in range(rows.shape[1]):
        squares += rows[:, j] * rows[:, j]
    return np.sqrt(squares)


@dataclass(frozen=True, eq=False)
class ViewSums:
    """Sum over a block of rows, of residuals and of ones, in this order and weight."""

    view: View
    residual_weight: float
    count_weight: float

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        total = np.zeros(self.view.size + 2)
        for part, targets in chunks(X, y, VIEW_ROWS):
            rows, residuals = self.view.rows(part, targets)
            total[:-2] += rows.sum(axis=0)
            total[-2] += self.residual_weight * residuals.sum()
            total[-1] += self.count_weight * len(rows)
        return (total,)


@dataclass(frozen=True, eq=False)
class ViewSpreads:
    """Sums over a block of absolute rows and of their norms, and of residuals."""

    view: View
    norm_weight: float

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array, Array]:
        spreads, residual = np.zeros(self.view.size + 1), np.zeros(1)
        for part, targets in chunks(X, y, VIEW_ROWS):
            rows, residuals = self.view.rows(part, targets)
            spreads[:-1] += np.abs(rows).sum(axis=0)
            spreads[-1] += self.norm_weight * row_norms(rows).sum()
            residual += np.abs(residuals).sum()
        return spreads, residual


@dataclass(frozen=True, eq=False)
class ViewMoments:
    """Sums over a block of ``x r``, with a constant in x, and optionally ``x x^T``."""

    view: View
    constant: float
    second: bool

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array, Array]:
        size = self.view.size
        pull, second = np.zeros(size + 1), np.zeros((size, size) if self.second else 0)
        for part, targets in chunks(X, y, VIEW_ROWS):
            rows, residuals = self.view.rows(part, targets)
            pull[:-1] += rows.T @ residuals
            pull[-1] += self.constant * residuals.sum()
            if self.second:
                second += rows.T @ rows
        return pull, second


# How much of the most that there can be there may be
ENERGIES = np.geomspace(1e-3, 1.0, 25)
# Parts of the numbers that may be other than zero
SPARSE = tuple(float(part) for part in np.geomspace(1e-3, 1.0, 12))


def believed(
    noisy: Array,
    variance: Array,
    most: float,
    shapes: Sequence[Array],
    *,
    doubt: float,
    densities: Sequence[float] = (1.0,),
) -> Array:
    """Return the mean of numbers given noisy ones, averaged over normal priors.

    ``variance`` is that of the noise of each number, ``most`` the largest sum of
    squares that there can be without noise, and ``doubt`` the prior probability that
    all numbers are zero. ``shapes`` are variances of the numbers up to a factor, a
    vector for each prior, and ``densities`` the parts of the numbers that are other
    than zero.

    Notes
    -----
    A prior has the shape times a part of ``most``, and a number other than zero with
    the probability of its density. Priors are weighted by how likely they make what is
    seen, so that numbers like noise are believed little and numbers unlike it a lot.
    """
    if not most > 0:
        return np.zeros_like(noisy)
    null = -0.5 * (np.log(variance) + noisy**2 / variance)
    likely, means = [float(null.sum()) + np.log(doubt)], [np.zeros_like(noisy)]
    each = np.log((1 - doubt) / (len(shapes) * len(densities) * len(ENERGIES)))
    for shape in shapes:
        for density in densities:
            for energy in ENERGIES:
                prior = energy * most / density * shape / shape.sum()
                total = prior + variance
                seen = -0.5 * (np.log(total) + noisy**2 / total)
                mean = noisy * prior / total
                if density < 1:
                    there = np.log(density) + seen
                    seen = np.logaddexp(there, np.log1p(-density) + null)
                    mean *= np.exp(there - seen)
                likely.append(float(seen.sum()) + each)
                means.append(mean)
    weights = np.exp(np.array(likely) - max(likely))
    found: Array = weights @ np.array(means) / weights.sum()
    return found
