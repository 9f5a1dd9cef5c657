"""Interpolation from the most similar items that a user rated."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.recommend._sides.linear_kernels import solve

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy")
def interpolate(
    indptr: Integers,
    items: NDArray[np.int32],
    values: Array,
    covariance: Array,
    variance: float,
    n_neighbors: int,
    predicted: Array,
) -> None:
    """Fill in each user's value of each item, expected from its nearest neighbors."""
    n_items = covariance.shape[0]
    near = np.empty(n_neighbors, dtype=np.int64)
    similar, right = np.empty(n_neighbors), np.empty(n_neighbors)
    gram = np.empty((n_neighbors, n_neighbors))
    for i in range(len(indptr) - 1):
        for j in range(n_items):
            found = 0
            for at in range(indptr[i], indptr[i + 1]):
                other = items[at]
                likeness = covariance[j, other] ** 2 / (
                    covariance[other, other] + variance
                )
                # kept in order, so that ties go to the first item
                if found == n_neighbors and not likeness > similar[found - 1]:
                    continue
                found = min(found + 1, n_neighbors)
                position = found - 1
                while position > 0 and likeness > similar[position - 1]:
                    similar[position] = similar[position - 1]
                    near[position] = near[position - 1]
                    position -= 1
                similar[position] = likeness
                near[position] = at
            for a in range(found):
                right[a] = values[near[a]]
                for b in range(found):
                    gram[a, b] = covariance[items[near[a]], items[near[b]]]
                gram[a, a] += variance
            solve(gram[:found, :found], right[:found])
            total = 0.0
            for a in range(found):
                total += covariance[j, items[near[a]]] * right[a]
            predicted[i, j] = total
