"""A search for the least noise where one evaluation takes long."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log

from tacit.exceptions import PlanError

__all__ = ["least_log_noise"]

# Relative distance of what is spent from what may be
CLOSE = 1e-3


def least_log_noise(spent: Callable[[float], float], epsilon: float, x: float) -> float:
    """Return the log noise at which just under epsilon is spent, from a guess.

    Log epsilon is nearly a straight line in log noise: a few points on it will do.
    Where it is not, as for single rows of very many, the points close in from both
    sides.
    """
    derivative, fitting, failing = -1.2, inf, -inf
    last: tuple[float, float] | None = None
    for _ in range(40):
        found = spent(exp(x))
        gap = log(min(max(found / epsilon, 0.1), 10.0))
        if found <= epsilon:
            fitting = min(fitting, x)
            if gap >= -CLOSE:
                break
        else:
            failing = max(failing, x)
        if last is not None and x != last[0]:
            derivative = min(-0.8, (gap - last[1]) / (x - last[0]))
        last = (x, gap)
        # a little to the safe side of the root
        x -= (gap + CLOSE / 2) / derivative
        if failing < fitting < inf and not failing < x < fitting:
            if fitting - failing < CLOSE / 10:
                break
            x = (failing + fitting) / 2 if failing > -inf else fitting - 1.0
    if fitting == inf:
        raise PlanError(
            f"No noise was found that keeps epsilon={epsilon:g} with these samples; "
            "raise epsilon or delta, or use NoisyGD."
        )
    return fitting
