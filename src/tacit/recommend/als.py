"""Private alternating least squares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import shake_256
from math import sqrt
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import at_least, one_of, plain
from tacit.mechanisms.grid import check_noise, noise_assumptions
from tacit.privacy import Budget, Composed, Event, GaussianNoise, Neighbors, calibrate
from tacit.recommend._als_items import ItemCounts, learned, tastes
from tacit.recommend._facts import RatingFacts
from tacit.recommend._ratings.used import UsedRatings, public_key
from tacit.recommend._sides.base import refuse_large
from tacit.recommend._sides.linear import LinearItems
from tacit.recommend._sides.local import Block, plain_arrays
from tacit.recommend._sums.als_round import ItemRound
from tacit.recommend._sums.means import ItemMeans, ReleasedMeans
from tacit.solvers._base import refuse_pure

if TYPE_CHECKING:
    from tacit.recommend._ratings.table import Ratings

__all__ = ["ALSPlan", "PrivateALS"]

Array = NDArray[np.float64]

KEEPS = ("even", "adaptive")
# Users a unit of noise, where items are as many as its square: with fewer, item vectors
# would be noise, and all is spent on means
FEW_USERS = 30.0
# and with more, a third round is worth its noise
MANY_USERS = 500.0
# Users, in the same units, that make one more direction worth a start
USERS_PER_START = 15.0
MOST_STARTS = 32
# Directions that later rounds keep where the rank is not given
USUAL_RANK = 8
# Share of the squared Gaussian parameter of item means: this over the users above,
# between these limits
MEANS_USERS = 25.0
LEAST_SHARE, MOST_SHARE = 0.15, 0.5
# Share of the last round, where the others have one
LAST_WEIGHT = 1.5
# Coefficients of unit variance are clipped at this part of their usual norm: most users
# then have as much of a say as they may
REACH = 0.3
# All are, where the item vectors were made up
LEAST_REACH = 1e-6
# Size of random vectors, against the usual size of a rating
START_SIZE = 0.3
# What is left of the free vectors beside learned ones, which know most of them
FREE_PART = 0.5


@dataclass(frozen=True)
class ALSPlan:
    """Noise on item means and on the sums of each round, fixed without data."""

    facts: RatingFacts
    means: ItemMeans
    rounds: tuple[ItemRound, ...]
    n_starts: int
    rank: int

    @property
    def event(self) -> Event:
        """What all releases cost together."""
        return Composed((self.means.event, *(each.event for each in self.rounds)))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on besides the bounds."""
        return noise_assumptions(self.means.noise)


