"""Convex sets of weights: projections, linear oracles and sizes.

The ``radius`` of every set is the largest Frobenius norm of a member. For the balls
it is also the parameter, as the L2, the L1 and the nuclear ball of radius r all reach
exactly that norm.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import fsum, inf, isfinite, log, pi, sqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd

from tacit._validate import at_least, if_given, plain, positive
from tacit.convex._protocols import Array
from tacit.convex.objective import UNIT
from tacit.convex.rounding import exact_norm, face_jacobian, level_error

__all__ = [
    "Box",
    "Free",
    "Indicator",
    "L1Ball",
    "L2Ball",
    "NuclearBall",
    "Simplex",
    "normal_length",
    "onto_simplex",
]


def _norm(W: Array) -> float:
    """Return the Frobenius norm, scaled so that squares neither overflow nor vanish."""
    largest = float(np.abs(W).max(initial=0.0))
    if largest == 0.0 or not isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(W / largest))


def normal_length(size: int) -> float:
    """Return an upper bound on the mean length of a standard normal vector.

    The mean is ``sqrt(2) Gamma((size + 1) / 2) / Gamma(size / 2)``; Watson's
    inequality bounds the ratio (Proc. Edinburgh Math. Soc. 11, 1959).
    """
    return sqrt(size - 1 + 2 / pi)


def onto_simplex(v: Array, total: float) -> Array:
    """Project a vector on the non-negative vectors that sum to ``total``."""
    # a common shift projects to the same point, and near zero it rounds less
    v = v - v.max()
    falling = np.sort(v)[::-1]
    excess = np.cumsum(falling) - total
    counts = np.arange(1, v.size + 1)
    # entry i stays positive while it is above the level that i entries would need
    last = int(np.flatnonzero(falling * counts > excess)[-1])
    projected: Array = np.maximum(v - excess[last] / (last + 1), 0.0)
    return projected


@dataclass(frozen=True)
class Free:
    """No penalty at all.

    Notes
    -----
    **Bound.** The radius is infinite; the proximal map is the identity.
    """

    saved = True

    @property
    def radius(self) -> float:
        return inf

    def value(self, W: Array) -> float:
        return 0.0

    def prox(self, W: Array, step: float) -> Array:
        return W

    def prox_coordinate(self, value: float, step: float, j: int) -> float:
        """Return the proximal map of the one entry ``j`` of ``W.ravel()``."""
        return value

    def rescaled(self, unit: float) -> Self:
        return self


class Indicator(ABC):
    """Base of sets: zero on the members and infinite elsewhere."""

    @abstractmethod
    def contains(self, W: Array, tol: float = 1e-9) -> bool: ...

    def value(self, W: Array) -> float:
        return 0.0 if self.contains(W) else inf

    def scaled(self, factor: float) -> Self:
        return self


@dataclass(frozen=True)
class L2Ball(Indicator):
    """Weights of Frobenius norm at most ``radius``.

    Parameters
    ----------
    radius
        Largest norm of a member.

    Notes
    -----
    **Bound.** The Gaussian width is the radius times the mean length of a standard
    normal vector, below ``sqrt(dim k - 1 + 2 / pi)`` [1]_, Section 7.5.

    References
    ----------
    .. [1] R. Vershynin, "High-dimensional probability", 2018.
    """

    saved = True

    radius: float = 1.0

    def __post_init__(self) -> None:
        plain(self)
        positive(radius=self.radius)

    def prox(self, W: Array, step: float) -> Array:
        norm = _norm(W)
        return W if norm <= self.radius else W * (self.radius / norm)

    def lmo(self, G: Array) -> Array:
        norm = _norm(G)
        return np.zeros_like(G) if norm == 0 else G * (-self.radius / norm)

    def contains(self, W: Array, tol: float = 1e-9) -> bool:
        return _norm(W) <= self.radius * (1 + tol)

    def diameter(self, dim: int, k: int = 1) -> float:
        return 2 * self.radius

    def width(self, dim: int, k: int = 1) -> float:
        return self.radius * normal_length(dim * k)

    def prox_roundoff(self, U: Array, V: Array) -> float:
        # V is U times a number, up to u in each entry, and so is the exact point,
        # whose norm is the lesser of |U| and the radius: they are apart by the
        # difference of their norms
        goal = min(exact_norm(U), self.radius)
        return abs(exact_norm(V) - goal) + 16 * UNIT * goal

    def prox_jacobian(
        self, U: Array, V: Array, step: float
    ) -> tuple[NDArray[np.bool_], Array]:
        u = U.ravel()
        everywhere = np.ones(u.size, dtype=np.bool_)
        norm = float(np.linalg.norm(u))
        if norm <= self.radius:
            return everywhere, np.eye(u.size)
        unit = u / norm
        flat = np.eye(u.size) - np.outer(unit, unit)
        return everywhere, flat * (self.radius / norm)

    def rescaled(self, unit: float) -> Self:
        return replace(self, radius=self.radius / unit)


@dataclass(frozen=True)
class L1Ball(Indicator):
    """Weights whose absolute values sum to at most ``radius``.

    Parameters
    ----------
    radius
        Largest sum of absolute values; also the largest Frobenius norm, reached at
        the vertices.

    Notes
    -----
    **Bound.** The Gaussian width is the radius times the mean of the largest of
    ``dim k`` absolute normals, at most ``sqrt(2 log(2 dim k))`` [1]_, Theorem 2.5.

    References
    ----------
    .. [1] S. Boucheron, G. Lugosi, P. Massart, "Concentration inequalities", 2013.
    """

    saved = True
    makes_zeros = True

    radius: float = 1.0

    def __post_init__(self) -> None:
        plain(self)
        positive(radius=self.radius)

    def prox(self, W: Array, step: float) -> Array:
        size = np.abs(W)
        if size.sum() <= self.radius:
            return W
        kept = onto_simplex(size.ravel(), self.radius).reshape(W.shape)
        return np.copysign(kept, W)

    def lmo(self, G: Array) -> Array:
        return self.vertex(int(np.argmax(self.vertex_scores(G))), G.shape)

    def contains(self, W: Array, tol: float = 1e-9) -> bool:
        return float(np.abs(W).sum()) <= self.radius * (1 + tol)

    def diameter(self, dim: int, k: int = 1) -> float:
        return 2 * self.radius

    def width(self, dim: int, k: int = 1) -> float:
        size = dim * k
        return self.radius * min(sqrt(2 * log(2 * size)), normal_length(size))

    def vertex_scores(self, G: Array) -> Array:
        """Return ``-<G, V>`` for each vertex V: the largest score is the oracle's."""
        g = self.radius * G.ravel()
        return np.concatenate([-g, g])

    def vertex(self, index: int, shape: tuple[int, ...]) -> Array:
        """Return the vertex: first the positive ones by entry, then the negative."""
        W = np.zeros(shape)
        sign, entry = divmod(index, W.size)
        W.flat[entry] = -self.radius if sign else self.radius
        return W

    def prox_roundoff(self, U: Array, V: Array) -> float:
        sizes = np.abs(U).ravel()
        goal = min(fsum(sizes.tolist()), self.radius)
        return level_error(sizes, V, goal)

    def prox_jacobian(
        self, U: Array, V: Array, step: float
    ) -> tuple[NDArray[np.bool_], Array]:
        if np.abs(U).sum() <= self.radius:
            return np.ones(U.size, dtype=np.bool_), np.eye(U.size)
        return face_jacobian(V.ravel())

    def rescaled(self, unit: float) -> Self:
        return replace(self, radius=self.radius / unit)


