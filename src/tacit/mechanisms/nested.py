"""The exponential mechanism on a grid of any dimension, in integers."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from math import prod

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import release
from tacit._validate import plain, positive
from tacit.mechanisms import noise as draws
from tacit.mechanisms._base import Drawable
from tacit.privacy import BoundedRange, Event

__all__ = ["NestedBoxes", "NestedExponential"]

Integers = NDArray[np.int64]

# Binary digits of the factor by which one box more makes a point likelier
FACTOR_BITS = 96
# A factor beyond e^20 changes no draw
MAX_LOG_FACTOR = 20.0


@dataclass(frozen=True, eq=False)
class NestedBoxes:
    """Boxes of grid points, each within the one before. Private: do not publish.

    Parameters
    ----------
    lows
        Least coordinates of each box, one row a box.
    highs
        Greatest coordinates of each box.
    """

    lows: Integers
    highs: Integers

    def volumes(self) -> list[int]:
        """Return the number of grid points in each box."""
        sides = (self.highs - self.lows + 1).tolist()
        return [prod(side) for side in sides]

    def depth(self, point: Integers) -> int:
        """Return the number of boxes that contain a point."""
        inside = (self.lows <= point) & (point <= self.highs)
        return int(inside.all(axis=1).sum())

    def within(self, first: int) -> NestedBoxes:
        """Return the boxes from this one on."""
        return NestedBoxes(self.lows[first:], self.highs[first:])


@dataclass(frozen=True)
class NestedExponential(Drawable):
    """A draw of a point of the outermost box, weighted by the number of its boxes.

    Parameters
    ----------
    epsilon
        Privacy parameter: each box more makes a point likelier by a factor of at most
        ``exp(epsilon / 2)``.

    Notes
    -----
    **Guarantee.** Bounded range with ``epsilon`` where neighbors have the same
    outermost box and change by at most one the number of boxes that any point is in: it
    is the exponential mechanism with that number as the score (McSherry and Talwar
    2007, Theorem 6; Dong, Durfee and Rogers 2020, Lemma 3.2). Factors and volumes are
    integers, so the distribution is exact. How long a draw takes depends on the boxes.
    """

    epsilon: float

    def __post_init__(self) -> None:
        plain(self)
        positive(epsilon=self.epsilon)

    @property
    def event(self) -> Event:
        return BoundedRange(self.epsilon)

    @property
    def log_factor(self) -> float:
        """Logarithm of the factor of one box more."""
        return min(self.epsilon / 2, MAX_LOG_FACTOR)

    def weights(self, n_boxes: int) -> list[int]:
        """Return how likely points are that are in one box, in two, and so on."""
        # [nested:weights] rounded down at every step, so no ratio passes the factor
        with localcontext(Context(prec=60)):
            # less by a few units of the last digit, which exceeds the rounding
            factor = int(
                Decimal(self.log_factor).exp()
                * (1 - Decimal("1e-57"))
                * (1 << FACTOR_BITS)
            )
        factor = max(factor, 1 << FACTOR_BITS)
        weights = [1 << FACTOR_BITS]
        for _ in range(n_boxes - 1):
            weights.append(weights[-1] * factor >> FACTOR_BITS)
        return weights

    def steps(self, n_boxes: int) -> list[int]:
        """Return by how much each box makes its points likelier."""
        weights = self.weights(n_boxes)
        return [b - a for a, b in zip([0, *weights], weights, strict=False)]

    def __call__(self, boxes: NestedBoxes, rng: Generator) -> Integers:
        def draw() -> Integers:
            # [nested:draw] a box by its part of the total, then any of its points
            steps = self.steps(len(boxes.lows))
            fractions = [a * v for a, v in zip(steps, boxes.volumes(), strict=True)]
            left = draws.uniform_below(sum(fractions), rng)
            chosen = 0
            while left >= fractions[chosen]:
                left -= fractions[chosen]
                chosen += 1
            low, high = boxes.lows[chosen], boxes.highs[chosen]
            return np.asarray(rng.integers(low, high + 1), dtype=np.int64)

        return release(
            "NestedExponential",
            value=lambda point: np.array([boxes.depth(point)], dtype=np.float64),
            sensitivity=1.0,
            norm="linf",
            draw=draw,
        )
