"""Loops over all coordinate sums at once, and over what one update changes in them."""

from numba import njit

from tacit.solvers._coordinate_kernels import (
    HUBER,
    LOGISTIC,
    SQUARED,
    Floats,
    Integers,
    Places,
    _hinge,
    _huber,
    _logistic,
    moved_weight,
    part,
    slope_of,
)


@njit(cache=True)
def state_dense(A: Floats, w: Floats, t: Floats) -> None:
    """Add the margins to ``t``, for each row in the order of the features."""
    for j in range(len(w)):
        if w[j] != 0.0:
            for i in range(len(t)):
                t[i] += w[j] * A[j, i]


@njit(cache=True)
def state_sparse(
    indptr: Places, indices: Places, data: Floats, w: Floats, t: Floats
) -> None:
    """Add the margins to ``t``, for each row in the order of the features."""
    for j in range(len(w)):
        if w[j] != 0.0:
            for a in range(indptr[j], indptr[j + 1]):
                t[indices[a]] += w[j] * data[a]


@njit(cache=True)
def shift_dense(A: Floats, j: int, delta: float, t: Floats) -> None:
    """Move all states along one column."""
    for i in range(len(t)):
        t[i] += delta * A[j, i]


@njit(cache=True)
def shift_sparse(
    indptr: Places, indices: Places, data: Floats, j: int, delta: float, t: Floats
) -> None:
    """Move the states of the rows in one column."""
    for a in range(indptr[j], indptr[j + 1]):
        t[indices[a]] += delta * data[a]


@njit(cache=True)
def slopes_of(t: Floats, kind: int, shape: float, out: Floats) -> None:
    """Put the slopes of all rows into ``out``."""
    if kind == SQUARED:
        out[:] = t
    elif kind == LOGISTIC:
        for i in range(len(t)):
            out[i] = _logistic(shape, t[i])
    elif kind == HUBER:
        for i in range(len(t)):
            out[i] = _huber(shape, t[i])
    else:
        for i in range(len(t)):
            out[i] = _hinge(shape, t[i])


@njit(cache=True)
def sums_dense(
    A: Floats, slopes: Floats, per_unit: Floats, limit: float, sums: Integers
) -> None:
    """Return the sums of all coordinates in ``sums``."""
    for j in range(len(sums)):
        column, scale, total = A[j], per_unit[j], 0
        for i in range(len(slopes)):
            total += part(slopes[i], column[i], scale, limit)
        sums[j] = total


@njit(cache=True)
def sums_sparse(
    indptr: Places,
    indices: Places,
    data: Floats,
    slopes: Floats,
    per_unit: Floats,
    limit: float,
    sums: Integers,
) -> None:
    """Return the sums of all coordinates in ``sums``."""
    for j in range(len(sums)):
        scale, total = per_unit[j], 0
        for a in range(indptr[j], indptr[j + 1]):
            total += part(slopes[indices[a]], data[a], scale, limit)
        sums[j] = total


@njit(cache=True)
def sum_dense(
    A: Floats, j: int, t: Floats, scale: float, limit: float, kind: int, shape: float
) -> int:
    """Return one coordinate sum."""
    column, total = A[j], 0
    for i in range(len(t)):
        total += part(slope_of(kind, shape, t[i]), column[i], scale, limit)
    return total


@njit(cache=True)
def sum_sparse(
    indptr: Places,
    indices: Places,
    data: Floats,
    j: int,
    t: Floats,
    scale: float,
    limit: float,
    kind: int,
    shape: float,
) -> int:
    """Return one coordinate sum."""
    rows, x = indices[indptr[j] : indptr[j + 1]], data[indptr[j] : indptr[j + 1]]
    total = 0
    for a in range(len(rows)):
        total += part(slope_of(kind, shape, t[rows[a]]), x[a], scale, limit)
    return total


@njit(cache=True)
def squares(values: Floats, per_bound: float, limit: float) -> int:
    """Return the sum of squares in whole numbers, each from 0 to ``limit``."""
    total = 0
    for i in range(len(values)):
        x = min(max(values[i] * per_bound, -1.0), 1.0)
        # [coordinate:squares]
        total += part(x, x, limit, limit)
    return total


