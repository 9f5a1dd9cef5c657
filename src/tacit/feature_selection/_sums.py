"""Sums of products of columns, exact in floating point.

Features and targets are rounded to integers of at most ``SCALE``, row by row. A product
of two is an integer of at most 2^26, so that sums over up to 2^26 rows, the limit of
`tacit.mechanisms.integer_noise`, are exact in any order. A row changes them by its own
products only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.exceptions import PlanError
from tacit.mechanisms.integer_noise import MAX_INTEGER_ROWS
from tacit.privacy import Neighbors

__all__ = ["SCALE", "UNIT", "ExactSums", "check_row_count"]

Array = NDArray[np.float64]

# Integers that stand for one, and for a product of two ones
SCALE = 2**13
UNIT = float(SCALE) ** 2
# Entries of a block of rows
BLOCK = 2**21


def check_row_count(selector: str, n_rows: int, neighbors: Neighbors) -> None:
    """Raise where a public number of rows is too large for exact sums."""
    if neighbors is Neighbors.REPLACE_ONE and n_rows > MAX_INTEGER_ROWS:
        raise PlanError(
            f"{selector} takes up to {MAX_INTEGER_ROWS} rows, got "
            f"n_rows={n_rows}; use BlockVoteSelector."
        )


class ExactSums:
    """Sums over rows of products of columns with each other and with the targets.

    Features and targets are from -1 to 1. With ``intercept`` a column of ones follows.
    """

    def __init__(self, X: Any, y: Array, *, intercept: bool) -> None:
        self._private_X, self._private_y = X, y
        self.intercept = intercept
        self.n_features = int(X.shape[1])
        self.n_columns = self.n_features + intercept
        self.n_rows = len(y)

    def unpenalized(self) -> list[int]:
        """Return the indices of columns without a penalty."""
        return [self.n_features] if self.intercept else []

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Yield blocks of features, column of ones included, and targets."""
        rows = max(1, BLOCK // self.n_columns)
        for low in range(0, len(self._private_y), rows):
            part = self._private_X[low : low + rows]
            block = np.empty((len(part), self.n_columns))
            # [lasso:integers] rounded entry by entry
            np.rint(part * float(SCALE), out=block[:, : self.n_features])
            block[:, self.n_features :] = SCALE
            yield block, np.rint(self._private_y[low : low + rows] * float(SCALE))

    def with_targets(self) -> tuple[Array, float]:
        """Return the sums of columns times targets, and of squared targets."""
        total, squares = np.zeros(self.n_columns), 0.0
        for block, targets in self.blocks():
            total += block.T @ targets
            squares += float(targets @ targets)
        return total / UNIT, squares / UNIT

    def with_columns(self, positions: list[int]) -> Array:
        """Return the sums of all columns times those at some positions."""
        total = np.zeros((self.n_columns, len(positions)))
        for block, _ in self.blocks():
            total += block.T @ block[:, positions]
        return total / UNIT