@dataclass(frozen=True)
class PrivateALS:
    """Complete ratings by alternating least squares, users at home and items in noise.

    First, noisy counts and offsets of items are released. Two vectors an item follow
    from them for nothing, its offset and its popularity, as users differ in how much
    they go by either. Then, in each round, users fit their ratings to the item vectors
    so far, each at home; noisy sums of products of their ratings and coefficients are
    released, and make better item vectors. These are shrunk by the known noise, and
    directions that are no more than noise are dropped: with little privacy to spend,
    levels of users, offsets and the two free vectors are what is left.

    Parameters
    ----------
    rank
        Most directions that are learned, or ``"auto"`` for up to 8; always fewer than
        items.
    n_iter
        Number of rounds. None is two; three where users are many for the noise, and
        none where they are too few.
    keep
        Which ratings of a user the rounds use where ``max_ratings`` limits them:
        ``"even"`` draws all with the same odds, ``"adaptive"`` with odds of one over
        the root of an item's released count, for rare items, as [1]_ prefer them.
        Item means are of an even choice either way. On MovieLens 1M an even choice
        predicted better, and no limit best.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** The item side is a composition of Gaussian mechanisms, calibrated
    exactly as one, for all ratings of a user; users' rows together are jointly private
    (Kearns, Pai, Roth and Ullman 2014). Ratings of a user need no limit in number: her
    part of each sum has norm one at most, whatever she rates. After [1]_, with weights
    of ratings after [2]_ but one over the root of a user's own number, and without
    second moments of coefficients for each item, which cost most: those of all items
    together, times the item's count, stand for them. A user's coefficients for a rating
    are found without this rating, so that the noise of one round does not feed the
    next.

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

    # her part is bounded whatever a user rates, so all of it counts unless limited
    usual_max_ratings: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        plain(self)
        if self.rank != "auto":
            if isinstance(self.rank, str):
                raise ValueError(
                    f"rank must be 'auto' or a whole number, got {self.rank!r}."
                )
            at_least(1, rank=self.rank)
        if self.n_iter is not None:
            at_least(0, n_iter=self.n_iter)
        one_of(KEEPS, keep=self.keep)
        check_noise(self.noise)

    def plan(self, facts: RatingFacts, budget: Budget) -> ALSPlan:
        """Share the budget out; reads no rating."""
        refuse_pure(budget, "PrivateALS", "a delta of 1 / users^2, which is usual")
        multiplier = calibrate(GaussianNoise, budget)
        neighbors = budget.neighbors
        noise = multiplier * neighbors.rows_changed * sqrt(facts.n_items)
        users = facts.n_users / noise
        rank = USUAL_RANK if self.rank == "auto" else int(self.rank)
        # as many directions as items would say of a rating what it says of itself
        rank = max(1, min(rank, facts.n_items - 1))
        n_iter = _usual_rounds(users) if self.n_iter is None else self.n_iter
        starts = int(np.clip(users / USERS_PER_START, 2, max(MOST_STARTS, 2 * rank)))
        # the sums of a round are as large as a side of so many directions
        refuse_large(facts.n_items, max(starts, rank) + 2, "a lower rank")
        share = float(np.clip(MEANS_USERS / users, LEAST_SHARE, MOST_SHARE))
        share = 1.0 if n_iter == 0 else share
        weights = np.ones(n_iter)
        weights[1:][-1:] = LAST_WEIGHT
        shares = (1 - share) * weights / max(weights.sum(), 1.0)
        return ALSPlan(
            facts,
            ItemMeans(facts, multiplier / sqrt(share), neighbors, self.noise),
            tuple(
                ItemRound(
                    facts.n_items,
                    max(starts, rank),
                    multiplier / sqrt(part),
                    neighbors,
                    self.noise,
                )
                for part in shares.tolist()
            ),
            starts,
            rank,
        )

    def run(self, plan: ALSPlan, ratings: Ratings, rng: Generator) -> LinearItems:
        """Release item means, then item vectors round by round."""
        facts = plan.facts
        used = UsedRatings(ratings, facts.max_ratings, public_key(rng))
        means = plan.means.run(used, rng)
        # from here on ratings are read by the rounds alone
        exact = plan.means.neighbors is Neighbors.REPLACE_ONE
        n_users = float(facts.n_users) if exact else means.n_users
        items = ItemCounts.of(means.counts, means.count_scale, means.offsets, n_users)
        if self.keep == "adaptive":
            # [als:adaptive] by released counts, so still her own row and public numbers
            used = replace(used, weights=1 / np.sqrt(items.counts))
        bound = facts.half_width / 2
        free = tastes(items, bound)
        vectors, error = _started(free, plan.n_starts, bound, used.key), bound**2
        found = free[:, :0]
        for i, each in enumerate(plan.rounds):
            sums = each.run(
                _rests(used, means),
                vectors,
                ridge=error,
                reach=LEAST_REACH if i == 0 else REACH * sqrt(vectors.shape[1]),
                bound=bound,
                n_users=n_users,
                rng=rng,
            )
            error = sums.error
            found = vectors = learned(
                sums, items, plan.rank, facts.width, made_up=i == 0
            )
            if not found.shape[1]:
                break
        part = FREE_PART if found.shape[1] else 1.0
        vectors = np.concatenate([found, part * free], axis=1)
        return LinearItems(
            vectors,
            means.offsets,
            facts.low,
            facts.high,
            np.full(vectors.shape[1], error),
            means.level,
        )


def _usual_rounds(users: float) -> int:
    """Return the number of rounds for so many users a unit of noise."""
    if users < FEW_USERS:
        return 0
    return 2 if users < MANY_USERS else 3


def _started(free: Array, n_starts: int, bound: float, key: bytes) -> Array:
    """Return the free vectors and signs from a hash of the key beside them."""
    shape = (len(free), n_starts - free.shape[1])
    size = shape[0] * shape[1]
    digest = shake_256(key).digest(size // 8 + 1)
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8))
    signs = 2.0 * bits[:size].reshape(shape) - 1.0
    return np.concatenate([free, START_SIZE / sqrt(n_starts) * bound * signs], axis=1)


def _rests(used: UsedRatings, means: ReleasedMeans) -> Iterator[Callable[[], Block]]:
    """Return functions that take public level and offsets off a block's ratings."""

    def rest(block: Ratings) -> Block:
        indptr, items, values = plain_arrays(block)
        values -= means.level + means.offsets[items]
        return indptr, items, values

    return used.each(rest)
