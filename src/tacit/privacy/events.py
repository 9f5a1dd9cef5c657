"""Privacy events: what mechanisms did, never to which data, and the noise of a budget.

An event determines a privacy curve. Events are frozen, printed and compared by value.
Where a bound holds under one relation only, the curve of the other raises
`tacit.exceptions.PlanError`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, inf, log
from typing import Protocol

import numpy as np

from tacit._validate import (
    at_least,
    at_most,
    fraction,
    nonnegative,
    plain,
    positive,
    shown,
)
from tacit.exceptions import PlanError
from tacit.privacy.budget import Budget, Neighbors
from tacit.privacy.curve import (
    ORDERS,
    SMALL,
    ComposedProfile,
    GaussianProfile,
    PrivacyCurve,
    TiltedProfile,
    pure_renyi,
)
from tacit.privacy.losses import (
    BoundedRangeLoss,
    LaplaceLoss,
    Loss,
    ResponseLoss,
)

__all__ = [
    "ApproxDP",
    "BoundedRange",
    "Composed",
    "Event",
    "GaussianNoise",
    "L2LaplaceNoise",
    "LaplaceNoise",
    "PureDP",
    "Repeated",
    "SeveralEvents",
    "TiltedMinimum",
    "calibrate",
    "single_loss",
    "whole_budget",
]

LARGEST_RANK = 10**8  # beyond it, the round-off of the chi density shows
LARGEST_COUNT = 10**9
# Noise beyond which calibration gives up
LARGEST_NOISE = 1e12


def _countable(**named: float) -> None:
    """Require numbers whose squares are positive floats, so that no event is free."""
    positive(**named)
    for name, value in named.items():
        if not 1e-150 <= value <= 1e150:
            raise ValueError(
                f"{name} must be from 1e-150 to 1e150, got {shown(value)}."
            )


def single_loss(loss: Loss) -> ComposedProfile:
    """Return the exact profile of one event with this loss."""
    return ComposedProfile(((loss, 1),))


class Event(Protocol):
    """Privacy event: public facts that determine a privacy curve."""

    def curve(self, neighbors: Neighbors) -> PrivacyCurve: ...


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian mechanism: noise of ``multiplier`` times the L2 sensitivity.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy with parameter ``1 / multiplier``,
    with equality (Dong, Roth and Su 2022, Theorem 2.7).
    """

    multiplier: float

    def __post_init__(self) -> None:
        plain(self)
        _countable(multiplier=self.multiplier)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        mu_squared = self.multiplier**-2
        return PrivacyCurve(
            ORDERS * (mu_squared / 2), exact=GaussianProfile(mu_squared)
        )


