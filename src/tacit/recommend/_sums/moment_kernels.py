"""Sums over users in whole numbers, in one thread without Python's lock.

Every sum over a user's ratings runs in the order of her items, so that the bits of her
part depend on her row and on public numbers alone.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy")
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
    dense = np.zeros(n_items)
    # unsigned, for which no code is made that looks for places from the end
    positions = np.empty(n_items, np.uint64)
    for u in range(len(indptr) - 1):
        start, end = indptr[u] - indptr[0], indptr[u + 1] - indptr[0]
        rated, row = items[start:end], parts[start:end]
        for p in range(len(row)):
            i = np.int64(rated[p])
            # [completion:truncate] to int64 is towards zero
            sums[_row(i, n_items) + i] += np.int64(factor * row[p] * row[p])
        # a quarter of the items or more are faster as all of them, side by side
        if 4 * len(row) >= n_items:
            _add_dense(rated, row, off, dense, sums)
        else:
            _add_sparse(rated, row, off, n_items, positions, sums)


@njit(cache=True, nogil=True, error_model="numpy")
def _row(i: int, n_items: int) -> int:
    """Return where a row of the triangle begins: entry (i, j) is at j beyond it."""
    return i * n_items - i * (i + 1) // 2


@njit(cache=True, nogil=True, error_model="numpy")
def _add_dense(
    rated: NDArray[np.int32], row: Array, off: float, dense: Array, sums: Integers
) -> None:
    """Add the entries off the diagonal, of all items; ``dense`` has zeros for them."""
    n_items = len(dense)
    for p in range(len(row)):
        dense[rated[p]] = row[p]
    for p in range(len(row)):
        i = np.int64(rated[p])
        scaled, begin = off * row[p], _row(i, n_items)
        rest, after = sums[begin + i + 1 : begin + n_items], dense[i + 1 :]
        for q in range(len(rest)):
            rest[q] += np.int64(scaled * after[q])
    for p in range(len(row)):
        dense[rated[p]] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _add_sparse(
    rated: NDArray[np.int32],
    row: Array,
    off: float,
    n_items: int,
    positions: NDArray[np.uint64],
    sums: Integers,
) -> None:
    """Add the entries off the diagonal, of items that are rated."""
    n = len(row)
    for p in range(n):
        positions[p] = rated[p]
    # two rows of the triangle at once, which read the same numbers
    for p in range(0, n - 1, 2):
        first = sums[_row(np.int64(rated[p]), n_items) :]
        second = sums[_row(np.int64(rated[p + 1]), n_items) :]
        one, two = off * row[p], off * row[p + 1]
        first[positions[p + 1]] += np.int64(one * row[p + 1])
        for q in range(p + 2, n):
            first[positions[q]] += np.int64(one * row[q])
            second[positions[q]] += np.int64(two * row[q])


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def row_dot(
    items: NDArray[np.int32], parts: Array, vector: Array, start: int, end: int
) -> float:
    """Return the product of one user's row with a vector."""
    total = 0.0
    for p in range(start, end):
        total += parts[p] * vector[items[p]]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def add_means(
    indptr: Integers,
    items: NDArray[np.int32],
    values: Array,
    levels: Array,
    units: float,
    count_weight: float,
    level_weight: float,
    sums: Integers,
) -> None:
    """Add the parts of users to counts, and to sums after them, in whole numbers.

    ``values`` are centered ratings in units of the bound on their root mean square,
    and ``levels`` are between -1 and 1. The last index of both stands for the level of
    users.
    """
    counts, totals = sums[: len(sums) // 2], sums[len(sums) // 2 :]
    for i in range(len(indptr) - 1):
        n = indptr[i + 1] - indptr[i]
        if n == 0:
            continue
        square = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            square += values[at] * values[at]
        # [item-means:clip] counts and sums of a user have norm one at most
        part = units / np.sqrt(max(float(n), square))
        count = np.int64(part * count_weight)
        for at in range(indptr[i], indptr[i + 1]):
            counts[items[at]] += count
            totals[items[at]] += np.int64(part * values[at])
        part = units * level_weight
        counts[-1] += np.int64(part * count_weight)
        totals[-1] += np.int64(part * levels[i])
