"""Rows of the benchmark of accuracy: private, public and held out.

A twentieth of the rows is the public pool, whose labels are used nowhere but to say how
many of the released ones are right. A seventh is held out to score. Of the private
rows, `VALIDATION` are kept from the teachers: how many rows a teacher gets is chosen by
the accuracy of students on them, which is not paid for. Columns are scaled by ranges
written in `tacit.datasets`, and what is learned from features is learned from the pool.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer

from tacit._random import as_generator
from tacit.datasets import (
    load_acs_income,
    load_adult,
    load_covertype,
    load_mnist,
)
from tacit.ensemble import NeighborMap

POOL_SHARE, TEST_SHARE = 1 / 20, 1 / 7
VALIDATION, QUICK_VALIDATION = 2_000, 500
# Of Covertype this many rows are drawn, as all of them take an hour
COVERTYPE_ROWS = 100_000
QUICK_ROWS = 12_000
SPLIT_SEED = 1


@dataclass(frozen=True, eq=False)
class Problem:
    """One data set, split.

    ``plain`` and ``plain_test`` are rows as they are loaded; the others are as teachers
    get them. ``student_map`` was fitted to the pool.
    """

    name: str
    classes: tuple[int, ...]
    plain: np.ndarray
    plain_test: np.ndarray
    X: np.ndarray
    y: np.ndarray
    X_validation: np.ndarray
    y_validation: np.ndarray
    X_pool: np.ndarray
    y_pool: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    student_map: Any
    mapped: bool

    @property
    def n_rows(self) -> int:
        """Private rows of the teachers."""
        return len(self.y)

    @property
    def delta(self) -> float:
        return 1 / self.n_rows**2

    def with_rows(self, n_rows: int) -> Problem:
        """Return the problem with the first private rows alone."""
        return replace(
            self, plain=self.plain[:n_rows], X=self.X[:n_rows], y=self.y[:n_rows]
        )


def mnist(quick: bool) -> Problem:
    """Digits, as coordinates on the graph of neighbors of the pool."""
    found = load_mnist(QUICK_ROWS if quick else 70_000)
    return split("mnist", found.X, found.y, quick, NeighborMap(), None)


def covertype(quick: bool) -> Problem:
    """Is it lodgepole pine."""
    found = load_covertype(binary=True)
    size = QUICK_ROWS if quick else COVERTYPE_ROWS
    rows = as_generator(SPLIT_SEED).choice(len(found.y), size, replace=False)
    return split("covertype", found.X[rows], found.y[rows], quick)


def adult(quick: bool) -> Problem:
    """Does a person earn more than 50,000 dollars, in 1994."""
    found = load_adult()
    return split("adult", found.X, found.y, quick)


def acs_income(quick: bool) -> Problem:
    """Does a person earn more than 50,000 dollars, in 2018."""
    found = load_acs_income()
    return split("acs_income", found.X, found.y, quick)


PROBLEMS = {
    "mnist": mnist,
    "covertype": covertype,
    "adult": adult,
    "acs_income": acs_income,
}


def kernel_features() -> Pipeline:
    """Return features for the student of a table, to be fitted to its pool."""
    return make_pipeline(
        QuantileTransformer(n_quantiles=200, random_state=0),
        Nystroem(gamma=0.1, n_components=200, random_state=0),
    )


def split(
    name: str,
    X: np.ndarray,
    y: np.ndarray,
    quick: bool,
    teacher_map: Any = None,
    student_map: Any = kernel_features,
) -> Problem:
    """Return rows in a random order, taken apart and mapped."""
    n = min(len(y), QUICK_ROWS) if quick else len(y)
    order = as_generator(SPLIT_SEED).permutation(len(y))[:n]
    kept = QUICK_VALIDATION if quick else VALIDATION
    ends = np.cumsum([int(n * TEST_SHARE), int(n * POOL_SHARE), kept])
    test, pool, validation, private = np.split(order, ends)
    if teacher_map is None:
        teacher_map = FunctionTransformer()
    seen = teacher_map.fit(X[pool])
    X_pool = seen.transform(X[pool])
    own = FunctionTransformer() if student_map is None else student_map()
    return Problem(
        name,
        tuple(np.unique(y).tolist()),
        plain=X[private],
        plain_test=X[test],
        X=seen.transform(X[private]),
        y=y[private],
        X_validation=seen.transform(X[validation]),
        y_validation=y[validation],
        X_pool=X_pool,
        y_pool=y[pool],
        X_test=seen.transform(X[test]),
        y_test=y[test],
        student_map=own.fit(X_pool),
        mapped=not isinstance(seen, FunctionTransformer),
    )
