"""Compiled coordinate descent, and least squares on every set of columns."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = []

Array = NDArray[np.float64]


@njit(cache=True)
def descend(
    gram: Array,
    linear: Array,
    penalties: Array,
    w: Array,
    tolerance: float,
    n_sweeps: int,
) -> None:
    """Minimize ``w' gram w / 2 - linear' w + penalties' |w|`` by coordinate descent.

    Updates ``w`` in place. Ends when no step of a sweep changes the derivative in its
    coordinate by more than the tolerance, or after ``n_sweeps``.
    """
    slack = linear - gram @ w
    for _ in range(n_sweeps):
        largest = 0.0
        for j in range(len(w)):
            curvature = gram[j, j]
            if curvature <= 0.0:  # a column of zeros, whose gradient is zero
                continue
            wanted = slack[j] + curvature * w[j]
            size = abs(wanted) - penalties[j]
            new = np.sign(wanted) * size / curvature if size > 0.0 else 0.0
            step = new - w[j]
            if step != 0.0:
                w[j] = new
                for i in range(len(w)):
                    slack[i] -= gram[i, j] * step
                largest = max(largest, abs(step) * curvature)
        if largest <= tolerance:
            return


@njit(cache=True)
def solve_dense(A: Array, x: Array, size: int) -> bool:
    """Overwrite the right side ``x`` with the solution, by elimination with pivoting.

    ``A`` is overwritten too. False where a pivot is zero.
    """
    for j in range(size):
        pivot = j
        for i in range(j + 1, size):
            if abs(A[i, j]) > abs(A[pivot, j]):
                pivot = i
        if A[pivot, j] == 0.0:
            return False
        if pivot != j:
            for k in range(size):
                A[j, k], A[pivot, k] = A[pivot, k], A[j, k]
            x[j], x[pivot] = x[pivot], x[j]
        for i in range(j + 1, size):
            factor = A[i, j] / A[j, j]
            for k in range(j + 1, size):
                A[i, k] -= factor * A[j, k]
            x[i] -= factor * x[j]
    for j in range(size - 1, -1, -1):
        for k in range(j + 1, size):
            x[j] -= A[j, k] * x[k]
        x[j] /= A[j, j]
    return True


@njit(cache=True)
def quadratic(H: Array, b: Array, w: Array, size: int) -> float:
    """Return ``w' H w / 2 - b' w``."""
    total = 0.0
    for i in range(size):
        derivative = -2.0 * b[i]
        for j in range(size):
            derivative += H[i, j] * w[j]
        total += w[i] * derivative
    return total / 2.0


@njit(cache=True)
def on_face(
    H: Array,
    b: Array,
    signs: Array,
    bound: float,
    size: int,
    A: Array,
    x: Array,
    w: Array,
) -> bool:
    """Set ``w`` to the minimizer on the plane of one face, projected into the bound.

    The face is that of the cross-polytope of ``sum |w| = bound`` with these signs, and
    with zero weights where signs are zero.
    """
    # long: one compiled solution of a system and its projection
    count = 0
    scale = 1.0
    for i in range(size):
        scale = max(scale, H[i, i])
    for i in range(size):
        if signs[i] == 0.0:
            continue
        position = 0
        for j in range(size):
            if signs[j] != 0.0:
                A[count, position] = H[i, j]
                position += 1
        A[count, position] = signs[i] * scale
        A[position, count] = signs[i] * scale
        x[count] = b[i]
        count += 1
    A[count, count] = 0.0
    x[count] = bound * scale
    if not solve_dense(A, x, count + 1):
        return False
    total = 0.0
    count = 0
    for i in range(size):
        w[i] = 0.0
        if signs[i] != 0.0:
            if x[count] * signs[i] > 0.0:
                w[i] = x[count]
                total += abs(w[i])
            count += 1
    if total > bound:
        for i in range(size):
            w[i] *= bound / total
    return True


@njit(cache=True)
def least_value(
    H: Array, b: Array, bound: float, size: int, A: Array, x: Array, w: Array
) -> float:
    """Return the minimum of ``w' H w / 2 - b' w`` with ``sum |w|`` up to the bound.

    Leaves the minimizer in ``w``. ``A`` and ``x`` are work space, one larger than
    ``H``.
    """
    for i in range(size):
        x[i] = b[i]
        for j in range(size):
            A[i, j] = H[i, j]
    if solve_dense(A, x, size):
        total = 0.0
        for i in range(size):
            total += abs(x[i])
        if total <= bound:
            for i in range(size):
                w[i] = x[i]
            return quadratic(H, b, w, size)
    # the minimizer is inside some face, and minimizes on the plane of that face
    signs = np.zeros(size)
    trial = np.zeros(size)
    best = 0.0
    for i in range(size):
        w[i] = 0.0
    for code in range(3**size):
        rest = code
        for i in range(size):
            signs[i] = (rest % 3) - 1.0
            rest //= 3
        if not np.any(signs != 0.0):
            continue
        if on_face(H, b, signs, bound, size, A, x, trial):
            found = quadratic(H, b, trial, size)
            if found < best:
                best = found
                for i in range(size):
                    w[i] = trial[i]
    return best


@njit(cache=True)
def all_values(
    gram: Array,
    linear: Array,
    n_features: int,
    n_select: int,
    ridge: float,
    bound: float,
    out: Array,
) -> None:
    """Fill ``out`` with the minimum on each set of columns, in lexicographic order.

    Columns after the features, such as a constant, are in every set.
    """
    extra = len(linear) - n_features
    size = n_select + extra
    H = np.empty((size, size))
    b = np.empty(size)
    A = np.empty((size + 1, size + 1))
    x = np.empty(size + 1)
    w = np.empty(size)
    positions = np.empty(size, dtype=np.int64)
    for i in range(n_select):
        positions[i] = i
    for i in range(extra):
        positions[n_select + i] = n_features + i
    for index in range(len(out)):
        for i in range(size):
            b[i] = linear[positions[i]]
            for j in range(size):
                H[i, j] = gram[positions[i], positions[j]]
            H[i, i] += ridge
        out[index] = least_value(H, b, bound, size, A, x, w)
        # the next set in lexicographic order
        i = n_select - 1
        while i >= 0 and positions[i] == n_features - n_select + i:
            i -= 1
        if i < 0:
            return
        positions[i] += 1
        for j in range(i + 1, n_select):
            positions[j] = positions[j - 1] + 1
