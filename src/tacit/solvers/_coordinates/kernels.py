"""Loops over the columns of private rows, in integers.

A row's part of a coordinate sum is computed entry by entry from its own numbers and
rounded to an integer; sums are of integers. No operation may be reordered, so a row
has the same part wherever it lies and whatever other rows there are.
"""

from math import factorial, log
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Positions = NDArray[Any]

SQUARED, HUBER, LOGISTIC, HINGE = 0, 1, 2, 3
# columns of the table of a pass, whose rows fill one cache line
W, PER_UNIT, BACK, STEP, L1, L2, LOW, HIGH = range(8)

# A float below 2^51 plus this one is rounded to an integer, which is then the
# difference of their bits: a conversion that vectorizes on every processor
MAGIC = 1.5 * 2.0**52
MAGIC_BITS = int(np.array(MAGIC).view(np.int64))
# log(2) in two pieces: products of the first with integers are exact
PER_LOG2 = 1.0 / log(2.0)
LOG2_HIGH = float.fromhex("0x1.62e42fefa0000p-1")
LOG2_LOW = float.fromhex("0x1.cf79abc9e3b3ap-40")
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11 = (1.0 / factorial(k) for k in range(2, 12))


def _as_integer(context: Any, x: Any) -> Any:
    """Return the bits of a float as an integer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


def _as_float(context: Any, x: Any) -> Any:
    """Return the float that has these bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


_bits: Any = intrinsic(_as_integer)
_from_bits: Any = intrinsic(_as_float)


@njit(cache=True)
def clip(v: float, low: float, high: float) -> float:
    """Return ``v`` within its ends, by choices that vectorize.

    What is NaN becomes an end too, so that no row adds more than its units.
    """
    v = v if v > low else low
    return v if v < high else high


@njit(cache=True)
def exponential(t: float) -> float:
    """Return ``exp(t)`` for ``|t| <= 700``, within 2^-46 of it, without a branch."""
    shifted = t * PER_LOG2 + MAGIC
    halvings = shifted - MAGIC
    r = t - halvings * LOG2_HIGH - halvings * LOG2_LOW
    square = r * r
    # the series to the eleventh power, enough for |r| <= log(2) / 2
    series = C10 + r * C11
    series = C8 + r * C9 + square * series
    series = C6 + r * C7 + square * series
    series = C4 + r * C5 + square * series
    series = C2 + r * C3 + square * series
    power: float = _from_bits((_bits(shifted) - MAGIC_BITS + 1023) << 52)
    return (1.0 + r + square * series) * power


@njit(cache=True)
def _huber(shape: float, t: float) -> float:
    return clip(t, -shape, shape)


# numpy's model of errors: a check for a divisor of zero is a branch
@njit(cache=True, error_model="numpy")
def _logistic(shape: float, t: float) -> float:
    return -1.0 / (1.0 + exponential(clip(t, max(shape, -700.0), 700.0)))


@njit(cache=True, error_model="numpy")
def _hinge(shape: float, t: float) -> float:
    return clip((t - 1.0 - shape) / (2.0 * shape), -1.0, 0.0)


@njit(cache=True)
def derivative_of(kind: int, shape: float, t: float) -> float:
    """Return the derivative of the loss in the state of a row.

    ``shape`` is the threshold of Huber's loss, the knee of the logistic loss or the
    half-width of the hinge.
    """
    if kind == SQUARED:
        return t
    if kind == LOGISTIC:
        return _logistic(shape, t)
    if kind == HUBER:
        return _huber(shape, t)
    return _hinge(shape, t)


@njit(cache=True)
def part(derivative: float, x: float, per_unit: float, limit: float) -> int:
    """Return a row's part of a coordinate sum, an integer."""
    # [coordinate:part] clipped first, so that no row adds more than its units
    whole: int = (
        _bits(clip(derivative * x * per_unit, -limit, limit) + MAGIC) - MAGIC_BITS
    )
    return whole


@njit(cache=True)
def moved_weight(
    w: float, change: float, step: float, l1: float, l2: float, low: float, high: float
) -> float:
    """Return a weight after one proximal step down a derivative of ``change``."""
    u = w - step * change
    shrink = step * l1
    if u > shrink:
        u -= shrink
    elif u < -shrink:
        u += shrink
    else:
        u = 0.0
    return min(max(u / (1.0 + step * l2), low), high)


@njit(cache=True)
def shift_dense(A: Floats, j: int, delta: float, t: Floats) -> None:
    """Move all states along one column."""
    for i in range(len(t)):
        t[i] += delta * A[j, i]


