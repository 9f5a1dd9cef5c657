"""Differentially private completion by leading directions of noisy second moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import (
    LARGEST,
    PlainNumbers,
    at_least,
    at_most,
    moderate,
    nonnegative,
    one_of,
    plain,
)
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise, noise_assumptions
from tacit.privacy import Budget, Composed, Event, GaussianNoise, calibrate
from tacit.recommend.items.linear import LOCAL_STEPS, LinearItems, NeighborItems
from tacit.recommend.items.side import (
    Block,
    ItemSide,
    centered,
    check_size,
    plain_arrays,
    unit_rows,
    usual_row_norm,
)
from tacit.recommend.ratings.table import RatingFacts, Ratings, UsedRatings, public_key
from tacit.recommend.solvers.base import USUAL_DELTA, CompletionSolver, counted
from tacit.recommend.solvers.item_means import ItemMeans
from tacit.recommend.solvers.moments import NoisyMoments, directions
from tacit.solvers._base import require_delta

__all__ = ["CleansedSVD", "CleansedSVDPlan", "SVDCompletion", "SVDCompletionPlan"]


Array = NDArray[np.float64]


@dataclass(frozen=True)
class SVDCompletionPlan(PlainNumbers):
    """Noise on the second moments, fixed without data."""

    facts: RatingFacts
    row_norm: float
    moments: NoisyMoments

    @property
    def event(self) -> Event:
        """Event of the release."""
        return self.moments.event

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee besides the bounds."""
        return noise_assumptions(self.moments.noise)


@dataclass(frozen=True)
class SVDCompletion(CompletionSolver):
    """Differentially private singular value decomposition of users' rows.

    Each user subtracts their mean from their ratings and clips the row to ``row_norm``.
    One noisy sum of outer products of such rows is released; item vectors are its
    leading eigenvectors. Each user fits their ratings to them locally.

    Parameters
    ----------
    rank
        Maximum number of directions. Those within the known noise are left out.
    row_norm
        Norm that rows are clipped to. None is half the half-width of the range for each
        of the most ratings of a user.
    local
        ``"ridge"``, local least squares on a constant and the vectors of the items that
        the user rated; ``"projection"`` for the published step, products with the
        vectors times the number of all items over that of the user's.
    ridge
        Local ridge penalty, in ratings a direction. None is the sum of all strengths
        over that of the direction, as if directions explained half of the variance of
        ratings.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** The item side is one Gaussian mechanism, exactly calibrated, for all
    ratings of a user; users' rows together are jointly private (Kearns, Pai, Roth and
    Ullman 2014). After [1]_, Algorithm 15, with noise for the sensitivity that rows
    have under each relation, a symmetric noise matrix, and the projection scaled by a
    user's own number of ratings.

    References
    ----------
    .. [1] O. Thakkar, PhD thesis, Boston University 2019, chapter 6; P. Jain, O.
       Thakkar and A. Thakurta, "Differentially private matrix completion revisited",
       ICML 2018.
    """

    rank: int = 10
    row_norm: float | None = None
    local: str = "ridge"
    ridge: float | None = None
    noise: str = "grid"

    name: ClassVar[str] = "svd"

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, rank=self.rank)
        if self.row_norm is not None:
            moderate(row_norm=self.row_norm)
        one_of(LOCAL_STEPS, local=self.local)
        if self.ridge is not None:
            nonnegative(ridge=self.ridge)
            at_most(LARGEST, ridge=self.ridge)  # or it could not be saved
        check_noise(self.noise)

    def plan(self, facts: RatingFacts, budget: Budget) -> SVDCompletionPlan:
        """Find the least noise that fits; reads no rating."""
        require_delta(budget, "SVDCompletion", USUAL_DELTA)
        check_size(facts.n_items, min(self.rank, facts.n_items) + 2, "a lower rank")
        return SVDCompletionPlan(
            facts,
            usual_row_norm(facts) if self.row_norm is None else self.row_norm,
            NoisyMoments(
                facts.n_items,
                calibrate(GaussianNoise, budget),
                budget.neighbors,
                self.noise,
            ),
        )

    def sums(self, plan: SVDCompletionPlan) -> str:
        """Describe the sums over users that a run of this plan releases."""
        return (
            "second moments of users' ratings, once, for up to "
            f"{counted(self.rank, 'direction')} (rank)"
        )

    def run(
        self, plan: SVDCompletionPlan, ratings: Ratings, rng: Generator
    ) -> LinearItems:
        """Release the second moments, and return their leading directions."""
        facts = plan.facts
        used = UsedRatings(ratings, facts.max_ratings, public_key(rng))
        rows = used.each(lambda of: unit_rows(of, facts.middle, plan.row_norm)[0])
        noisy = plan.moments.run(rows, rng)
        # from here on post-processing
        strong, vectors = directions(noisy, self.rank, plan.moments.scale)
        return LinearItems(
            vectors,
            np.zeros(facts.n_items),
            facts.low,
            facts.high,
            self._penalties(strong, facts.n_items),
            facts.middle,
            step=self.local,
        )

    def _penalties(self, strong: Array, n_items: int) -> Array:
        """Return the ridge of directions whose vectors are of length one."""
        ridge = strong.sum() / strong if self.ridge is None else self.ridge
        return np.broadcast_to(ridge / n_items, strong.shape).copy()


