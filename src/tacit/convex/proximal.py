"""Rounding bounds and derivatives of proximal maps, for the certified minimizer."""

from dataclasses import dataclass, replace
from math import fsum, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit._validate import PlainNumbers
from tacit.convex._protocols import Array, Regularizer
from tacit.convex.objective import UNIT
from tacit.convex.regularizers import L1, ElasticNet, GroupL1
from tacit.convex.sets import Box, L1Ball, L2Ball, Simplex

__all__ = [
    "CERTIFIED",
    "InBall",
    "check_rounding_bound",
    "prox_jacobian",
    "prox_roundoff",
    "scaled",
]

# Closer to the surface of a ball than this, relatively, a point may have been projected
SURFACE = 1e-12


@dataclass(frozen=True)
class InBall(PlainNumbers):
    """A penalty for weights of Frobenius norm at most ``radius``.

    Notes
    -----
    **Bound.** The penalty is a multiple of the squared norm plus a function f with
    ``f(s W) = s f(W)``. A multiplier of the ball adds to the squares, which divides the
    proximal point by a number: it is that of the penalty, projected on the ball.
    """

    penalty: L1 | ElasticNet | GroupL1
    radius: float

    def value(self, W: Array) -> float:
        return self.penalty.value(W) if L2Ball(self.radius).contains(W) else inf

    def prox(self, W: Array, step: float) -> Array:
        return L2Ball(self.radius).prox(self.penalty.prox(W, step), step)


# Penalties and sets whose proximal map has a stated bound on its rounding: those that
# `minimize` certifies minima with
CERTIFIED = (L1, ElasticNet, GroupL1, L2Ball, L1Ball, Box, Simplex)


def check_rounding_bound(regularizer: Regularizer) -> None:
    """Reject a regularizer whose proximal map has no stated bound on its rounding."""
    if not isinstance(regularizer, (*CERTIFIED, InBall)):
        names = ", ".join(kind.__name__ for kind in CERTIFIED)
        raise ValueError(f"regularizer must be one of {names}, got {regularizer!r}.")


def scaled(regularizer: Regularizer, factor: float) -> Regularizer:
    """Return the regularizer times a positive factor."""
    if isinstance(regularizer, InBall):
        return InBall(_scaled(regularizer.penalty, factor), regularizer.radius)
    if isinstance(regularizer, L1 | ElasticNet | GroupL1):
        return _scaled(regularizer, factor)
    return regularizer


def _scaled(
    penalty: L1 | ElasticNet | GroupL1, factor: float
) -> L1 | ElasticNet | GroupL1:
    if isinstance(penalty, ElasticNet):
        return ElasticNet(penalty.l1 * factor, penalty.l2 * factor)
    return replace(penalty, weight=penalty.weight * factor)


