"""One round of private ALS and the final choice: noisy sums, and vectors from them.

Item vectors follow from the sums by empirical Bayes with known noise, which is
post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import at_least, plain
from tacit.mechanisms import DiscreteGaussian
from tacit.mechanisms.continual._base import to_matrix
from tacit.privacy import Composed, Event, Neighbors
from tacit.recommend.items.side import USUAL_PRIOR_COUNT, Block
from tacit.recommend.ratings.table import summed
from tacit.recommend.solvers.item_means import ItemCounts
from tacit.recommend.solvers.moments import MARGIN, factor_with_room, packed_size

__all__ = ["CandidateGains", "ItemRound", "RoundSums", "learned_vectors"]


Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Fraction of the squared Gaussian parameter of a round for second moments
MOMENT_FRACTION = 0.1
# Weight of the squared error of a user, where that of their second moments is one
ERROR_WEIGHT = 0.5
# Largest mean squared error that counts, in squares of the usual size of a rating
LARGEST_ERROR = 4.0
# Least error that is believed, in the same units
LEAST_ERROR = 0.2
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


@dataclass(frozen=True)
class ItemRound:
    """Release of products of ratings and coefficients, and of moments.

    A user fits their ratings to public item vectors. Their ratings less their level, as
    a vector of norm one at most, is multiplied by their coefficients, of norm one at
    most, and added up. So are outer products of their coefficients with themselves, and
    the mean squared error of their ratings from one another. A user has at most
    ``most`` coefficients; the multiplier is that of both releases together.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy of the multiplier for all ratings of a
    user together, from two Gaussian releases (Dong, Roth and Su 2022, Theorem 2.7 and
    Corollary 3.3). The part of a user in the products has rows ``a_j u_j`` with ``|a|``
    and all ``|u_j|`` at most one, so its norm is at most one; two users move the sum by
    at most two. Outer products within one have inner products of at least zero, so that
    a replaced user moves second moments by at most the square root of two; with errors
    between zero and their weight ``w`` it is the root of ``2 + w^2``, and that of ``1 +
    w^2`` for a user more or less.
    """

    n_items: int
    most: int
    multiplier: float
    neighbors: Neighbors
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, n_items=self.n_items, most=self.most)
        # noise that integers cannot represent is rejected before the charge
        self.products  # noqa: B018
        self._moment_units(self.most)

    @property
    def products(self) -> DiscreteGaussian:
        """Noise on products with items."""
        # [als:products] one user's part is within one, and of two each
        sensitivity = float(self.neighbors.rows_changed)
        multiplier = self.multiplier / sqrt(1 - MOMENT_FRACTION)
        return DiscreteGaussian(multiplier, sensitivity, self.noise)

    @property
    def moments(self) -> DiscreteGaussian:
        """Noise on second moments and errors."""
        # [als:moments] second moments at right angles, and errors between 0 and 1
        sensitivity = sqrt(self.neighbors.rows_changed + ERROR_WEIGHT**2)
        multiplier = self.multiplier / sqrt(MOMENT_FRACTION)
        return DiscreteGaussian(multiplier, sensitivity, self.noise)

    @property
    def event(self) -> Event:
        """Event of the release."""
        return Composed((self.products.event, self.moments.event))

    @property
    def _product_units(self) -> float:
        return self.products.units * (1 - MARGIN)

    def _moment_units(self, size: int) -> float:
        """Return the units of a second moment of one.

        Truncating two parts towards zero leaves them up to one further apart in each
        entry, which needs room. Truncation only reduces the norm of an added part.
        """
        # [als:room]
        return factor_with_room(
            self.moments.units,
            sqrt(packed_size(size) + 1),
            f"second moments of {size} coefficients",
            "take a smaller rank",
        )

    def run(
        self,
        blocks: Iterable[Callable[[], Block]],
        vectors: Array,
        *,
        ridge: float,
        reach: float,
        bound: float,
        n_users: float,
        rng: Generator,
    ) -> RoundSums:
        """Release the sums of one round.

        Ratings in ``blocks`` are less all that is public. ``ridge`` is for ratings that
        weigh one, ``reach`` the norm to which coefficients are clipped, and ``bound``
        the usual size of a residual: a row with more in root mean square is clipped.
        Sums are divided by ``n_users``.
        """
        rank = vectors.shape[1]
        n_products = self.n_items * rank
        total = self._total(blocks, vectors, ridge, reach, bound)
        products = self.products(total[:n_products], rng) / self._product_units
        moments = self.moments(total[n_products:], rng) / self._moment_units(rank)
        moments /= n_users
        error = LARGEST_ERROR * moments[-1] / ERROR_WEIGHT
        return RoundSums(
            products=products.reshape(self.n_items, rank),
            moments=to_matrix(moments[:-1]),
            error=float(np.clip(error, LEAST_ERROR, 1.0)) * bound**2,
            scale=self.products.scale / self._product_units,
            reach=reach,
            bound=bound,
        )

    def _total(
        self,
        blocks: Iterable[Callable[[], Block]],
        vectors: Array,
        ridge: float,
        reach: float,
        bound: float,
    ) -> Integers:
        """Return the exact sums over users: products, then moments, then the error."""
        from tacit.recommend.solvers import _kernels as kernels  # noqa: PLC0415 - numba

        rank = vectors.shape[1]
        return summed(
            kernels.add_user_parts,
            blocks,
            self.n_items * rank + packed_size(rank) + 1,
            np.ascontiguousarray(vectors),
            ridge,
            USUAL_PRIOR_COUNT,
            reach,
            bound,
            self._product_units,
            self._moment_units(rank),
            ERROR_WEIGHT,
            LARGEST_ERROR,
        )


def learned_vectors(
    sums: RoundSums, items: ItemCounts, rank: int, largest: float, *, synthetic: bool
) -> Array:
    """Return item vectors, for coefficients of variance one.

    Products are counts times vectors times second moments of coefficients, plus noise
    that is known. Directions of coefficients in which products are no larger than noise
    makes them, or than an echo of the strongest, are dropped; in others, vectors are
    their posterior means under a normal prior, whose variance is estimated over all
    items. Entries up to ``largest`` keep all that follows finite. ``synthetic`` is
    whether the vectors of this round were random, so that coefficients have no
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


# Norm to which a user's gains are clipped, in squares of the usual size of a rating.
# In synthetic tables a good candidate gains an average user a third of it
LARGEST_GAIN = 0.1
# Least mean gain that is believed, in the same units: item means that include a user's
# own ratings reduce their errors by no more
LEAST_GAIN = 0.003
# and the standard deviations of the noise that a gain must exceed it by
SURE = 1.0


@dataclass(frozen=True)
class CandidateGains:
    """Release of the gain of each candidate in leave-one-out errors of users.

    A candidate multiplies each column of the item vectors by a factor. A user predicts
    each of their ratings from their others, with the candidate and by their level only;
    the difference of the mean squared errors is the candidate's gain. Their gains, as a
    vector of norm one at most, are added up over users.

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
        """Event of the release."""
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
        """Return the factors of the best candidate, or zeros if no gain is significant.

        Candidates are the rows of ``factors``; the other arguments are as for
        `ItemRound.run`.
        """
        from tacit.recommend.solvers import _kernels as kernels  # noqa: PLC0415 - numba

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
