"""Coefficients of one user at a time, whose bits depend on her own row alone."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# A direction that ratings and ridge say less about than this, relatively, gets zero
FLAT = 1e-12


@njit(cache=True, nogil=True, error_model="numpy")
def ridge(
    indptr: Integers,
    items: NDArray[np.int32],
    values: Array,
    vectors: Array,
    penalties: Array,
    level_penalty: float,
    levels: Array,
    coefficients: Array,
) -> None:
    """Fill in the ridge of each user's values on a constant and the item vectors."""
    size = vectors.shape[1] + 1
    x, right = np.empty(size), np.empty(size)
    gram = np.empty((size, size))
    x[0] = 1.0
    for i in range(len(indptr) - 1):
        right[:] = 0.0
        gram[:] = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            for a in range(1, size):
                x[a] = vectors[items[at], a - 1]
            for a in range(size):
                right[a] += x[a] * values[at]
                for b in range(a + 1):
                    gram[a, b] += x[a] * x[b]
        gram[0, 0] += level_penalty
        for a in range(1, size):
            gram[a, a] += penalties[a - 1]
        solve(gram, right)
        levels[i] = right[0]
        for a in range(1, size):
            coefficients[i, a - 1] = right[a]


@njit(cache=True, nogil=True, error_model="numpy")
def solve(gram: Array, right: Array) -> None:
    """Solve in place, by the lower triangle; flat directions get zero."""
    size = len(right)
    for a in range(size):
        whole = gram[a, a]
        for b in range(a):
            total = gram[a, b]
            for c in range(b):
                total -= gram[a, c] * gram[b, c]
            gram[a, b] = total / gram[b, b] if gram[b, b] > 0.0 else 0.0
            gram[a, a] -= gram[a, b] * gram[a, b]
        pivot = gram[a, a]
        gram[a, a] = np.sqrt(pivot) if pivot > FLAT * whole else 0.0
    for a in range(size):
        for b in range(a):
            right[a] -= gram[a, b] * right[b]
        right[a] = right[a] / gram[a, a] if gram[a, a] > 0.0 else 0.0
    for a in range(size - 1, -1, -1):
        for b in range(a + 1, size):
            right[a] -= gram[b, a] * right[b]
        right[a] = right[a] / gram[a, a] if gram[a, a] > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def project(
    indptr: Integers,
    items: NDArray[np.int32],
    values: Array,
    vectors: Array,
    coefficients: Array,
) -> None:
    """Fill in products with the item vectors, as if all items had been rated."""
    for i in range(len(indptr) - 1):
        coefficients[i] = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            scale = values[at] * vectors.shape[0] / (indptr[i + 1] - indptr[i])
            for a in range(vectors.shape[1]):
                coefficients[i, a] += scale * vectors[items[at], a]