@dataclass(frozen=True)
class Simplex(Indicator):
    """Non-negative weights that sum to one, all entries together.

    Notes
    -----
    **Bound.** The Gaussian width is the mean of the largest of ``dim k`` normals, at
    most ``sqrt(2 log(dim k))`` [1]_, Theorem 2.5.

    References
    ----------
    .. [1] S. Boucheron, G. Lugosi, P. Massart, "Concentration inequalities", 2013.
    """

    saved = True
    makes_zeros = True

    @property
    def radius(self) -> float:
        return 1.0

    def prox(self, W: Array, step: float) -> Array:
        return onto_simplex(W.ravel(), 1.0).reshape(W.shape)

    def lmo(self, G: Array) -> Array:
        return self.vertex(int(np.argmax(self.vertex_scores(G))), G.shape)

    def contains(self, W: Array, tol: float = 1e-9) -> bool:
        return bool(W.min() >= -tol) and abs(float(W.sum()) - 1) <= tol

    def diameter(self, dim: int, k: int = 1) -> float:
        return sqrt(2) if dim * k > 1 else 0.0

    def width(self, dim: int, k: int = 1) -> float:
        return sqrt(2 * log(dim * k))

    def vertex_scores(self, G: Array) -> Array:
        return -G.ravel()

    def vertex(self, index: int, shape: tuple[int, ...]) -> Array:
        """Return the vertex that is one at this entry of ``W.ravel()``."""
        W = np.zeros(shape)
        W.flat[index] = 1.0
        return W

    def prox_roundoff(self, U: Array, V: Array) -> float:
        return level_error(U.ravel(), V, 1.0)

    def prox_jacobian(
        self, U: Array, V: Array, step: float
    ) -> tuple[NDArray[np.bool_], Array]:
        return face_jacobian(V.ravel())

    def rescaled(self, unit: float) -> Self:
        raise ValueError(
            "penalty=Simplex() has no unit of the targets; use SimplexRegressor."
        )


