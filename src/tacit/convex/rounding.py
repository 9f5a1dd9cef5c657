"""Rounding and derivatives of maps that several proximal maps are made of."""

from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.convex._protocols import Array
from tacit.convex.objective import UNIT

__all__ = [
    "exact_norm",
    "face_jacobian",
    "level_error",
    "rows_jacobian",
    "threshold_error",
]


def exact_norm(W: Array) -> float:
    """Return the Frobenius norm with a relative error of at most three units.

    Sums of ``math.fsum`` are exact up to one rounding.
    """
    return sqrt(fsum(np.square(W).ravel().tolist()))


def level_error(v: Array, V: Array, goal: float) -> float:
    """Return a bound on the rounding of a projection on vectors of a given sum.

    V is ``max(v - level, 0)`` up to u in each entry and up to signs, whatever the
    rounding of the level, where v, the distances from the largest entry, are off by
    ``u v`` (and the projection does not enlarge that). So is the exact point with its
    own level. All entries of one are above those of the other, so the L1 norm of the
    difference is the difference of their sums, and bounds the L2 norm.
    """
    total = fsum(np.abs(V).ravel().tolist())
    return abs(total - goal) + UNIT * (8 * (total + goal) + 4 * exact_norm(v - v.max()))


def face_jacobian(v: Array) -> tuple[NDArray[np.bool_], Array]:
    """Return the derivative of a projection on a face: the signed sum stays."""
    signs = np.sign(v[v != 0])
    return v != 0, np.eye(signs.size) - np.outer(signs, signs) / signs.size


def rows_jacobian(
    U: Array, V: Array, threshold: float
) -> tuple[NDArray[np.bool_], Array]:
    """Return the derivative of a map that thresholds the norm of each row."""
    k = U.shape[1]
    kept = np.any(V != 0, axis=1)
    norms = np.linalg.norm(U[kept], axis=1)
    units = U[kept] / norms[:, None]
    blocks = (threshold / norms)[:, None, None] * units[:, :, None] * units[:, None, :]
    blocks[:, range(k), range(k)] += (1 - threshold / norms)[:, None]
    m = norms.size
    J = np.zeros((m, k, m, k))
    J[range(m), :, range(m), :] = blocks
    return np.repeat(kept, k), J.reshape(m * k, m * k)


def threshold_error(U: Array, k: int = 1) -> float:
    """Return a bound on the rounding of a map that thresholds U, in Frobenius norm.

    With u the unit round-off, the threshold ``t = step * weight`` is off by ``u t`` and
    the difference by u times itself; an entry is moved at all only if
    ``|U_j| > t (1 - u)``, so it is off by at most ``2 u |U_j|``. A division by a sum
    adds three relative errors of u. The bound is more, which pays for terms in u^2 and
    for its own rounding.
    """
    return (2 * k + 16) * UNIT * exact_norm(U)
