"""Convex penalties of the weights and their proximal maps."""

from dataclasses import dataclass, replace
from math import copysign, inf, log
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import wrightomega, xlogy

from tacit._validate import nonnegative, plain, positive
from tacit.convex._protocols import Array, Regularizer
from tacit.convex.rounding import rows_jacobian, threshold_error
from tacit.convex.sets import Box, Free, Simplex
from tacit.exceptions import PlanError

__all__ = [
    "L1",
    "CoordinatePenalty",
    "ElasticNet",
    "Entropy",
    "GroupL1",
    "coordinate_parts",
    "makes_zeros",
]


def _shrink(W: Array, by: float) -> Array:
    """Move every entry towards zero by at most ``by``."""
    return W - np.clip(W, -by, by)


@dataclass(frozen=True)
class _Weighted:
    """Base of penalties that are a norm times ``weight``."""

    weight: float = 1.0

    def __post_init__(self) -> None:
        plain(self)
        positive(weight=self.weight)

    @property
    def radius(self) -> float:
        return inf

    def scaled(self, factor: float) -> Self:
        return replace(self, weight=self.weight * factor)

    def rescaled(self, unit: float) -> Self:
        return replace(self, weight=self.weight / unit)


@dataclass(frozen=True)
class L1(_Weighted):
    """The sum of absolute weights, times ``weight``.

    Parameters
    ----------
    weight
        Factor of the penalty.

    Notes
    -----
    **Bound.** The radius is infinite; the proximal map is soft thresholding [1]_,
    Section 6.5.2.

    References
    ----------
    .. [1] N. Parikh, S. Boyd, "Proximal algorithms", Foundations and Trends in
       Optimization 1, 2014.
    """

    saved = True
    makes_zeros = True

    def value(self, W: Array) -> float:
        return self.weight * float(np.abs(W).sum())

    def prox(self, W: Array, step: float) -> Array:
        return _shrink(W, step * self.weight)

    def prox_coordinate(self, value: float, step: float, j: int) -> float:
        return copysign(max(abs(value) - step * self.weight, 0.0), value)

    def prox_roundoff(self, U: Array, V: Array) -> float:
        return threshold_error(U)

    def prox_jacobian(
        self, U: Array, V: Array, step: float
    ) -> tuple[NDArray[np.bool_], Array]:
        moves = V.ravel() != 0
        return moves, np.eye(int(np.count_nonzero(moves)))


@dataclass(frozen=True)
class ElasticNet:
    """``l1`` times the sum of absolute weights plus ``l2 / 2`` times their squares.

    Parameters
    ----------
    l1
        Factor of the absolute weights.
    l2
        Factor of half the squared weights.

    Notes
    -----
    **Bound.** The radius is infinite; the proximal map shrinks after thresholding
    [1]_, Section 6.5.3.

    References
    ----------
    .. [1] N. Parikh, S. Boyd, "Proximal algorithms", Foundations and Trends in
       Optimization 1, 2014.
    """

    saved = True

    l1: float = 1.0
    l2: float = 1.0

    def __post_init__(self) -> None:
        plain(self)
        nonnegative(l1=self.l1, l2=self.l2)

    @property
    def radius(self) -> float:
        return inf

    def value(self, W: Array) -> float:
        squares = float(np.vdot(W, W))
        return self.l1 * float(np.abs(W).sum()) + 0.5 * self.l2 * squares

    def prox(self, W: Array, step: float) -> Array:
        V = _shrink(W, step * self.l1)
        V /= 1.0 + step * self.l2
        return V

    def prox_coordinate(self, value: float, step: float, j: int) -> float:
        shrunk = copysign(max(abs(value) - step * self.l1, 0.0), value)
        return shrunk / (1.0 + step * self.l2)

    @property
    def makes_zeros(self) -> bool:
        """Whether any weight is thresholded."""
        return self.l1 > 0

    def prox_roundoff(self, U: Array, V: Array) -> float:
        return threshold_error(U)

    def prox_jacobian(
        self, U: Array, V: Array, step: float
    ) -> tuple[NDArray[np.bool_], Array]:
        moves = V.ravel() != 0
        return moves, np.eye(int(np.count_nonzero(moves))) / (1 + step * self.l2)

    def scaled(self, factor: float) -> Self:
        return replace(self, l1=self.l1 * factor, l2=self.l2 * factor)

    def rescaled(self, unit: float) -> Self:
        return replace(self, l1=self.l1 / unit)


