"""The group ball, for weights with few groups of features."""

from dataclasses import dataclass
from math import isfinite, log, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit._validate import at_least, plain, positive
from tacit.convex._protocols import Array
from tacit.convex.sets import Indicator, normal_length, onto_simplex

__all__ = ["GroupBall"]


@dataclass(frozen=True)
class GroupBall(Indicator):
    """Weights whose groups of features have norms that sum to at most ``radius``.

    Parameters
    ----------
    radius
        Largest sum of norms; also the largest Frobenius norm, reached where a single
        group has weights.
    group_size
        Number of consecutive features in a group; the last group may have fewer.
    groups
        Number of the group of each feature, from zero, where they are not consecutive
        and even; None for groups of ``group_size``.

    Notes
    -----
    **Bound.** The Gaussian width is the radius times the mean of the largest norm of a
    group. A norm of m normals is ``sqrt(m)`` at most on average, and the largest of g
    of them above that by at most ``sqrt(2 log g)`` [1]_, Theorems 2.5 and 5.6.

    References
    ----------
    .. [1] S. Boucheron, G. Lugosi, P. Massart, "Concentration inequalities", 2013.
    """

    saved = True

    radius: float = 1.0
    group_size: int = 1
    groups: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        plain(self)
        positive(radius=self.radius)
        at_least(1, group_size=self.group_size)
        if self.groups is None:
            return
        for group in self.groups:
            at_least(0, groups=group)
        object.__setattr__(self, "groups", tuple(map(int, self.groups)))

    def prox(self, W: Array, step: float) -> Array:
        positions = self._positions(len(W))
        norms = self._norms(W, positions)
        if norms.sum() <= self.radius:
            return W
        kept = onto_simplex(norms, self.radius)
        factors = np.divide(kept, norms, out=np.zeros_like(norms), where=norms > 0)
        projected: Array = W * factors[positions][:, None]
        return projected

    def lmo(self, G: Array) -> Array:
        positions = self._positions(len(G))
        norms = self._norms(G, positions)
        longest = int(norms.argmax())
        if norms[longest] == 0:
            return np.zeros_like(G)
        inside = (positions == longest)[:, None]
        return np.where(inside, G * (-self.radius / norms[longest]), 0.0)

    def contains(self, W: Array, tol: float = 1e-9) -> bool:
        norms = self._norms(W, self._positions(len(W)))
        return float(norms.sum()) <= self.radius * (1 + tol)

    def diameter(self, dim: int, k: int = 1) -> float:
        return 2 * self.radius

    def width(self, dim: int, k: int = 1) -> float:
        sizes = np.bincount(self._positions(dim))
        largest, n_groups = int(sizes.max()) * k, int((sizes > 0).sum())
        longest = normal_length(largest) + sqrt(2 * log(n_groups))
        return self.radius * min(longest, normal_length(dim * k))

    def _positions(self, dim: int) -> NDArray[np.intp]:
        """Return the group of each of ``dim`` features."""
        if self.groups is None:
            return np.arange(dim) // self.group_size
        if len(self.groups) != dim:
            raise ValueError(
                f"groups must have one entry for each of {dim} features, got "
                f"{len(self.groups)} entries."
            )
        return np.array(self.groups, dtype=np.intp)

    def _norms(self, W: Array, positions: NDArray[np.intp]) -> Array:
        largest = float(np.abs(W).max(initial=0.0))
        if largest == 0.0 or not isfinite(largest):
            return np.full(int(positions.max()) + 1, largest)
        squares = np.bincount(positions, ((W / largest) ** 2).sum(axis=1))
        norms: Array = largest * np.sqrt(squares)
        return norms
