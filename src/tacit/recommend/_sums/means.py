"""Private item means: counts and sums of all items in one release of whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import plain
from tacit.mechanisms import WholeGaussian
from tacit.privacy import Event, Neighbors
from tacit.recommend._facts import RatingFacts
from tacit.recommend._sides.local import plain_arrays
from tacit.recommend._sums.shrinkage import shrunk
from tacit.recommend._sums.whole import MARGIN, summed

if TYPE_CHECKING:
    from tacit.recommend._ratings.table import Ratings
    from tacit.recommend._ratings.used import UsedRatings

__all__ = ["ItemMeans", "ReleasedMeans"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Part of a user for her level, where her ratings together have one. Up to the root of a
# half it costs nothing: who has an extreme level has ratings close to it
LEVEL_WEIGHT = 0.5
# Counts under add-or-remove, against sums: offsets of items are a fifth of the range or
# so, and an error of a count moves a mean by that much of an error of a sum
ADDED_COUNT_WEIGHT = 0.5
# Variance of ratings of one user, where the largest difference is one
USUAL_VARIANCE = 0.25


@dataclass(frozen=True, eq=False)
class ReleasedMeans:
    """What was released about items, and what follows from it; all of it is public.

    Parameters
    ----------
    counts
        Noisy weighted count of each item's ratings, at least zero. A rating weighs one
        over the root of the number of its user's.
    sums
        Noisy weighted sum of each item's ratings, less the means of their users.
    offsets
        Offset of each item from a user's level, shrunk by the known noise.
    level
        Mean level of users, in ratings: that of a user who has rated nothing.
    n_users
        Noisy number of users who have rated something, at least one.
    count_scale, sum_scale
        Deviation of the noise on a count and on a sum.
    """

    counts: Array
    sums: Array
    offsets: Array
    level: float
    n_users: float
    count_scale: float
    sum_scale: float


@dataclass(frozen=True)
class ItemMeans:
    """Release counts and mean ratings of all items, and the mean level of users.

    A user with ``n`` ratings adds ``1 / sqrt(n)`` to the count of each item she rated,
    and as much times her rating less her mean, clipped to ``bound``, to its sum; so
    any number of ratings weighs the same together. Her mean itself is added likewise.

    Parameters
    ----------
    facts
        What is public about ratings.
    multiplier
        Ratio of noise to sensitivity.
    neighbors
        Relation between tables of ratings: one user is replaced, or added or removed.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy of the multiplier for all ratings of a
    user together (Dong, Roth and Su 2022, Theorem 2.7). Where a user is replaced, sums
    alone move by up to twice a user's part, and counts and the level cost nothing more:
    see the page on item means of the guarantees. What weighs a user's ratings by their
    number is as in F. McSherry and I. Mironov, "Differentially private recommender
    systems", KDD 2009.
    """

    facts: RatingFacts
    multiplier: float
    neighbors: Neighbors = Neighbors.REPLACE_ONE
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        object.__setattr__(self, "neighbors", Neighbors.of(self.neighbors))
        self.mechanism  # noqa: B018 - what whole numbers cannot do is refused here

    @property
    def bound(self) -> float:
        """Largest rating less its user's mean that counts in full."""
        return self.facts.half_width

    @property
    def count_weight(self) -> float:
        """Part of a count where that of the largest sum is one."""
        return 1.0 if self.neighbors is Neighbors.REPLACE_ONE else ADDED_COUNT_WEIGHT

    @property
    def sensitivity(self) -> float:
        """How far one user moves counts and sums together, in units and in L2."""
        if self.neighbors is Neighbors.REPLACE_ONE:
            # [item-means:replaced] sums alone come to this
            return 2.0
        # [item-means:added] squares of the sums, and of the counts with the level's
        return sqrt(1 + self.count_weight**2 * (1 + LEVEL_WEIGHT**2))

    @property
    def mechanism(self) -> WholeGaussian:
        """Noise on all counts and sums."""
        return WholeGaussian(self.multiplier, self.sensitivity, self.noise)

    @property
    def event(self) -> Event:
        """What it costs."""
        return self.mechanism.event

    def run(self, ratings: Ratings | UsedRatings, rng: Generator) -> ReleasedMeans:
        """Release counts and means; ``ratings`` may hold any number a user.

        Parameters
        ----------
        ratings
            Ratings of all users, or those that are used of them.
        rng
            Source of the noise.
        """
        return self._read(self.mechanism(self._total(ratings), rng))

    def _total(self, ratings: Ratings | UsedRatings) -> Integers:
        """Return the exact counts and sums over users, in whole numbers."""
        from tacit.recommend._sums import moment_kernels  # noqa: PLC0415 - numba

        total = summed(
            moment_kernels.add_means,
            ratings.each(self._centered),
            2 * (self.facts.n_items + 1),
            self.mechanism.units * (1 - MARGIN),
            self.count_weight,
            LEVEL_WEIGHT,
        )
        return total.reshape(2, -1)

    def _centered(self, ratings: Ratings) -> tuple[Any, ...]:
        """Return the ratings of some users less their means, and the means."""
        from tacit.recommend._sides import local_kernels  # noqa: PLC0415 - numba

        facts = self.facts
        if ratings.n_items != facts.n_items:
            raise ValueError(
                f"ratings must be of the {facts.n_items} items that were planned for."
            )
        indptr, items, values = plain_arrays(ratings)
        values = np.clip((values - facts.middle) / self.bound, -1.0, 1.0)
        # her own mean as it is: any shrinkage would shift all offsets alike
        levels = np.empty(len(indptr) - 1)
        local_kernels.center(indptr, values, 0.0, 0.0, levels)
        # [item-means:clip] no part of a sum is larger than that of its count
        return indptr, items, np.clip(values, -1.0, 1.0), np.clip(levels, -1.0, 1.0)

    def _read(self, released: Integers) -> ReleasedMeans:
        """Return what the released numbers say; from here on nothing is private."""
        bound, unit = self.bound, self.mechanism.units
        sum_scale = self.mechanism.scale / unit
        count_scale = sum_scale / self.count_weight
        counts = np.maximum(released[0] / (unit * self.count_weight), 0.0)
        sums = released[1] / unit
        n_users = max(1.0, counts[-1] / LEVEL_WEIGHT)
        # squares of a user's weights add up to one, so those of all to their number
        share = n_users / max(1.0, counts[:-1].sum())
        offsets = shrunk(
            counts[:-1], sums[:-1], count_scale, sum_scale, USUAL_VARIANCE * share
        )
        # levels are half a half-width from the middle or so, held against the noise
        noise = 2 * sum_scale / LEVEL_WEIGHT
        level = sums[-1] / LEVEL_WEIGHT * n_users / (n_users**2 + noise**2)
        return ReleasedMeans(
            counts=counts[:-1],
            sums=sums[:-1] * bound,
            offsets=offsets * bound,
            level=self.facts.middle + float(np.clip(level, -1.0, 1.0)) * bound,
            n_users=float(n_users),
            count_scale=count_scale,
            sum_scale=sum_scale * bound,
        )
