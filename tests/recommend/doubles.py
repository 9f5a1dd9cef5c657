"""A small solver, and ratings, for tests of what goes on around solvers."""

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from tacit._random import as_generator
from tacit.mechanisms.noise import noise_assumptions
from tacit.privacy import GaussianNoise, calibrate
from tacit.recommend.items.side import ItemSide, centered
from tacit.recommend.ratings.table import Ratings
from tacit.recommend.solvers.item_means import ItemMeans


@dataclass(frozen=True, eq=False)
class MeansSide(ItemSide):
    """Levels of users and offsets of items, and a public vector for each item."""

    level: float = 0.0

    def _at_home(self, ratings):
        (_, _, rest), levels = centered(ratings, self.level, 3.0, self.offsets)
        coefficients = np.zeros((len(levels), self.vectors.shape[1]))
        for i, (begin, end) in enumerate(
            zip(ratings.indptr[:-1], ratings.indptr[1:], strict=True)
        ):
            for at in range(begin, end):
                coefficients[i] += rest[at] * self.vectors[ratings.items[at]]
        return levels, coefficients / 10


@dataclass(frozen=True)
class MeansPlan:
    means: ItemMeans

    @property
    def event(self):
        return self.means.event

    @property
    def assumptions(self):
        return noise_assumptions(self.means.noise)


@dataclass(frozen=True)
class MeansSolver:
    noise: str = "grid"
    kind: type = field(default=MeansSide)

    def plan(self, facts, budget):
        multiplier = calibrate(GaussianNoise, budget)
        return MeansPlan(ItemMeans(facts, multiplier, budget.neighbors, self.noise))

    def run(self, plan, ratings, rng):
        found = plan.means.run(ratings, rng)
        facts = plan.means.facts
        positions = np.arange(facts.n_items)
        vectors = np.stack([np.cos(positions), np.sin(positions)], axis=1)
        return self.kind(vectors, found.offsets, facts.low, facts.high, found.level)


def some_ratings(n_users, n_items, seed, *, most=None, low=1.0, high=5.0):
    """Return rows of random lengths, some of them empty."""
    rng = as_generator(seed)
    lengths = rng.integers(0, (most or n_items) + 1, n_users)
    rows = [np.sort(rng.permutation(n_items)[:n]) for n in lengths]
    values = rng.uniform(low, high, int(lengths.sum()))
    return Ratings(
        np.append(0, np.cumsum(lengths)).astype(np.int64),
        np.concatenate([*rows, []]).astype(np.int32),
        values.astype(np.float32),
        n_items,
    )


def matrix(ratings):
    """Return the same ratings as a sparse matrix of users by items."""
    return csr_array(
        (ratings.values, ratings.items, ratings.indptr),
        shape=(ratings.n_users, ratings.n_items),
    )


def triples(ratings):
    """Return the same ratings as rows of user, item and rating."""
    users = np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))
    return list(
        zip(
            users.tolist(),
            ratings.items.tolist(),
            ratings.values.tolist(),
            strict=True,
        )
    )
