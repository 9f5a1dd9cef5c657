"""Item vectors from noisy sums: empirical Bayes with known noise.

All of it is post-processing of released sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.recommend.solvers.item_means import RARE, ReleasedMeans

__all__ = ["ItemCounts", "RoundSums", "derived_vectors", "learned_vectors"]


Array = NDArray[np.float64]

# Standard deviation of users' coefficients on the offsets of items
OFFSET_TASTE = 0.6
# Standard deviation of coefficients on popularity, over the usual size of a rating
POPULARITY_TASTE = 0.2
# Least count of an item, as a fraction of the mean count
LEAST_COUNT = 0.1
# Coefficients that leave out one of n ratings differ from item to item by one part in
# n - 1, which echoes the strongest direction in others. In units of the square of this
# part, what is weaker than so much of the strongest is taken for its echo
ECHO = 2.0
# How far one item that outweighs others can lift an eigenvalue of noise, in units of
# what it adds on average: found by simulation, to be passed once in twenty times
SINGLE_ITEM = 1.25
# Least second moment of a coefficient, against one as long as clipping allows
LEAST_MOMENT = 0.05
# Least variance of a coefficient, against what it was taken for
LEAST_VARIANCE = 0.1


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


@dataclass(frozen=True, eq=False)
class RoundSums:
    """Noisy sums of one round, in units of a user.

    Parameters
    ----------
    products
        Sums of residuals times coefficients, a row for each item.
    moments
        Mean second moments of coefficients.
    error
        Mean squared error of a rating from all others of its user.
    scale
        Standard deviation of the noise on a product.
    reach, bound
        Units of a product: norm of coefficients, and usual size of a residual.
    """

    products: Array
    moments: Array
    error: float
    scale: float
    reach: float
    bound: float


def learned_vectors(
    sums: RoundSums, items: ItemCounts, rank: int, largest: float, *, synthetic: bool
) -> Array:
    """Return item vectors, for coefficients of variance one.

    Products are counts times vectors times second moments of coefficients, plus noise
    that is known. Directions of coefficients in which products are no larger than noise
    makes them, or than an echo of the strongest, are dropped; in others, vectors are
    their posterior means under a normal prior, whose variance is estimated over all
    items.

    Parameters
    ----------
    sums
        Released sums.
    items
        Counts of items.
    rank
        Maximum number of directions.
    largest
        Largest entry of a vector, which keeps all that follows finite.
    synthetic
        Whether the vectors of this round were random, so that coefficients have no
        information on their own scale.
    """
    counts, size = items.counts, sums.products.shape[1]
    # of the noise, and of single ratings
    sampled = counts * items.squares * sums.error / sums.bound**2 / size
    noise = sums.scale**2 + sampled
    weights = (counts / noise) ** 2
    total = float(weights @ counts**2)
    gram = (sums.products.T * weights) @ sums.products
    gram -= np.eye(size) * float(weights @ noise)
    values, axes = np.linalg.eigh(gram / total)
    values, axes = values[::-1][:rank], axes[:, ::-1][:, :rank]
    # largest eigenvalue of pure noise, in the limit of a large number of directions
    edge = 2 * sqrt(size) * sqrt(float(np.sum((weights * noise) ** 2))) / total
    # and beyond it by chance, or for a single item that outweighs the others
    single = size * float(np.max(weights * noise)) / total
    seen = values > edge * (1 + size ** (-2 / 3) / 2) + SINGLE_ITEM * single
    mean_ratings = 1 / items.squares**2
    # with a small number of ratings, leaving one out echoes the strongest direction
    seen &= values >= ECHO * values[0] / max(mean_ratings - 1, ECHO) ** 2
    values, axes = values[seen], axes[:, seen]
    values = values / 2 + np.sqrt(values**2 - edge**2) / 2
    along = sums.products @ axes
    gains = values * counts[:, None] / (values * counts[:, None] ** 2 + noise[:, None])
    vectors: Array = gains * along * sums.bound
    if synthetic:
        return (vectors * sqrt(size)).clip(-largest, largest)
    moments = axes.T @ sums.moments @ axes
    lengths, turned = np.linalg.eigh(moments)
    lengths = np.maximum(lengths, LEAST_MOMENT / size)
    vectors = (vectors @ turned) / lengths / sums.reach
    # variance of coefficients, and of what users' ratings leave unknown of them
    spread = lengths * sums.reach**2
    known = (vectors.T * counts) @ vectors / counts.sum()
    unknown = np.linalg.inv(mean_ratings * known / sums.error + np.eye(len(known)))
    variance = np.diag(spread) + unknown
    values, axes = np.linalg.eigh(variance)
    vectors = vectors @ (axes * np.sqrt(np.maximum(values, LEAST_VARIANCE))) @ axes.T
    return vectors.clip(-largest, largest)
