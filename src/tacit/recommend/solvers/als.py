"""Differentially private alternating least squares (ALS)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import shake_256
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import PlainNumbers, at_least, one_of, plain
from tacit.mechanisms.noise import check_noise, noise_assumptions
from tacit.privacy import Budget, Composed, Event, GaussianNoise, Neighbors, calibrate
from tacit.recommend.items.linear import LinearItems
from tacit.recommend.items.side import Block, check_size, plain_arrays
from tacit.recommend.ratings.table import RatingFacts, Ratings, UsedRatings, public_key
from tacit.recommend.solvers.als_round import (
    CandidateGains,
    ItemRound,
    learned_vectors,
)
from tacit.recommend.solvers.base import USUAL_DELTA, CompletionSolver, counted
from tacit.recommend.solvers.item_means import (
    ItemCounts,
    ItemMeans,
    ReleasedMeans,
    derived_vectors,
)
from tacit.solvers._base import require_delta

__all__ = ["ALSPlan", "PrivateALS"]


Array = NDArray[np.float64]

KEEPS = ("even", "adaptive")
# Least ratio of the ratings of an average item to the noise on their sum for item
# vectors above the noise; both with the whole budget, in units of one rating of the
# usual size. Chosen on synthetic tables, as all constants here
CLEAR_MEANS = 15.0
# Least number of users over noise and the root of items for a third round
THIRD_ROUND_USERS = 500.0
# Users, in the same units, for each random direction of the start
USERS_PER_START = 15.0
LEAST_STARTS, MOST_STARTS = 4, 32
# Directions that later rounds keep where the rank is not given
USUAL_RANK = 8
# Standard deviation that the mean gain of a candidate should have, in squares of the
# usual size of a rating, and limits of the fraction of the squared Gaussian parameter
# that this takes. With more noise than the last, gains would not be seen, and the
# budget is left to item means
CHOICE_NOISE, LEAST_CHOICE, MOST_CHOICE, UNSEEN_GAIN = 0.004, 0.01, 0.05, 0.01
# Fraction of item means where rounds are planned: this over users in the same units
MEANS_USERS = 40.0
MIN_FRACTION, MAX_FRACTION = 0.15, 0.5
# Weight of the last round, where the others have one
LAST_WEIGHT = 1.5
# Coefficients of unit variance are clipped at this fraction of their usual norm, so
# that the parts of most users reach the norm bound
REACH = 0.3
# Relative margin for the round-off of added fractions
ROUND_OFF = 1e-12
# All coefficients are clipped where item vectors are random
LEAST_REACH = 1e-6
# Size of random vectors, against the usual size of a rating
START_SIZE = 0.3
# Factors of the derived vectors in candidates: a half gains nearly as much as one where
# users differ in these tastes, and costs a quarter where they do not
DERIVED_FACTORS = (0.5, 1.0)


@dataclass(frozen=True)
class ALSPlan(PlainNumbers):
    """Noise on item means, on the sums of each round and on the choice.

    It is fixed without data. ``again`` has, for each round, the item means that are
    released instead of this round and all later ones where vectors would be noise; the
    privacy cost is the same.
    """

    facts: RatingFacts
    means: ItemMeans
    rounds: tuple[ItemRound, ...]
    again: tuple[ItemMeans, ...]
    choice: CandidateGains | None
    least_count: float
    n_starts: int
    rank: int

    @property
    def bound(self) -> float:
        """Usual size of a rating less its user's level: half the half-width."""
        return self.facts.half_width / 2

    @property
    def event(self) -> Event:
        """Event of all releases together.

        Item means instead of rounds have the same Gaussian parameter.
        """
        last = () if self.choice is None else (self.choice,)
        released = (self.means, *self.rounds, *last)
        return Composed(tuple(each.event for each in released))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee besides the bounds."""
        return noise_assumptions(self.means.noise)


@dataclass(frozen=True)
class PrivateALS(CompletionSolver):
    """Differentially private alternating least squares, by noisy sums over users.

    First, noisy counts and offsets of items are released. Then, in each round, users
    fit their ratings to the item vectors so far, each locally; noisy sums of products
    of their ratings and coefficients are released, and make better item vectors. These
    are shrunk by the known noise, and directions within the noise are dropped. Where
    released counts are too small for rounds, or a round finds no direction, the rest of
    the budget is spent on item offsets again. Two more columns of the item vectors,
    offset and popularity, follow at no cost, as users differ in how much either matters
    to them. Last, noisy leave-one-out errors of users decide which of these vectors
    predict better than offsets only; others are left out.

    Parameters
    ----------
    rank
        Maximum number of directions that are learned, or ``"auto"`` for 8; always less
        than the number of items.
    n_iter
        Maximum number of rounds. None is two, or three for a number of users that is
        large for the noise, and zero if released counts of items are too small.
    keep
        Which ratings of a user the rounds use where ``max_ratings`` limits them:
        ``"even"`` draws all with equal probability, ``"adaptive"`` with weights of one
        over the root of an item's released count, which prefers rare items as in [1]_.
        Item means use an even choice either way. On MovieLens 1M an even choice
        predicted better, and no limit best.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** The item side is a composition of Gaussian mechanisms, calibrated
    exactly as one, for all ratings of a user; users' rows together are jointly private
    (Kearns, Pai, Roth and Ullman 2014). Ratings of a user need no limit in number:
    their part of each sum has norm one at most, whatever they rate. After [1]_, with
    weights of ratings after [2]_ but one over the root of a user's own number, and
    without second moments of coefficients for each item, which cost most: those of all
    items together, times the item's count, stand for them. A user's coefficients for a
    rating are found without this rating, so that the noise of one round does not feed
    the next.

    References
    ----------
    .. [1] S. Chien, P. Jain, W. Krichene, S. Rendle, S. Song, A. Thakurta and L. Zhang,
       "Private alternating least squares", ICML 2021.
    .. [2] W. Krichene et al., "Multi-task differential privacy under distribution
       skew", ICML 2023.
    """

    rank: int | str = "auto"
    n_iter: int | None = None
    keep: str = "even"
    noise: str = "grid"

    name: ClassVar[str] = "als"
    # their part is bounded whatever a user rates, so all of it counts unless limited
    usual_max_ratings: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        plain(self)
        if self.rank != "auto":
            if isinstance(self.rank, str):
                raise ValueError(
                    f"rank must be 'auto' or an integer, got {self.rank!r}."
                )
            at_least(1, rank=self.rank)
        if self.n_iter is not None:
            at_least(0, n_iter=self.n_iter)
        one_of(KEEPS, keep=self.keep)
        check_noise(self.noise)

    def plan(self, facts: RatingFacts, budget: Budget) -> ALSPlan:
        """Divide the budget among the releases; reads no rating."""
        require_delta(budget, "PrivateALS", USUAL_DELTA)
        multiplier = calibrate(GaussianNoise, budget)
        neighbors = budget.neighbors
        noise = multiplier * neighbors.rows_changed
        users = facts.n_users / noise / sqrt(facts.n_items)
        rank = USUAL_RANK if self.rank == "auto" else int(self.rank)
        # with as many directions as items, a rating would predict itself
        rank = max(1, min(rank, facts.n_items - 1))
        n_iter = _usual_rounds(facts, users) if self.n_iter is None else self.n_iter
        most = max(MOST_STARTS, 2 * rank)
        starts = int(np.clip(users / USERS_PER_START, LEAST_STARTS, most))
        # the sums of a round are as large as a side with this number of directions
        check_size(facts.n_items, max(starts, rank) + 2, "a lower rank")

        choice, rest = self._choice(facts, multiplier, neighbors)
        means, fractions = _fractions(rest, users, n_iter)

        def item_means(fraction: float) -> ItemMeans:
            # a sum of fractions may be rounded up
            part = multiplier / sqrt(fraction) * (1 + ROUND_OFF)
            return ItemMeans(facts, part, neighbors, self.noise)

        def item_round(fraction: float) -> ItemRound:
            part, size = multiplier / sqrt(fraction), max(starts, rank)
            return ItemRound(facts.n_items, size, part, neighbors, self.noise)

        return ALSPlan(
            facts,
            item_means(means),
            tuple(map(item_round, fractions)),
            tuple(item_means(sum(fractions[i:])) for i in range(n_iter)),
            choice,
            CLEAR_MEANS * noise if self.n_iter is None else 0.0,
            starts,
            rank,
        )

    def _choice(
        self, facts: RatingFacts, multiplier: float, neighbors: Neighbors
    ) -> tuple[CandidateGains | None, float]:
        """Return the choice among candidates, and the fraction that is left."""
        whole = CandidateGains(multiplier, neighbors, self.noise)
        wanted = (whole.scale(facts.n_users) / CHOICE_NOISE) ** 2
        fraction = float(np.clip(wanted, LEAST_CHOICE, MOST_CHOICE))
        if wanted > fraction * (UNSEEN_GAIN / CHOICE_NOISE) ** 2:
            return None, 1.0
        choice = CandidateGains(multiplier / sqrt(fraction), neighbors, self.noise)
        return choice, 1 - fraction

    def sums(self, plan: ALSPlan) -> str:
        """Describe the sums over users that a run of this plan releases."""
        n_rounds = len(plan.rounds)
        gains = (
            "" if plan.choice is None else ", and how much candidate vectors gain users"
        )
        if not n_rounds:
            return f"counts and means of items, once, and no direction (rank 0){gains}"
        return (
            f"counts and means of items, then in up to {counted(n_rounds, 'round')} "
            "products of ratings with users' coefficients and second moments of these, "
            f"for up to {counted(plan.rank, 'direction')} (rank), or counts and means "
            f"again where these would be noise{gains}"
        )

    def run(self, plan: ALSPlan, ratings: Ratings, rng: Generator) -> LinearItems:
        """Release item means, then item vectors round by round, and compare them."""
        facts = plan.facts
        used = UsedRatings(ratings, facts.max_ratings, public_key(rng))
        means = plan.means.run(used, rng)
        exact = plan.means.neighbors is Neighbors.REPLACE_ONE
        n_users = float(facts.n_users) if exact else means.n_users
        found, error, n_made = np.empty((facts.n_items, 0)), plan.bound**2, 0
        # [als:again] by released counts and vectors: means where rounds would be noise
        if means.counts.mean() >= plan.least_count:
            found, error, n_made = self._rounds(plan, used, means, n_users, rng)
        if not found.shape[1] and n_made < len(plan.again):
            means = plan.again[n_made].run(used, rng, means)
        derived = derived_vectors(ItemCounts.of(means, n_users), plan.bound)
        vectors = np.concatenate([found, derived], axis=1)
        # without a choice, derived columns are left out
        factors = np.repeat([1.0, 0.0], [found.shape[1], 2])
        if plan.choice is not None:
            factors = plan.choice.best(
                _residuals(used, means),
                vectors,
                _candidates(found.shape[1]),
                ridge=error,
                bound=plan.bound,
                n_users=n_users,
                rng=rng,
            )
        vectors = (vectors * factors)[:, factors != 0]
        return LinearItems(
            vectors,
            means.offsets,
            facts.low,
            facts.high,
            np.full(vectors.shape[1], error),
            means.level,
        )

    def _rounds(
        self,
        plan: ALSPlan,
        used: UsedRatings,
        means: ReleasedMeans,
        n_users: float,
        rng: Generator,
    ) -> tuple[Array, float, int]:
        """Return item vectors, the error of a rating, and the number of rounds made."""
        items, bound = ItemCounts.of(means, n_users), plan.bound
        if self.keep == "adaptive":
            # [als:adaptive] by released counts: their own row and public numbers
            used = replace(used, weights=1 / np.sqrt(items.counts))
        derived, error, n_made = derived_vectors(items, bound), bound**2, 0
        found = derived[:, :0]
        vectors = _initial_vectors(derived, plan.n_starts, bound, used.key)
        for each in plan.rounds:
            first, n_made = n_made == 0, n_made + 1
            sums = each.run(
                _residuals(used, means),
                vectors,
                ridge=error,
                reach=LEAST_REACH if first else REACH * sqrt(vectors.shape[1]),
                bound=bound,
                n_users=n_users,
                rng=rng,
            )
            error, width = sums.error, plan.facts.width
            found = vectors = learned_vectors(
                sums, items, plan.rank, width, synthetic=first
            )
            if not found.shape[1]:
                break
        return found, error, n_made


def _fractions(rest: float, users: float, n_iter: int) -> tuple[float, list[float]]:
    """Return the fractions of item means and of rounds, which are ``rest`` together."""
    if n_iter == 0:
        return rest, []
    means = float(np.clip(MEANS_USERS / users, MIN_FRACTION, MAX_FRACTION)) * rest
    weights = np.ones(n_iter)
    weights[1:][-1:] = LAST_WEIGHT
    return means, ((rest - means) * weights / weights.sum()).tolist()


def _candidates(n_found: int) -> Array:
    """Return factors of learned and of the two derived columns, a row a candidate."""
    rows = [(0.0, part) for part in DERIVED_FACTORS]
    if n_found:
        rows += [(1.0, 0.0), (1.0, DERIVED_FACTORS[0])]
    return np.repeat(np.array(rows), (n_found, 2), axis=1)


def _usual_rounds(facts: RatingFacts, users: float) -> int:
    """Return the number of rounds for users in units of the noise."""
    # items cannot have enough ratings, so that vectors would be noise in any case
    if users * sqrt(facts.max_ratings / facts.n_items) < CLEAR_MEANS:
        return 0
    return 2 if users < THIRD_ROUND_USERS else 3


def _initial_vectors(derived: Array, n_starts: int, bound: float, key: bytes) -> Array:
    """Return signs from a hash of the key, with derived vectors as first columns."""
    shape = (len(derived), n_starts)
    size = shape[0] * shape[1]
    digest = shake_256(key).digest(size // 8 + 1)
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8))
    signs: Array = 2.0 * bits[:size].reshape(shape).astype(np.float64) - 1.0
    vectors = START_SIZE / sqrt(n_starts) * bound * signs
    # except columns that are zero, where means were within the noise
    for column in np.flatnonzero(derived.any(axis=0)):
        vectors[:, column] = derived[:, column]
    return vectors


def _residuals(
    used: UsedRatings, means: ReleasedMeans
) -> Iterator[Callable[[], Block]]:
    """Yield functions that subtract public level and offsets from a block's ratings."""

    def residuals(block: Ratings) -> Block:
        indptr, items, values = plain_arrays(block)
        values -= means.level + means.offsets[items]
        return indptr, items, values

    return used.each(residuals)
