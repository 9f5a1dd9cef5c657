"""Exact integer sums over users, single-threaded and without the interpreter lock.

Every sum over a user's ratings runs in the order of their items, so that the bits of
their part depend on their row and on public numbers only.
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
    # unsigned, for which no code for negative indices is compiled
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
def _row(i: np.int64, n_items: int) -> np.int64:
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
    """Add the integer parts of users to counts, and to sums after them.

    ``values`` are centered ratings in units of the bound on their root mean square, and
    ``levels`` are between -1 and 1. The last index of both stands for the level of
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


# Least value of one minus the leverage of a rating, by which its error is divided
LEAST_FREE = 0.02


# in one piece: one loop over users, whose arrays are made once
@njit(cache=True, nogil=True, error_model="numpy")
def add_user_parts(
    indptr: Integers,
    items: NDArray[np.int32],
    values: Array,
    vectors: Array,
    ridge: float,
    level_ridge: float,
    reach: float,
    bound: float,
    product_units: float,
    moment_units: float,
    error_weight: float,
    largest_error: float,
    total: Integers,
) -> None:
    """Add integer parts of products with items, then of second moments and errors.

    ``values`` are ratings less the public level and offsets. A user's coefficients are
    those of a ridge on a constant and the item vectors. For a rating they are found
    without that rating, and so is the level that is taken off it.

    ``total`` has products of each item with each coefficient, the upper triangle of the
    coefficients' second moments, and the mean squared error.
    """
    # long: one compiled loop over users
    n_items, rank = vectors.shape
    size = rank + 1
    longest = 0
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    rest = np.empty(longest)
    rows = np.empty((longest, size))
    rows[:, 0] = 1.0
    left = np.empty((longest, rank))
    gram, inverse = np.empty((size, size)), np.empty((size, size))
    right, beta, along = np.empty(size), np.empty(size), np.empty(size)
    for i in range(len(indptr) - 1):
        begin, n = indptr[i], indptr[i + 1] - indptr[i]
        if n == 0:
            continue
        gram[:] = 0.0
        right[:] = 0.0
        for t in range(n):
            x, j, y = rows[t], items[begin + t], values[begin + t]
            for a in range(rank):
                x[a + 1] = vectors[j, a]
            for a in range(size):
                right[a] += x[a] * y
            # both triangles, as whole rows are faster than parts of them
            for a in range(size):
                for b in range(size):
                    gram[a, b] += x[a] * x[b]
        gram[0, 0] += level_ridge
        for a in range(1, size):
            gram[a, a] += ridge
        _invert(gram, inverse)
        beta[:] = 0.0
        for a in range(size):
            for b in range(size):
                beta[b] += inverse[a, b] * right[a]

        # what is left of each rating, and their coefficients, without that rating
        error, square = 0.0, 0.0
        for t in range(n):
            x = rows[t]
            along[:] = 0.0
            for a in range(size):
                for b in range(size):
                    along[b] += inverse[a, b] * x[a]
            seen, explained = 0.0, 0.0
            for a in range(size):
                seen += x[a] * beta[a]
                explained += x[a] * along[a]
            miss = (values[begin + t] - seen) / max(1.0 - explained, LEAST_FREE)
            error += miss * miss
            rest[t] = (values[begin + t] - beta[0] + along[0] * miss) / bound
            square += rest[t] * rest[t]
            length = 0.0
            for a in range(rank):
                left[t, a] = beta[a + 1] - along[a + 1] * miss
                length += left[t, a] * left[t, a]
            # [als:coefficients] to norm one at most
            shrink = 1.0 / max(reach, np.sqrt(length))
            for a in range(rank):
                left[t, a] *= shrink

        # [als:row] what is left of their ratings, to norm one at most
        part = product_units / np.sqrt(max(float(n), square))
        for t in range(n):
            at = items[begin + t] * rank
            for a in range(rank):
                total[at + a] += np.int64(part * rest[t] * left[t, a])

        length = 0.0
        for a in range(1, size):
            length += beta[a] * beta[a]
        shrink = moment_units / max(reach * reach, length)
        at = n_items * rank
        for a in range(1, size):
            total[at] += np.int64(shrink * beta[a] * beta[a])
            at += 1
            for b in range(a + 1, size):
                total[at] += np.int64(shrink * np.sqrt(2.0) * beta[a] * beta[b])
                at += 1
        error = min(error / n / (largest_error * bound * bound), 1.0)
        total[at] += np.int64(moment_units * error_weight * error)


