"""Exact privacy profiles: delta as a function of epsilon, for special losses.

A profile is kept beside the Renyi curve as long as a composition stays inside the
family it can evaluate exactly. ``join`` returns the profile of a composition, or
None when that family is left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import inf, log, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tacit.privacy import convolution
from tacit.privacy.deltas import gaussian_delta, gaussian_deltas
from tacit.privacy.losses import GaussianLoss, Loss, PointwiseLoss, TiltedLoss

__all__ = [
    "ComposedProfile",
    "GaussianProfile",
    "MixedProfile",
    "Profile",
    "SelectedProfile",
    "TiltedProfile",
    "WorstProfile",
    "join",
]

# Gaussian deltas are accurate to about 1e-11 and quadratures to the same; deltas are
# enlarged by this factor, so that what is reported errs on the safe side.
SAFETY = 1.0 + 1e-7


def smallest_epsilon(
    delta_of: Callable[[float], float], delta: float, rtol: float = 1e-10
) -> float:
    """Return the least epsilon whose delta fits, rounded up by at most ``rtol``."""
    if delta_of(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_of(high) > delta:
        low, high = high, 2 * high
        if high > 1e9:
            return inf
    while high - low > rtol * high:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) > delta else (low, middle)
    return high


class Profile(ABC):
    """Delta as a function of epsilon, and its inverse."""

    @property
    def losses(self) -> convolution.Parts | None:
        """Losses that sum to that of the profile, with counts; None if unknown."""
        return None

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Return the least delta that is known at ``epsilon``."""

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon that is known at ``delta``."""
        return smallest_epsilon(self.delta, delta)

    def times(self, count: int) -> Profile | None:
        """Return the profile of ``count`` of these, or None when there is none."""
        if count == 1:
            return self
        losses = self.losses
        if losses is None:
            return None
        return _composition((loss, n * count) for loss, n in losses)


@dataclass(frozen=True)
class GaussianProfile(Profile):
    """Gaussian differential privacy with squared parameter ``mu_squared``.

    Notes
    -----
    **Guarantee.** Adaptive composition adds the squared parameters, with equality
    (Dong, Roth and Su 2022, Corollary 3.3).
    """

    mu_squared: float

    @property
    def losses(self) -> convolution.Parts:
        return ((GaussianLoss(self.mu_squared), 1),)

    def delta(self, epsilon: float) -> float:
        return SAFETY * gaussian_delta(epsilon, sqrt(self.mu_squared))


@lru_cache(maxsize=8)
def _legendre(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return nodes, weights


def chi_log_density(r: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
    """Return the log density at ``r`` of the norm of a standard normal vector."""
    constant = (1 - dim / 2) * log(2) - float(special.gammaln(dim / 2))
    with np.errstate(divide="ignore"):
        return np.asarray(
            constant + special.xlogy(dim - 1, r) - r**2 / 2, dtype=np.float64
        )


@dataclass(frozen=True)
class TiltedProfile(Profile):
    """Privacy loss at most ``offset + mu^2/2 + mu chi_dim``, then a Gaussian one.

    This is what objective perturbation leaves: a bounded part from the change of
    variables, and the projection of the noise on the few directions a row can move.
    ``extra`` is the squared parameter of Gaussian mechanisms composed with it.
    """

    offset: float
    mu: float
    dim: int
    extra: float = 0.0

    @property
    def losses(self) -> convolution.Parts:
        loss = TiltedLoss(self.offset, self.mu, self.dim)
        return ((loss, 1), (GaussianLoss(self.extra), 1))

    def delta(self, epsilon: float) -> float:
        # average over r ~ chi of what the Gaussian part spends on the rest
        rest = epsilon - self.offset - self.mu**2 / 2
        width = sqrt(self.extra)
        knee = max(rest / self.mu, 0.0)  # the integrand turns here, within width / mu
        # beyond sixty above its mean a chi variable is not worth integrating
        end = min(max(knee, sqrt(self.dim - 1)) + 14.0, sqrt(self.dim) + 60.0)
        breaks = np.concatenate(
            [np.arange(0.0, end, 1.0), knee + width / self.mu * np.arange(-14, 15, 2)]
        )
        breaks = np.unique(np.clip(np.append(breaks, end), 0.0, end))
        nodes, weights = _legendre(24)
        half = np.diff(breaks)[:, None] / 2
        r = breaks[:-1, None] + half * (nodes + 1)
        spent = gaussian_deltas(rest - self.mu * r, width)
        inside = np.sum(half * weights * spent * np.exp(chi_log_density(r, self.dim)))
        tail = special.gammaincc(self.dim / 2, end**2 / 2)
        return float(min(1.0, SAFETY * inside + tail))

    def renyi(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Renyi curve without the extra Gaussian part."""
        s = ((orders - 1) * self.mu)[:, None]
        # exp(s r) times the chi density peaks where s - r + (dim - 1)/r = 0
        peak = (s + np.sqrt(s**2 + 4 * (self.dim - 1))) / 2
        start = np.maximum(peak - 9.0, 0.0)
        nodes, weights = _legendre(64)
        half = (peak + 9.0 - start) / 2
        r = start + half * (nodes + 1)
        moment = special.logsumexp(
            s * r + chi_log_density(r, self.dim), b=weights * half * SAFETY, axis=1
        )
        bound = self.offset + self.mu**2 / 2 + moment / (orders - 1)
        # divergences grow with the order: where round-off at little noise hides it, the
        # bound at a lower order holds, or none where it is no number
        bound = np.maximum.accumulate(np.where(np.isnan(bound), np.inf, bound))
        return np.asarray(bound, dtype=np.float64)


