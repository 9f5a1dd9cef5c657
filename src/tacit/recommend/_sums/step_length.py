"""How far to go along a step, released with noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit.mechanisms import DiscreteGaussian
from tacit.privacy import Event, Neighbors
from tacit.recommend._sides.passes import Visited
from tacit.recommend._sums.integer_sums import MARGIN, summed

__all__ = ["NOISES", "StepLength"]

Array = NDArray[np.float64]

# Scales of noise that a number needs to be more than noise
NOISES = 3.0


@dataclass(frozen=True)
class StepLength:
    """Release how far to go along a step, from what it does to ratings left out.

    Each user predicts each of her ratings from her others, with and without the step.
    The sum over users of slope and curvature of the squared error along the step says
    where it ends. A direction of noise helps to predict no rating that was left out, so
    it gets a length of about zero.

    Parameters
    ----------
    multiplier
        Ratio of noise to sensitivity.
    neighbors
        Whether one user is replaced, or added or removed.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** A Gaussian mechanism of this multiplier on two numbers. Those of a
    user are scaled together into a disk of radius one, so two users are at most two
    apart (Dong, Roth and Su 2022, Theorem 2.7).
    """

    multiplier: float
    neighbors: Neighbors
    noise: str = "grid"

    @property
    def mechanism(self) -> DiscreteGaussian:
        """Noise on slope and curvature."""
        # [completion:length-sensitivity] two points of a disk, or one
        return DiscreteGaussian(
            self.multiplier, float(self.neighbors.rows_changed), self.noise
        )

    @property
    def event(self) -> Event:
        """What it costs."""
        return self.mechanism.event

    def run(
        self,
        blocks: Iterable[Callable[[], Visited]],
        vector: Array,
        reach: float,
        max_ratings: int,
        bound: float,
        rng: Generator,
    ) -> float:
        """Return the share of the whole step to go, between zero and one.

        Parameters
        ----------
        blocks
            What makes each block of users, walked so far.
        vector
            Direction of the step.
        reach
            What products are multiplied by in the whole step.
        max_ratings
            Ratings of a user that weigh in full.
        bound
            Norm of a row of residuals that counts in full.
        rng
            Source of the noise.
        """
        from tacit.recommend._sides import pass_kernels  # noqa: PLC0415 - Numba

        mechanism = self.mechanism
        total = summed(
            pass_kernels.add_lengths,
            (partial(_lengthened, block) for block in blocks),
            2,
            vector,
            reach,
            float(max_ratings),
            bound,
            mechanism.units * (1 - MARGIN),
        )
        derivative, curvature = mechanism(total, rng).tolist()
        # a curvature below its noise would make any length of it
        share = derivative / max(curvature, NOISES * mechanism.scale) / reach
        return min(max(share, 0.0), 1.0)


def _lengthened(block: Callable[[], Visited]) -> tuple[Array, ...]:
    at = block()
    return at.indptr, at.items, at.values, at.predicted, at.others
