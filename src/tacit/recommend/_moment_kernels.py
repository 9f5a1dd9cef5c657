"""Sums over users in whole numbers, in one thread without Python's lock.

Every sum over a user's ratings runs in the order of her items, so that the bits of her
part depend on her row and on public numbers alone.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def add_outer(
    indptr: Integers,
    items: NDArray[np.int32],
    parts: Array,
    n_items: int,
    factor: float,
    sums: Integers,
) -> None:
    """Add the outer product of each user's row to an upper triangle."""
    # [completion:triangle] off the diagonal every entry stands for two
    off = factor * np.sqrt(2.0)
    for u in range(len(indptr) - 1):
        start, end = indptr[u] - indptr[0], indptr[u + 1] - indptr[0]
        for p in range(start, end):
            i = np.int64(items[p])
            # entry (i, j) of the triangle is at row + j
            row = i * n_items - i * (i + 1) // 2
            # [completion:truncate] to int64 is towards zero
            sums[row + i] += np.int64(factor * parts[p] * parts[p])
            scaled = off * parts[p]
            if end - start == n_items:
                # all items, one after the other, take half the time
                rest, after = sums[row + i + 1 : row + n_items], parts[p + 1 : end]
                for q in range(len(rest)):
                    rest[q] += np.int64(scaled * after[q])
            else:
                for q in range(p + 1, end):
                    sums[row + items[q]] += np.int64(scaled * parts[q])


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def add_product(
    indptr: Integers,
    items: NDArray[np.int32],
    parts: Array,
    vector: Array,
    factor: float,
    sums: Integers,
) -> None:
    """Add the product of each user's outer product with a public vector."""
    for u in range(len(indptr) - 1):
        start, end = indptr[u] - indptr[0], indptr[u + 1] - indptr[0]
        scaled = factor * row_dot(items, parts, vector, start, end)
        for p in range(start, end):
            sums[items[p]] += np.int64(scaled * parts[p])


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def add_square(
    indptr: Integers,
    items: NDArray[np.int32],
    parts: Array,
    vector: Array,
    factor: float,
    sums: Integers,
) -> None:
    """Add the squared product of each user's row with a public vector."""
    for u in range(len(indptr) - 1):
        start, end = indptr[u] - indptr[0], indptr[u + 1] - indptr[0]
        dot = row_dot(items, parts, vector, start, end)
        sums[0] += np.int64(factor * dot * dot)


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def row_dot(
    items: NDArray[np.int32], parts: Array, vector: Array, start: int, end: int
) -> float:
    """Return the product of one user's row with a vector."""
    total = 0.0
    for p in range(start, end):
        total += parts[p] * vector[items[p]]
    return total
