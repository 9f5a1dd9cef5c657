"""Privacy events: what mechanisms did, never to which data.

An event determines a privacy curve. Events are frozen, printed and compared by value.
Where a bound holds under one relation only, the curve of the other raises
`tacit.exceptions.PlanError`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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
from tacit.privacy.budget import Neighbors
from tacit.privacy.curve import ORDERS, SMALL, PrivacyCurve, pure_renyi
from tacit.privacy.losses import (
    BoundedRangeLoss,
    FixedSizeLoss,
    LaplaceLoss,
    Loss,
    PoissonLoss,
    ResponseLoss,
)
from tacit.privacy.profiles import ComposedProfile, GaussianProfile, TiltedProfile
from tacit.privacy.repeated import OneOf, Parallel, RepeatAndSelect, keep_events

__all__ = [
    "ApproxDP",
    "BoundedRange",
    "Composed",
    "Event",
    "FixedSizeSampled",
    "GaussianNoise",
    "L2LaplaceNoise",
    "LaplaceNoise",
    "OneOf",
    "Parallel",
    "PoissonSampled",
    "PureDP",
    "RepeatAndSelect",
    "Repeated",
    "TiltedMinimum",
    "fixed_size_renyi",
    "poisson_renyi",
]

# Above this order the series of sampled mechanisms are slow and never the best.
MAX_ORDER = 256.0


@lru_cache(maxsize=1)
def _library() -> tuple[Any, Any]:
    """Return dp_accounting, which nothing else here imports."""
    import dp_accounting  # noqa: PLC0415 - one second, and few users need it
    from dp_accounting.rdp import RdpAccountant  # noqa: PLC0415

    return dp_accounting, RdpAccountant


def _renyi(
    orders: NDArray[np.float64], relation: str, event: Any
) -> NDArray[np.float64]:
    events, accountant_of = _library()
    curve = np.full(len(orders), np.inf)
    usable = orders <= MAX_ORDER
    # Renyi divergence grows with its order, so the next whole one bounds it; between
    # integers the series take seconds and may not converge
    whole, positions = np.unique(np.ceil(orders[usable]), return_inverse=True)
    accountant = accountant_of(whole, getattr(events.NeighboringRelation, relation))
    accountant.compose(event)
    # The curve itself has no public accessor; tests pin it to get_epsilon.
    curve[usable] = np.asarray(accountant._rdp)[positions]
    return curve


def poisson_renyi(
    orders: NDArray[np.float64], multiplier: float, rate: float
) -> NDArray[np.float64]:
    """Return the Renyi curve of one Poisson-sampled Gaussian, add or remove one."""
    events, _ = _library()
    event = events.PoissonSampledDpEvent(rate, events.GaussianDpEvent(multiplier))
    return _renyi(orders, "ADD_OR_REMOVE_ONE", event)


def fixed_size_renyi(
    orders: NDArray[np.float64], multiplier: float, size: int, n_rows: int
) -> NDArray[np.float64]:
    """Return the Renyi curve of a Gaussian on a fixed-size sample, replace one."""
    events, _ = _library()
    event = events.SampledWithoutReplacementDpEvent(
        n_rows, size, events.GaussianDpEvent(multiplier)
    )
    return _renyi(orders, "REPLACE_ONE", event)


LARGEST_RANK = 10**8  # beyond it, the round-off of the chi density shows
LARGEST_COUNT = 10**9


def _countable(**named: float) -> None:
    """Require numbers whose squares are positive floats, so that no event is free."""
    positive(**named)
    for name, value in named.items():
        if not 1e-150 <= value <= 1e150:
            raise ValueError(
                f"{name} must be from 1e-150 to 1e150, got {shown(value)}."
            )


def _once(loss: Loss) -> ComposedProfile:
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
            np.log(a / (2 * a - 1)) + (a - 1) * t,
            np.log((a - 1) / (2 * a - 1)) - a * t,
        )
        # a margin for the discrete distribution on the grid
        renyi = np.maximum(moment, 0.0) / (a - 1) * (1 + 1e-8)
        return PrivacyCurve(np.minimum(renyi, t), t, _once(LaplaceLoss(t)))


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
        exact = _once(ResponseLoss(self.epsilon))
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
            _once(BoundedRangeLoss(self.epsilon)),
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


def _require_gaussian(event: object) -> None:
    if not isinstance(event, GaussianNoise):
        raise ValueError(
            f"event must be GaussianNoise to be sampled, got {type(event).__name__}."
        )


@dataclass(frozen=True)
class PoissonSampled:
    """Gaussian mechanism on a Poisson sample: each row with probability ``rate``.

    Notes
    -----
    **Guarantee.** Under adding or removing one row: Mironov, Talwar and Zhang (2019)
    for the Renyi curve, and numerical composition of the dominating pair for the
    exact part (Zhu, Dong and Wang 2022, Theorem 11).
    """

    event: GaussianNoise
    rate: float

    def __post_init__(self) -> None:
        plain(self)
        _require_gaussian(self.event)
        fraction(rate=self.rate, closed=False)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        if neighbors is not Neighbors.ADD_OR_REMOVE_ONE:
            raise PlanError(
                "PoissonSampled has no bound under 'replace_one'; use "
                "neighbors='add_or_remove_one', or FixedSizeSampled."
            )
        multiplier = self.event.multiplier
        return PrivacyCurve(
            poisson_renyi(ORDERS, multiplier, self.rate),
            exact=_once(PoissonLoss(1 / multiplier, self.rate)),
        )


@dataclass(frozen=True)
class FixedSizeSampled:
    """Gaussian mechanism on ``size`` of ``n_rows`` rows, sampled without replacement.

    Notes
    -----
    **Guarantee.** Under replacing one row: Wang, Balle and Kasiviswanathan (2019),
    Theorem 9, for the Renyi curve, and numerical composition of the profile of Balle,
    Barthe and Gaboardi (2018), Theorem 10, for the exact part.
    """

    event: GaussianNoise
    size: int
    n_rows: int

    def __post_init__(self) -> None:
        plain(self)
        _require_gaussian(self.event)
        at_least(1, size=self.size)
        at_least(self.size, n_rows=self.n_rows)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        if neighbors is not Neighbors.REPLACE_ONE:
            raise PlanError(
                "FixedSizeSampled has no bound under 'add_or_remove_one'; use "
                "neighbors='replace_one', or PoissonSampled."
            )
        multiplier, rate = self.event.multiplier, self.size / self.n_rows
        return PrivacyCurve(
            fixed_size_renyi(ORDERS, multiplier, self.size, self.n_rows),
            exact=_once(FixedSizeLoss(1 / multiplier, rate)),
        )


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
class Composed:
    """Composition of several events on the same data."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        keep_events(self)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        first, *others = (event.curve(neighbors) for event in self.events)
        return sum(others, first)
