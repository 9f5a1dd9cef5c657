"""Center and spread of private targets, released before a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import PlainNumbers
from tacit.mechanisms import Gaussian
from tacit.privacy import Event, GaussianNoise, Neighbors, Repeated

__all__ = ["TargetsPlan"]

Array = NDArray[np.float64]

# Targets are integers of this many parts of their range, so that sums are exact
PARTS = 2**20
# Smallest spread as a part of the range, and standard deviations of a normal
# distribution for one mean absolute deviation
LEAST_SPREAD, NORMAL = 0.01, 1.25


@dataclass(frozen=True)
class TargetsPlan(PlainNumbers):
    """Noise of the center and of the spread of targets, fixed without data.

    Notes
    -----
    **Guarantee.** Targets are integers from 0 to ``PARTS``. One replaced moves their
    sum by at most ``PARTS``; counted from the middle of the range, one more or less
    moves it by at most half of that. The sum of distances from a released center moves
    by at most ``PARTS`` under both relations. Sums of integers are exact.
    """

    low: float
    high: float
    neighbors: Neighbors
    multiplier: float
    noise: str = "grid"

    @property
    def center(self) -> Gaussian:
        """What draws the noise of the sum of targets."""
        # [additive:center] integers from -PARTS / 2 to PARTS / 2
        return Gaussian(
            self.multiplier, PARTS / 2 * self.neighbors.rows_changed, self.noise
        )

    @property
    def spread(self) -> Gaussian:
        """What draws the noise of the sum of distances from the center."""
        # [additive:spread] integers from 0 to PARTS
        return Gaussian(self.multiplier, PARTS, self.noise)

    @property
    def event(self) -> Event:
        return Repeated(GaussianNoise(self.multiplier), 2)

    def run(self, y: Array, n_rows: float, rng: Generator) -> tuple[float, float]:
        """Return the center of the targets and about their standard deviation."""
        width = self.high - self.low
        part = (np.clip(y, self.low, self.high) - self.low) / width
        parts = np.clip(np.rint(part * PARTS), 0, PARTS).astype(np.int64) - PARTS // 2
        total = self.center(np.array([float(parts.sum())]), rng)[0]
        center = int(np.clip(np.rint(total / n_rows), -PARTS // 2, PARTS // 2))
        distances = float(np.abs(parts - center).sum())
        distance = self.spread(np.array([distances]), rng)[0] / n_rows
        spread = NORMAL * float(np.clip(distance, LEAST_SPREAD * PARTS, PARTS))
        return self.low + width * (center / PARTS + 0.5), width * (spread / PARTS)
