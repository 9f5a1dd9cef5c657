"""Quantiles of bounded columns by the exponential mechanism on a public grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import PlainNumbers
from tacit.mechanisms import Exponential
from tacit.mechanisms.noise import noise_assumptions
from tacit.mechanisms.selection import (
    PARTS,
    check_choice_size,
    rank_scores,
    rank_sensitivity,
)
from tacit.preprocessing._columns import Ranges
from tacit.privacy import BoundedRange, Budget, Event, Repeated, calibrate

__all__ = ["QuantilesPlan", "apart", "plan_quantiles", "rank_scores"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

BLOCK_ROWS = 2**16


@dataclass(frozen=True)
class QuantilesPlan(PlainNumbers):
    """Grid and privacy of each choice, fixed without data.

    ``levels`` are the quantiles in ``PARTS``.
    """

    ranges: Ranges
    levels: tuple[int, ...]
    n_cells: int
    epsilon: float
    sensitivities: tuple[float, ...]
    noise: str = "grid"

    def mechanism(self, position: int) -> Exponential:
        """Return what chooses the quantile at this rank."""
        return Exponential(self.epsilon, self.sensitivities[position], self.noise)

    @property
    def event(self) -> Event:
        count = len(self.ranges) * len(self.levels)
        return Repeated(BoundedRange(self.epsilon), count)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return noise_assumptions(self.noise)

    def counts(self, values: Any, low: float, high: float) -> Counts:
        """Return the number of rows nearest to each grid point."""
        counts = np.zeros(self.n_cells + 1, dtype=np.int64)
        for start in range(0, len(values), BLOCK_ROWS):
            block = values[start : start + BLOCK_ROWS].astype(np.float64)
            part = (np.clip(block, low, high) - low) / (high - low)
            positions = np.rint(np.clip(part, 0.0, 1.0) * self.n_cells).astype(np.int64)
            counts += np.bincount(positions, minlength=self.n_cells + 1)
        return counts

    def run(self, X: Any, rng: Generator) -> Floats:
        """Return the quantiles as parts of the range, one row a level."""
        found = np.empty((len(self.levels), len(self.ranges)))
        for column, (low, high) in enumerate(self.ranges):
            counts = self.counts(X[:, column], low, high)
            for position, level in enumerate(self.levels):
                scores = rank_scores(counts, level)
                found[position, column] = self.mechanism(position)(scores, rng)
        return found / self.n_cells


def plan_quantiles(
    ranges: Ranges,
    quantiles: tuple[float, ...],
    budget: Budget,
    *,
    n_cells: int,
    noise: str,
) -> QuantilesPlan:
    """Return the plan with the sharpest choices that fit the budget."""
    count = len(ranges) * len(quantiles)
    epsilon = 1 / calibrate(
        lambda spread: Repeated(BoundedRange(1 / spread), count), budget
    )
    check_choice_size(epsilon, budget, "give fewer columns")
    levels = tuple(min(PARTS - 1, max(1, round(q * PARTS))) for q in quantiles)
    sensitivities = tuple(rank_sensitivity(level, budget.neighbors) for level in levels)
    plan = QuantilesPlan(ranges, levels, n_cells, epsilon, sensitivities, noise)
    for position in range(len(levels)):
        plan.mechanism(position)  # a bad kind of noise is rejected here
    return plan


def apart(parts: Floats, least_width: float, ranges: Ranges) -> tuple[Floats, Floats]:
    """Return bounds in the unit of the columns, moved apart where they are too close.

    ``parts`` are the lower and upper bounds as parts of the ranges, sorted, and
    ``least_width`` is the smallest distance between them, as such a part.
    """
    starts, stops = np.array(ranges).T
    low, high = starts + (stops - starts) * parts
    # far from zero a small part of the range is less than the last digit
    digits = 8 * np.spacing(np.maximum(np.abs(starts), np.abs(stops)))
    least = np.maximum(least_width * (stops - starts), digits)
    short = np.maximum(0.0, least - (high - low)) / 2
    low, high = low - short, high + short
    # what sticks out on one side is given to the other
    over, under = np.maximum(high - stops, 0.0), np.maximum(starts - low, 0.0)
    return (
        np.clip(low - over + under, starts, stops),
        np.clip(high + under - over, starts, stops),
    )
