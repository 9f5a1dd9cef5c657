"""Privacy curves, which add up under composition, and their exact profiles.

A profile is delta as a function of epsilon. It is kept beside the Renyi curve as long
as a composition stays inside the family it can evaluate exactly. ``join`` returns the
profile of a composition, or None when that family is left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, inf, log, log1p, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tacit._validate import at_least, fraction, plain, plain_number
from tacit.privacy import convolution
from tacit.privacy.budget import Budget
from tacit.privacy.deltas import gaussian_delta, gaussian_deltas
from tacit.privacy.losses import GaussianLoss, Loss, PointwiseLoss, TiltedLoss

__all__ = [
    "ORDERS",
    "SAFETY",
    "SMALL",
    "ComposedProfile",
    "GaussianProfile",
    "PrivacyCurve",
    "Profile",
    "TiltedProfile",
    "join",
    "pure_renyi",
    "smallest_epsilon",
]

ORDERS: NDArray[np.float64] = 1.0 + np.logspace(-2, 5, 141)
ORDERS.flags.writeable = False

# Below this epsilon the exact Renyi curves cancel in floating point, and the simple
# bound is as good
SMALL = 1e-4
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


@dataclass(frozen=True, eq=False)
class PrivacyCurve:
    """Privacy curve of a mechanism or a composition, in parts that add up.

    Parameters
    ----------
    renyi
        Bound on the Renyi divergence at each of ``ORDERS``; infinite where unknown.
    pure
        Bound on the loss itself; infinite if unbounded.
    exact
        Tightest profile known for this composition, or None.
    slack
        Probability that the bounds above fail.

    Notes
    -----
    **Guarantee.** Each part is valid under adaptive composition of events fixed in
    advance, so ``epsilon`` and ``delta`` may take the best of them. For events chosen
    after seeing outputs, see `tacit.privacy.Ledger`.
    """

    renyi: NDArray[np.float64]
    pure: float = inf
    exact: Profile | None = None
    slack: float = 0.0

    @property
    def gaussian(self) -> float:
        """Squared Gaussian-privacy parameter; infinite for other losses."""
        exact = self.exact
        return exact.mu_squared if isinstance(exact, GaussianProfile) else inf

    def __add__(self, other: PrivacyCurve) -> PrivacyCurve:
        return PrivacyCurve(
            self.renyi + other.renyi,
            self.pure + other.pure,
            join(self.exact, other.exact),
            # [curve:slack] that not all of them hold
            self.slack + other.slack * (1 - self.slack),
        )

    def __post_init__(self) -> None:
        plain(self, "pure", "slack")
        renyi = np.asarray(self.renyi, dtype=np.float64)
        if renyi.shape != ORDERS.shape:
            raise ValueError(
                f"renyi must have one bound for each of the {ORDERS.size} ORDERS, got "
                f"shape {renyi.shape}."
            )
        object.__setattr__(self, "renyi", renyi)

    def __mul__(self, count: int) -> PrivacyCurve:
        at_least(1, count=count)
        count = int(count)  # a narrow integer would wrap
        return PrivacyCurve(
            self.renyi * count,
            self.pure * count,
            None if self.exact is None else self.exact.times(count),
            -expm1(count * log1p(-self.slack)) if self.slack < 1 else 1.0,
        )

    __rmul__ = __mul__

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon that holds at ``delta``, or infinity."""
        delta = plain_number(delta, "delta")
        fraction(delta=delta)
        left = self._left(delta)
        if left < 0:
            return inf
        found = [_pure_epsilon(self.pure, left), renyi_epsilon(self.renyi, left)]
        if self.exact is not None and left > 0:
            found.append(self.exact.epsilon(left))
        return min(found)

    def delta(self, epsilon: float) -> float:
        """Return the least delta that holds at ``epsilon``, at most one."""
        epsilon = plain_number(epsilon, "epsilon")
        found = [_pure_delta(self.pure, epsilon), renyi_delta(self.renyi, epsilon)]
        if self.exact is not None:
            found.append(self.exact.delta(epsilon))
        return self.slack + (1 - self.slack) * min(1.0, *found)

    def _left(self, delta: float) -> float:
        """Return the delta that is left for the parts that hold but for the slack."""
        return (delta - self.slack) / (1 - self.slack) if self.slack < 1 else -1.0

    def fits(self, budget: Budget) -> bool:
        """Whether the guarantee of ``budget`` holds; tries the cheap bounds first."""
        left = self._left(budget.delta)
        if left < 0:
            return False
        if _pure_delta(self.pure, budget.epsilon) <= left:
            return True
        if left == 0:
            return False
        if renyi_delta(self.renyi, budget.epsilon) <= left:
            return True
        return self.exact is not None and self.exact.delta(budget.epsilon) <= left


def renyi_log_delta(
    renyi: NDArray[np.float64], epsilon: float, orders: NDArray[np.float64] = ORDERS
) -> NDArray[np.float64]:
    """Return the log of the delta each order gives at ``epsilon``.

    Notes
    -----
    **Bound.** Canonne, Kamath and Steinke (2020), Proposition 12.
    """
    a = orders - 1
    return a * (renyi - epsilon) + a * np.log(a) - orders * np.log(orders)


def renyi_delta(renyi: NDArray[np.float64], epsilon: float) -> float:
    """Return the best delta over all orders."""
    return exp(min(0.0, float(np.min(renyi_log_delta(renyi, epsilon)))))


def renyi_epsilon(renyi: NDArray[np.float64], delta: float) -> float:
    """Return the best epsilon over all orders; infinite at delta zero."""
    if delta <= 0:
        return 0.0 if not renyi.any() else inf
    a = ORDERS - 1
    bound = renyi + np.log(a) - (log(delta) + ORDERS * np.log(ORDERS)) / a
    return max(0.0, float(np.min(bound)))


def pure_renyi(epsilon: float) -> NDArray[np.float64]:
    """Return the Renyi curve of randomized response, the worst with this bound.

    Notes
    -----
    **Bound.** Kairouz, Oh and Viswanath (2017), Theorem 3.4, and Bun and Steinke
    (2016), Proposition 3.3.
    """
    bound = np.minimum(epsilon, ORDERS * epsilon**2 / 2)
    if epsilon > SMALL:
        moment = np.logaddexp(ORDERS * epsilon, (1 - ORDERS) * epsilon)
        moment -= np.logaddexp(0.0, epsilon)
        bound = np.clip(moment / (ORDERS - 1), 0.0, bound)
    return np.asarray(bound)


def _pure_delta(pure: float, epsilon: float) -> float:
    # randomized response is the worst mechanism with a bounded loss
    if epsilon >= pure:
        return 0.0
    if pure == inf:
        return 1.0
    if epsilon < -pure:  # both of its losses are above
        return -expm1(epsilon)
    return -expm1(epsilon - pure) / (1 + exp(-pure))


def _pure_epsilon(pure: float, delta: float) -> float:
    if pure == inf:
        return inf
    # solve exp(pure) - exp(epsilon) = delta (1 + exp(pure)) without overflow
    kept = 1 - delta * (1 + exp(-pure))
    return max(0.0, pure + log(kept)) if kept > 0 else 0.0
