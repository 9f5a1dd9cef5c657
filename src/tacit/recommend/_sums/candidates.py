"""Choice among candidate item vectors by noisy leave-one-out errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import plain
from tacit.mechanisms import DiscreteGaussian
from tacit.privacy import Event, Neighbors
from tacit.recommend._sides.local import USUAL_PRIOR_COUNT, Block
from tacit.recommend._sums.integer_sums import MARGIN, summed

__all__ = ["CandidateGains"]

Array = NDArray[np.float64]

# Norm of a user's gains from which on they are clipped, in squares of the usual size of
# a rating. In synthetic tables a good candidate gains an average user a third of it
LARGEST_GAIN = 0.1
# Least mean gain that is believed, in the same units: errors of users' own ratings are
# smaller by so much at most for item means that these ratings are part of
LEAST_GAIN = 0.003
# and the standard deviations of the noise that it must be beyond that
SURE = 1.0


@dataclass(frozen=True)
class CandidateGains:
    """Release how much each candidate reduces the leave-one-out errors of users.

    A candidate multiplies each column of the item vectors by a factor. A user predicts
    each of her ratings from her others, with the candidate and by her level alone; the
    difference of the mean squared errors is the candidate's gain. Her gains, as a
    vector of norm one at most, are added up over users.

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
    **Guarantee.** Gaussian differential privacy of the multiplier for all ratings of a
    user together (Dong, Roth and Su 2022, Theorem 2.7): gains of a user have norm one
    at most, so that one who is replaced moves the sum by two at most.
    """

    multiplier: float
    neighbors: Neighbors
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        self.mechanism  # noqa: B018 - what integers cannot do is rejected here

    @property
    def mechanism(self) -> DiscreteGaussian:
        """Noise on all gains."""
        # [als:gains] one user's gains are within one, and two users' each
        sensitivity = float(self.neighbors.rows_changed)
        return DiscreteGaussian(self.multiplier, sensitivity, self.noise)

    @property
    def event(self) -> Event:
        """What it costs."""
        return self.mechanism.event

    def scale(self, n_users: float) -> float:
        """Return the standard deviation of a mean gain, in squares of the bound."""
        return LARGEST_GAIN * self.mechanism.scale / self.mechanism.units / n_users

    def best(
        self,
        blocks: Iterable[Callable[[], Block]],
        vectors: Array,
        factors: Array,
        *,
        ridge: float,
        bound: float,
        n_users: float,
        rng: Generator,
    ) -> Array:
        """Return the factors of the best candidate, zeros where none is sure to gain.

        Parameters
        ----------
        blocks
            Functions that return ``indptr``, ``items`` and ratings less all that is
            public, of some users.
        vectors
            Public vector of each item.
        factors
            Factors of the columns, a row for each candidate.
        ridge
            Ridge of users' coefficients, where a rating weighs one.
        bound
            Usual size of what is left of a rating.
        n_users
            Number of users that means are over.
        rng
            Source of the noise.
        """
        from tacit.recommend._sums import als_kernels as kernels  # noqa: PLC0415 - numba

        total = summed(
            kernels.add_gains,
            blocks,
            len(factors),
            np.ascontiguousarray(vectors),
            np.ascontiguousarray(factors),
            ridge,
            USUAL_PRIOR_COUNT,
            LARGEST_GAIN * bound**2,
            self.mechanism.units * (1 - MARGIN),
        )
        released = self.mechanism(total, rng)
        gains = released / (self.mechanism.units * n_users) * LARGEST_GAIN
        at = int(np.argmax(gains))
        sure = gains[at] > LEAST_GAIN + SURE * self.scale(n_users)
        return factors[at] if sure else np.zeros(factors.shape[1])
