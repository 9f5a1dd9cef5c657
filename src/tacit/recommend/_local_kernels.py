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


@njit(cache=True, nogil=True, error_model="numpy")
def add_means(
    indptr: Integers,
    items: NDArray[np.int32],
    values: Array,
    levels: Array,
    units: float,
    count_weight: float,
    level_weight: float,
    counts: Integers,
    sums: Integers,
) -> None:
    """Add the parts of users to ``counts`` and ``sums``, in whole numbers.

    ``values`` and ``levels`` are between -1 and 1. The last place of both stands for
    the level of users.
    """
    for i in range(len(indptr) - 1):
        n = indptr[i + 1] - indptr[i]
        if n == 0:
            continue
        part = units / np.sqrt(float(n))
        count = np.int64(part * count_weight)
        for at in range(indptr[i], indptr[i + 1]):
            counts[items[at]] += count
            sums[items[at]] += np.int64(part * values[at])
        part = units * level_weight
        counts[-1] += np.int64(part * count_weight)
        sums[-1] += np.int64(part * levels[i])