@njit(cache=True)
def shift_sparse(
    indptr: Positions, indices: Positions, data: Floats, j: int, delta: float, t: Floats
) -> None:
    """Move the states of the rows in one column."""
    # slices, as their indices need no check for negative values
    rows, x = indices[indptr[j] : indptr[j + 1]], data[indptr[j] : indptr[j + 1]]
    for a in range(len(rows)):
        t[rows[a]] += delta * x[a]


@njit(cache=True)
def move_and_sum(
    t: Floats,
    last: Floats,
    delta: float,
    x: Floats,
    scale: float,
    limit: float,
    kind: int,
    shape: float,
) -> int:
    """Move along the last column, and return the coordinate sum of the next.

    One loop reads the states once for both. Each loss has a loop of its own, as a
    choice within the loop would keep it from being vectorized.
    """
    total = 0
    if kind == SQUARED:
        for i in range(len(t)):
            t[i] += delta * last[i]
            total += part(t[i], x[i], scale, limit)
    elif kind == LOGISTIC:
        for i in range(len(t)):
            t[i] += delta * last[i]
            total += part(_logistic(shape, t[i]), x[i], scale, limit)
    elif kind == HUBER:
        for i in range(len(t)):
            t[i] += delta * last[i]
            total += part(_huber(shape, t[i]), x[i], scale, limit)
    else:
        for i in range(len(t)):
            t[i] += delta * last[i]
            total += part(_hinge(shape, t[i]), x[i], scale, limit)
    return total


@njit(cache=True)
def sum_dense(
    A: Floats, j: int, t: Floats, scale: float, limit: float, kind: int, shape: float
) -> int:
    """Return one coordinate sum."""
    column, total = A[j], 0
    for i in range(len(t)):
        total += part(derivative_of(kind, shape, t[i]), column[i], scale, limit)
    return total


@njit(cache=True)
def sum_sparse(
    indptr: Positions,
    indices: Positions,
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
        total += part(derivative_of(kind, shape, t[rows[a]]), x[a], scale, limit)
    return total


@njit(cache=True)
def _update(line: Floats, released: int) -> float:
    """Move the weight in a line of the table, and return by how much."""
    new = moved_weight(
        line[W],
        line[BACK] * released,
        line[STEP],
        line[L1],
        line[L2],
        line[LOW],
        line[HIGH],
    )
    delta: float = new - line[W]
    line[W] = new
    return delta


@njit(cache=True)
def pass_dense(
    A: Floats,
    table: Floats,
    t: Floats,
    order: Integers,
    seats: Integers,
    given: Integers,
    follow: bool,
    released: Integers,
    sums: Integers,
    limit: float,
    kind: int,
    shape: float,
) -> None:
    """Update weights one by one; ``given`` is noise, or what was released before.

    ``table`` holds the weights and what their updates take, a line each, and ``seats``
    the line of each update: numbers that are used together lie together.
    """
    last, delta = 0, 0.0
    for k in range(len(order)):
        j, line = order[k], table[seats[k]]
        sums[k] = move_and_sum(
            t, A[last], delta, A[j], line[PER_UNIT], limit, kind, shape
        )
        released[k] = given[k] if follow else sums[k] + given[k]
        last, delta = j, _update(line, released[k])
    if len(order) > 0:
        shift_dense(A, last, delta, t)


@njit(cache=True)
def pass_sparse(
    indptr: Positions,
    indices: Positions,
    data: Floats,
    table: Floats,
    t: Floats,
    order: Integers,
    seats: Integers,
    given: Integers,
    follow: bool,
    released: Integers,
    sums: Integers,
    limit: float,
    kind: int,
    shape: float,
) -> None:
    """Update weights one by one, visiting only the rows that have the feature."""
    for k in range(len(order)):
        j, line = order[k], table[seats[k]]
        sums[k] = sum_sparse(
            indptr, indices, data, j, t, line[PER_UNIT], limit, kind, shape
        )
        released[k] = given[k] if follow else sums[k] + given[k]
        delta = _update(line, released[k])
        if delta != 0.0:
            shift_sparse(indptr, indices, data, j, delta, t)


@njit(cache=True)
def follow_weights(
    w: Floats,
    order: Integers,
    released: Integers,
    back: Floats,
    step: Floats,
    l1: Floats,
    l2: Floats,
    low: Floats,
    high: Floats,
    average: bool,
) -> None:
    """Make the same updates to ``w`` from released sums only, or average them."""
    n = len(order)
    total = np.zeros(len(w))
    since = np.zeros(len(w), np.int64)
    for k in range(n):
        j = order[k]
        total[j] += w[j] * (k - since[j])
        since[j] = k
        w[j] = moved_weight(
            w[j], back[j] * released[k], step[j], l1[j], l2[j], low[j], high[j]
        )
    if average and n > 0:
        for j in range(len(w)):
            # the mean of theta^1 to theta^K; each value counts while it lasted
            w[j] = (total[j] + w[j] * (n - since[j])) / n
