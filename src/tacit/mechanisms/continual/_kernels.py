"""Loops over the steps of a stream. Noise is an argument; nothing is drawn here."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@njit(cache=True, nogil=True)
def integer_cells(values: Array, most: float, cell: float, out: Integers) -> float:
    """Fill ``out`` with numbers in whole cells; return the largest before rounding.

    NaN becomes zero, and numbers beyond ``most`` are clipped.
    """
    largest = 0.0
    for i in range(values.shape[0]):
        for d in range(values.shape[1]):
            value = values[i, d]
            value = 0.0 if value != value else min(max(value, -most), most)
            cells = value / cell
            largest = max(largest, abs(cells))
            out[i, d] = np.int64(np.rint(cells))
    return largest


@njit(cache=True)
def _level(t: int) -> int:
    level = 0
    while t >> level & 1 == 0:
        level += 1
    return level


@njit(cache=True, nogil=True)
def close_nodes(
    t: int,
    exact: NDArray[np.generic],
    values: NDArray[np.generic],
    nodes: NDArray[np.generic],
) -> None:
    """Add the exact sum of the node that each step closes to ``nodes``.

    ``t`` steps came before. ``exact`` holds the open node of each level, and is kept.
    """
    for i in range(len(values)):
        level = _level(t + i + 1)
        for d in range(values.shape[1]):
            total = values[i, d]
            for below in range(level):
                total += exact[below, d]
                exact[below, d] = 0
            exact[level, d] = total
            nodes[i, d] += total


@njit(cache=True, nogil=True)
def add_nodes(
    t: int,
    noisy: NDArray[np.generic],
    nodes: NDArray[np.generic],
    cell: float,
    sums: Array,
) -> None:
    """Put the sum of the open nodes after each step into ``sums``.

    ``t`` steps came before. ``noisy`` holds the open node of each level, and is kept.
    """
    for i in range(len(nodes)):
        level = _level(t + i + 1)
        above = np.zeros(nodes.shape[1], dtype=nodes.dtype)
        for higher in range(level + 1, len(noisy)):
            if (t + i + 1) >> higher & 1:
                for d in range(nodes.shape[1]):
                    above[d] += noisy[higher, d]
        for d in range(nodes.shape[1]):
            for below in range(level):
                noisy[below, d] = 0
            noisy[level, d] = nodes[i, d]
            sums[i, d] = cell * float(above[d] + nodes[i, d])


@njit(cache=True, nogil=True)
def close_spines(
    t: int,
    exact: NDArray[np.generic],
    values: NDArray[np.generic],
    nodes: NDArray[np.generic],
) -> None:
    """Add to ``nodes`` the exact sums of all nodes that end at each step, leaves first.

    ``t`` steps came before. ``exact`` holds the open node of each level, and is kept.
    """
    position = 0
    for i in range(len(values)):
        level = _level(t + i + 1)
        for d in range(values.shape[1]):
            total = values[i, d]
            for below in range(level):
                nodes[position + below, d] += total
                total += exact[below, d]
                exact[below, d] = 0
            nodes[position + level, d] += total
            exact[level, d] = total
        position += level + 1


@njit(cache=True, nogil=True)
def add_estimates(
    t: int,
    estimates: Array,
    nodes: NDArray[np.generic],
    own: Array,
    cell: float,
    sums: Array,
) -> None:
    """Put the sum of the estimates of the open nodes after each step into ``sums``.

    A node is estimated by itself, with the weight that ``own`` has for its level, and
    by the estimates of its two halves. ``estimates`` is kept.
    """
    position = 0
    for i in range(len(sums)):
        level = _level(t + i + 1)
        for d in range(sums.shape[1]):
            found = cell * float(nodes[position, d])
            for height in range(1, level + 1):
                halves = estimates[height - 1, d] + found
                estimates[height - 1, d] = 0.0
                itself = cell * float(nodes[position + height, d])
                found = own[height] * itself + (1.0 - own[height]) * halves
            estimates[level, d] = found
            for higher in range(level + 1, len(estimates)):
                if (t + i + 1) >> higher & 1:
                    found += estimates[higher, d]
            sums[i, d] = found
        position += level + 1


@njit(cache=True, nogil=True)
def run_integer(
    gaps: Array,
    weights: Array,
    unit: float,
    buffers: Integers,
    numbers: Integers,
    remembered: Integers,
    given_fresh: bool,
) -> None:
    """Run the buffers of correlated noise in integers, in place.

    ``numbers`` holds fresh noise z and gets the correlated noise n = z - r, or holds n
    and keeps it; r goes into ``remembered``. A buffer counts units of ``1 / unit``.
    """
    size = numbers.shape[1]
    r, added = np.empty(size), np.empty(size, dtype=np.int64)
    for i in range(len(numbers)):
        r[:] = 0.0
        for j in range(len(gaps)):
            for d in range(size):
                r[d] += weights[j] * float(buffers[j, d])
        for d in range(size):
            correction = np.int64(np.rint(r[d] / unit))
            remembered[i, d] = correction
            if given_fresh:
                numbers[i, d] -= correction
            added[d] = np.int64(np.rint(unit * float(numbers[i, d])))
        for j in range(len(gaps)):
            for d in range(size):
                lost = np.int64(np.rint(gaps[j] * float(buffers[j, d])))
                buffers[j, d] += added[d] - lost


@njit(cache=True, nogil=True)
def run_float(
    gaps: Array,
    weights: Array,
    buffers: Array,
    numbers: Array,
    remembered: Array,
    given_fresh: bool,
) -> None:
    """Do what `run_integer` does, in floating point."""
    for i in range(len(numbers)):
        for d in range(numbers.shape[1]):
            r = 0.0
            for j in range(len(gaps)):
                r += weights[j] * buffers[j, d]
            remembered[i, d] = r
            if given_fresh:
                numbers[i, d] -= r
            for j in range(len(gaps)):
                buffers[j, d] += numbers[i, d] - gaps[j] * buffers[j, d]


@njit(cache=True, nogil=True)
def run_leaf(
    coefficients: Array,
    from_past: Array,
    leaf: NDArray[np.generic],
    start: int,
    correction: NDArray[np.generic],
    whole: bool,
    given_fresh: bool,
) -> None:
    """Convolve the noise of a leaf from row ``start`` on, in place.

    Rows hold fresh noise z and get n = z - r, or hold n and keep it; r, which goes into
    ``correction``, is from the past and from the rows before, rounded if ``whole``.
    """
    r = np.empty(leaf.shape[1])
    for i in range(len(correction)):
        row = start + i
        r[:] = from_past[i]
        for before in range(row):
            c = coefficients[row - before]
            for d in range(len(r)):
                r[d] += c * float(leaf[before, d])
        for d in range(len(r)):
            correction[i, d] = np.rint(r[d]) if whole else r[d]
            if given_fresh:
                leaf[row, d] -= correction[i, d]


@njit(cache=True)
def squares_of_powers(gaps: Array, weights: Array, n: int) -> float:
    """Return the sum of the first n squared coefficients of C."""
    parts = weights.copy()
    total = 1.0
    for _ in range(1, n):
        c = 0.0
        for j in range(len(gaps)):
            c += parts[j]
            parts[j] -= gaps[j] * parts[j]
        total += c * c
    return total


@njit(cache=True)
def rows_of_b(gaps: Array, weights: Array, n: int, out: Array) -> tuple[float, float]:
    """Run the noise of a single draw over n steps.

    Return the squared norm of a row of B of n entries, and the sum of the sizes of the
    coefficients of the inverse of C. ``out`` gets the squared norms of its first rows.
    """
    buffers = np.zeros(len(gaps))
    total = 0.0
    squares = 0.0
    sizes = 0.0
    for k in range(n):
        x = 1.0 if k == 0 else 0.0
        for j in range(len(gaps)):
            x -= weights[j] * buffers[j]
        for j in range(len(gaps)):
            buffers[j] += x - gaps[j] * buffers[j]
        total += x
        squares += total * total
        sizes += abs(x)
        if k < len(out):
            out[k] = squares
    return squares, sizes


@njit(cache=True)
def coefficients_of_b(gaps: Array, weights: Array, out: Array) -> None:
    """Fill ``out`` with what one draw adds to the sums of the steps that follow."""
    buffers = np.zeros(len(gaps))
    total = 0.0
    for k in range(len(out)):
        x = 1.0 if k == 0 else 0.0
        for j in range(len(gaps)):
            x -= weights[j] * buffers[j]
        for j in range(len(gaps)):
            buffers[j] += x - gaps[j] * buffers[j]
        total += x
        out[k] = total
