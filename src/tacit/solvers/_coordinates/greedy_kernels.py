"""Loops over all coordinate sums at once, and over what one update changes in them."""

import numpy as np
from numba import njit

from tacit.solvers._coordinates.kernels import (
    HUBER,
    LOGISTIC,
    SQUARED,
    Floats,
    Integers,
    Positions,
    _hinge,
    _huber,
    _logistic,
    derivative_of,
    part,
    shift_dense,
    shift_sparse,
)

__all__ = []


@njit(cache=True)
def state_dense(A: Floats, w: Floats, t: Floats) -> None:
    """Add the margins to ``t``, for each row in the order of the features."""
    for j in range(len(w)):
        if w[j] != 0.0:
            shift_dense(A, j, w[j], t)


@njit(cache=True)
def state_sparse(
    indptr: Positions, indices: Positions, data: Floats, w: Floats, t: Floats
) -> None:
    """Add the margins to ``t``, for each row in the order of the features."""
    for j in range(len(w)):
        if w[j] != 0.0:
            shift_sparse(indptr, indices, data, j, w[j], t)


@njit(cache=True)
def derivatives_of(t: Floats, kind: int, shape: float, out: Floats) -> None:
    """Put the derivatives of all rows into ``out``."""
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
    A: Floats, derivatives: Floats, per_unit: Floats, limit: float, sums: Integers
) -> None:
    """Return the sums of all coordinates in ``sums``."""
    for j in range(len(sums)):
        column, scale, total = A[j], per_unit[j], 0
        for i in range(len(derivatives)):
            total += part(derivatives[i], column[i], scale, limit)
        sums[j] = total


@njit(cache=True)
def sums_sparse(
    indptr: Positions,
    indices: Positions,
    data: Floats,
    derivatives: Floats,
    per_unit: Floats,
    limit: float,
    sums: Integers,
) -> None:
    """Return the sums of all coordinates in ``sums``."""
    for j in range(len(sums)):
        scale, total = per_unit[j], 0
        for a in range(indptr[j], indptr[j + 1]):
            total += part(derivatives[indices[a]], data[a], scale, limit)
        sums[j] = total


@njit(cache=True)
def squares(values: Floats, per_bound: float, limit: float) -> int:
    """Return the sum of squares in integers, each from 0 to ``limit``."""
    total = 0
    for i in range(len(values)):
        x = min(max(values[i] * per_bound, -1.0), 1.0)
        # [coordinate:squares]
        total += part(x, x, limit, limit)
    return total


@njit(cache=True, error_model="numpy")
def clip_derivatives(
    row_indptr: Positions,
    row_indices: Positions,
    row_data: Floats,
    per_unit: Floats,
    limit: float,
    rest: Floats,
    full: Floats,
) -> None:
    """Fill ``rest`` with the derivatives at which this and all later parts are clipped.

    ``full`` has the same for whole rows.
    """
    for i in range(len(full)):
        least = 0.0
        for b in range(row_indptr[i + 1] - 1, row_indptr[i] - 1, -1):
            x = abs(row_data[b])
            if x > 0.0:  # zeros have no part at any derivative
                # with a margin for round-off of the derivative times the entry
                reached = limit / (x * per_unit[row_indices[b]]) * (1.0 + 1e-14)
                least = max(least, reached)
            rest[b] = least
        full[i] = least


@njit(cache=True)
def stale_rows(
    indptr: Positions,
    indices: Positions,
    data: Floats,
    j: int,
    delta: float,
    t: Floats,
    derivatives: Floats,
    full: Floats,
    staleness: float,
    kind: int,
    shape: float,
    listed: Positions,
    rows: Positions,
    old: Floats,
    count: int,
) -> int:
    """Move the states along a column; renew derivatives that are off by too much.

    Adds rows that may have other parts than before to a list, ``count`` of which are
    there already, with the derivatives that they had; returns how many there are then.
    A row all of whose parts are clipped before and after, with the same sign, is not
    added.
    """
    positions, x = indices[indptr[j] : indptr[j + 1]], data[indptr[j] : indptr[j + 1]]
    for a in range(len(positions)):
        i = positions[a]
        t[i] += delta * x[a]
        before, after = derivatives[i], derivative_of(kind, shape, t[i])
        # [greedy:stale] from the row itself and released numbers only
        if abs(after - before) > staleness:
            derivatives[i] = after
            saturated = min(abs(before), abs(after)) >= full[i] and before * after > 0.0
            if not (saturated or listed[i]):
                rows[count], old[count], listed[i] = i, before, True
                count += 1
    return count


