"""Events made of others: samples, disjoint parts, choices, the best of many runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from math import expm1, inf, isfinite, log
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from tacit._validate import at_least, fraction, plain
from tacit.exceptions import PlanError
from tacit.privacy.budget import Neighbors
from tacit.privacy.curve import (
    ORDERS,
    SAFETY,
    GaussianProfile,
    PrivacyCurve,
    Profile,
    pure_renyi,
    smallest_epsilon,
)
from tacit.privacy.events import Event, GaussianNoise, SeveralEvents, single_loss
from tacit.privacy.losses import FixedSizeLoss, PoissonLoss

__all__ = [
    "FixedSizeSampled",
    "OneOf",
    "Parallel",
    "PoissonSampled",
    "RepeatAndSelect",
    "fixed_size_renyi",
    "mean_repeats",
    "poisson_renyi",
]

# Beyond these the distribution of repeats is degenerate, and some numbers overflow
LARGEST_SHAPE = 1e6
SMALLEST_STOP = 1e-12
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
            exact=single_loss(PoissonLoss(1 / multiplier, self.rate)),
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
            exact=single_loss(FixedSizeLoss(1 / multiplier, rate)),
        )


class Spends(Protocol):
    """Anything with a delta at each epsilon, such as a whole curve."""

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


@dataclass(frozen=True)
class Parallel(SeveralEvents):
    """Parallel composition: events on disjoint parts of the rows.

    Parameters
    ----------
    events
        One for each part. An event may use what those before it released.

    Notes
    -----
    **Guarantee.** Where rows go to parts by their index and by chance only, neighbors
    differ in one part, and the loss is that of its event (McSherry 2009, Theorem 4):
    the curve is that of the worst. Under replacement the sizes of the parts are fixed;
    where a row is added or removed, each row goes to a part by a coin of its own. See
    the page on private search.
    """

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        distinct = tuple(dict.fromkeys(self.events))
        parts = [event.curve(neighbors) for event in distinct]
        if len(parts) == 1:
            return parts[0]
        gaussian = max(part.gaussian for part in parts)
        # [parallel:worst] only one of the parts differs between neighbors
        exact = WorstProfile(tuple(replace(part, slack=0.0) for part in parts))
        return PrivacyCurve(
            np.max([part.renyi for part in parts], axis=0),
            max(part.pure for part in parts),
            exact if gaussian == inf else GaussianProfile(gaussian),
            max(part.slack for part in parts),
        )


@dataclass(frozen=True)
class OneOf(SeveralEvents):
    """One of several events, drawn uniformly and independently of the rows.

    Parameters
    ----------
    events
        Those that may happen, one as often as it is listed. Which one did may be
        published.

    Notes
    -----
    **Guarantee.** Delta is the mean of theirs, with equality, and so are the moments of
    the loss, as the draw has the same distribution on neighbors; pure with the worst
    bound. See the page on private search.
    """

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        counts = Counter(self.events)
        parts = [event.curve(neighbors) for event in counts]
        if len(parts) == 1:
            return parts[0]
        weights = [count / len(self.events) for count in counts.values()]
        # [one-of:mean] of deltas and of moments
        moments = [(ORDERS - 1) * part.renyi for part in parts]
        renyi = logsumexp(moments, b=np.array(weights)[:, None], axis=0) / (ORDERS - 1)
        exact = MixedProfile(
            tuple(replace(part, slack=0.0) for part in parts), tuple(weights)
        )
        return PrivacyCurve(
            # sums of weights round
            np.minimum(renyi * (1 + 1e-12), np.max([p.renyi for p in parts], axis=0)),
            max(part.pure for part in parts),
            exact,
            max(part.slack for part in parts),
        )


@dataclass(frozen=True)
class RepeatAndSelect:
    """Private selection: the best of a secret, random number of runs of one event.

    Runs are independent. The one with the highest score is published, the score as
    well, where the score is part of what a run releases. The number of runs is not.

    Parameters
    ----------
    event
        One run, its score included.
    eta
        Shape of the truncated negative binomial distribution of the number of runs,
        above -1. 1 is the geometric distribution, 0 the logarithmic one; large ones are
        close to Poisson.
    gamma
        Chance of stopping, between 0 and 1; smaller is more runs.

    Notes
    -----
    **Guarantee.** Renyi curve of Papernot and Steinke (2022), Theorem 2, optimized over
    its second order, and where it is less the same with the bound on ranks that the
    profile of the event gives; pure with ``2 + eta`` times the bound of the event, its
    limit. Profiles are bounded in the manner of Koskela, Redberg and Wang (2024), in
    the form that is proved on the page on private search.
    """

    event: Event
    eta: float
    gamma: float

    def __post_init__(self) -> None:
        plain(self)
        if not (isfinite(self.eta) and -1 < self.eta <= LARGEST_SHAPE):
            raise ValueError(
                f"eta must be above -1 and at most {LARGEST_SHAPE:g}, got {self.eta!r}."
            )
        fraction(gamma=self.gamma, closed=False)
        if self.gamma < SMALLEST_STOP:
            raise ValueError(
                f"gamma must be at least {SMALLEST_STOP:g}, got {self.gamma!r}."
            )

    @property
    def mean(self) -> float:
        """Expected number of runs."""
        return mean_repeats(self.eta, self.gamma)

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        one = self.event.curve(neighbors)
        # [repeat:slack] each run may fail with the slack of one
        slack = min(1.0, self.mean * one.slack)
        one = replace(one, slack=0.0)
        ranks = (1 + self.eta) * min(self._rank_shift(one), self._renyi_shift(one))
        # [repeat:renyi]
        renyi = one.renyi + ranks + log(self.mean) / (ORDERS - 1)
        # [repeat:pure]
        pure = (2 + self.eta) * one.pure
        if pure < inf:
            renyi = np.minimum(renyi, pure_renyi(pure))
        # divergences grow with the order, so that a bound holds below its own as well
        renyi = np.minimum.accumulate(renyi[::-1])[::-1]
        return PrivacyCurve(renyi, pure, SelectedProfile(one, self.mean, ranks), slack)

    def _rank_shift(self, one: PrivacyCurve) -> float:
        """Return the log of how far neighbors move the odds of a rank, per shape."""
        # [repeat:ranks] least e with delta(e) <= (exp(e) - 1) gamma / (1 - gamma)
        odds = self.gamma / (1 - self.gamma)

        def unmet(epsilon: float) -> float:
            return one.delta(epsilon) - expm1(min(epsilon, 700.0)) * odds

        return min(smallest_epsilon(unmet, 0.0, rtol=1e-4), one.pure)

    def _renyi_shift(self, one: PrivacyCurve) -> float:
        """Return the same from the Renyi curve, at the best second order."""
        stop = log(1 / self.gamma)
        # [repeat:second-order]
        found = (1 - 1 / ORDERS) * one.renyi + stop / ORDERS
        return min(stop, float(np.min(found)))


def mean_repeats(eta: float, gamma: float) -> float:
    """Return the mean of the truncated negative binomial distribution.

    Notes
    -----
    **Bound.** Papernot and Steinke (2022), Definition 1; near eta zero by its limit,
    without cancellation.
    """
    stop = log(1 / gamma)
    # eta (1 - gamma) / (gamma (1 - gamma^eta)), with both small at eta zero
    rate = stop if eta == 0 else -expm1(-eta * stop) / eta
    return -expm1(-stop) / gamma / rate if rate < inf else 1.0
