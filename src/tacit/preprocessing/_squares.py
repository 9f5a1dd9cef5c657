"""Mean squares of bounded columns about zero, released once."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from tacit._validate import PlainNumbers
from tacit.exceptions import PlanError
from tacit.mechanisms.integer_noise import (
    MAX_INTEGER_ROWS,
    DiscreteGaussian,
    DiscreteLaplace,
)
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

__all__ = ["SquaresPlan", "plan_squares"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BLOCK_ENTRIES = 2**20


@dataclass(frozen=True)
class SquaresPlan(PlainNumbers):
    """Noise of the sums of squares, fixed without data.

    ``n_rows`` is the public number of rows, or None where it is released as well.
    ``sensitivity`` is in units of one entry.
    """

    ranges: Ranges
    n_rows: int | None
    multiplier: float
    sensitivity: float
    pure: bool
    noise: str = "grid"

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return len(self.ranges) + (self.n_rows is None)

    @property
    def mechanism(self) -> DiscreteGaussian | DiscreteLaplace:
        """What draws the noise."""
        kind = DiscreteLaplace if self.pure else DiscreteGaussian
        return kind(self.multiplier, self.sensitivity, self.noise)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @property
    def assumptions(self) -> tuple[str, ...]:
        # sums of more rows than integers provide for wrap around: no assumption
        return noise_assumptions(self.noise)

    @property
    def largest(self) -> Floats:
        """Largest absolute value of each column."""
        lows, highs = np.array(self.ranges).T
        return np.asarray(np.maximum(highs, -lows))

    def sums(self, X: Any) -> Integers:
        """Return the exact sums that are released with noise.

        ``X`` is dense, or CSR with every entry stored once and ranges that hold zero.
        """
        units = self.mechanism.units
        total = np.zeros(self.size, dtype=np.int64)
        p = len(self.ranges)
        lows, highs = np.array(self.ranges).T
        ends = (lows, highs, self.largest)
        # piece by piece to save memory
        if sparse.issparse(X):
            for start in range(0, X.nnz, BLOCK_ENTRIES):
                piece = slice(start, min(start + BLOCK_ENTRIES, X.nnz))
                positions = X.indices[piece]
                low, high, largest = (end[positions] for end in ends)
                parts = _parts(X.data[piece], low, high, largest, units)
                np.add.at(total, positions, parts)
        else:
            rows = max(1, BLOCK_ENTRIES // p)
            for start in range(0, X.shape[0], rows):
                block = X[start : start + rows]
                total[:p] += _parts(block, *ends, units).sum(axis=0)
        total[p:] = X.shape[0]
        total[p:] *= units
        return total

    def run(self, X: Any, rng: Generator, least_scale: float) -> tuple[Floats, Floats]:
        """Return what to subtract, which is zero, and root mean squares.

        ``X`` is as in `sums`, finite and not yet clipped to the ranges, and
        ``least_scale`` the smallest root mean square, as a part of the largest absolute
        value.
        """
        noisy = self.mechanism(self.sums(X), rng) / self.mechanism.units
        # from here on post-processing
        p = len(self.ranges)
        n = max(1.0, noisy[-1]) if self.n_rows is None else float(self.n_rows)
        squares = np.clip(noisy[:p] / n, least_scale**2, 1.0)
        return np.zeros(p), self.largest * np.sqrt(squares)


def _parts(
    values: Any, lows: Floats, highs: Floats, largest: Floats, units: int
) -> Integers:
    """Return squares of entries, in integers between 0 and ``units``."""
    unit = np.clip(values.astype(np.float64), lows, highs)
    # [squares:parts] a quotient of what is no larger rounds to at most one, so do its
    # square and the product, and units are whole
    unit /= largest
    unit *= unit
    unit *= units
    rounded: Integers = np.rint(unit, out=unit).astype(np.int64)
    return rounded


def plan_squares(
    ranges: Ranges, budget: Budget, *, n_rows: int, noise: str
) -> SquaresPlan:
    """Return the plan with the least noise that fits the budget.

    ``n_rows`` is used under replacement only, where it is public.
    """
    pure = budget.delta == 0
    replaced = budget.neighbors is Neighbors.REPLACE_ONE
    if replaced and n_rows > MAX_INTEGER_ROWS:
        raise PlanError(
            f"with_mean=False provides for up to {MAX_INTEGER_ROWS} rows, got "
            f"n_rows={n_rows}; use with_mean=True."
        )
    # [squares:sensitivity] each sum by one unit, and the count by one, if it is private
    size = len(ranges) + (not replaced)
    plan = SquaresPlan(
        ranges,
        n_rows if replaced else None,
        calibrate(LaplaceNoise if pure else GaussianNoise, budget),
        float(size) if pure else sqrt(size),
        pure,
        noise,
    )
    try:
        plan.mechanism  # noqa: B018 - rejects here, not after the charge
    except PlanError:
        raise PlanError(
            f"A noise multiplier of {plan.multiplier:.3g} for {len(ranges)} columns is "
            "too large for integers; raise epsilon or delta, or leave columns out."
        ) from None
    return plan