# Fractions of the squared Gaussian parameter: means of users and items, the covariance,
# and its weights by pairs of items
FRACTIONS = (0.2, 0.6, 0.2)
LOCAL_METHODS = ("ridge", "neighbors")
# Least fraction of the variance of ratings that directions do not explain
OWN_VARIANCE = 0.25
# Least variance of ratings, over the largest square of a clamped one
LEAST_VARIANCE = 0.05
# Largest shrinkage, and largest ratio of clamp and half-width, or one over the least:
# within these, post-processing does not overflow
EXTREME = 1e9


@dataclass(frozen=True)
class CleansedSVDPlan(PlainNumbers):
    """Noise on means and moments, fixed without data."""

    facts: RatingFacts
    clamp: float
    means: ItemMeans
    covariance: NoisyMoments
    weights: NoisyMoments

    @property
    def event(self) -> Event:
        """Event of the three releases together."""
        return Composed((self.means.event, self.covariance.event, self.weights.event))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee besides the bounds, and the split."""
        means, covariance, weights = (f"{fraction:.0%}" for fraction in FRACTIONS)
        return (
            f"of the squared Gaussian parameter {means} are for item means, "
            f"{covariance} for their covariance, {weights} for its weights",
            *noise_assumptions(self.covariance.noise),
        )


@dataclass(frozen=True)
class CleansedSVD(CompletionSolver):
    """Differentially private covariance of items, cleansed of noise.

    Noisy means of all users and of items are released first. Each user subtracts item
    means from their ratings, then their own mean, and clamps the rest. Released next
    are the noisy covariance of items, to which a user adds in inverse proportion to the
    number of their ratings, and the weight that each pair of items has in it. The
    covariance is shrunk to its average where weights are small, and truncated to a low
    rank.

    Parameters
    ----------
    rank
        Maximum number of directions of the cleansed covariance.
    local
        ``"ridge"`` for local least squares on the directions; ``"neighbors"`` for
        interpolation from the most similar items that the user rated.
    n_neighbors
        Maximum number of such items.
    clamp
        Largest rating less its means that counts in full. None is half the half-width
        of the range, one star of five.
    item_shrinkage
        Number of standard deviations of the noise by which counts of items are raised,
        which shrinks their means.
    user_shrinkage
        Weight of the mean of all users in the mean of a user, in ratings.
    pair_shrinkage
        Number of standard deviations of the noise by which weights of pairs are raised,
        which shrinks their covariances.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** The item side is a composition of three Gaussian mechanisms, exactly
    (Dong, Roth and Su 2022), for all ratings of a user; users' rows together are
    jointly private (Kearns, Pai, Roth and Ullman 2014). After [1]_, which protects
    single ratings; here weights of one over the number of a user's ratings, and clamped
    ratings, bound what a whole user adds to either sum.

    References
    ----------
    .. [1] F. McSherry and I. Mironov, "Differentially private recommender systems",
       KDD 2009.
    """

    rank: int = 10
    local: str = "ridge"
    n_neighbors: int = 20
    clamp: float | None = None
    item_shrinkage: float = 10.0
    user_shrinkage: float = 5.0
    pair_shrinkage: float = 5.0
    noise: str = "grid"

    name: ClassVar[str] = "cleansed_svd"

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, rank=self.rank, n_neighbors=self.n_neighbors)
        one_of(LOCAL_METHODS, local=self.local)
        if self.clamp is not None:
            moderate(clamp=self.clamp)
        nonnegative(item_shrinkage=self.item_shrinkage)
        moderate(user_shrinkage=self.user_shrinkage, pair_shrinkage=self.pair_shrinkage)
        for name in ("user_shrinkage", "pair_shrinkage"):
            if not 1 / EXTREME <= getattr(self, name) <= EXTREME:
                raise ValueError(
                    f"{name} must be from {1 / EXTREME:g} to {EXTREME:g}, got "
                    f"{getattr(self, name)!r}."
                )
        check_noise(self.noise)

    def plan(self, facts: RatingFacts, budget: Budget) -> CleansedSVDPlan:
        """Find the least noise that fits; reads no rating."""
        require_delta(budget, "CleansedSVD", USUAL_DELTA)
        clamp = facts.half_width / 2 if self.clamp is None else self.clamp
        if not 1 / EXTREME <= clamp / facts.half_width <= EXTREME:
            raise PlanError(
                "clamp must be near the half-width of rating_range, at most "
                f"{EXTREME:g} times more or less, got {clamp!r}."
            )
        if self.local == "ridge":
            each = min(self.rank, facts.n_items) + 2
            check_size(facts.n_items, each, "a lower rank")
        else:
            check_size(facts.n_items, 2 * facts.n_items + 1, "local='ridge'")
        multiplier = calibrate(
            lambda noise: Composed(
                tuple(GaussianNoise(noise / sqrt(fraction)) for fraction in FRACTIONS)
            ),
            budget,
        )
        means, covariance, weights = (
            multiplier / sqrt(fraction) for fraction in FRACTIONS
        )
        n_items, neighbors = facts.n_items, budget.neighbors
        return CleansedSVDPlan(
            facts,
            clamp,
            ItemMeans(facts, means, neighbors, self.noise),
            NoisyMoments(n_items, covariance, neighbors, self.noise),
            NoisyMoments(n_items, weights, neighbors, self.noise),
        )

    def sums(self, plan: CleansedSVDPlan) -> str:
        """Describe the sums over users that a run of this plan releases."""
        return (
            "counts and means of items, then second moments of what is left and their "
            f"weights, once, for up to {counted(self.rank, 'direction')} (rank)"
        )

    def run(self, plan: CleansedSVDPlan, ratings: Ratings, rng: Generator) -> ItemSide:
        """Release means, covariance and weights, and return what is left of them."""
        facts = plan.facts
        used = UsedRatings(ratings, facts.max_ratings, public_key(rng))
        means = plan.means.run(used, rng)
        counts = means.counts + self.item_shrinkage * means.count_scale
        offsets = means.sums / np.maximum(counts, means.count_scale)
        offsets = np.clip(offsets, -facts.half_width, facts.half_width)
        if not means.offsets.any():
            offsets = np.zeros(facts.n_items)  # all are within the noise
        center = (offsets, means.level, self.user_shrinkage)
        covariance = plan.covariance.run(_weighted_rows(used, plan.clamp, *center), rng)
        weights = plan.weights.run(_weighted_rows(used, None, *center), rng)
        # from here on post-processing
        vectors, variance = _cleansed(
            covariance,
            weights,
            plan.covariance.scale,
            plan.weights.scale * self.pair_shrinkage,
            self.rank,
        )
        vectors, variance = vectors * plan.clamp, variance * plan.clamp**2
        base = (offsets, facts.low, facts.high)
        prior = (means.level, self.user_shrinkage)
        if self.local == "ridge":
            penalties = np.full(vectors.shape[1], variance)
            return LinearItems(vectors, *base, penalties, *prior)
        similar, axes = vectors @ vectors.T, np.eye(facts.n_items)
        most = min(self.n_neighbors, facts.n_items)
        return NeighborItems(axes, *base, similar, variance, most, *prior)


def _weighted_rows(
    used: UsedRatings,
    clamp: float | None,
    offsets: Array,
    prior_level: float,
    prior_count: float,
) -> Iterator[Callable[[], Block]]:
    """Yield functions for rows whose outer products are parts of the two sums.

    These are centered and clamped ratings over ``clamp``, or ones where it is None,
    over the root of the number of ratings: a row has norm at most one.
    """

    def weighted(ratings: Ratings) -> Block:
        if clamp is None:
            indptr, items, values = plain_arrays(ratings)
            values[:] = 1.0
        else:
            block, _ = centered(ratings, prior_level, prior_count, offsets)
            indptr, items, values = block
            values = np.clip(values / clamp, -1.0, 1.0)
        # [cleansed:weights] entries of at most one, over the root of their number
        lengths = np.diff(indptr)
        return indptr, items, values / np.sqrt(np.repeat(lengths, lengths))

    return used.each(weighted)


def _cleansed(
    covariance: Array,
    weights: Array,
    noise_scale: float,
    raised: float,
    rank: int,
) -> tuple[Array, float]:
    """Return vectors whose products are covariances, and the unexplained variance.

    All of it is in units in which the largest clamped rating is one. ``noise_scale`` is
    that of the diagonal of the covariance, and ``raised`` is added to all weights.
    """
    # pairs of different items; with one item only, the pair with itself
    pairs = ~np.eye(len(weights), dtype=bool) | (len(weights) == 1)
    weights = np.maximum(weights, 0.0) + raised
    # the mean of all pairs, to which pairs of small weight are shrunk
    mean = covariance[pairs].sum() / weights[pairs].sum()
    shrunk = (covariance + raised * mean) / weights
    # noise was divided by weights, which are about products of weights of single items:
    # times these, it is about the same for all pairs
    each = np.where(pairs, weights, 0.0).sum(axis=1)
    products = np.outer(each, each)
    products *= weights[pairs].sum() / products[pairs].sum()
    # the remaining differences increase the noise slightly
    level = float(np.sqrt(((products / weights) ** 2).mean()))
    strong, axes = directions(shrunk * products, rank, noise_scale * level)
    vectors = np.sqrt(strong) * axes / np.sqrt(np.diag(products))[:, None]
    # the total variance of ratings, and the part that directions explain
    own = np.diag(weights)
    total = float(np.trace(covariance) / max(np.sum(own - raised), own.max()))
    total = min(max(total, LEAST_VARIANCE), 1.0)
    explained = float(np.average((vectors**2).sum(axis=1), weights=own))
    return vectors, max(total - explained, OWN_VARIANCE * total)
