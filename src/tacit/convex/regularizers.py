"""Convex penalties of the weights and their proximal maps."""

from dataclasses import dataclass
from math import copysign, inf, log

import numpy as np
from scipy.special import wrightomega, xlogy

from tacit._validate import nonnegative, plain, positive
from tacit.convex._protocols import Array, Regularizer
from tacit.convex.sets import L1Ball, Simplex

__all__ = ["L1", "ElasticNet", "Entropy", "Free", "GroupL1", "makes_zeros"]


def _shrink(W: Array, by: float) -> Array:
    """Move every entry towards zero by at most ``by``."""
    return W - np.clip(W, -by, by)


@dataclass(frozen=True)
class Free:
    """No penalty at all.

    Notes
    -----
    **Bound.** The radius is infinite; the proximal map is the identity.
    """

    @property
    def radius(self) -> float:
        return inf

    def value(self, W: Array) -> float:
        return 0.0

    def prox(self, W: Array, step: float) -> Array:
        return W

    def prox_coordinate(self, value: float, step: float, j: int) -> float:
        return value


@dataclass(frozen=True)
class L1:
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

    weight: float = 1.0

    def __post_init__(self) -> None:
        plain(self)
        positive(weight=self.weight)

    @property
    def radius(self) -> float:
        return inf

    def value(self, W: Array) -> float:
        return self.weight * float(np.abs(W).sum())

    def prox(self, W: Array, step: float) -> Array:
        return _shrink(W, step * self.weight)

    def prox_coordinate(self, value: float, step: float, j: int) -> float:
        return copysign(max(abs(value) - step * self.weight, 0.0), value)


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


@dataclass(frozen=True)
class GroupL1:
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

    weight: float = 1.0

    def __post_init__(self) -> None:
        plain(self)
        positive(weight=self.weight)

    @property
    def radius(self) -> float:
        return inf

    def value(self, W: Array) -> float:
        return self.weight * float(np.linalg.norm(W, axis=1).sum())

    def prox(self, W: Array, step: float) -> Array:
        norms = np.linalg.norm(W, axis=1)
        kept = np.maximum(norms - step * self.weight, 0.0)
        factors = np.divide(kept, norms, out=np.zeros_like(norms), where=norms > 0)
        shrunk: Array = W * factors[:, None]
        return shrunk


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
        tau = -1.0  # the largest entry alone has weight 1 here, so the sum is >= 1
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
    if isinstance(regularizer, ElasticNet):
        return regularizer.l1 > 0
    return isinstance(regularizer, L1 | GroupL1 | L1Ball | Simplex)
