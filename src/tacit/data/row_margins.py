"""Margins that depend on a row alone, to the last digit.

A matrix product may round a row's margin in another way when the table has one row
more. Where a margin decides between two values, that would count as a row that changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["margins", "pieces", "plain_rows"]

Array = NDArray[np.float64]

# Entries of the rows looked at together
PIECE_ENTRIES = 2**20


def margins(X: Array, W: Array) -> Array:
    """Return ``X @ W``, every sum taken from left to right."""
    out = np.empty((X.shape[0], W.shape[1]))
    for j in range(W.shape[1]):
        # [alone:margins] products one by one, and sums that know no order but one
        out[:, j] = np.cumsum(X * W[:, j], axis=1)[:, -1]
    return out


def pieces(X: Any, most: int | None = None) -> Iterator[tuple[slice, Array]]:
    """Yield dense float64 pieces of rows, each with its position."""
    n, p = X.shape
    size = max(1, PIECE_ENTRIES // max(1, p))
    size = size if most is None else min(size, most)
    for start in range(0, n, size):
        position = slice(start, min(start + size, n))
        part = X[position]
        dense = part.toarray() if sparse.issparse(part) else part
        yield position, np.ascontiguousarray(dense, dtype=np.float64)


def plain_rows(X: Any) -> Any:
    """Return dense rows in float64, one after the other; sparse ones as they are."""
    return X if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
