"""Differentially private item means: counts and sums of all items in one release."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import plain
from tacit.mechanisms import DiscreteGaussian
from tacit.privacy import Event, Neighbors
from tacit.recommend.items.side import plain_arrays
from tacit.recommend.ratings.table import RatingFacts, Ratings, UsedRatings, summed
from tacit.recommend.solvers.moments import MARGIN

__all__ = [
    "RARE",
    "ItemCounts",
    "ItemMeans",
    "ReleasedMeans",
    "derived_vectors",
    "shrunk",
]


Array = NDArray[np.float64]

# Candidates for the standard deviation of offsets, where no offset is beyond one
_SPREADS = 2.0 ** -np.arange(0.0, 12.0, 0.25)
# Items below this fraction of the mean count are treated as equally rare
RARE = 0.3
# Log-likelihood by which offsets must exceed pure noise to be used: offsets that are
# less certain would gain next to nothing
_CLEAR = 3.0
# Prior standard deviation of the mean and of the trend of offsets
_USUAL_LINE = 0.07
# Standard deviation of users' coefficients on the offsets of items
OFFSET_TASTE = 0.6
# Standard deviation of coefficients on popularity, over the usual size of a rating
POPULARITY_TASTE = 0.2
# Least count of an item, as a fraction of the mean count
LEAST_COUNT = 0.1


def shrunk(
    counts: Array, sums: Array, count_scale: float, sum_scale: float, variance: float
) -> Array:
    """Return empirical Bayes estimates of item offsets, by the known noise.

    The model: offsets are normal around a line in the logarithm of the count, as items
    that are good are rated more; sums are count times offset plus noise, and the noise
    of the counts is part of that of the sums. Line and standard deviation maximize the
    likelihood; offsets are posterior means, and zero where pure noise explains the sums
    about as well. All of it is post-processing of released numbers, in units in which
    no offset is beyond one. ``variance`` is that of a sum, besides noise, for each unit
    of its count.
    """
    counts = np.maximum(counts, 0.0)
    popularity = np.log(counts + count_scale + RARE * counts.mean())
    popularity -= np.average(popularity, weights=counts + count_scale)
    terms = np.stack([np.ones_like(counts), popularity], axis=1)
    design = terms * counts[:, None]
    known = sum_scale**2 + variance * counts

    # what any line and spread must exceed: the likelihood of pure noise
    best = _CLEAR - 0.5 * float(np.sum(sums**2 / known + np.log(known)))
    offsets = np.zeros_like(counts)
    for spread in _SPREADS:
        # offsets are small against one, and their mean is left out of this noise
        noise = known + (spread * count_scale) ** 2
        marginal = noise + (spread * counts) ** 2
        weighted = design.T / marginal
        precision = weighted @ design + _USUAL_LINE**-2 * np.eye(2)
        line = np.linalg.solve(precision, weighted @ sums)
        errors = sums - design @ line
        likelihood = -0.5 * float(np.sum(errors**2 / marginal + np.log(marginal)))
        if likelihood > best:
            best = likelihood
            offsets = terms @ line + spread**2 * counts * errors / marginal
    return np.clip(offsets, -1.0, 1.0)


Integers = NDArray[np.int64]

# Weight of a user's level in the release, where their ratings together have one
LEVEL_WEIGHT = 0.4
# Weight of a user's counts under each relation, where their sums have one. Offsets are
# 0.4 of the usual size of a rating or so, and an error of a count moves an offset by
# that fraction of an error of a sum; the variance of an offset is then least about here
COUNT_WEIGHTS = {Neighbors.REPLACE_ONE: 1.0, Neighbors.ADD_OR_REMOVE_ONE: 0.6}
# Variance of ratings of one user, in squares of the half-width of the range
USUAL_VARIANCE = 0.25


@dataclass(frozen=True, eq=False)
class ReleasedMeans:
    """Released item means, and offsets that follow from them; all of it is public.

    Parameters
    ----------
    counts
        Noisy weighted count of each item's ratings, at least zero. A rating weighs one
        over the root of the number of its user's, or less in a clipped row.
    sums
        Noisy weighted sum of each item's ratings, less the means of their users.
    offsets
        Offset of each item from a user's level, shrunk by the known noise.
    level
        Mean level of users, in ratings: that of a user who has rated nothing.
    n_users
        Noisy number of users who have rated something, at least one.
    count_scale, sum_scale
        Standard deviation of the noise on a count and on a sum.
    noisy, scale
        The released counts and sums in units of one user, with the standard deviation
        of their noise, for `ItemMeans.run` to average with another release.
    """

    counts: Array
    sums: Array
    offsets: Array
    level: float
    n_users: float
    count_scale: float
    sum_scale: float
    noisy: Array
    scale: float


@dataclass(frozen=True)
class ItemMeans:
    """Release of weighted counts and means of all items, and the mean level of users.

    A user with ``n`` ratings adds ``1 / sqrt(n)`` to the count of each item they rated,
    and as much times their rating less their mean, over ``bound``, to its sum; so any
    number of ratings weighs the same together. A row whose centered ratings are larger
    than ``bound`` in root mean square is clipped to it, counts included, so that means
    of items stay weighted means. Their mean itself is added likewise.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy of the multiplier for all ratings of a
    user together (Dong, Roth and Su 2022, Theorem 2.7). Counts of a user and sums of a
    user have norm one at most, so that a replaced user moves counts by the root of two
    and sums by two; see the page on item means of the guarantees. Users weigh the same
    whatever the number of their ratings, as in F. McSherry and I. Mironov,
    "Differentially private recommender systems", KDD 2009.
    """

    facts: RatingFacts
    multiplier: float
    neighbors: Neighbors = Neighbors.REPLACE_ONE
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        object.__setattr__(self, "neighbors", Neighbors.of(self.neighbors))
        self.mechanism  # noqa: B018 - noise that integers cannot represent is rejected here

    @property
    def bound(self) -> float:
        """Clipping bound on the root mean square of a user's centered ratings.

        It is half the half-width of the range, one star of five.
        """
        return self.facts.half_width / 2

    @property
    def count_weight(self) -> float:
        """Weight of counts, where that of sums is one."""
        return COUNT_WEIGHTS[self.neighbors]

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity of counts and sums together, for one user."""
        counts, level = self.count_weight**2, LEVEL_WEIGHT**2
        if self.neighbors is Neighbors.REPLACE_ONE:
            # [item-means:replaced] counts of both users, and opposite sums and levels
            return sqrt(2 * counts + 4 + 3 * level)
        # [item-means:added] counts with that of the level, and sums with the level
        return sqrt(counts * (1 + level) + 1 + 0.75 * level)

    @property
    def mechanism(self) -> DiscreteGaussian:
        """Noise on all counts and sums."""
        return DiscreteGaussian(self.multiplier, self.sensitivity, self.noise)

    @property
    def event(self) -> Event:
        """Event of the release."""
        return self.mechanism.event

    def run(
        self,
        ratings: Ratings | UsedRatings,
        rng: Generator,
        before: ReleasedMeans | None = None,
    ) -> ReleasedMeans:
        """Release counts and means; users may have any number of ratings.

        An earlier release ``before`` of the same sums is averaged with this one, each
        weighted by the inverse of its known variance.
        """
        noisy = self.mechanism(self._total(ratings), rng) / self.mechanism.units
        scale = self.mechanism.scale / self.mechanism.units
        if before is not None:
            own, other = scale**-2, before.scale**-2
            noisy = (own * noisy + other * before.noisy) / (own + other)
            scale = 1 / sqrt(own + other)
        return self._read(noisy, scale)

    def _total(self, ratings: Ratings | UsedRatings) -> Integers:
        """Return the exact integer counts and sums over users."""
        from tacit.recommend.solvers import _kernels as kernels  # noqa: PLC0415 - numba

        total = summed(
            kernels.add_means,
            ratings.each(self._centered),
            2 * (self.facts.n_items + 1),
            self.mechanism.units * (1 - MARGIN),
            self.count_weight,
            LEVEL_WEIGHT,
        )
        return total.reshape(2, -1)

    def _centered(self, ratings: Ratings) -> tuple[Any, ...]:
        """Return the ratings of some users less their means, and the means."""
        from tacit.recommend.items import _kernels as kernels  # noqa: PLC0415 - numba

        facts = self.facts
        if ratings.n_items != facts.n_items:
            raise ValueError(
                f"ratings must be of the {facts.n_items} items of the plan."
            )
        indptr, items, values = plain_arrays(ratings)
        values = np.clip((values - facts.middle) / facts.half_width, -1.0, 1.0)
        # without shrinkage, which would shift all offsets by the same amount
        levels = np.empty(len(indptr) - 1)
        kernels.center(indptr, values, 0.0, 0.0, levels)
        values *= facts.half_width / self.bound
        return indptr, items, values, np.clip(levels, -1.0, 1.0)

    def _read(self, noisy: Array, scale: float) -> ReleasedMeans:
        """Return estimates from the released numbers, which is post-processing."""
        facts = self.facts
        count_scale = scale / self.count_weight
        counts = np.maximum(noisy[0] / self.count_weight, 0.0)
        # in half-widths of the range, in which no offset is beyond one
        part = self.bound / facts.half_width
        sums, sum_scale = noisy[1, :-1] * part, scale * part
        n_users = max(1.0, counts[-1] / LEVEL_WEIGHT)
        # squares of a user's weights add up to one, so those of all to their number
        ratio = n_users / max(1.0, counts[:-1].sum())
        offsets = shrunk(
            counts[:-1], sums, count_scale, sum_scale, USUAL_VARIANCE * ratio
        )
        # levels are about half a half-width from the middle, which is a prior against
        # noise
        noise = 2 * scale / LEVEL_WEIGHT
        level = noisy[1, -1] / LEVEL_WEIGHT * n_users / (n_users**2 + noise**2)
        level = float(np.clip(level, -1.0, 1.0))
        return ReleasedMeans(
            counts=counts[:-1],
            sums=sums * facts.half_width,
            offsets=offsets * facts.half_width,
            level=facts.middle + level * facts.half_width,
            n_users=float(n_users),
            count_scale=count_scale,
            sum_scale=sum_scale * facts.half_width,
            noisy=noisy,
            scale=scale,
        )


