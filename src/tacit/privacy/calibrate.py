"""The least noise whose event fits a budget."""

from collections.abc import Callable
from math import copysign, exp, inf, log

from tacit._validate import positive
from tacit.exceptions import PlanError
from tacit.privacy.budget import Budget
from tacit.privacy.curve import PrivacyCurve, renyi_epsilon
from tacit.privacy.events import Event
from tacit.privacy.profiles import SampledProfile

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
    **Guarantee.** The curve of the returned noise was evaluated and fits. Sampled
    events cost seconds an evaluation, so their search starts from the Renyi answer
    and follows the nearly straight line of log epsilon against log noise.
    """
    positive(rtol=rtol)
    start = _bracket(make_event, budget)
    if isinstance(_curve(make_event, start, budget).exact, SampledProfile):
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
    if isinstance(curve.exact, SampledProfile):
        curve = PrivacyCurve(curve.renyi, curve.pure, slack=curve.slack)
    return curve.fits(budget)


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

    The ratio of the Renyi epsilon to the exact one hardly changes with the noise, so
    the first step solves the cheap curve for the epsilon that ratio asks for; secants
    follow. Every point that fits is a valid answer, and the search ends when the
    secant says that the best one is within ``rtol`` of the root.
    """

    def cheap(noise: float) -> float:
        curve = _curve(make_event, noise, budget)
        return renyi_epsilon(curve.renyi, budget.delta - curve.slack)

    def cheap_root(epsilon: float, low: float, high: float) -> float:
        while high > low * (1 + rtol):
            middle = (low * high) ** 0.5
            low, high = (low, middle) if cheap(middle) <= epsilon else (middle, high)
        return high

    def excess(noise: float) -> float:
        spent = _curve(make_event, noise, budget).epsilon(budget.delta)
        return log(spent / budget.epsilon) if 0 < spent < inf else copysign(1.0, spent)

    best = cheap_root(budget.epsilon, high / 2, high)
    points = [(log(best), excess(best))]
    low, slope = best / 4, -1.0
    aim = cheap_root(budget.epsilon * exp(-points[0][1]), low, best)
    for _ in range(40):
        if low < aim < best:
            aim *= 1 + rtol / 4
        else:
            aim = (low * best) ** 0.5
        points.append((log(aim), excess(aim)))
        (x0, gap0), (x1, gap1) = points[-2:]
        if gap1 <= 0:
            best = min(best, aim)
        else:
            low = max(low, aim)
        slope = min(-0.1, (gap1 - gap0) / (x1 - x0)) if x1 != x0 else slope
        root = exp(x1 - gap1 / slope)
        if gap1 <= 0 and aim <= root * (1 + rtol):
            break
        if best <= low * (1 + rtol):
            break
        aim = root
    return best
