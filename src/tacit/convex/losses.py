"""Losses of the margins, with bounds on their derivatives and curvature."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, isfinite, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tacit._validate import at_least, plain, positive
from tacit.convex._protocols import Array

__all__ = [
    "Huber",
    "HuberizedHinge",
    "Logistic",
    "OneMargin",
    "Softmax",
    "Squared",
    "has_residuals",
]


class OneMargin(ABC):
    """Base of losses of a single margin, whose Hessian is a number."""

    @property
    def n_outputs(self) -> int:
        return 1

    @abstractmethod
    def curvature(self, y: NDArray[Any], Z: Array) -> Array: ...

    def curvature_product(self, y: NDArray[Any], Z: Array, V: Array) -> Array:
        C = self.curvature(y, Z)
        C *= V
        return C

    @abstractmethod
    def max_curvature(self) -> float: ...

    def max_trace(self) -> float:
        return self.max_curvature()

    def derivative_rank(self) -> int:
        return 1


@dataclass(frozen=True)
class Logistic(OneMargin):
    """Logistic loss ``log(1 + exp(-y z))`` of labels -1 and 1, derivative capped.

    Parameters
    ----------
    cap
        Largest absolute derivative, in [1/2, 1]. Below one the loss is linear where its
        derivative would exceed the cap, which is on the wrong side of the margin.

    Notes
    -----
    **Bound.** ``|derivative| <= cap`` and ``curvature <= 1 / 4`` everywhere: they are
    ``s`` and ``s (1 - s)`` for a probability ``s`` [1]_, Section 3.4. For cap below
    one the curvature jumps to zero at one point; the derivative stays Lipschitz.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially private empirical
       risk minimization", JMLR 12, 2011.
    """

    targets = "labels"
    saved = True

    cap: float = 1.0

    def __post_init__(self) -> None:
        plain(self)
        if not 0.5 <= self.cap <= 1:
            raise ValueError(f"cap must be in [1/2, 1], got {self.cap!r}.")

    @property
    def _knee(self) -> float:
        """Margin below which the loss is linear."""
        return -inf if self.cap == 1 else log(1 - self.cap) - log(self.cap)

    def value(self, y: NDArray[Any], Z: Array) -> Array:
        t = y * Z[:, 0]
        tail = np.zeros_like(t)
        if self.cap < 1:
            tail += np.minimum(t - self._knee, 0.0) * self.cap
            np.maximum(t, self._knee, out=t)
        tail += np.minimum(t, 0.0)
        np.abs(t, out=t)
        np.negative(t, out=t)
        np.exp(t, out=t)
        np.log1p(t, out=t)
        t -= tail
        return t

    def derivative(self, y: NDArray[Any], Z: Array) -> Array:
        t: Array = y * Z[:, 0]
        if self.cap < 1:
            np.maximum(t, self._knee, out=t)
        with np.errstate(over="ignore"):  # exp overflows to inf: the derivative is 0
            np.exp(t, out=t)
        t += 1.0
        np.divide(y, t, out=t)
        np.negative(t, out=t)
        return t[:, None]

    def curvature(self, y: NDArray[Any], Z: Array) -> Array:
        t = np.abs(Z)
        np.negative(t, out=t)
        np.exp(t, out=t)
        below = t + 1.0
        t /= below
        t /= below
        if self.cap < 1:
            t *= y[:, None] * Z > self._knee
        return t

    def probability(self, z: Array) -> Array:
        """Return the probability of label 1 for which ``z`` is the best margin."""
        up, down = np.minimum(expit([z, -z]), self.cap)
        return np.asarray(up / (up + down), dtype=np.float64)

    def max_derivative(self, reach: float, y_range: tuple[float, float]) -> float:
        return self.cap

    def max_curvature(self) -> float:
        return 0.25


@dataclass(frozen=True)
class Softmax:
    """Multinomial logistic loss ``logsumexp(z) - z_y`` of class codes 0 to k - 1.

    Parameters
    ----------
    n_classes
        Number k of classes, public, at least 2.

    Notes
    -----
    **Bound.** For class probabilities P, the gradient ``P - e_y`` has norm below
    ``sqrt(2)`` and sums to zero, so it lives in k - 1 dimensions. The Hessian
    ``diag(P) - P P^T`` has eigenvalues at most 1 / 2 [1]_ and trace
    ``1 - sum P^2 <= 1 - 1 / k``.

    References
    ----------
    .. [1] D. Boehning, "Multinomial logistic regression algorithm", Annals of the
       Institute of Statistical Mathematics 44, 1992.
    """

    targets = "codes"
    saved = True

    n_classes: int

    def __post_init__(self) -> None:
        plain(self)
        at_least(2, n_classes=self.n_classes)

    @property
    def n_outputs(self) -> int:
        return self.n_classes

    def value(self, y: NDArray[Any], Z: Array) -> Array:
        E = Z - Z.max(axis=1, keepdims=True)
        chosen = np.take_along_axis(E, _codes(y), axis=1)[:, 0]
        np.exp(E, out=E)
        total: Array = E.sum(axis=1)
        np.log(total, out=total)
        total -= chosen
        return total

    def derivative(self, y: NDArray[Any], Z: Array) -> Array:
        P = _probabilities(Z)
        P[np.arange(len(P)), _codes(y)[:, 0]] -= 1.0
        return P

    def curvature(self, y: NDArray[Any], Z: Array) -> Array:
        P = _probabilities(Z)
        P *= 1.0 - P
        return P

    def curvature_product(self, y: NDArray[Any], Z: Array, V: Array) -> Array:
        P = _probabilities(Z)
        means = np.einsum("ij,ij->i", P, V)
        P *= V - means[:, None]
        return P

    def max_derivative(self, reach: float, y_range: tuple[float, float]) -> float:
        return sqrt(2.0)

    def max_curvature(self) -> float:
        return 0.5

    def max_trace(self) -> float:
        return 1.0 - 1.0 / self.n_classes

    def derivative_rank(self) -> int:
        return self.n_classes - 1


def _codes(y: NDArray[Any]) -> NDArray[np.intp]:
    return y.astype(np.intp, copy=False)[:, None]


def _probabilities(Z: Array) -> Array:
    P: Array = Z - Z.max(axis=1, keepdims=True)
    np.exp(P, out=P)
    P /= P.sum(axis=1, keepdims=True)
    return P


@dataclass(frozen=True)
class Squared(OneMargin):
    """Half the squared residual, ``(z - y)^2 / 2``.

    Notes
    -----
    **Bound.** ``|derivative| <= reach + max |y|``, unbounded without a reach, and
    ``curvature = 1``: both by differentiation.
    """

    targets = "numbers"
    saved = True

    def value(self, y: NDArray[Any], Z: Array) -> Array:
        r: Array = Z[:, 0] - y
        with np.errstate(over="ignore"):  # inf is the nearest number there is
            r *= r
        r *= 0.5
        return r

    def derivative(self, y: NDArray[Any], Z: Array) -> Array:
        r: Array = Z[:, 0] - y
        return r[:, None]

    def curvature(self, y: NDArray[Any], Z: Array) -> Array:
        return np.ones(Z.shape)

    def max_derivative(self, reach: float, y_range: tuple[float, float]) -> float:
        return _largest_residual(reach, y_range)

    def max_curvature(self) -> float:
        return 1.0


@dataclass(frozen=True)
class Huber(OneMargin):
    """Half the squared residual up to a threshold, then linear.

    Parameters
    ----------
    threshold
        Residual at which the loss turns linear; also its largest derivative.

    Notes
    -----
    **Bound.** ``|derivative| <= threshold`` everywhere, less where the reach keeps
    every residual below it, and ``curvature <= 1`` [1]_, Section 2.

    References
    ----------
    .. [1] P. Huber, "Robust estimation of a location parameter", Annals of
       Mathematical Statistics 35, 1964.
    """

    targets = "numbers"
    saved = True

    threshold: float = 1.0

    def __post_init__(self) -> None:
        plain(self)
        positive(threshold=self.threshold)

    def value(self, y: NDArray[Any], Z: Array) -> Array:
        r: Array = Z[:, 0] - y
        clipped = np.clip(r, -self.threshold, self.threshold)
        # clipped * (r - clipped / 2) is both branches, and squares nothing large
        r -= 0.5 * clipped
        r *= clipped
        return r

    def derivative(self, y: NDArray[Any], Z: Array) -> Array:
        r: Array = Z[:, 0] - y
        np.clip(r, -self.threshold, self.threshold, out=r)
        return r[:, None]

    def curvature(self, y: NDArray[Any], Z: Array) -> Array:
        inside: NDArray[np.bool_] = np.abs(Z - y[:, None]) <= self.threshold
        return inside.astype(np.float64)

    def max_derivative(self, reach: float, y_range: tuple[float, float]) -> float:
        return min(self.threshold, _largest_residual(reach, y_range))

    def max_curvature(self) -> float:
        return 1.0


@dataclass(frozen=True)
class HuberizedHinge(OneMargin):
    """Hinge loss rounded over a window of half-width ``h``, of labels -1 and 1.

    With ``u = 1 - y z`` it is ``u`` above ``h``, 0 below ``-h``, and
    ``u^2 / (4 h) + u / 2 + h / 4`` between.

    Parameters
    ----------
    h
        Half-width of the quadratic part, in margin units. Smaller is closer to
        the hinge and costs more noise, as the curvature is ``1 / (2 h)``.

    Notes
    -----
    **Bound.** ``|derivative| <= 1`` and ``curvature <= 1 / (2 h)`` everywhere [1]_,
    Section 3.4.2.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially private empirical
       risk minimization", JMLR 12, 2011.
    """

    targets = "labels"
    saved = True

    h: float = 0.5

    def __post_init__(self) -> None:
        plain(self)
        positive(h=self.h)
        if not isfinite(1.0 / self.h):
            raise ValueError(
                f"h must be large enough for 1 / h to be finite, got {self.h}."
            )

    def _ramp(self, y: NDArray[Any], Z: Array) -> Array:
        """Return minus the derivative in ``-y z``: 0, then a ramp, then 1."""
        t: Array = y * Z[:, 0]
        np.subtract(1.0, t, out=t)
        t += self.h
        np.clip(t, 0.0, 2.0 * self.h, out=t)
        t /= 2.0 * self.h
        return t

    def value(self, y: NDArray[Any], Z: Array) -> Array:
        t = self._ramp(y, Z)
        t *= t
        t *= self.h
        # the quadratic part is h * ramp^2, and ends at h where the line begins
        t += np.maximum(1.0 - self.h - y * Z[:, 0], 0.0)
        return t

    def derivative(self, y: NDArray[Any], Z: Array) -> Array:
        t = self._ramp(y, Z)
        t *= y
        np.negative(t, out=t)
        return t[:, None]

    def curvature(self, y: NDArray[Any], Z: Array) -> Array:
        inside: NDArray[np.bool_] = np.abs(1.0 - y[:, None] * Z) <= self.h
        return np.where(inside, 0.5 / self.h, 0.0)

    def max_derivative(self, reach: float, y_range: tuple[float, float]) -> float:
        return 1.0

    def max_curvature(self) -> float:
        return 0.5 / self.h


def has_residuals(loss: object) -> bool:
    """Return whether this is a loss of residuals, whose targets are numbers."""
    return getattr(loss, "targets", None) == "numbers"


def _largest_residual(reach: float, y_range: tuple[float, float]) -> float:
    return reach + max(abs(y_range[0]), abs(y_range[1]))