@dataclass(frozen=True, eq=False)
class ItemCounts:
    """Released counts and offsets of items, with most of the noise removed.

    Parameters
    ----------
    counts
        Weighted count of each item's ratings, without most of the noise.
    offsets
        Offset of each item from the users' levels.
    squares
        Sum of squared weights that one of a count is worth.
    reliability
        Part of the spread of counts that is not noise.
    """

    counts: Array
    offsets: Array
    squares: float
    reliability: float

    @classmethod
    def of(cls, means: ReleasedMeans, n_users: float) -> ItemCounts:
        """Return counts that are shrunk to their mean by the known noise."""
        counts, scale = means.counts, means.count_scale
        mean = max(float(counts.mean()), 1e-3 * scale)
        spread = max(float(np.mean((counts - mean) ** 2)) - scale**2, 0.0)
        reliability = spread / (spread + scale**2)
        shrunk = np.maximum(mean + reliability * (counts - mean), LEAST_COUNT * mean)
        # squares of a user's weights add up to one, so those of all to their number
        squares = n_users / float(shrunk.sum())
        return cls(shrunk, means.offsets, squares, reliability)


def derived_vectors(items: ItemCounts, usual: float) -> Array:
    """Return two columns that follow from released means: offset and popularity.

    They cost no budget, and are scaled for coefficients of variance one.
    """
    counts = items.counts
    popularity = np.log(counts + RARE * counts.mean())
    columns = []
    for values, size in (
        (items.offsets, None),
        (popularity, POPULARITY_TASTE * usual * sqrt(items.reliability)),
    ):
        centered = values - np.average(values, weights=counts)
        norm = sqrt(float(np.average(centered**2, weights=counts)))
        factor = OFFSET_TASTE if size is None else size / max(norm, 1e-12)
        columns.append(factor * centered)
    return np.stack(columns, axis=1)
