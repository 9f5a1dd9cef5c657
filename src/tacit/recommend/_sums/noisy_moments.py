"""The release that spectral methods make: a noisy sum of outer products of rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import plain
from tacit.mechanisms import DiscreteGaussian
from tacit.privacy import Event, Neighbors
from tacit.recommend._sums.second_moments import (
    Blocks,
    integer_factor,
    second_moments,
    unpacked,
)

__all__ = ["NoisyMoments"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NoisyMoments:
    """Release the sum over users of ``a a^T``, where rows ``a`` are at most one long.

    Parameters
    ----------
    n_items
        Number of items.
    multiplier
        Ratio of noise to sensitivity.
    neighbors
        Whether one user is replaced, or added or removed.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** A Gaussian mechanism of this multiplier, exactly. Outer products of
    unit rows are within one, and their inner products are squares and hence at least
    zero, so that a replaced row moves the sum by at most the square root of two and an
    added one by one, in the Frobenius norm. Sums are of whole numbers, and the upper
    triangle is as long as the matrix (Dwork, Talwar, Thakurta and Zhang 2014).
    """

    n_items: int
    multiplier: float
    neighbors: Neighbors
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        # what whole numbers or memory cannot do is refused before the charge
        integer_factor(self.mechanism.units, self.n_items)

    @property
    def sensitivity(self) -> float:
        """How far one user moves the sum, in the Frobenius norm."""
        # [spectral:moments] the root of one row, or of two at right angles
        return sqrt(self.neighbors.rows_changed)

    @property
    def mechanism(self) -> DiscreteGaussian:
        """Noise on the upper triangle."""
        return DiscreteGaussian(self.multiplier, self.sensitivity, self.noise)

    @property
    def event(self) -> Event:
        """What it costs."""
        return self.mechanism.event

    @property
    def scale(self) -> float:
        """Deviation of the noise on the diagonal; its square is twice that beside."""
        mechanism = self.mechanism
        return mechanism.scale / integer_factor(mechanism.units, self.n_items)

    def run(self, blocks: Blocks, rng: Generator) -> Array:
        """Sum over users in blocks, add the noise, and return the symmetric matrix."""
        units = self.mechanism.units
        total = second_moments(blocks, self.n_items, units)
        return unpacked(self.mechanism(total, rng), self.n_items, units)
