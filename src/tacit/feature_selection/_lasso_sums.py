"""Sums of products of columns, exact in floating point.

Features and targets are rounded to whole numbers of at most ``WHOLE``, row by row. A
product of two is a whole number below 2^26, so that sums over 2^26 rows are exact in
any order, and two data sets differ in them by what their own rows bring and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_ROWS", "WHOLE", "ExactSums"]

Array = NDArray[np.float64]

WHOLE = 2**13
UNIT = float(WHOLE) ** 2
MOST_ROWS = 2**26
# Entries of a block of rows
BLOCK = 2**21


class ExactSums:
    """Sums over rows of products of columns with each other and with the targets.

    Parameters
    ----------
    X
        Features from -1 to 1.
    y
        Targets from -1 to 1.
    intercept
        Whether a column of ones follows those of ``X``.
    """

    def __init__(self, X: Any, y: Array, *, intercept: bool) -> None:
        self._private_X, self._private_y = X, y
        self.intercept = intercept
        self.n_features = int(X.shape[1])
        self.n_columns = self.n_features + intercept

    def free(self) -> list[int]:
        """Return the places of columns without a penalty."""
        return [self.n_features] if self.intercept else []

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Yield blocks of features, column of ones included, and targets."""
        rows = max(1, BLOCK // self.n_columns)
        for low in range(0, len(self._private_y), rows):
            part = self._private_X[low : low + rows]
            block = np.empty((len(part), self.n_columns))
            # [lasso:whole] whole numbers, a record at a time
            np.rint(part * float(WHOLE), out=block[:, : self.n_features])
            block[:, self.n_features :] = WHOLE
            yield block, np.rint(self._private_y[low : low + rows] * float(WHOLE))

    def with_targets(self) -> tuple[Array, float]:
        """Return the sums of columns times targets, and of squared targets."""
        total, squares = np.zeros(self.n_columns), 0.0
        for block, targets in self.blocks():
            total += block.T @ targets
            squares += float(targets @ targets)
        return total / UNIT, squares / UNIT

    def with_columns(self, places: list[int]) -> Array:
        """Return the sums of all columns times those at these places."""
        total = np.zeros((self.n_columns, len(places)))
        for block, _ in self.blocks():
            total += block.T @ block[:, places]
        return total / UNIT

    def with_vector(self, values: Array) -> Array:
        """Return the sums of all columns times one number a row, rounded as floats."""
        total, low = np.zeros(self.n_columns), 0
        for block, _ in self.blocks():
            total += block.T @ values[low : low + len(block)]
            low += len(block)
        return total / WHOLE

    def squares(self) -> Array:
        """Return the sums of squares of all columns."""
        total = np.zeros(self.n_columns)
        for block, _ in self.blocks():
            total += np.einsum("ij,ij->j", block, block)
        return total / UNIT

    def columns(self, places: list[int]) -> tuple[Array, Array]:
        """Return the columns at these places and the targets, as they are summed."""
        kept = [(block[:, places], targets) for block, targets in self.blocks()]
        if not kept:
            return np.zeros((0, len(places))), np.zeros(0)
        X, y = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        return X / WHOLE, y / WHOLE
