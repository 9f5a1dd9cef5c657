"""Descent of one user's row through public projections, in a fixed order of sums."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy")
def descend(
    indptr: Integers,
    items: NDArray[np.int32],
    values: Array,
    projections: Array,
    shrinks: Array,
    ranks: Integers,
    step_sizes: Array,
    radii: Array,
    rows: Array,
    coefficients: Array,
) -> None:
    """Take each user's row through all projections.

    ``rows`` are filled with what another step of descent leads to, over its radius,
    unless they have no columns; ``coefficients`` with those of the last projection.
    """
    n_items, n_done = projections.shape[0], len(ranks)
    last = ranks[n_done - 1] if n_done > 0 else 0
    row = np.empty(n_items)
    at_last = np.empty(projections.shape[1])
    for i in range(len(indptr) - 1):
        row[:] = 0.0
        first = 0
        for t in range(n_done):
            _step(indptr[i], indptr[i + 1], items, values, step_sizes[t], radii[t], row)
            for a in range(ranks[t]):
                at_last[a] = 0.0
            for j in range(n_items):
                # rows are sparse before the first projection
                if row[j] != 0.0:
                    for a in range(ranks[t]):
                        at_last[a] += row[j] * projections[j, first + a]
            for a in range(ranks[t]):
                at_last[a] *= shrinks[first + a]
            for j in range(n_items):
                total = 0.0
                for a in range(ranks[t]):
                    total += at_last[a] * projections[j, first + a]
                row[j] = total
            first += ranks[t]
        for a in range(last):
            coefficients[i, a] = at_last[a]
        if rows.shape[1] > 0:
            radius = radii[n_done]
            _step(
                indptr[i], indptr[i + 1], items, values, step_sizes[n_done], radius, row
            )
            for j in range(n_items):
                rows[i, j] = row[j] / radius


@njit(cache=True, nogil=True, error_model="numpy")
def _step(
    begin: int,
    end: int,
    items: NDArray[np.int32],
    values: Array,
    step_size: float,
    radius: float,
    row: Array,
) -> None:
    """Move the row towards the ratings where there are any, and clip it."""
    for at in range(begin, end):
        row[items[at]] -= step_size * (row[items[at]] - values[at])
    square = 0.0
    for j in range(len(row)):
        square += row[j] * row[j]
    norm = np.sqrt(square)
    if norm > radius:
        for j in range(len(row)):
            row[j] *= radius / norm