@dataclass(frozen=True, repr=False)
class CoordinatePenalty:
    """An elastic net with separate factors and an interval for each weight.

    The value is ``sum_j l1_j |w_j| + l2_j / 2 w_j^2`` where every weight lies between
    ``low_j <= 0`` and ``high_j >= 0``, which may be infinite, and infinite elsewhere.

    Notes
    -----
    **Bound.** The radius is the norm of the farthest corner, infinite where an end is.
    The proximal map of a weight thresholds, shrinks and then clips to the interval: in
    one dimension the minimizer over an interval is the unconstrained one, clipped to
    it, as the function is convex [1]_, Section 6.5.

    References
    ----------
    .. [1] N. Parikh, S. Boyd, "Proximal algorithms", Foundations and Trends in
       Optimization 1, 2014.
    """

    saved = True

    l1: tuple[float, ...]
    l2: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("l1", "l2", "low", "high"):
            given = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, tuple(given.ravel().tolist()))
        if not len(self.l1) == len(self.l2) == len(self.low) == len(self.high) > 0:
            raise ValueError(
                "l1, l2, low and high must have one entry for each weight, got "
                f"{len(self.l1)}, {len(self.l2)}, {len(self.low)} and "
                f"{len(self.high)} entries."
            )
        l1, l2, low, high = self.arrays
        for name, factors in (("l1", l1), ("l2", l2)):
            if not (np.isfinite(factors).all() and (factors >= 0).all()):
                raise ValueError(f"{name} must hold finite numbers >= 0.")
        if not ((low <= 0).all() and (high >= 0).all() and (low < high).all()):
            raise ValueError("low must be at most 0, high at least 0, and not both 0.")

    def __repr__(self) -> str:
        return f"CoordinatePenalty({self.size} weights)"

    @property
    def size(self) -> int:
        """Number of weights."""
        return len(self.l1)

    @property
    def makes_zeros(self) -> bool:
        """Whether any weight is thresholded."""
        return max(self.l1) > 0

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """``l1``, ``l2``, ``low`` and ``high`` as vectors."""
        l1, l2, low, high = map(np.array, (self.l1, self.l2, self.low, self.high))
        return l1, l2, low, high

    @property
    def radius(self) -> float:
        _, _, low, high = self.arrays
        return float(np.linalg.norm(np.maximum(-low, high)))

    def value(self, W: Array) -> float:
        l1, l2, low, high = self.arrays
        w = W.ravel()
        if not ((w >= low).all() and (w <= high).all()):
            return inf
        return float(l1 @ np.abs(w) + 0.5 * (l2 @ w**2))

    def prox(self, W: Array, step: float) -> Array:
        l1, l2, low, high = self.arrays
        w = W.ravel()
        shrunk = (w - np.clip(w, -step * l1, step * l1)) / (1.0 + step * l2)
        return np.clip(shrunk, low, high).reshape(W.shape)

    def prox_coordinate(self, value: float, step: float, j: int) -> float:
        shrunk = copysign(max(abs(value) - step * self.l1[j], 0.0), value)
        shrunk /= 1.0 + step * self.l2[j]
        return min(max(shrunk, self.low[j]), self.high[j])


@dataclass(frozen=True)
class GroupL1(_Weighted):
    """The sum over features of the norm of their row of weights, times ``weight``.

    A row of ``W`` is one feature's weights for all outputs: features come in or
    stay out for every output together.

    Parameters
    ----------
    weight
        Factor of the penalty.

    Notes
    -----
    **Bound.** The radius is infinite; the proximal map thresholds the norm of each
    row [1]_, Section 6.5.4.

    References
    ----------
    .. [1] N. Parikh, S. Boyd, "Proximal algorithms", Foundations and Trends in
       Optimization 1, 2014.
    """

    saved = True
    makes_zeros = True

    def value(self, W: Array) -> float:
        return self.weight * float(np.linalg.norm(W, axis=1).sum())

    def prox(self, W: Array, step: float) -> Array:
        norms = np.linalg.norm(W, axis=1)
        kept = np.maximum(norms - step * self.weight, 0.0)
        factors = np.divide(kept, norms, out=np.zeros_like(norms), where=norms > 0)
        shrunk: Array = W * factors[:, None]
        return shrunk

    def prox_roundoff(self, U: Array, V: Array) -> float:
        # the norm of a row of k entries has a relative error of (k / 2 + 2) u; it
        # enters the difference and the quotient, which with the threshold and the
        # product is below (k + 8) u times the norm of the row
        return threshold_error(U, U.shape[1])

    def prox_jacobian(
        self, U: Array, V: Array, step: float
    ) -> tuple[NDArray[np.bool_], Array]:
        return rows_jacobian(U, V, step * self.weight)


