"""Rows of the benchmark of accuracy: private, public and held out.

A twentieth of the rows is the public pool, whose labels are used nowhere but to say how
many of the released ones are right. A seventh is held out to score. Of the private
rows, `VALIDATION` are kept from the teachers: how many rows a teacher gets is chosen by
the accuracy of students on them, which is not paid for. Columns are scaled by ranges
written in `tacit.datasets`. The public map is a `NeighborMap` of the pool: teachers of
MNIST get rows mapped by it, and those of tables get plain columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tacit._random import as_generator
from tacit.datasets import load
from tacit.ensemble import NeighborMap

POOL_SHARE, TEST_FRACTION = 1 / 20, 1 / 7
VALIDATION, QUICK_VALIDATION = 2_000, 500
# Of Covertype this many rows are drawn, as all of them take an hour
COVERTYPE_ROWS = 100_000
QUICK_ROWS = 12_000
SPLIT_SEED = 1
PLAIN, MAPPED = "plain", "public map"


@dataclass(frozen=True, eq=False)
class Problem:
    """One data set, split, in plain columns, with a map that was fitted to the pool."""

    name: str
    classes: tuple[int, ...]
    X: np.ndarray
    y: np.ndarray
    X_validation: np.ndarray
    y_validation: np.ndarray
    X_pool: np.ndarray
    y_pool: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    public_map: NeighborMap
    teachers_map: bool

    @property
    def n_rows(self) -> int:
        """Private rows of the teachers."""
        return len(self.y)

    @property
    def delta(self) -> float:
        return 1 / self.n_rows**2

    @property
    def teacher_columns(self) -> str:
        return MAPPED if self.teachers_map else PLAIN

    @cached_property
    def for_teachers(self) -> tuple[np.ndarray, np.ndarray]:
        """Private rows and questions, as teachers get them."""
        if not self.teachers_map:
            return self.X, self.X_pool
        return self.mapped[0], self.public_map.transform(self.X_pool)

    @cached_property
    def mapped(self) -> tuple[np.ndarray, np.ndarray]:
        """Private rows and test rows on the public map."""
        return self.public_map.transform(self.X), self.public_map.transform(self.X_test)

    def rows(self, columns: str) -> tuple[np.ndarray, np.ndarray]:
        """Return private rows and test rows in these columns."""
        return self.mapped if columns == MAPPED else (self.X, self.X_test)

    def with_rows(self, n_rows: int) -> Problem:
        """Return the problem with the first private rows alone."""
        return replace(self, X=self.X[:n_rows], y=self.y[:n_rows])


def mnist(quick: bool) -> Problem:
    """Digits."""
    found = load("mnist", n_rows=QUICK_ROWS if quick else 70_000)
    return split("mnist", found.X, found.y, quick, teachers_map=True)


def covertype(quick: bool) -> Problem:
    """Is it lodgepole pine."""
    found = load("covertype", binary=True)
    size = QUICK_ROWS if quick else COVERTYPE_ROWS
    rows = as_generator(SPLIT_SEED).choice(len(found.y), size, replace=False)
    return split("covertype", found.X[rows], found.y[rows], quick)


def adult(quick: bool) -> Problem:
    """Does a person earn more than 50,000 dollars, in 1994."""
    found = load("adult")
    return split("adult", found.X, found.y, quick)


def acs_income(quick: bool) -> Problem:
    """Does a person earn more than 50,000 dollars, in 2018."""
    found = load("acs_income")
    return split("acs_income", found.X, found.y, quick)


PROBLEMS = {
    "mnist": mnist,
    "adult": adult,
    "acs_income": acs_income,
    "covertype": covertype,
}


def split(
    name: str,
    X: np.ndarray,
    y: np.ndarray,
    quick: bool,
    *,
    teachers_map: bool = False,
) -> Problem:
    """Return rows in a random order, taken apart."""
    n = min(len(y), QUICK_ROWS) if quick else len(y)
    order = as_generator(SPLIT_SEED).permutation(len(y))[:n]
    kept = QUICK_VALIDATION if quick else VALIDATION
    ends = np.cumsum([int(n * TEST_FRACTION), int(n * POOL_SHARE), kept])
    test, pool, validation, private = np.split(order, ends)
    return Problem(
        name,
        tuple(np.unique(y).tolist()),
        X=X[private],
        y=y[private],
        X_validation=X[validation],
        y_validation=y[validation],
        X_pool=X[pool],
        y_pool=y[pool],
        X_test=X[test],
        y_test=y[test],
        public_map=NeighborMap().fit(X[pool]),
        teachers_map=teachers_map,
    )
