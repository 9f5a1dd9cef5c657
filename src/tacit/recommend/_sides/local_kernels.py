"""Sums over one user's ratings, each user by herself and in the order of her items."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy")
def center(
    indptr: Integers,
    values: Array,
    prior_level: float,
    prior_count: float,
    levels: Array,
) -> None:
    """Fill ``levels`` with shrunk means, and take them off ``values`` in place."""
    for i in range(len(indptr) - 1):
        total = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            total += values[at] - prior_level
        weight = prior_count + (indptr[i + 1] - indptr[i])
        level = prior_level + (total / weight if weight > 0.0 else 0.0)
        levels[i] = level
        for at in range(indptr[i], indptr[i + 1]):
            values[at] -= level


@njit(cache=True, nogil=True, error_model="numpy")
def scale_rows(indptr: Integers, values: Array, radius: float, scales: Array) -> None:
    """Put rows into the unit ball in place, a row of ``radius`` or more onto it.

    ``scales`` are what the rows were multiplied by.
    """
    for i in range(len(indptr) - 1):
        square = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            square += values[at] * values[at]
        scales[i] = 1.0 / max(radius, np.sqrt(square))
        for at in range(indptr[i], indptr[i + 1]):
            values[at] *= scales[i]
