"""The least noise whose event fits a budget."""

from collections.abc import Callable
from math import copysign, exp, inf, log

from tacit._validate import positive
from tacit.exceptions import PlanError
from tacit.privacy.budget import Budget
from tacit.privacy.curve import PrivacyCurve
from tacit.privacy.events import Event
from tacit.privacy.profiles import SampledProfile
from tacit.privacy.sampling import COARSE, FINE

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
    events cost seconds an evaluation, so their search starts from a Renyi answer and
    follows the nearly straight line of log epsilon against log noise.
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

    Log epsilon is nearly a straight line in log noise, and the same line but for an
    offset on a coarse grid of losses, which is ten times faster. So the root is found
    on the coarse grid, moved by the offset, and confirmed on the fine one. Every point
    that fits there is a valid answer; the search ends when the line says that it is
    within ``rtol`` of the root.
    """

    def excess(noise: float, interval: float) -> float:
        curve = _curve(make_event, noise, budget)
        left = budget.delta - curve.slack
        assert isinstance(curve.exact, SampledProfile)  # as the caller has checked
        spent = curve.exact.epsilon(left, interval)
        return log(spent / budget.epsilon) if 0 < spent < inf else copysign(1.0, spent)

    def secant(
        x: float, interval: float, slope: float, goal: float
    ) -> tuple[float, float, float]:
        """Follow the line from ``x`` until the excess is between -goal and zero."""
        gap = excess(exp(x), interval)
        for _ in range(40):
            if -goal <= gap <= 0:
                break
            # a little to the safe side of the root
            ahead = x - (gap + goal / 3) / slope
            moved = excess(exp(ahead), interval)
            slope = min(-0.1, (moved - gap) / (ahead - x))
            x, gap = ahead, moved
        return x, gap, slope

    # half of what the tolerance allows, as slopes are around -1 or steeper
    x, _, slope = secant(log(high), COARSE, -1.2, 0.5 * rtol)
    x, gap, _ = secant(x, FINE, slope, 0.5 * rtol)
    return exp(x) if gap <= 0 else high