@njit(cache=True, error_model="numpy")
def full_slopes(
    row_indptr: Places,
    row_indices: Places,
    row_data: Floats,
    per_unit: Floats,
    limit: float,
    out: Floats,
) -> None:
    """Put into ``out`` from which slope on all parts of a row are cut."""
    for i in range(len(out)):
        least = 0.0
        for b in range(row_indptr[i], row_indptr[i + 1]):
            x = abs(row_data[b])
            if x > 0.0:  # zeros have no part at any slope
                least = max(least, limit / (x * per_unit[row_indices[b]]))
        # parts a hair below the limit are rounded to it
        out[i] = least * (1.0 + 1e-14)


@njit(cache=True)
def move_rows(
    indptr: Places,
    indices: Places,
    data: Floats,
    row_indptr: Places,
    j: int,
    delta: float,
    t: Floats,
    slopes: Floats,
    full: Floats,
    kind: int,
    shape: float,
    rows: Places,
    old: Floats,
) -> tuple[int, int]:
    """Move along a column; renew the slopes, and list the rows whose parts may change.

    A row whose parts are all cut, before and after and with the same sign, has the same
    ones as before. Returns how many others there are, and the entries of their rows;
    ``rows`` and ``old`` begin with their places and with the slopes that they had.
    """
    count, entries = 0, 0
    for a in range(indptr[j], indptr[j + 1]):
        i = indices[a]
        t[i] += delta * data[a]
        before, slope = slopes[i], slope_of(kind, shape, t[i])
        slopes[i] = slope
        cut_before = before >= full[i] or before <= -full[i]
        if not (cut_before and abs(slope) >= full[i] and slope * before > 0.0):
            rows[count], old[count] = i, before
            entries += row_indptr[i + 1] - row_indptr[i]
            count += 1
    return count, entries


@njit(cache=True)
def exchange(
    row_indptr: Places,
    row_indices: Places,
    row_data: Floats,
    rows: Places,
    old: Floats,
    slopes: Floats,
    sums: Integers,
    per_unit: Floats,
    limit: float,
    j: int,
    marked: Places,
    changed: Places,
) -> int:
    """Put new parts of some rows in for old ones; return how many sums changed.

    ``changed`` begins with their places, of which ``j`` is the first in any case.
    """
    changed[0], marked[j], count = j, True, 1
    for r in range(len(rows)):
        i = rows[r]
        before, after = old[r], slopes[i]
        low, high = row_indptr[i], row_indptr[i + 1]
        places, x = row_indices[low:high], row_data[low:high]
        for b in range(len(places)):
            c = places[b]
            scale = per_unit[c]
            # [greedy:exchange] whole numbers: what was put in comes out again
            sums[c] += part(after, x[b], scale, limit)
            sums[c] -= part(before, x[b], scale, limit)
            if not marked[c]:
                marked[c] = True
                changed[count] = c
                count += 1
    for a in range(count):
        marked[changed[a]] = False
    return count


@njit(cache=True)
def exact_dense(
    A: Floats,
    w: Floats,
    t: Floats,
    order: Integers,
    step: Floats,
    l1: Floats,
    l2: Floats,
    low: Floats,
    high: Floats,
    kind: int,
    shape: float,
) -> None:
    """Update weights without cut, rounding or noise."""
    for k in range(len(order)):
        j = order[k]
        gradient = 0.0
        for i in range(len(t)):
            gradient += slope_of(kind, shape, t[i]) * A[j, i]
        new = moved_weight(w[j], gradient, step[j], l1[j], l2[j], low[j], high[j])
        delta = new - w[j]
        w[j] = new
        if delta != 0.0:
            for i in range(len(t)):
                t[i] += delta * A[j, i]


@njit(cache=True)
def exact_sparse(
    indptr: Places,
    indices: Places,
    data: Floats,
    w: Floats,
    t: Floats,
    order: Integers,
    step: Floats,
    l1: Floats,
    l2: Floats,
    low: Floats,
    high: Floats,
    kind: int,
    shape: float,
) -> None:
    """Update weights without cut, rounding or noise."""
    for k in range(len(order)):
        j = order[k]
        gradient = 0.0
        for a in range(indptr[j], indptr[j + 1]):
            gradient += slope_of(kind, shape, t[indices[a]]) * data[a]
        new = moved_weight(w[j], gradient, step[j], l1[j], l2[j], low[j], high[j])
        delta = new - w[j]
        w[j] = new
        if delta != 0.0:
            for a in range(indptr[j], indptr[j + 1]):
                t[indices[a]] += delta * data[a]
