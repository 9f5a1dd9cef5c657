"""Dominating pairs of events, as distributions of the privacy loss.

A pair (P, Q) dominates an event when no two neighbors are easier to distinguish: at
every epsilon, its delta is at least that of the event. The loss is log(P/Q) under P. A
composition is dominated by the product of the pairs, also where each mechanism reads
the outputs before it (Zhu, Dong and Wang 2022, Theorem 10), so losses add up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, expm1, log, log1p, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tacit.privacy.deltas import bounded_range_deltas, gaussian_deltas

__all__ = [
    "BoundedRangeLoss",
    "FixedSizeLoss",
    "GaussianLoss",
    "LaplaceLoss",
    "Loss",
    "Masses",
    "PointwiseLoss",
    "PoissonLoss",
    "ResponseLoss",
    "TiltedLoss",
]

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]

# Noise on a grid of 2^-32 has a loss that is larger by far less than this fraction
LAPLACE_MARGIN = 1e-8
# Repetitions of a bounded-range event that are bounded as one
LONGEST_BLOCK = 128


@dataclass(frozen=True, eq=False)
class Masses:
    """Positive probabilities of losses on a grid, and that of an infinite loss."""

    positions: Positions
    mass: Floats
    infinite: float = 0.0

    @classmethod
    def of(cls, first: int, mass: Floats, infinite: float = 0.0) -> Masses:
        """Return the probabilities of the positions ``first + i``, without zeros."""
        kept = np.flatnonzero(mass > 0)
        return cls(first + kept, mass[kept], infinite)

    def losses(self, step: float) -> Floats:
        """Return the losses, on a grid of this spacing."""
        return np.asarray(step * self.positions, dtype=np.float64)


class Loss(ABC):
    """The loss of a dominating pair.

    Subclasses are frozen dataclasses: equal losses are composed once.
    """

    @abstractmethod
    def masses(self, step: float, tail: float) -> Masses:
        """Return a discrete loss that dominates this one, but for about ``tail``."""

    @abstractmethod
    def reach(self, tail: float) -> tuple[float, float]:
        """Return how far below and above zero all but about ``tail`` of it lies."""

    @property
    def exchanged(self) -> Loss:
        """The pair with its members exchanged."""
        return self

    @property
    def lattice(self) -> float | None:
        """Spacing that all losses are multiples of, if there is one."""
        return None

    def parts(self, count: int) -> tuple[tuple[Loss, int], ...]:
        """Return losses and counts whose sum is ``count`` independent such losses."""
        return ((self, count),)


# deep: most losses have a known delta, and sampled ones a loss inside
class PointwiseLoss(Loss):
    """A loss whose delta is known at each epsilon."""

    @abstractmethod
    def deltas(self, epsilons: Floats) -> Floats:
        """Return delta of the pair at these epsilons, which are not negative."""

    def reverse_deltas(self, epsilons: Floats) -> Floats:
        """Return delta of the pair with its members exchanged."""
        return self.deltas(epsilons)

    def masses(self, step: float, tail: float) -> Masses:
        """Return a discrete loss that dominates this one.

        Notes
        -----
        **Bound.** Delta is convex in ``exp(epsilon)``, so the chords between the points
        of the grid lie above it. They are the delta of losses on the grid (Doroshenko,
        Ghazi, Kamath, Kumar and Manurangsi 2022, Section 4).
        """
        below, above = (max(1, ceil(end / step)) for end in self.reach(tail))
        up = self.deltas(_multiples(step, above))
        down = self.reverse_deltas(_multiples(step, below))
        return _chords(step, up, down)


def _multiples(step: float, n: int) -> Floats:
    return np.asarray(step * np.arange(n + 1), dtype=np.float64)


def _chords(step: float, up: Floats, down: Floats) -> Masses:
    """Return the loss whose delta has these chords, from both directions of a pair."""
    # [pld:chords] masses are differences of the derivatives of delta in exp(epsilon);
    # below zero delta is 1 - exp(epsilon) + left, of which only left bends
    left = (np.exp(-step * np.arange(len(down))) * down)[::-1]
    rise, fall = expm1(step), -expm1(-step)
    to_right = np.concatenate([np.diff(left), np.diff(up), [0.0]]) / rise
    to_left = np.concatenate([[left[0] * fall], np.diff(left), np.diff(up)]) / fall
    mass = to_right - to_left
    mass[len(left) - 1] += 1.0  # where the derivative of 1 - exp(epsilon) ends
    return Masses.of(1 - len(left), mass, float(up[-1]))


@dataclass(frozen=True)
class GaussianLoss(PointwiseLoss):
    """Normal distributions of variance one whose means differ by the root of this."""

    mu_squared: float

    def deltas(self, epsilons: Floats) -> Floats:
        return gaussian_deltas(epsilons, sqrt(self.mu_squared))

    def reach(self, tail: float) -> tuple[float, float]:
        end = _gaussian_reach(sqrt(self.mu_squared), tail)
        return end, end


def _gaussian_reach(mu: float, tail: float) -> float:
    return mu * (mu / 2 + sqrt(-2 * log(tail)))


@dataclass(frozen=True)
class LaplaceLoss(PointwiseLoss):
    """Laplace distributions of scale one whose means differ by ``epsilon``."""

    epsilon: float

    def deltas(self, epsilons: Floats) -> Floats:
        end = self.epsilon * (1 + LAPLACE_MARGIN)
        return np.asarray(-np.expm1(np.minimum(epsilons - end, 0.0) / 2))

    def reach(self, tail: float) -> tuple[float, float]:
        end = self.epsilon * (1 + LAPLACE_MARGIN)
        return end, end


@dataclass(frozen=True)
class ResponseLoss(PointwiseLoss):
    """Randomized response: the loss is ``epsilon`` or its negative."""

    epsilon: float

    def deltas(self, epsilons: Floats) -> Floats:
        gap = np.minimum(epsilons - self.epsilon, 0.0)
        return np.asarray(-np.expm1(gap) / (1 + exp(-self.epsilon)))

    def reach(self, tail: float) -> tuple[float, float]:
        return self.epsilon, self.epsilon

    @property
    def lattice(self) -> float | None:
        return self.epsilon

    def masses(self, step: float, tail: float) -> Masses:
        # exact where the step divides epsilon; otherwise between its neighbors
        up = 1 / (1 + exp(-self.epsilon))
        return _spread(np.array([-self.epsilon, self.epsilon]), [1 - up, up], step)


def _spread(
    losses: Floats, masses: Floats | list[float], step: float, infinite: float = 0.0
) -> Masses:
    """Return losses moved to a grid, with both members of the pair preserved."""
    scaled = losses / step
    near = np.rint(scaled)
    # what is on the grid but for rounding stays where it is
    scaled = np.where(np.abs(scaled - near) < 1e-6, near, scaled)
    low = np.floor(scaled)
    raised = np.expm1(-step * (scaled - low)) / expm1(-step)
    first = int(low[0])
    at = (low - first).astype(np.intp)
    mass = np.bincount(at, masses * (1 - raised), minlength=at[-1] + 2)
    mass += np.bincount(at + 1, masses * raised, minlength=at[-1] + 2)
    return Masses.of(first, np.asarray(mass, dtype=np.float64), infinite)


@dataclass(frozen=True)
class _SampledLoss(PointwiseLoss):
    """A Gaussian loss of a mechanism that reads each row with probability ``rate``."""

    mu: float
    rate: float

    def deltas(self, epsilons: Floats) -> Floats:
        # [pld:sampled] delta at 1 + (exp(epsilon) - 1) / rate, times the rate
        with np.errstate(over="ignore"):
            inner = np.log1p(np.expm1(epsilons) / self.rate)
        inner = np.where(np.isfinite(inner), inner, epsilons - log(self.rate))
        return self.rate * gaussian_deltas(inner, self.mu)

    def reach(self, tail: float) -> tuple[float, float]:
        whole = _gaussian_reach(self.mu, tail)
        end = log1p(self.rate * expm1(whole)) if whole < 600 else whole
        return end, end


@dataclass(frozen=True)
class FixedSizeLoss(_SampledLoss):
    """The Gaussian mechanism on a sample of fixed size, where one row is replaced."""


@dataclass(frozen=True)
class PoissonLoss(_SampledLoss):
    """The Gaussian mechanism on a Poisson sample, where one row is removed or added."""

    added: bool = False

    def deltas(self, epsilons: Floats) -> Floats:
        return self._added(epsilons) if self.added else super().deltas(epsilons)

    def reverse_deltas(self, epsilons: Floats) -> Floats:
        return super().deltas(epsilons) if self.added else self._added(epsilons)

    def _added(self, epsilons: Floats) -> Floats:
        """Return delta where the pair without the row comes first."""
        # [pld:added] exp(epsilon) times what delta of the exchanged pair is above
        # 1 - exp(-epsilon) at -epsilon
        odds = self.rate + np.expm1(-epsilons)
        inside = odds > 0
        inner = -np.log(np.where(inside, odds, self.rate) / self.rate)
        found = np.exp(epsilons) * odds * gaussian_deltas(inner, self.mu)
        return np.where(inside, found, 0.0)

    def reach(self, tail: float) -> tuple[float, float]:
        removed = super().reach(tail)[0]
        whole = _gaussian_reach(self.mu, tail)
        added = -log1p(self.rate * expm1(-whole))
        return (removed, added) if self.added else (added, removed)

    @property
    def exchanged(self) -> PoissonLoss:
        return PoissonLoss(self.mu, self.rate, not self.added)


@dataclass(frozen=True)
class TiltedLoss(Loss):
    """A loss of ``offset + mu^2/2 + mu chi``, chi the norm of ``dim`` normals."""

    offset: float
    mu: float
    dim: int

    def reach(self, tail: float) -> tuple[float, float]:
        far = sqrt(self.dim) + sqrt(-2 * log(tail))
        return 0.0, self.offset + self.mu * (self.mu / 2 + far)

    def masses(self, step: float, tail: float) -> Masses:
        up = self._grid_deltas(step, max(1, ceil(self.reach(tail)[1] / step)))
        # the bound speaks of losses above zero only; what the other member of the pair
        # lacks has a loss of minus infinity
        return _chords(step, up, np.full(2, up[0]))

    def _grid_deltas(self, step: float, n: int) -> Floats:
        """Return delta at 0, step, ..., n step."""
        # [pld:tilted] integral of mu exp(-mu (r - knee)) P(chi > r) from the knee on
        rest = _multiples(step, n) - self.offset - self.mu**2 / 2
        knees = np.maximum(rest, 0.0) / self.mu
        end = max(float(knees[-1]), sqrt(self.dim)) + 38.0  # nothing is left beyond
        nodes, weights = np.polynomial.legendre.leggauss(6)
        cuts = np.unique(np.concatenate([knees, np.arange(0.0, end, 0.5)]))
        half = np.diff(cuts)[:, None] / 2
        r = cuts[:-1, None] + half * (nodes + 1)
        tails = special.gammaincc(self.dim / 2, r**2 / 2)
        pieces = np.sum(half * weights * self.mu * np.exp(-self.mu * r) * tails, axis=1)
        sums = np.append(np.cumsum(pieces[::-1])[::-1], 0.0)
        found = np.exp(np.maximum(rest, 0.0)) * sums[np.searchsorted(cuts, knees)]
        found *= 1 + 1e-9  # the rule of quadrature is better than this
        below = -np.expm1(rest) + np.exp(rest) * found
        return np.asarray(np.where(rest < 0, below, found), dtype=np.float64)


@dataclass(frozen=True)
class BoundedRangeLoss(PointwiseLoss):
    """A selection whose log-odds move within a range of ``epsilon``."""

    epsilon: float

    def deltas(self, epsilons: Floats) -> Floats:
        # [pld:range-one] the worst pair at each epsilon
        gap = np.minimum(epsilons - self.epsilon, 0.0) / 2
        return np.asarray(np.expm1(gap) ** 2 / -expm1(-self.epsilon))

    def reach(self, tail: float) -> tuple[float, float]:
        return self.epsilon, self.epsilon

    def parts(self, count: int) -> tuple[tuple[Loss, int], ...]:
        # [pld:range-blocks] of nearly equal lengths, as short ones are less tight
        n_blocks = ceil(count / LONGEST_BLOCK)
        length, longer = divmod(count, n_blocks)
        sizes = ((length + 1, longer), (length, n_blocks - longer))
        return tuple((_RangeBlock(self.epsilon, size), n) for size, n in sizes if n)


@dataclass(frozen=True)
class _RangeBlock(Loss):
    """Several bounded-range losses, whose pair may depend on the past."""

    epsilon: float
    count: int

    def reach(self, tail: float) -> tuple[float, float]:
        end = self.epsilon * self.count
        return end, end

    @property
    def lattice(self) -> float | None:
        return _range_masses(self.epsilon, self.count)[0]

    def masses(self, step: float, tail: float) -> Masses:
        spacing, found = _range_masses(self.epsilon, self.count)
        return _spread(found.losses(spacing), found.mass, step, found.infinite)


@lru_cache(maxsize=64)
def _range_masses(epsilon: float, count: int) -> tuple[float, Masses]:
    """Return the spacing of a grid, and the losses of a block on it."""
    spacing, deltas = bounded_range_deltas(epsilon, count)
    return spacing, _chords(spacing, deltas, deltas)