@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace mechanism: noise of scale ``multiplier`` times the L1 sensitivity.

    Notes
    -----
    **Guarantee.** Pure privacy with epsilon ``1 / multiplier``; Renyi curve of
    Mironov (2017), Table II. Exact profile of a shift of one number, which dominates.
    """

    multiplier: float

    def __post_init__(self) -> None:
        plain(self)
        _countable(multiplier=self.multiplier)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        t, a = 1 / self.multiplier, ORDERS
        if t <= SMALL:
            return PureDP(t).curve(neighbors)
        moment = np.logaddexp(
            np.log(a / (2 * a - 1)) + (a - 1) * t, np.log((a - 1) / (2 * a - 1)) - a * t
        )
        # a margin for the discrete distribution on the grid
        renyi = np.maximum(moment, 0.0) / (a - 1) * (1 + 1e-8)
        return PrivacyCurve(np.minimum(renyi, t), t, single_loss(LaplaceLoss(t)))


@dataclass(frozen=True)
class L2LaplaceNoise:
    """L2-Laplace mechanism on a vector of ``size`` numbers.

    Notes
    -----
    **Guarantee.** Pure privacy with epsilon ``1 / multiplier``, except with the
    probability by which the drawn distribution can differ from the exact one.
    """

    multiplier: float
    size: int

    def __post_init__(self) -> None:
        plain(self)
        _countable(multiplier=self.multiplier)
        at_least(1, size=self.size)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        pure = PureDP(1 / self.multiplier).curve(neighbors)
        # [grid:l2laplace-slack] the distance counts on both data sets
        slack = (1 + exp(pure.pure)) * self.size**1.5 * 2.0**-90
        return replace(pure, slack=slack)


@dataclass(frozen=True)
class PureDP:
    """An epsilon-private mechanism of which nothing else is known.

    Notes
    -----
    **Guarantee.** Renyi curve of randomized response, which every such mechanism is
    a post-processing of (Kairouz, Oh and Viswanath 2017, Theorem 3.4).
    """

    epsilon: float

    def __post_init__(self) -> None:
        plain(self)
        _countable(epsilon=self.epsilon)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        exact = single_loss(ResponseLoss(self.epsilon))
        return PrivacyCurve(pure_renyi(self.epsilon), self.epsilon, exact)


@dataclass(frozen=True)
class ApproxDP:
    """An (epsilon, delta)-private mechanism of which nothing else is known.

    Notes
    -----
    **Guarantee.** With probability ``1 - delta`` it behaves as a pure one (Kairouz,
    Oh and Viswanath 2017, Theorem 3.4), so the failure goes into the slack.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        plain(self)
        _countable(epsilon=self.epsilon)
        fraction(delta=self.delta)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        return replace(PureDP(self.epsilon).curve(neighbors), slack=self.delta)


def whole_budget(budget: Budget) -> PureDP | ApproxDP:
    """Return the event of spending a whole budget."""
    if budget.delta == 0:
        return PureDP(budget.epsilon)
    return ApproxDP(budget.epsilon, budget.delta)


@dataclass(frozen=True)
class BoundedRange:
    """Bounded-range mechanism: a selection whose log-odds move by ``epsilon`` at most.

    Notes
    -----
    **Guarantee.** The exponential mechanism with parameter epsilon is in this class,
    and is epsilon^2/8 concentrated (Cesar and Rogers 2021, Lemma 3.4) besides pure
    with ``epsilon``. The exact profile is that of the worst mechanisms, each chosen
    after seeing the outputs before it (after Dong, Durfee and Rogers 2020).
    """

    epsilon: float

    def __post_init__(self) -> None:
        plain(self)
        _countable(epsilon=self.epsilon)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        bound = PureDP(self.epsilon).curve(neighbors).renyi
        return PrivacyCurve(
            np.minimum(bound, ORDERS * self.epsilon**2 / 8),
            self.epsilon,
            single_loss(BoundedRangeLoss(self.epsilon)),
        )


@dataclass(frozen=True)
class TiltedMinimum:
    """Objective perturbation: the minimizer of a convex sum with a random linear term.

    Parameters
    ----------
    offset
        Bound on the change of the log-determinant of the Hessian by one row.
    multiplier
        Noise of the linear term, in units of the sensitivity of the gradient.
    rank
        Dimension of the space in which the gradient of one row can move.

    Notes
    -----
    **Guarantee.** The privacy loss is at most ``offset + mu^2/2 + mu chi`` in
    distribution, with mu = 1/multiplier and chi the norm of ``rank * rows_changed``
    standard normals; see the page on objective perturbation.
    """

    offset: float
    multiplier: float
    rank: int = 1

    def __post_init__(self) -> None:
        plain(self)
        nonnegative(offset=self.offset)
        _countable(multiplier=self.multiplier)
        at_least(1, rank=self.rank)
        at_most(LARGEST_RANK, rank=self.rank)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        # [tilted:loss]
        exact = TiltedProfile(
            self.offset, 1 / self.multiplier, self.rank * neighbors.rows_changed
        )
        return PrivacyCurve(exact.renyi(ORDERS), exact=exact)


