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
    prior_mean: float,
    prior_count: float,
    means: Array,
) -> None:
    """Fill ``means`` with shrunk means, and take them off ``values`` in place."""
    for i in range(len(indptr) - 1):
        total = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            total += values[at] - prior_mean
        weight = prior_count + (indptr[i + 1] - indptr[i])
        mean = prior_mean + (total / weight if weight > 0.0 else 0.0)
        means[i] = mean
        for at in range(indptr[i], indptr[i + 1]):
            values[at] -= mean
