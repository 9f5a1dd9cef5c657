"""What one user computes from their ratings and the item side, user by user.

Every sum over a user's ratings runs in the order of their items, so that the bits of
their row depend on it and on public numbers only: a user at home, or after the fit,
gets the very numbers that the fit computed for them.
"""

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
    """Fill ``levels`` with shrunk means, and subtract them from ``values`` in place."""
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
    """Scale rows into the unit ball, in place; from ``radius`` on onto the sphere.

    ``scales`` are filled with the factors.
    """
    for i in range(len(indptr) - 1):
        square = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            square += values[at] * values[at]
        scales[i] = 1.0 / max(radius, np.sqrt(square))
        for at in range(indptr[i], indptr[i + 1]):
            values[at] *= scales[i]


# A direction whose pivot is below this fraction of its diagonal entry gets zero
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


# in one piece: one loop over users, whose arrays are made once
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
    # long: one compiled loop over neighbors
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


# in one piece: one loop over users, whose arrays are made once
@njit(cache=True, nogil=True, error_model="numpy")
def repeat_steps(
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
    """Fill predictions of each user's ratings, and their coefficients, step by step.

    ``values`` are clipped to ``row_norm`` in place, and so are predictions; where it is
    infinite no row is clipped, and predictions are no longer than the user's ratings.
    ``others`` are predictions of each rating from the user's other ratings, which are
    left out where it is empty.
    """
    # long: one compiled loop over steps
    n_items, with_others = vectors.shape[1], len(others) > 0
    residuals, alongs = np.empty(n_items), np.empty(n_items)
    # unsigned, for which no code for negative indices is compiled
    positions = np.empty(n_items, np.uint64)
    for u in range(len(indptr) - 1):
        start, n = indptr[u], indptr[u + 1] - indptr[u]
        rating, prediction = values[start : start + n], predicted[start : start + n]
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
        prediction[:] = 0.0
        by_others[:] = 0.0
        for t in range(len(keeps)):
            vector = vectors[t]
            for p in range(n):
                along[p] = vector[position[p]]
                residual[p] = prediction[p] - rating[p]
            product = dot(residual, along)
            keep, length = keeps[t], weight * lengths[t]
            step = length * product
            for p in range(n):
                prediction[p] = keep * prediction[p] - step * along[p]
            if with_others:
                for p in range(n):
                    rest = product - residual[p] * along[p]
                    by_others[p] = keep * by_others[p] - length * rest * along[p]
            for s in range(t):
                coefficients[u, s] *= keep
            coefficients[u, t] = -step
            norm = np.sqrt(dot(prediction, prediction))
            # the whole row by one factor, which clips its rated part
            if norm > radius:
                factor = radius / norm
                prediction *= factor
                by_others *= factor
                for s in range(t + 1):
                    coefficients[u, s] *= factor


@njit(cache=True, nogil=True, error_model="numpy")
def dot(a: Array, b: Array) -> float:
    """Return the dot product, with an order of additions fixed by the length."""
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
    """Replace predictions by residuals over ``bound``, clipped to the unit ball."""
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
    """Add the derivative and the curvature of the squared error along a step.

    The step goes from ``others`` by ``reach`` times the prediction of each rating from
    the other ratings of the user along the vector; both numbers are per unit of
    ``reach``.
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
        square = derivative * derivative + curvature * curvature
        longest = max(np.sqrt(square), bound * bound)
        sums[0] += np.int64(factor * (derivative / longest))
        sums[1] += np.int64(factor * (curvature / longest))


# in one piece: one loop over users, whose arrays are made once
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
    """Apply all steps and projections to each user's row.

    ``rows`` are filled with the result of another step of descent, over its radius,
    unless they have no columns; ``coefficients`` with those of the last projection.
    """
    # long: one compiled loop over steps
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
