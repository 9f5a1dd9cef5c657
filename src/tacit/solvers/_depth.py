"""How deep a point lies among models, and how far models are from misleading."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tacit.mechanisms.nested import NestedBoxes

__all__ = [
    "depth_boxes",
    "distance_to_unsafe",
    "is_decisive",
    "least_that",
    "most_depth",
    "stays_safe",
]

Integers = NDArray[np.int64]

# In planning, models are normal, and one standard deviation of theirs is this fraction
# of the half-width of the public box
SPREAD = 1 / 64
# In planning, the probability of a point outside all models
OUTSIDE = 1e-3


def most_depth(n_models: int) -> int:
    """Return the depth of the innermost box."""
    return (n_models + 1) // 2


def depth_boxes(models: Integers, most: int) -> NestedBoxes:
    """Return the box of points of depth at least i, for i from zero on.

    A point has depth i where, in every coordinate, at least i models are on either side
    of it, itself included; depths beyond the middle count as that of the middle. Models
    are rows, in cells of the grid, and no coordinate of a point is above ``most``.
    """
    # [tukey:depth]
    ordered = np.sort(models, axis=0)
    deepest = most_depth(len(models))
    ends = np.full((1, models.shape[1]), most, dtype=np.int64)
    return NestedBoxes(
        np.concatenate([-ends, ordered[:deepest]]),
        np.concatenate([ends, ordered[::-1][:deepest]]),
    )


def distance_to_unsafe(
    volumes: list[int], steps: list[int], level: int, failure: float
) -> int:
    """Return how many models must change, at least, before a neighbor is unsafe.

    Models are safe where points one level further out would weigh at most ``failure``
    of all points of depth ``level`` or more, which are drawn from. ``volumes`` count
    the points of each depth or more, from zero on, and ``steps`` say by how much each
    depth from ``level`` on makes a point likelier.
    """
    allowed = Fraction(failure)

    def safe(changed: int) -> bool:
        # [tukey:safe] whatever that many models are changed to, outside is no larger
        # than this and the total no smaller
        outside = volumes[max(0, level - 1 - changed)]
        kept = volumes[level + changed :]
        total = sum(a * v for a, v in zip(steps, kept, strict=False))
        weight = steps[0] * outside * allowed.denominator
        return weight <= allowed.numerator * total

    # [tukey:distance] one less than the changes that can make the models unsafe
    return max(0, least_that(lambda k: not safe(k), len(volumes)) - 1)


def least_that(holds: Callable[[int], bool], end: int) -> int:
    """Return the least number below ``end`` that holds, for what goes on to hold."""
    low, high = -1, end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def is_decisive(n_models: int, size: int, derivative: float) -> bool:
    """Return whether points among normal models outweigh all others in the box."""
    heights = derivative * np.arange(1, most_depth(n_models) + 1)
    gained = float(np.max(heights + size * _log_widths(n_models)))
    return gained >= size * log(1 / SPREAD) + log(1 / OUTSIDE)


def stays_safe(
    n_models: int,
    size: int,
    derivative: float,
    level: int,
    changed: int,
    failure: float,
) -> bool:
    """Return whether normal models stay safe when so many of them change."""
    widths = _log_widths(n_models)
    depths = np.arange(level + changed, len(widths) + 1)
    if level - 1 - changed < 1 or len(depths) == 0:
        return False
    heights = derivative * (depths - depths[0])
    kept = float(np.max(heights + size * widths[depths - 1]))
    return size * float(widths[level - 2 - changed]) - kept <= log(failure)


def _log_widths(n_models: int) -> NDArray[np.float64]:
    """Return the logarithms of half-widths of the boxes of normal models, from one."""
    depths = np.arange(1, most_depth(n_models) + 1)
    # the innermost box of an odd number of models is a point
    widths = np.maximum(-ndtri(depths / (n_models + 1)), 0.5 / n_models)
    return np.asarray(np.log(widths), dtype=np.float64)