@njit(cache=True, nogil=True, error_model="numpy")
def add_gains(
    indptr: Integers,
    items: NDArray[np.int32],
    values: Array,
    vectors: Array,
    factors: Array,
    ridge: float,
    level_ridge: float,
    largest_gain: float,
    units: float,
    total: Integers,
) -> None:
    """Add by how much each candidate reduces the leave-one-out error of each user.

    A row of ``factors`` multiplies the columns of ``vectors``; columns with a factor of
    zero are left out. Gains of a user are in units of ``largest_gain``, and clipped to
    norm one.
    """
    n_candidates, rank = factors.shape
    gains = np.empty(n_candidates)
    scaled = np.empty((n_candidates, vectors.shape[0], rank))
    sizes = np.zeros(n_candidates, np.int64)
    for k in range(n_candidates):
        for a in range(rank):
            if factors[k, a] != 0.0:
                for j in range(vectors.shape[0]):
                    scaled[k, j, sizes[k]] = factors[k, a] * vectors[j, a]
                sizes[k] += 1
    for i in range(len(indptr) - 1):
        begin, end = indptr[i], indptr[i + 1]
        # a single rating has no others to be predicted from
        if end - begin < 2:
            continue
        rated, row = items[begin:end], values[begin:end]
        level_error = _left_out_error(rated, row, scaled[0], 0, ridge, level_ridge)
        square = 0.0
        for k in range(n_candidates):
            found = _left_out_error(rated, row, scaled[k], sizes[k], ridge, level_ridge)
            gains[k] = (level_error - found) / largest_gain
            square += gains[k] * gains[k]
        # [als:gains] to norm one at most
        part = units / max(1.0, np.sqrt(square))
        for k in range(n_candidates):
            total[k] += np.int64(part * gains[k])


@njit(cache=True, nogil=True, error_model="numpy")
def _left_out_error(
    rated: NDArray[np.int32],
    row: Array,
    vectors: Array,
    rank: int,
    ridge: float,
    level_ridge: float,
) -> float:
    """Return the mean squared error of each rating from a fit to the others."""
    size, n = rank + 1, len(row)
    gram, inverse = np.zeros((size, size)), np.empty((size, size))
    right, beta, x = np.zeros(size), np.zeros(size), np.empty(size)
    x[0] = 1.0
    for t in range(n):
        for a in range(rank):
            x[a + 1] = vectors[rated[t], a]
        for a in range(size):
            right[a] += x[a] * row[t]
            for b in range(a + 1):
                gram[a, b] += x[a] * x[b]
    gram[0, 0] += level_ridge
    for a in range(1, size):
        gram[a, a] += ridge
    _invert(gram, inverse)
    for a in range(size):
        for b in range(size):
            beta[a] += inverse[a, b] * right[b]
    error = 0.0
    for t in range(n):
        for a in range(rank):
            x[a + 1] = vectors[rated[t], a]
        seen, explained = 0.0, 0.0
        for a in range(size):
            along = 0.0
            for b in range(size):
                along += inverse[a, b] * x[b]
            seen += x[a] * beta[a]
            explained += x[a] * along
        miss = (row[t] - seen) / max(1.0 - explained, LEAST_FREE)
        error += miss * miss
    return error / n


@njit(cache=True, nogil=True, error_model="numpy")
def _invert(gram: Array, inverse: Array) -> None:
    """Fill in the inverse of a positive matrix, of which the lower triangle is read."""
    size = len(gram)
    for a in range(size):
        for b in range(a + 1):
            value = gram[a, b]
            for c in range(b):
                value -= gram[a, c] * gram[b, c]
            gram[a, b] = np.sqrt(max(value, 1e-300)) if a == b else value / gram[b, b]
    # the inverse of the triangle, below the diagonal of gram and on it
    for a in range(size):
        gram[a, a] = 1.0 / gram[a, a]
        for b in range(a):
            value = 0.0
            for c in range(b, a):
                value -= gram[a, c] * gram[c, b]
            gram[a, b] = value * gram[a, a]
    for a in range(size):
        for b in range(a + 1):
            value = 0.0
            for c in range(a, size):
                value += gram[c, a] * gram[c, b]
            inverse[a, b] = value
            inverse[b, a] = value
