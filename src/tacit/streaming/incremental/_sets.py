"""Sets of weights in other units, and with an unconstrained intercept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, pi, sqrt
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tacit._validate import PlainNumbers
from tacit.convex import Box, Free, GroupBall, L1Ball, L2Ball, NuclearBall, Simplex
from tacit.convex._protocols import ConvexSet, Regularizer

__all__ = ["Stretched", "WithConstant", "absolute_width", "stretched"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stretched(PlainNumbers):
    """Scaled set: the members of another set times ``factor``."""

    inner: ConvexSet
    factor: float

    @property
    def radius(self) -> float:
        return self.inner.radius * self.factor

    def value(self, W: Array) -> float:
        return self.inner.value(W / self.factor)

    def prox(self, W: Array, step: float) -> Array:
        return self.inner.prox(W / self.factor, step) * self.factor

    def lmo(self, G: Array) -> Array:
        return self.inner.lmo(G) * self.factor

    def contains(self, W: Array, tol: float = 1e-9) -> bool:
        return self.inner.contains(W / self.factor, tol)

    def diameter(self, dim: int, k: int = 1) -> float:
        return self.inner.diameter(dim, k) * self.factor

    def width(self, dim: int, k: int = 1) -> float:
        return self.inner.width(dim, k) * self.factor


@dataclass(frozen=True)
class WithConstant(PlainNumbers):
    """Set of weights with a bounded weight ``most`` of a last, constant feature.

    The bound is wider than any intercept of least squares; it limits the noise.
    """

    inner: ConvexSet
    most: float

    @property
    def radius(self) -> float:
        return hypot(self.inner.radius, self.most)

    def value(self, W: Array) -> float:
        return 0.0 if self.contains(W) else np.inf

    def prox(self, W: Array, step: float) -> Array:
        constant = np.clip(W[-1:], -self.most, self.most)
        return np.concatenate([self.inner.prox(W[:-1], step), constant])

    def lmo(self, G: Array) -> Array:
        return np.concatenate([self.inner.lmo(G[:-1]), -self.most * np.sign(G[-1:])])

    def contains(self, W: Array, tol: float = 1e-9) -> bool:
        within = float(np.abs(W[-1:]).max()) <= self.most * (1 + tol)
        return within and self.inner.contains(W[:-1], tol)

    def diameter(self, dim: int, k: int = 1) -> float:
        return hypot(self.inner.diameter(dim - 1, k), 2 * sqrt(k) * self.most)

    def width(self, dim: int, k: int = 1) -> float:
        return self.inner.width(dim - 1, k) + k * self.most * sqrt(2 / pi)


def stretched(domain: Regularizer, factor: float) -> Regularizer:
    """Return the set of weights multiplied by ``factor``."""
    match domain:
        case Free():
            return domain
        case L2Ball() | L1Ball() | GroupBall() | NuclearBall():
            return replace(domain, radius=domain.radius * factor)
        case Box():
            return replace(domain, low=domain.low * factor, high=domain.high * factor)
        case WithConstant():
            inner: Any = stretched(domain.inner, factor)
            return WithConstant(inner, domain.most * factor)
        case Stretched():
            return Stretched(domain.inner, domain.factor * factor)
    return Stretched(cast(ConvexSet, domain), factor)


def absolute_width(domain: ConvexSet, dim: int) -> float:
    """Return a bound on the mean of the largest ``|<g, w>|`` over the set.

    It is the Gaussian width for symmetric sets, and at most that of the set and its
    mirror image for others.
    """
    match domain:
        case WithConstant():
            constant = domain.most * sqrt(2 / pi)
            return absolute_width(domain.inner, dim - 1) + constant
        case Stretched():
            return absolute_width(domain.inner, dim) * domain.factor
        case Simplex():
            return L1Ball(1.0).width(dim)
        case Box():
            return domain.width(dim) + domain.radius
    return domain.width(dim)