@njit(cache=True)
def exchange(
    row_indptr: Positions,
    row_indices: Positions,
    row_data: Floats,
    rest: Floats,
    rows: Positions,
    old: Floats,
    derivatives: Floats,
    sums: Integers,
    per_unit: Floats,
    limit: float,
) -> None:
    """Put new parts of some rows in for old ones."""
    for r in range(len(rows)):
        i = rows[r]
        before, after = old[r], derivatives[i]
        least = min(abs(before), abs(after)) if before * after > 0.0 else 0.0
        low, high = row_indptr[i], row_indptr[i + 1]
        # what is clipped before and after stays, and so does all that comes behind
        end = low
        while end < high:
            middle = (end + high) // 2
            if rest[middle] > least:
                end = middle + 1
            else:
                high = middle
        positions, x = row_indices[low:end], row_data[low:end]
        for b in range(len(positions)):
            c = positions[b]
            scale = per_unit[c]
            # [greedy:exchange] integers: what was put in comes out again
            sums[c] += part(after, x[b], scale, limit)
            sums[c] -= part(before, x[b], scale, limit)


@njit(cache=True)
def changed_sums(
    sums: Integers, seen: Integers, watched: Positions, changed: Positions
) -> int:
    """List the positions in ``watched`` of sums that changed and return their number.

    What is listed has been ``seen`` then.
    """
    count = 0
    for a in range(len(watched)):
        j = watched[a]
        if sums[j] != seen[j]:
            changed[count], seen[j] = a, sums[j]
            count += 1
    return count


STEEPEST, LONGEST, DEEPEST = 0, 1, 2
# columns of the table, whose rows fill one cache line
BACK, L1, L2, BEND, SCALE, RATIO, LOW, HIGH = range(8)


@njit(cache=True)
def nearest(value: float, most: float) -> int:
    """Return the nearest integer within ``most``, which is itself an integer."""
    return int(np.rint(min(max(value, -most), most)))


@njit(cache=True)
def steepest(total: int, v: int, pull: int, l1: int, low: float, high: float) -> float:
    """Return the distance from the derivative to where the weight would rest.

    A weight at zero has its true distance below zero too, so that the best of many
    coordinates that every rest still differs from the others.
    """
    derivative = total + pull
    # at an end, rounded as the weight is, only the way back counts
    if v >= np.rint(high):
        toward = derivative
    elif v <= np.rint(low):
        toward = -derivative
    else:
        toward = abs(derivative)
    return float(toward - l1 if v == 0 else toward)


@njit(cache=True, error_model="numpy")
def landing(
    total: int, v: int, l1: int, ratio: float, low: float, high: float
) -> tuple[float, float]:
    """Return the minimizer of the quadratic bound, and that in the box."""
    step = v - total
    unconstrained = (step - min(max(step, -l1), l1)) / (1.0 + ratio)
    # the weight itself is inside, whatever rounding did to it
    return unconstrained, min(
        max(unconstrained, min(low, float(v))), max(high, float(v))
    )


@njit(cache=True)
def longest(
    total: int, v: int, l1: int, ratio: float, low: float, high: float
) -> float:
    """Return the length of the proximal step."""
    _, inside = landing(total, v, l1, ratio, low, high)
    return abs(inside - v)


@njit(cache=True)
def deepest(
    total: int, v: int, l1: int, ratio: float, low: float, high: float
) -> float:
    """Return the root of twice the decrease that the quadratic bound guarantees.

    As a sum of terms that are not negative, so that nothing cancels: the squared step
    with its ridge, what the end of the box holds back, and the bend at zero.
    """
    unconstrained, inside = landing(total, v, l1, ratio, low, high)
    length = abs(inside - v)
    excess = 2.0 * abs(unconstrained - inside)
    bend = l1 - np.sign(v) * min(max(v - total, -l1), l1)
    twice = (1.0 + ratio) * length * (length + excess)
    twice += 2.0 * abs(v) * float(bend)
    return float(np.sqrt(twice))


@njit(cache=True, error_model="numpy")
def scores(
    rule: int,
    table: Floats,
    sums: Integers,
    w: Floats,
    at: Positions,
    out_of: Positions,
    most: float,
    top: float,
    out: Floats,
) -> None:
    """Put the scores of the coordinates ``at`` into ``out``, each at most ``top``.

    What the weight adds to a sum is rounded, and clipped at ``most``.
    """
    for a in range(len(at)):
        j = at[a]
        if out_of[j]:
            out[a] = -top
            continue
        line, total = table[j], sums[j]
        v, l1 = nearest(w[j] * line[SCALE], most), int(line[BEND])
        if rule == STEEPEST:
            pull = (line[L2] * w[j] + line[L1] * np.sign(w[j])) / line[BACK]
            score = steepest(total, v, nearest(pull, most), l1, line[LOW], line[HIGH])
        elif rule == LONGEST:
            score = longest(total, v, l1, line[RATIO], line[LOW], line[HIGH])
        else:
            score = deepest(total, v, l1, line[RATIO], line[LOW], line[HIGH])
        out[a] = min(score, top)
