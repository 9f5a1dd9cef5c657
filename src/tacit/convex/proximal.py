"""The penalties and sets that minima are certified with."""

from dataclasses import dataclass, replace
from math import inf
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from tacit._discovery import declaring
from tacit._validate import PlainNumbers
from tacit.convex._protocols import Array, Certified
from tacit.convex.objective import UNIT
from tacit.convex.regularizers import L1, ElasticNet, GroupL1
from tacit.convex.rounding import exact_norm
from tacit.convex.sets import L2Ball

__all__ = ["InBall", "certified_names", "is_certified"]

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

    def prox_roundoff(self, U: Array, V: Array) -> float:
        # the error of the penalty's map, which a projection does not enlarge, and that
        # of the projection: an entry is rounded twice, and V is near the surface if it
        # was projected at all
        length, radius = exact_norm(V), self.radius
        off = abs(length - radius) if length > radius * (1 - SURFACE) else 0.0
        return self.penalty.prox_roundoff(U, V) + off + 16 * UNIT * length

    def prox_jacobian(
        self, U: Array, V: Array, step: float
    ) -> tuple[NDArray[np.bool_], Array]:
        Y = self.penalty.prox(U, step)
        moves, J = self.penalty.prox_jacobian(U, Y, step)
        _, turned = L2Ball(self.radius).prox_jacobian(Y, V, step)
        return moves, turned[np.ix_(moves, moves)] @ J

    def scaled(self, factor: float) -> Self:
        return replace(self, penalty=self.penalty.scaled(factor))


def is_certified(regularizer: Any) -> TypeGuard[Certified]:
    """Return whether the proximal map has a stated bound on its rounding."""
    is_class = isinstance(regularizer, type)
    return hasattr(regularizer, "prox_roundoff") and not is_class


def certified_names() -> list[str]:
    """Return the names of the penalties and sets of which this is so."""
    kinds = declaring("prox_roundoff", "tacit.convex")
    return [kind.__name__ for kind in kinds if hasattr(kind, "saved")]