@dataclass(frozen=True)
class ComposedProfile(Profile):
    """Losses of dominating pairs, composed numerically: each with how often it occurs.

    Notes
    -----
    **Guarantee.** Pairs dominate under adaptive composition (Zhu, Dong and Wang 2022,
    Theorem 10); see the page on curves for each of them.
    """

    parts: convolution.Parts

    @property
    def losses(self) -> convolution.Parts:
        return self.parts

    def delta(self, epsilon: float) -> float:
        one = self._alone()
        if one is None:
            return convolution.composed(self.parts).delta(epsilon)
        found = float(one.deltas(np.array([max(epsilon, 0.0)]))[0])
        return 1.0 if epsilon < 0 else min(1.0, SAFETY * found)

    def epsilon(self, delta: float) -> float:
        if self._alone() is None:
            return convolution.composed(self.parts).epsilon(delta)
        return super().epsilon(delta)

    def _alone(self) -> PointwiseLoss | None:
        """Return the loss where there is one only, which needs no composition."""
        (loss, count), *others = self.parts
        if others or count > 1 or not isinstance(loss, PointwiseLoss):
            return None
        return loss


class Spends(Protocol):
    """Whatever knows its delta at an epsilon, such as a whole curve."""

    def delta(self, epsilon: float) -> float: ...


@dataclass(frozen=True)
class WorstProfile(Profile):
    """The largest delta of several, one of which holds for each pair of neighbors."""

    parts: tuple[Spends, ...]

    def delta(self, epsilon: float) -> float:
        return max(part.delta(epsilon) for part in self.parts)


@dataclass(frozen=True)
class MixedProfile(Profile):
    """The mean delta of several, one of which is drawn with these probabilities."""

    parts: tuple[Spends, ...]
    weights: tuple[float, ...]

    def delta(self, epsilon: float) -> float:
        pairs = zip(self.weights, self.parts, strict=True)
        return SAFETY * sum(weight * part.delta(epsilon) for weight, part in pairs)


@dataclass(frozen=True)
class SelectedProfile(Profile):
    """The best of a random number of runs, ``mean`` of them on average.

    Notes
    -----
    **Bound.** ``mean * delta(epsilon - shift)`` of one run, where ``exp(shift)`` bounds
    how far neighbors move the odds that the best run is one of a given rank; in the
    manner of Koskela, Redberg and Wang (2024), see the page on private search.
    """

    one: Spends
    mean: float
    shift: float

    def delta(self, epsilon: float) -> float:
        if epsilon < self.shift:
            return 1.0
        # [repeat:profile]
        return min(1.0, SAFETY * self.mean * self.one.delta(epsilon - self.shift))


# Different losses that are still composed numerically; beyond, Renyi curves remain
MOST_LOSSES = 64


def join(first: Profile | None, second: Profile | None) -> Profile | None:
    """Return the profile of both together, or None when there is none."""
    if first is None or second is None:
        return None
    one, other = first.losses, second.losses
    return None if one is None or other is None else _composition((*one, *other))


def _composition(parts: Iterable[tuple[Loss, int]]) -> Profile | None:
    """Return the composition in its simplest form; None where losses are too many."""
    gaussian = 0.0
    counts: dict[Loss, int] = {}
    for loss, count in parts:
        if isinstance(loss, GaussianLoss):
            gaussian += count * loss.mu_squared
        else:
            counts[loss] = counts.get(loss, 0) + count
    if not counts:
        return GaussianProfile(gaussian)
    (only, count), *others = counts.items()
    if not others and count == 1 and isinstance(only, TiltedLoss):
        return TiltedProfile(only.offset, only.mu, only.dim, gaussian)
    if gaussian > 0:
        counts[GaussianLoss(gaussian)] = 1
    if len(counts) > MOST_LOSSES:
        return None
    # in an order of their own, so that equal compositions are composed once
    return ComposedProfile(tuple(sorted(counts.items(), key=repr)))