@dataclass(frozen=True)
class Box(Indicator):
    """Weights that all lie between ``low`` and ``high``.

    Parameters
    ----------
    low
        Least value of an entry.
    high
        Largest value of an entry.
    size
        Number of entries of the weights. Only the radius needs it: without it the
        radius is infinite, the one bound that holds in every dimension.

    Notes
    -----
    **Bound.** The Gaussian width is exactly ``dim k (high - low) / sqrt(2 pi)``: half
    the side times the mean absolute value of a normal, in each entry [1]_,
    Section 7.5.

    References
    ----------
    .. [1] R. Vershynin, "High-dimensional probability", 2018.
    """

    saved = True

    low: float = -1.0
    high: float = 1.0
    size: int | None = None

    def __post_init__(self) -> None:
        plain(self)
        if not (isfinite(self.low) and isfinite(self.high) and self.low < self.high):
            raise ValueError(
                "low must be a finite number below high, "
                f"got low={self.low!r} and high={self.high!r}."
            )
        if_given(at_least, 1, size=self.size)

    @property
    def radius(self) -> float:
        if self.size is None:
            return inf
        return sqrt(self.size) * max(abs(self.low), abs(self.high))

    def prox(self, W: Array, step: float) -> Array:
        return np.clip(W, self.low, self.high)

    def prox_coordinate(self, value: float, step: float, j: int) -> float:
        return min(max(value, self.low), self.high)

    def lmo(self, G: Array) -> Array:
        return np.where(G > 0, self.low, self.high)

    def contains(self, W: Array, tol: float = 1e-9) -> bool:
        slack = tol * (self.high - self.low)
        return bool(W.min() >= self.low - slack and W.max() <= self.high + slack)

    def diameter(self, dim: int, k: int = 1) -> float:
        return sqrt(dim * k) * (self.high - self.low)

    def width(self, dim: int, k: int = 1) -> float:
        return dim * k * (self.high - self.low) / sqrt(2 * pi)

    def prox_roundoff(self, U: Array, V: Array) -> float:
        return 0.0  # comparisons are exact

    def prox_jacobian(
        self, U: Array, V: Array, step: float
    ) -> tuple[NDArray[np.bool_], Array]:
        u = U.ravel()
        inside = (u > self.low) & (u < self.high)
        return inside, np.eye(int(np.count_nonzero(inside)))

    def rescaled(self, unit: float) -> Self:
        return replace(self, low=self.low / unit, high=self.high / unit)


@dataclass(frozen=True)
class NuclearBall(Indicator):
    """Weights whose singular values sum to at most ``radius``.

    Parameters
    ----------
    radius
        Largest sum of singular values; also the largest Frobenius norm, reached by
        matrices of rank one.

    Notes
    -----
    **Bound.** The Gaussian width is the radius times the mean spectral norm of a
    dim by k normal matrix, at most ``sqrt(dim) + sqrt(k)`` [1]_, Theorem 7.3.1.

    References
    ----------
    .. [1] R. Vershynin, "High-dimensional probability", 2018.
    """

    saved = True

    radius: float = 1.0

    def __post_init__(self) -> None:
        plain(self)
        positive(radius=self.radius)

    def prox(self, W: Array, step: float) -> Array:
        U, s, Vt = svd(W, full_matrices=False)
        if s.sum() <= self.radius:
            return W
        projected: Array = (U * onto_simplex(s, self.radius)) @ Vt
        return projected

    def lmo(self, G: Array) -> Array:
        U, _, Vt = svd(G, full_matrices=False)
        member: Array = np.outer(-self.radius * U[:, 0], Vt[0])
        return member

    def contains(self, W: Array, tol: float = 1e-9) -> bool:
        return float(svd(W, compute_uv=False).sum()) <= self.radius * (1 + tol)

    def diameter(self, dim: int, k: int = 1) -> float:
        return 2 * self.radius

    def width(self, dim: int, k: int = 1) -> float:
        return self.radius * min(sqrt(dim) + sqrt(k), normal_length(dim * k))