@dataclass(frozen=True)
class Entropy:
    """Negative entropy ``weight * sum w log w`` on the probability simplex.

    All entries of ``W`` together are one distribution.

    Parameters
    ----------
    weight
        Factor of the entropy; larger is closer to uniform.

    Notes
    -----
    **Bound.** The radius is 1. The proximal map is Euclidean: with
    ``c = step * weight`` the conditions of optimality are ``w + c log w = v - tau``
    for one number tau, so ``w = c omega((v - tau) / c - log c)`` with omega the
    Wright function, which solves ``omega + log(omega) = x`` [1]_ and neither
    overflows nor underflows where Lambert's W would. The sum of ``w`` is convex and
    decreasing in tau; Newton's method from the left cannot overshoot the tau where
    it is 1.

    References
    ----------
    .. [1] R. Corless, D. Jeffrey, "The Wright omega function", AISC 2002.
    """

    saved = True

    weight: float = 1.0

    def __post_init__(self) -> None:
        plain(self)
        positive(weight=self.weight)

    @property
    def radius(self) -> float:
        return 1.0

    def value(self, W: Array) -> float:
        if not Simplex().contains(W):
            return inf
        w = np.maximum(W, 0.0)
        return self.weight * float(xlogy(w, w).sum())

    def prox(self, W: Array, step: float) -> Array:
        c = step * self.weight
        if c < 1e-15:  # moves no entry by more than rounding does
            return Simplex().prox(W, step)
        # subtracting the largest entry changes nothing and keeps all within range
        v = W.ravel() - W.max()
        tau = -1.0  # the largest entry by itself has weight 1 here, so the sum is >= 1
        for _ in range(200):
            omega = wrightomega((v - tau) / c - log(c))
            excess = c * float(omega.sum()) - 1.0
            if excess <= 1e-13:  # what rounding leaves; the division below removes it
                break
            tau += excess / float((omega / (1.0 + omega)).sum())
        w: Array = omega / omega.sum()
        return w.reshape(W.shape)


def makes_zeros(regularizer: Regularizer) -> bool:
    """Return whether minimizers tend to have weights that are exactly zero."""
    return bool(getattr(regularizer, "makes_zeros", False))


def coordinate_parts(
    regularizer: Regularizer, ridge: float, size: int
) -> tuple[Array, Array, Array, Array]:
    """Return the factors and bounds of a separable penalty plus a ridge.

    They are factors of absolute weights, of half squared weights, to which ``ridge`` is
    added, least values and largest values, each of shape (size,).
    """
    if isinstance(regularizer, CoordinatePenalty):
        if regularizer.size != size:
            raise PlanError(
                f"{regularizer!r} is not for {size} weights; give one entry for each."
            )
        l1, l2, low, high = regularizer.arrays
        return l1, l2 + ridge, low, high
    l1, l2 = np.zeros(size), np.full(size, float(ridge))
    low, high = np.full(size, -inf), np.full(size, inf)
    match regularizer:
        case Free():
            pass
        case L1(weight):
            l1 += weight
        case ElasticNet(weight, square):
            l1 += weight
            l2 += square
        case Box(least, largest) if least <= 0 <= largest:
            low[:], high[:] = least, largest
        case _:
            raise PlanError(
                "Coordinate descent needs a separable penalty: L1(), ElasticNet(), "
                "a Box() that contains 0, CoordinatePenalty() or no penalty, got "
                f"{regularizer!r}."
            )
    return l1, l2, low, high