def prox_roundoff(regularizer: Regularizer, U: Array, V: Array) -> float:
    """Return a bound on the distance of V from the exact proximal point of U.

    Parameters
    ----------
    regularizer
        The regularizer, whose step does not matter here.
    U
        Where the proximal map was computed.
    V
        What it returned.

    Notes
    -----
    **Bound.** With u the unit round-off, ``t = step * weight`` and ``|.|`` the
    Frobenius norm. Each figure below is more than what the argument gives, which pays
    for terms in u^2 and for the rounding of this formula.

    - Box: comparisons are exact, so the distance is zero.
    - L1: the threshold is off by ``u t`` and the difference by u times itself; an
      entry is moved at all only if ``|U_j| > t (1 - u)``, so it is off by at most
      ``2 u |U_j|``. ElasticNet divides by a sum: three more relative errors of u.
    - GroupL1: the norm of a row of k entries has a relative error of
      ``(k / 2 + 2) u``. It enters the difference and the quotient, which with the
      threshold and the product is below ``(k + 8) u`` times the norm of the row.
    - L2Ball: V is U times a number, up to u in each entry, and so is the exact point,
      whose norm is the lesser of ``|U|`` and the radius: they are apart by the
      difference of their norms.
    - InBall: the error of the penalty's map, which a projection does not enlarge, and
      that of the projection: an entry is rounded twice, and V is near the surface if
      it was projected at all.
    - L1Ball, Simplex: V is ``max(v - level, 0)`` up to u in each entry and up to
      signs, whatever the rounding of the level, where v, the distances from the
      largest entry, are off by ``u v`` (and the projection does not enlarge that). So
      is the exact point with its own level. All entries of one are above those of
      the other, so the L1 norm of the difference is the difference of their sums, and
      bounds the L2 norm.

    Sums here are exact up to one rounding (``math.fsum``).
    """
    if isinstance(regularizer, Box):
        return 0.0
    if isinstance(regularizer, L2Ball):
        radius = regularizer.radius
        goal = min(_length(U), radius)
        return abs(_length(V) - goal) + 16 * UNIT * goal
    if isinstance(regularizer, InBall):
        length, radius = _length(V), regularizer.radius
        off = abs(length - radius) if length > radius * (1 - SURFACE) else 0.0
        return prox_roundoff(regularizer.penalty, U, V) + off + 16 * UNIT * length
    if isinstance(regularizer, L1Ball):
        sizes = np.abs(U).ravel()
        goal = min(fsum(sizes.tolist()), regularizer.radius)
        return _level_error(sizes, V, goal)
    if isinstance(regularizer, Simplex):
        return _level_error(U.ravel(), V, 1.0)
    k = U.shape[1] if isinstance(regularizer, GroupL1) else 1
    return (2 * k + 16) * UNIT * _length(U)


def _length(W: Array) -> float:
    """Return the Frobenius norm with a relative error of at most three units."""
    return sqrt(fsum(np.square(W).ravel().tolist()))


def _level_error(v: Array, V: Array, goal: float) -> float:
    total = fsum(np.abs(V).ravel().tolist())
    return abs(total - goal) + UNIT * (8 * (total + goal) + 4 * _length(v - v.max()))


def prox_jacobian(
    regularizer: Regularizer, U: Array, V: Array, step: float
) -> tuple[NDArray[np.bool_], Array]:
    """Return where the proximal map moves with U near U, and its derivative there.

    The first is a mask of entries of ``U.ravel()``, the second a matrix over them. At
    corners any one-sided derivative will do: it only serves to find a good step.
    """
    u, v = U.ravel(), V.ravel()
    everywhere = np.ones(u.size, dtype=np.bool_)
    if isinstance(regularizer, L1 | ElasticNet):
        l2 = regularizer.l2 if isinstance(regularizer, ElasticNet) else 0.0
        return v != 0, np.eye(int(np.count_nonzero(v))) / (1 + step * l2)
    if isinstance(regularizer, Box):
        inside = (u > regularizer.low) & (u < regularizer.high)
        return inside, np.eye(int(np.count_nonzero(inside)))
    if isinstance(regularizer, InBall):
        inner, ball = regularizer.penalty, L2Ball(regularizer.radius)
        Y = inner.prox(U, step)
        moves, J = prox_jacobian(inner, U, Y, step)
        _, turned = prox_jacobian(ball, Y, V, step)
        return moves, turned[np.ix_(moves, moves)] @ J
    if isinstance(regularizer, GroupL1):
        return _rows_jacobian(U, V, step * regularizer.weight)
    if isinstance(regularizer, L2Ball):
        norm = float(np.linalg.norm(u))
        if norm <= regularizer.radius:
            return everywhere, np.eye(u.size)
        unit = u / norm
        flat = np.eye(u.size) - np.outer(unit, unit)
        return everywhere, flat * (regularizer.radius / norm)
    if isinstance(regularizer, L1Ball) and np.abs(u).sum() <= regularizer.radius:
        return everywhere, np.eye(u.size)
    # on a face of the L1 ball or the simplex: the signed sum stays
    signs = np.sign(v[v != 0])
    return v != 0, np.eye(signs.size) - np.outer(signs, signs) / signs.size


def _rows_jacobian(
    U: Array, V: Array, threshold: float
) -> tuple[NDArray[np.bool_], Array]:
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
