"""Predictions without privacy: means, and alternating least squares that are tuned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from benchmarks.recommend.data import Split
from numba import njit
from numpy.typing import NDArray

from tacit._random import as_generator

Array = NDArray[np.float64]
# A level of a user or an item is shrunk as if so many ratings had none
SHRINK = 5.0
PASSES = 12
# Passes after which a rank that is known has been found, where nothing else is there
FEW_PASSES = 4
START_SEED = 7
# Where the search begins, and how far it goes; ridge in half widths of the range
FIRST_RANK, LEAST, MOST = 8, (1, 1e-4), (32, 16.0)
# First ridge by the power of a row's number of ratings that multiplies it
FIRST_RIDGES = {1.0: 0.02, 0.5: 0.5}


def level(split: Split) -> float:
    """Return the mean of all ratings."""
    return float(split.train.data.mean(dtype=np.float64))


def user_means(split: Split) -> Array:
    """Return the mean of each user, and the mean of all where she has rated nothing."""
    return _means(split.train.indptr, split.train.data.astype(np.float64), level(split))


def item_offsets(split: Split) -> Array:
    """Return how much each item is above the means of the users who rated it."""
    rows = split.train
    users = np.repeat(np.arange(split.n_users), np.diff(rows.indptr))
    off = rows.data - user_means(split)[users]
    counts = np.bincount(rows.indices, minlength=split.n_items)
    sums = np.bincount(rows.indices, weights=off, minlength=split.n_items)
    return sums / np.maximum(counts, 1)


def _means(starts: NDArray[Any], values: Array, none: float) -> Array:
    sums = np.diff(np.concatenate([[0.0], np.cumsum(values)])[starts])
    counts = np.diff(starts)
    return np.where(counts > 0, sums / np.maximum(counts, 1), none)


def by_level(split: Split) -> Array:
    """Predict the mean of all."""
    return np.full(len(split.values), level(split))


def by_user_means(split: Split) -> Array:
    """Predict the mean of the user, for which nobody else's ratings are needed."""
    return user_means(split)[split.users]


def by_both_means(split: Split) -> Array:
    """Predict the mean of the user and the offset of the item."""
    return by_user_means(split) + item_offsets(split)[split.items]


BY_MEANS = {
    "mean of all": by_level,
    "user means": by_user_means,
    "user and item means": by_both_means,
}


@njit(cache=True, boundscheck=False)
def solve_rows(indptr, others, values, fixed, offsets, ridge, power, shrink, found):
    """Fit each row to the fixed other side, whose first column is ones."""
    width = fixed.shape[1]
    A, b = np.empty((width, width)), np.empty(width)
    for i in range(len(indptr) - 1):
        low, high = indptr[i], indptr[i + 1]
        for k in range(width):
            b[k] = 0.0
            for m in range(k + 1):
                A[k, m] = 0.0
        for j in range(low, high):
            x, y = fixed[others[j]], values[j] - offsets[others[j]]
            for k in range(width):
                b[k] += y * x[k]
                for m in range(k + 1):
                    A[k, m] += x[k] * x[m]
        A[0, 0] += shrink
        for k in range(1, width):
            A[k, k] += ridge * (high - low) ** power + 1e-12
        # Cholesky factors in place of the matrix, and two triangular solves
        for k in range(width):
            for m in range(k + 1):
                rest = A[k, m]
                for n in range(m):
                    rest -= A[k, n] * A[m, n]
                A[k, m] = np.sqrt(rest) if k == m else rest / A[m, m]
            for n in range(k):
                b[k] -= A[k, n] * b[n]
            b[k] /= A[k, k]
        for k in range(width - 1, -1, -1):
            for n in range(k + 1, width):
                b[k] -= A[n, k] * b[n]
            b[k] /= A[k, k]
            found[i, k] = b[k]


@dataclass(frozen=True)
class PlainALS:
    """Alternating least squares with biases, and a ridge by a row's number of ratings.

    Ratings are measured in half widths of their range.
    """

    rank: int
    ridge: float
    power: float = 1.0
    passes: int = PASSES

    def predict(self, split: Split) -> Array:
        """Fit, and predict the held-out ratings."""
        low, high = split.rating_range
        scale, middle = (high - low) / 2, level(split)
        rows = split.train
        data = (rows.data.astype(np.float64) - middle) / scale
        columns = type(rows)((data, rows.indices, rows.indptr), rows.shape).tocsc()
        users = np.zeros((split.n_users, 1 + self.rank))
        start = as_generator(START_SEED).standard_normal((split.n_items, self.rank))
        items = np.hstack([np.zeros((split.n_items, 1)), start / 10])
        for _ in range(self.passes):
            self._solve(rows.indptr, rows.indices, data, items, users)
            self._solve(columns.indptr, columns.indices, columns.data, users, items)
        own, others = users[split.users], items[split.items]
        products = np.einsum("ij,ij->i", own[:, 1:], others[:, 1:])
        return middle + scale * (own[:, 0] + others[:, 0] + products)

    def _solve(self, indptr, indices, data, fixed, found) -> None:
        ones = np.ones((len(fixed), 1))
        solve_rows(
            indptr,
            indices,
            data,
            np.hstack([ones, fixed[:, 1:]]),
            np.ascontiguousarray(fixed[:, 0]),
            self.ridge,
            self.power,
            SHRINK,
            found,
        )


def of_known_rank(rank: int) -> PlainALS:
    """Return settings for ratings that were made without noise."""
    return PlainALS(rank, LEAST[1], passes=FEW_PASSES)


def tuned(split: Split) -> PlainALS:
    """Return the settings with the least error: one after the other, by factors of 2.

    ``split`` holds out ratings of its own, none of which a test set has.
    """
    errors: dict[PlainALS, float] = {}

    def error(case: PlainALS) -> float:
        if case not in errors:
            errors[case] = split.rmse(case.predict(split))
        return errors[case]

    rank = FIRST_RANK
    for power, ridge in FIRST_RIDGES.items():
        rank = climbed(PlainALS(rank, ridge, power), error).rank
    return min(errors, key=errors.__getitem__)


def climbed(best: PlainALS, error: Callable[[PlainALS], float]) -> PlainALS:
    """Return settings that no factor of two improves, in rank or in ridge."""
    before = None
    while best != before:
        before = best
        for rank, ridge in ((1, 2.0), (1, 0.5), (2, 1.0), (0.5, 1.0)):
            while True:
                found = int(best.rank * rank), best.ridge * ridge
                case = replace(best, rank=found[0], ridge=found[1])
                within = all(
                    low <= value <= high
                    for low, value, high in zip(LEAST, found, MOST, strict=True)
                )
                if not within or error(case) >= error(best):
                    break
                best = case
    return best
