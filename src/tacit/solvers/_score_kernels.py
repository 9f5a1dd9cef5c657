"""Scores of coordinates from their sums, in whole numbers as far as possible."""

import numpy as np
from numba import njit

from tacit.solvers._coordinate_kernels import Floats, Integers, Positions

STEEPEST, LONGEST, DEEPEST = 0, 1, 2
# places in a line of the table, which fills one line of a cache
BACK, L1, L2, BEND, SCALE, RATIO, LOW, HIGH = range(8)


@njit(cache=True)
def whole(value: float, most: float) -> int:
    """Return the nearest whole number within ``most``, which is one."""
    return int(np.rint(min(max(value, -most), most)))


@njit(cache=True)
def steepest(total: int, v: int, pull: int, l1: int, low: float, high: float) -> float:
    """Return the distance from the slope to where the weight would rest.

    A weight at zero has its true distance below zero too, so that the best of many
    coordinates that all rest is still told from the others.
    """
    derivative = total + pull
    # at an end, rounded as the weight is, only the way back counts
    if v >= np.rint(high):
        toward = derivative
    elif v <= np.rint(low):
        toward = -derivative
    else:
        toward = abs(derivative)
    return float(toward - l1 if v == 0 else toward)


@njit(cache=True, error_model="numpy")
def landing(
    total: int, v: int, l1: int, ratio: float, low: float, high: float
) -> tuple[float, float]:
    """Return the minimizer of the quadratic bound, and that in the box."""
    step = v - total
    free = (step - min(max(step, -l1), l1)) / (1.0 + ratio)
    # the weight itself is inside, whatever rounding did to it
    return free, min(max(free, min(low, float(v))), max(high, float(v)))


@njit(cache=True)
def longest(
    total: int, v: int, l1: int, ratio: float, low: float, high: float
) -> float:
    """Return the length of the proximal step."""
    _, inside = landing(total, v, l1, ratio, low, high)
    return abs(inside - v)


@njit(cache=True)
def deepest(
    total: int, v: int, l1: int, ratio: float, low: float, high: float
) -> float:
    """Return the root of twice the decrease that the quadratic bound promises.

    As a sum of terms that are not negative, so that nothing cancels: the squared step
    with its ridge, what the end of the box holds back, and the bend at zero.
    """
    free, inside = landing(total, v, l1, ratio, low, high)
    length = abs(inside - v)
    held = 2.0 * abs(free - inside)
    bend = l1 - np.sign(v) * min(max(v - total, -l1), l1)
    twice = (1.0 + ratio) * length * (length + held)
    twice += 2.0 * abs(v) * float(bend)
    return float(np.sqrt(twice))


@njit(cache=True, error_model="numpy")
def scores(
    rule: int,
    table: Floats,
    sums: Integers,
    w: Floats,
    at: Positions,
    out_of: Positions,
    most: float,
    top: float,
    out: Floats,
) -> None:
    """Put the scores of the coordinates ``at`` into ``out``, none of them above top.

    What the weight adds to a sum is rounded, and cut at ``most``.
    """
    for a in range(len(at)):
        j = at[a]
        if out_of[j]:
            out[a] = -top
            continue
        line, total = table[j], sums[j]
        v, l1 = whole(w[j] * line[SCALE], most), int(line[BEND])
        if rule == STEEPEST:
            pull = (line[L2] * w[j] + line[L1] * np.sign(w[j])) / line[BACK]
            score = steepest(total, v, whole(pull, most), l1, line[LOW], line[HIGH])
        elif rule == LONGEST:
            score = longest(total, v, l1, line[RATIO], line[LOW], line[HIGH])
        else:
            score = deepest(total, v, l1, line[RATIO], line[LOW], line[HIGH])
        out[a] = min(score, top)
