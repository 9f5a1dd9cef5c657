"""The least noise whose event fits a budget."""

from collections.abc import Callable
from dataclasses import replace
from math import exp, inf, log

from tacit._validate import positive
from tacit.exceptions import PlanError
from tacit.privacy.budget import Budget
from tacit.privacy.curve import PrivacyCurve
from tacit.privacy.events import Event
from tacit.privacy.profiles import ComposedProfile

__all__ = ["calibrate"]

LARGEST = 1e12


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
        if noise > LARGEST:
            raise PlanError(
                f"No noise makes this event fit epsilon={budget.epsilon:g} at "
                f"delta={budget.delta:g}; raise epsilon or delta."
            )
    while noise > 1 / LARGEST and _cheaply_fits(
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
        ahead = min(max(ahead, -log(LARGEST)), log(LARGEST))
        if ahead == x:
            break
        moved = excess(exp(ahead))
        derivative = min(-0.1, (moved - gap) / (ahead - x))
        x, gap = ahead, moved
        if gap <= 0:
            best = min(best, x)
    return exp(best)