@dataclass(frozen=True)
class Repeated:
    """Composition of the same event ``count`` times."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, count=self.count)
        at_most(LARGEST_COUNT, count=self.count)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        return self.event.curve(neighbors) * self.count


@dataclass(frozen=True)
class SeveralEvents:
    """Base of events that are made of others."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        # a list could change after the charge
        object.__setattr__(self, "events", tuple(self.events))
        if not self.events:
            raise ValueError("events must name at least one event, got none.")


@dataclass(frozen=True)
class Composed(SeveralEvents):
    """Composition of several events on the same data."""

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        first, *others = (event.curve(neighbors) for event in self.events)
        return sum(others, first)


def calibrate(
    make_event: Callable[[float], Event], budget: Budget, *, rtol: float = 1e-4
) -> float:
    """Return the least noise, within ``rtol``, whose event fits the budget.

    Parameters
    ----------
    make_event
        Event for a given noise, such as ``GaussianNoise``; its privacy curve must
        fall as the noise grows.
    budget
        What may be spent.
    rtol
        Relative distance from the least noise that fits; the result is above it.

    Notes
    -----
    **Guarantee.** The curve of the returned noise was evaluated and fits. Numerical
    compositions take some milliseconds, so their search starts from the answer of the
    simpler bounds and follows the nearly straight line of log epsilon against log
    noise.
    """
    positive(rtol=rtol)
    start = _bracket(make_event, budget)
    if budget.delta > 0 and _is_composed(_curve(make_event, start, budget)):
        return _follow_line(make_event, budget, start, rtol)
    low, high = start / 2, start
    while high > low * (1 + rtol):
        middle = (low * high) ** 0.5
        if _curve(make_event, middle, budget).fits(budget):
            high = middle
        else:
            low = middle
    return high


def _curve(
    make_event: Callable[[float], Event], noise: float, budget: Budget
) -> PrivacyCurve:
    return make_event(noise).curve(budget.neighbors)


def _cheaply_fits(curve: PrivacyCurve, budget: Budget) -> bool:
    return (replace(curve, exact=None) if _is_composed(curve) else curve).fits(budget)


def _is_composed(curve: PrivacyCurve) -> bool:
    """Whether the exact part of a curve is a numerical composition."""
    return isinstance(curve.exact, ComposedProfile)


def _bracket(make_event: Callable[[float], Event], budget: Budget) -> float:
    """Return a noise that fits by the cheap bounds while half of it does not."""
    noise = 1.0
    while not _cheaply_fits(_curve(make_event, noise, budget), budget):
        noise *= 2
        if noise > LARGEST_NOISE:
            raise PlanError(
                f"No noise makes this event fit epsilon={budget.epsilon:g} at "
                f"delta={budget.delta:g}; raise epsilon or delta."
            )
    while noise > 1 / LARGEST_NOISE and _cheaply_fits(
        _curve(make_event, noise / 2, budget), budget
    ):
        noise /= 2
    return noise


def _follow_line(
    make_event: Callable[[float], Event], budget: Budget, high: float, rtol: float
) -> float:
    """Find the least noise with few evaluations of an expensive exact curve.

    Log epsilon is nearly a straight line in log noise. Every point that fits is a valid
    answer; the search ends when the line says that it is within ``rtol`` of the root.
    """

    def excess(noise: float) -> float:
        spent = _curve(make_event, noise, budget).epsilon(budget.delta)
        if spent == 0:
            return -1.0  # within delta alone
        return log(spent / budget.epsilon) if spent < inf else 1.0

    # half of what the tolerance allows, as the derivative is around -1 or steeper
    goal = 0.5 * rtol
    x, derivative, best = log(high), -1.2, log(high)
    gap = excess(high)
    for _ in range(40):
        if -goal <= gap <= 0:
            break
        # a little to the safe side of the root
        ahead = x - (gap + goal / 3) / derivative
        ahead = min(max(ahead, -log(LARGEST_NOISE)), log(LARGEST_NOISE))
        if ahead == x:
            break
        moved = excess(exp(ahead))
        derivative = min(-0.1, (moved - gap) / (ahead - x))
        x, gap = ahead, moved
        if gap <= 0:
            best = min(best, x)
    return exp(best)
