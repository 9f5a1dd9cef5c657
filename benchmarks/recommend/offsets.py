"""The default recommender beside private item offsets, on synthetic ratings.

``python -m benchmarks.recommend.offsets`` prints the root mean squared error on
held-out ratings of item offsets for the whole budget, and how far the default is above
it, for all sets, epsilons and both relations: some ten minutes on one core. ``--quick``
takes the smaller sets at epsilon 1 and 5; ``--sets`` and ``--epsilons`` take some of
them. ``--sets "offsets, sparse" --epsilons 0.5 1 5 --runs 10`` is a sparse set of 3,000
users, 3,000 items and 135,000 ratings. Constants of `PrivateALS` were chosen on such
sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.recommend.common import markdown
from numpy.typing import NDArray

from tacit._random import as_generator
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.recommend import ItemMeans, ItemSide, PrivateALS
from tacit.recommend.items.linear import LinearItems
from tacit.recommend.ratings.table import RatingFacts, Ratings

Array = NDArray[np.float64]

EPSILONS, QUICK_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0), (1.0, 5.0)
DELTA = 1e-6
LOW, HIGH = 1.0, 5.0
HELD_OUT = 0.05
QUICK_USERS = 3000


@dataclass(frozen=True)
class Made:
    """Ratings of one kind; standard deviations are in stars of five."""

    name: str
    n_users: int
    n_items: int
    n_rated: int
    zipf: float = 0.8
    rank: int = 0
    strength: float = 0.0
    offset: float = 0.4
    trend: float = 0.0
    taste: float = 0.0
    noise: float = 0.8

    def split(self, seed: int) -> tuple[Ratings, NDArray[np.intp], Array]:
        """Return ratings, and user and item of others with their values."""
        rng = as_generator(seed)
        n, m, rank = self.n_users, self.n_items, max(self.rank, 1)
        popular = (rng.permutation(m) + 6.0) ** -self.zipf
        known = np.log(popular) - np.log(popular).mean()
        own = np.sqrt(1 - self.trend**2) * rng.standard_normal(m)
        offsets = self.offset * (self.trend * known / max(known.std(), 1e-9) + own)
        vectors = self.strength / np.sqrt(rank) * rng.standard_normal((m, rank))
        lengths = rng.lognormal(-0.3, 0.8, n) * self.n_rated
        lengths = np.clip(lengths, 3, 0.8 * m).astype(np.int64)
        rows = [
            np.sort(np.argsort(-(np.log(popular) + rng.gumbel(size=m)))[:length])
            for length in lengths
        ]
        users, items = np.repeat(np.arange(n), lengths), np.concatenate(rows)
        follows = 1 + self.taste * rng.standard_normal(n)
        likes = rng.standard_normal((n, rank))
        values = (3.6 + 0.45 * rng.standard_normal(n))[users]
        values += follows[users] * offsets[items]
        values += np.einsum("ik,ik->i", likes[users], vectors[items])
        values += self.noise * rng.standard_normal(len(values))
        values = np.clip(np.rint(values), LOW, HIGH)
        held = rng.random(len(values)) < HELD_OUT
        kept = np.bincount(users[~held], minlength=n)
        ratings = Ratings(
            np.append(0, np.cumsum(kept)),
            items[~held].astype(np.int32),
            values[~held].astype(np.float32),
            m,
        )
        return ratings, np.stack([users[held], items[held]]), values[held]


SETS = (
    Made("offsets, small", 1000, 300, 20),
    Made("offsets, sparse", 3000, 3000, 45),
    Made("offsets", 6000, 400, 60, zipf=0.5),
    Made("nothing", 3000, 800, 30, offset=0.0),
    Made("rank 5, sparse", 3000, 3000, 45, zipf=1.1, rank=5, strength=0.35),
    Made("rank 10, even", 3000, 3000, 45, zipf=0.3, rank=10, strength=0.4, noise=0.65),
    Made("tastes", 1000, 1700, 100, 0.9, 5, 0.4, trend=0.5, taste=0.35),
    Made("rank 6", 6000, 400, 80, 0.5, 6, 0.5, trend=0.3, taste=0.3),
    Made("rank 4", 20_000, 1000, 40, rank=4, strength=0.45),
    Made("rank 1", 2000, 60, 30, zipf=0.2, rank=1, strength=0.8, noise=0.5),
)


def offsets_alone(
    facts: RatingFacts, budget: Budget, ratings: Ratings, seed: int
) -> ItemSide:
    """Return item means for the whole budget, and nothing else."""
    multiplier = calibrate(GaussianNoise, budget)
    means = ItemMeans(facts, multiplier, budget.neighbors).run(
        ratings, as_generator(seed)
    )
    none = np.empty((facts.n_items, 0))
    return LinearItems(none, means.offsets, LOW, HIGH, np.empty(0), means.level)


def table(
    sets: Sequence[Made], epsilons: Sequence[float], runs: int
) -> Iterator[dict[str, Any]]:
    """Yield a line for each set and relation."""
    for made in sets:
        ratings, pairs, values = made.split(1)
        facts = RatingFacts(made.n_items, LOW, HIGH, made.n_users, made.n_items)

        def error(
            side: ItemSide, at: Any = (ratings, *pairs), truth: Array = values
        ) -> float:
            return float(np.sqrt(np.mean((side.at(*at) - truth) ** 2)))

        for neighbors in Neighbors:
            line: dict[str, Any] = {"set": made.name, "neighbors": neighbors.value}
            for epsilon in epsilons:
                budget = Budget(epsilon, DELTA, neighbors)
                plan, seeds = PrivateALS().plan(facts, budget), range(runs)
                means = [
                    error(offsets_alone(facts, budget, ratings, seed)) for seed in seeds
                ]
                found = [
                    error(PrivateALS().run(plan, ratings, as_generator(seed)))
                    for seed in seeds
                ]
                above = np.mean(found) - np.mean(means)
                line[f"epsilon {epsilon:g}: offsets"] = f"{np.mean(means):.4f}"
                line[f"epsilon {epsilon:g}: default above"] = f"{above:+.4f}"
            yield line


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smaller sets")
    parser.add_argument("--runs", type=int, default=3, help="draws of the noise")
    names = [made.name for made in SETS]
    parser.add_argument("--sets", nargs="+", choices=names, metavar="NAME")
    parser.add_argument("--epsilons", nargs="+", type=float, metavar="EPSILON")
    given = parser.parse_args(argv)
    small = [made for made in SETS if made.n_users <= QUICK_USERS]
    sets = small if given.quick else SETS
    if given.sets:
        sets = [made for made in SETS if made.name in given.sets]
    epsilons = given.epsilons or (QUICK_EPSILONS if given.quick else EPSILONS)
    print(markdown(table(sets, epsilons, given.runs)))


if __name__ == "__main__":
    main()
