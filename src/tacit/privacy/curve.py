"""Privacy curves, which add up under composition, and the noise that fits a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, expm1, inf, log, log1p
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit._validate import at_least, fraction, plain, plain_number, positive
from tacit.exceptions import PlanError
from tacit.privacy.budget import Budget
from tacit.privacy.profiles import ComposedProfile, GaussianProfile, Profile, join

if TYPE_CHECKING:
    from tacit.privacy.events import Event

__all__ = ["ORDERS", "SMALL", "PrivacyCurve", "calibrate", "pure_renyi"]

ORDERS: NDArray[np.float64] = 1.0 + np.logspace(-2, 5, 141)
ORDERS.flags.writeable = False

# Below this epsilon the exact Renyi curves cancel in floating point, and the simple
# bound is as good
SMALL = 1e-4
# Noise beyond which calibration gives up
LARGEST_NOISE = 1e12


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
