"""Means and standard deviations of bounded columns, released once."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import PlainNumbers
from tacit.mechanisms import Gaussian, Laplace
from tacit.mechanisms.noise import noise_assumptions
from tacit.preprocessing._columns import Ranges
from tacit.privacy import (
    Budget,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Neighbors,
    calibrate,
)

__all__ = ["MomentsPlan", "plan_moments"]

Floats = NDArray[np.float64]

# Values are integers of these parts of half a range, so that sums are exact
PARTS = 2**24
# and remain so as floats up to this many rows
MOST_ROWS = 2**27
BLOCK_ROWS = 2**16


@dataclass(frozen=True)
class MomentsPlan(PlainNumbers):
    """Noise of the sums, fixed without data.

    ``n_rows`` is the public number of rows, or None where it is released as well.
    ``weight`` is that of the second moments relative to the first.
    """

    ranges: Ranges
    n_rows: int | None
    multiplier: float
    sensitivity: float
    weight: float
    pure: bool
    noise: str = "grid"

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return 2 * len(self.ranges) + (self.n_rows is None)

    @property
    def mechanism(self) -> Gaussian | Laplace:
        """What draws the noise."""
        kind = Laplace if self.pure else Gaussian
        return kind(self.multiplier, self.sensitivity, self.noise)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"there are at most 2^{MOST_ROWS.bit_length() - 1} rows",
            *noise_assumptions(self.noise),
        )

    def sums(self, X: Any) -> Floats:
        """Return the exact sums that are released with noise."""
        lows, highs = np.array(self.ranges).T
        half, center = (highs - lows) / 2, lows + (highs - lows) / 2
        total = np.zeros((2, len(self.ranges)), dtype=np.int64)
        for start in range(0, X.shape[0], BLOCK_ROWS):
            block = X[start : start + BLOCK_ROWS].astype(np.float64)
            unit = (np.clip(block, lows, highs) - center) / half
            # [moments:parts] whole parts, whose sums do not round
            first = np.rint(np.clip(unit, -1.0, 1.0) * PARTS).astype(np.int64)
            second = (PARTS**2 - first**2) // PARTS
            total += np.stack([first.sum(axis=0), second.sum(axis=0)])
        weighted = total.astype(np.float64) * [[1.0], [self.weight]]
        count = [] if self.n_rows is not None else [float(X.shape[0])]
        return np.concatenate([weighted.ravel() / PARTS, count])

    def run(self, X: Any, rng: Generator, least_scale: float) -> tuple[Floats, Floats]:
        """Return means and standard deviations in the unit of the columns.

        ``X`` has finite values, not yet clipped to the ranges, and ``least_scale`` is
        the smallest standard deviation, as a part of half the range.
        """
        noisy = self.mechanism(self.sums(X), rng)
        # from here on post-processing
        p = len(self.ranges)
        n = max(1.0, noisy[-1]) if self.n_rows is None else float(self.n_rows)
        mean = np.clip(noisy[:p] / n, -1.0, 1.0)
        second = 1.0 - noisy[p : 2 * p] / (self.weight * n)
        variance = np.clip(second - mean**2, least_scale**2, 1.0)
        lows, highs = np.array(self.ranges).T
        half = (highs - lows) / 2
        center = np.clip(lows + half * (1.0 + mean), lows, highs)
        return center, half * np.sqrt(variance)


def plan_moments(
    ranges: Ranges, budget: Budget, *, n_rows: int, noise: str
) -> MomentsPlan:
    """Return the plan with the least noise that fits the budget.

    ``n_rows`` is used under replacement only, where it is public.
    """
    pure = budget.delta == 0
    replaced = budget.neighbors is Neighbors.REPLACE_ONE
    p = len(ranges)
    if pure:
        weight, columns, count = 0.5, float(p), 1.0
    else:
        weight, columns, count = 1.5 if replaced else 1.0, sqrt(p), sqrt(p + 1)
    if replaced:
        # [moments:replace] two units a column, and one part by which a square rounds
        sensitivity = 2 * columns * (1 + 1 / PARTS)
    else:
        # [moments:add] one unit a column, and one for the count
        sensitivity = columns + count if pure else count * (1 + 1e-15)
    plan = MomentsPlan(
        ranges,
        n_rows if replaced else None,
        calibrate(LaplaceNoise if pure else GaussianNoise, budget),
        sensitivity,
        weight,
        pure,
        noise,
    )
    # noise too large for the grid is rejected here, not after the charge
    plan.mechanism.scale(plan.size)
    return plan
