"""Clipped and standardized rows for adaptive moments, and shrinkage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.convex.objective import chunks
from tacit.data.rows import ArrayRows, BlockFunction, InMemoryRows, Rows

__all__ = ["View", "ViewSpreads", "ViewSums", "believed", "standardized"]

Array = NDArray[np.float64]

# Rows are clipped to this, as their norms are rounded
ALMOST_ONE = 1 - 1e-12
# Rows moved at once, as a moved row may be wider than it was
VIEW_ROWS = 1024


@dataclass(frozen=True, eq=False)
class View:
    """A way to look at rows: every one in a unit ball, with a target in [-1, 1].

    Features less ``center`` are multiplied by ``stretch``, a factor for each; a
    constant column at the end is left out. Targets are centered and divided by a unit.

    Notes
    -----
    **Bound.** Each row goes through sums and products of its own entries only, in one
    order, and is then clipped: the numbers that come out depend on no other row to the
    last digit, and are within their bounds as they are stored.
    """

    center: Array
    stretch: Array
    target_center: float = 0.0
    target_unit: float = 1.0

    def rows(self, part: Any, targets: NDArray[Any]) -> tuple[Array, Array, Array]:
        """Return moved rows and their targets, both clipped, and the rows' factors."""
        dense = part.toarray() if sparse.issparse(part) else part
        # by rows, so that entries of a row are added up in one order
        moved = np.ascontiguousarray(dense[:, : len(self.center)]) - self.center
        moved *= self.stretch
        factors = ALMOST_ONE / np.maximum(row_norms(moved), ALMOST_ONE)
        moved *= factors[:, None]
        targets = (targets - self.target_center) / self.target_unit
        return moved, np.clip(targets, -1.0, 1.0), factors

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.stretch)


def row_norms(rows: Array) -> Array:
    """Return the norm of each row, from its entries in one order."""
    norms: Array = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


@dataclass(frozen=True, eq=False)
class ViewSums:
    """Sum over a block of rows, of targets and of ones, in this order and weight."""

    view: View
    target_weight: float
    count_weight: float

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        total = np.zeros(self.view.size + 2)
        for part, targets in chunks(X, y, VIEW_ROWS):
            rows, seen, _ = self.view.rows(part, targets)
            total[:-2] += rows.sum(axis=0)
            total[-2] += self.target_weight * seen.sum()
            total[-1] += self.count_weight * len(rows)
        return (total,)


@dataclass(frozen=True, eq=False)
class ViewSpreads:
    """Sums over a block of absolute rows and of their norms, and of targets."""

    view: View
    norm_weight: float

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array, Array]:
        spreads, spread = np.zeros(self.view.size + 1), np.zeros(1)
        for part, targets in chunks(X, y, VIEW_ROWS):
            rows, seen, _ = self.view.rows(part, targets)
            spreads[:-1] += np.abs(rows).sum(axis=0)
            spreads[-1] += self.norm_weight * row_norms(rows).sum()
            spread += np.abs(seen).sum()
        return spreads, spread


@dataclass(frozen=True, eq=False)
class StandardizedRows:
    """Rows as a view shows them, moved whenever a block is read.

    A row that is clipped takes its constant and its target along, so that it counts
    less and says nothing else.
    """

    rows: Rows
    view: View
    farthest: float
    constant: float | None

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def n_features(self) -> int:
        return self.view.size + (self.constant is not None)

    @property
    def block_rows(self) -> int:
        return self.rows.block_rows

    def sum(self, function: BlockFunction) -> tuple[Any, ...]:
        """Return the sum over moved blocks of what ``function`` returns."""
        return self.rows.sum(lambda X, y: function(*self.block(X, y)))

    def block(self, X: Any, y: NDArray[Any]) -> tuple[Array, Array]:
        """Return a moved block, and its targets."""
        moved, targets = np.empty((X.shape[0], self.n_features)), np.empty(X.shape[0])
        stop = 0
        for part, given in chunks(X, y, VIEW_ROWS):
            start, stop = stop, stop + part.shape[0]
            rows, seen, factors = self.view.rows(part, given)
            moved[start:stop, : self.view.size] = rows
            if self.constant is not None:
                moved[start:stop, -1] = self.constant * factors
            targets[start:stop] = self.farthest * seen * factors
        return moved, targets


def standardized(
    rows: Rows, view: View, farthest: float, constant: float | None
) -> Rows:
    """Return rows as a view shows them, with a constant, and targets up to a number.

    They are moved once where they are dense and in memory, and else for each sum.
    """
    moved = StandardizedRows(rows, view, farthest, constant)
    if isinstance(rows, InMemoryRows):
        X, y = rows.arrays()
        if not sparse.issparse(X):
            return ArrayRows(*moved.block(X, y))
    return moved


# How much of the most that there can be there may be
ENERGIES = np.geomspace(1e-3, 1.0, 25)


def believed(noisy: Array, variance: float, most: float, *, doubt: float) -> Array:
    """Return the mean of numbers given noisy ones, averaged over normal priors.

    ``variance`` is that of the noise, ``most`` the largest sum of squares that there
    can be without noise, and ``doubt`` the prior probability that all are zero.

    Notes
    -----
    A prior has a part of ``most``, evenly. Priors are weighted by how likely they make
    what is seen, so that numbers like noise are believed little and others a lot.
    """
    if not most > 0:
        return np.zeros_like(noisy)
    energies = np.append(0.0, ENERGIES) * most / len(noisy)
    total = energies + variance
    squares = float(noisy @ noisy)
    likely = -0.5 * (len(noisy) * np.log(total) + squares / total)
    likely[0] += np.log(doubt)
    likely[1:] += np.log((1 - doubt) / len(ENERGIES))
    weights = np.exp(likely - likely.max())
    found: Array = noisy * float(weights @ (energies / total) / weights.sum())
    return found
