"""Steps of users along public vectors, each user by herself.

Every sum over a user's ratings runs in the order of her items, so that the bits of her
row depend on it and on public numbers alone: a user who walks at home, or after the
fit, takes the very steps that the fit took for her.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy")
def walk(
    indptr: Integers,
    items: NDArray[np.int32],
    values: Array,
    vectors: Array,
    keeps: Array,
    lengths: Array,
    row_norm: float,
    most: float,
    predicted: Array,
    others: Array,
    coefficients: Array,
) -> None:
    """Fill predictions of each user's ratings, and her coefficients, step by step.

    ``values`` are clipped to ``row_norm`` in place, and so are predictions; where it is
    infinite no row is clipped, and predictions are no longer than the user's ratings.
    ``others`` are predictions of each rating from the user's other ratings, which are
    left out where it is empty.
    """
    n_items, with_others = vectors.shape[1], len(others) > 0
    residuals, alongs = np.empty(n_items), np.empty(n_items)
    # unsigned, for which no code is made that looks for places from the end
    positions = np.empty(n_items, np.uint64)
    for u in range(len(indptr) - 1):
        start, n = indptr[u], indptr[u + 1] - indptr[u]
        rating, said = values[start : start + n], predicted[start : start + n]
        by_others = others[start : start + n]
        position, along, residual = positions[:n], alongs[:n], residuals[:n]
        for p in range(n):
            position[p] = items[start + p]
        own = np.sqrt(dot(rating, rating))
        if own > row_norm:
            for p in range(n):
                rating[p] *= row_norm / own
        radius = row_norm if row_norm < np.inf else own
        weight = row_weight(n, most)
        said[:] = 0.0
        by_others[:] = 0.0
        for t in range(len(keeps)):
            vector = vectors[t]
            for p in range(n):
                along[p] = vector[position[p]]
                residual[p] = said[p] - rating[p]
            product = dot(residual, along)
            keep, length = keeps[t], weight * lengths[t]
            step = length * product
            for p in range(n):
                said[p] = keep * said[p] - step * along[p]
            if with_others:
                for p in range(n):
                    rest = product - residual[p] * along[p]
                    by_others[p] = keep * by_others[p] - length * rest * along[p]
            for s in range(t):
                coefficients[u, s] *= keep
            coefficients[u, t] = -step
            norm = np.sqrt(dot(said, said))
            # the whole row by one factor, which brings the rated part into the ball
            if norm > radius:
                factor = radius / norm
                said *= factor
                by_others *= factor
                for s in range(t + 1):
                    coefficients[u, s] *= factor


@njit(cache=True, nogil=True, error_model="numpy")
def dot(a: Array, b: Array) -> float:
    """Return a product of vectors, in an order that depends on their length alone."""
    # four sums side by side, since each addition waits for the one before
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    whole = len(a) // 4 * 4
    for p in range(0, whole, 4):
        one += a[p] * b[p]
        two += a[p + 1] * b[p + 1]
        three += a[p + 2] * b[p + 2]
        four += a[p + 3] * b[p + 3]
    for p in range(whole, len(a)):
        one += a[p] * b[p]
    return (one + two) + (three + four)


@njit(cache=True, nogil=True, error_model="numpy")
def row_weight(n: int, most: float) -> float:
    """Return what each of ``n`` ratings weighs, where ``most`` weigh in full."""
    return most / n if n > most else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def unit_residuals(
    indptr: Integers, values: Array, predicted: Array, bound: float
) -> None:
    """Put residuals over ``bound``, in the unit ball, in the place of predictions."""
    for u in range(len(indptr) - 1):
        row = predicted[indptr[u] : indptr[u + 1]]
        rating = values[indptr[u] : indptr[u + 1]]
        for p in range(len(row)):
            row[p] -= rating[p]
        # [completion:residual] to one, less than the margin of the sums off
        factor = 1.0 / max(np.sqrt(dot(row, row)), bound)
        for p in range(len(row)):
            row[p] *= factor


@njit(cache=True, nogil=True, error_model="numpy")
def add_lengths(
    indptr: Integers,
    items: NDArray[np.int32],
    values: Array,
    predicted: Array,
    others: Array,
    vector: Array,
    reach: float,
    most: float,
    bound: float,
    factor: float,
    sums: Integers,
) -> None:
    """Add what decides the length of a step: slope and curvature along it.

    The step goes from ``others`` to what the vector says of each rating by the other
    ratings of the user, ``reach`` times; both numbers are per unit of ``reach``.
    """
    residual, along = np.empty(len(vector)), np.empty(len(vector))
    for u in range(len(indptr) - 1):
        start, n = indptr[u], indptr[u + 1] - indptr[u]
        for p in range(n):
            along[p] = vector[items[start + p]]
            residual[p] = predicted[start + p] - values[start + p]
        product, weight = dot(residual[:n], along[:n]), row_weight(n, most)
        for p in range(n):
            rest = product - residual[p] * along[p]
            along[p] = -weight * rest * along[p] - others[start + p] / reach
            residual[p] = values[start + p] - others[start + p]
        derivative, curvature = dot(residual[:n], along[:n]), dot(along[:n], along[:n])
        # [completion:length] both together within one
        longest = max(
            np.sqrt(derivative * derivative + curvature * curvature), bound * bound
        )
        sums[0] += np.int64(factor * (derivative / longest))
        sums[1] += np.int64(factor * (curvature / longest))
