"""Ratings of the benchmark of accuracy, and which of them are held out.

Ratings of a set are put into one random order. Run number r holds out the r-th
hundredth of them, so that runs have fresh test ratings, and the settings of methods
without privacy are chosen on ratings that no run holds out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._random import as_generator
from tacit.datasets import load, make_rank_one_ratings

HELD_OUT = 0.01
# Ratings that settings are chosen by, of those that are in no test set
VALIDATION = 0.02
RUNS = 10
SPLIT_SEED = 1
POPULAR = 400


@dataclass(frozen=True, eq=False)
class Split:
    """Ratings that are fitted, and others to score by."""

    name: str
    train: sparse.csr_array
    users: NDArray[np.intp]
    items: NDArray[np.intp]
    values: NDArray[np.float64]
    rating_range: tuple[float, float]

    @property
    def n_users(self) -> int:
        return self.train.shape[0]

    @property
    def n_items(self) -> int:
        return self.train.shape[1]

    def rmse(self, found: NDArray[np.float64]) -> float:
        """Return the error of predictions, which are cut to the range as all are."""
        off = np.clip(found, *self.rating_range) - self.values
        return float(np.sqrt(np.mean(off * off)))


@dataclass(frozen=True, eq=False)
class Problem:
    """All ratings of one set; ``rank`` is that of ratings that were made."""

    name: str
    users: NDArray[np.intp]
    items: NDArray[np.intp]
    values: NDArray[np.float32]
    n_users: int
    n_items: int
    rating_range: tuple[float, float]
    runs: int = RUNS
    rank: int | None = None

    @property
    def n_ratings(self) -> int:
        return len(self.values)

    def split(self, run: int) -> Split:
        """Return the ratings of one run."""
        size = int(HELD_OUT * self.n_ratings)
        order = self._order()
        test = order[run * size : (run + 1) * size]
        return self._apart(np.delete(order, np.s_[run * size : (run + 1) * size]), test)

    def tuning(self) -> Split:
        """Return ratings that are held out by no run, some of them to choose by."""
        free = self._order()[RUNS * int(HELD_OUT * self.n_ratings) :]
        size = int(VALIDATION * self.n_ratings)
        return self._apart(free[size:], free[:size])

    def _order(self) -> NDArray[np.intp]:
        return as_generator(SPLIT_SEED).permutation(self.n_ratings)

    def _apart(self, train: NDArray[np.intp], test: NDArray[np.intp]) -> Split:
        pairs = self.users[train], self.items[train]
        size = self.n_users, self.n_items
        return Split(
            self.name,
            sparse.coo_array((self.values[train], pairs), size).tocsr(),
            self.users[test],
            self.items[test],
            self.values[test].astype(np.float64),
            self.rating_range,
        )


def of_ratings(name: str, data: Any, popular: int | None = None) -> Problem:
    """Return ratings as a problem; ``popular`` keeps the items with most ratings.

    That choice reads ratings and is not private: it stands for a public catalogue.
    """
    users, items = np.asarray(data.users), np.asarray(data.items)
    values, n_items = np.asarray(data.ratings, np.float32), data.n_items
    if popular is not None:
        most = np.argsort(-np.bincount(items, minlength=n_items), kind="stable")
        position = np.full(n_items, -1)
        position[most[:popular]] = np.arange(popular)
        kept = position[items] >= 0
        users, items, values = users[kept], position[items[kept]], values[kept]
        n_items = popular
    known, users = np.unique(users, return_inverse=True)
    return Problem(
        name, users, items, values, len(known), n_items, tuple(data.rating_range)
    )


def rank_one(name: str, n_users: int, runs: int) -> Problem:
    """Return ratings that are products of two numbers, with nothing else in them."""
    made = make_rank_one_ratings(n_users, POPULAR, 80, random_state=SPLIT_SEED)
    problem = of_ratings(name, made)
    return replace(problem, runs=runs, rank=1)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "jester": lambda: of_ratings("jester", load("jester_ratings")),
    "movielens_1m_top400": lambda: of_ratings(
        "movielens_1m_top400", load("movielens_1m"), POPULAR
    ),
    "movielens_1m": lambda: of_ratings("movielens_1m", load("movielens_1m")),
    "movielens_100k": lambda: of_ratings("movielens_100k", load("movielens_100k")),
    "netflix_sample": lambda: of_ratings("netflix_sample", load("netflix_sample")),
    "rank_one": lambda: rank_one("rank_one", 500_000, 2),
    "rank_one_small": lambda: rank_one("rank_one_small", 20_000, 2),
}
QUICK_SETS = ("movielens_100k", "rank_one_small")
WHOLE_SETS = tuple(name for name in PROBLEMS if name != "rank_one_small")
