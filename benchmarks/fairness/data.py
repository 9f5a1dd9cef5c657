"""Rows of the experiments: nine tenths to learn from, a tenth to judge by.

The sensitive column is kept from learning. Columns are scaled by ranges written in
`tacit.datasets`, and rows are shortened to a norm that follows from those alone.

* ``celeba_attributes``: smiling, by sex; attributes as -1 and 1, rows of norm 6.
* ``acs_income``: more than 50,000 dollars a year, by sex; two states, where the
  published experiment had all of them.
* ``compas``: charged again within two years, by race; the four smallest of its six
  races are one group, as a tenth of the rows has too few of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from tacit import datasets
from tacit.data import RowBounds

TEST_FRACTION = 0.1
SPLIT_SEED = 42
CELEBA_NORM = 6.0
QUICK_ROWS = 6_000
COMPAS_RACES = ("African-American", "Caucasian")
SETS = ("celeba_attributes", "acs_income", "compas")

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class Problem:
    """One data set, split; labels are 0 and 1, rows within ``x_norm``."""

    name: str
    X: Array
    y: np.ndarray
    X_test: Array
    y_test: np.ndarray
    groups: np.ndarray
    x_norm: float

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def n_weights(self) -> int:
        return self.X.shape[1]

    @property
    def signs(self) -> Array:
        """The labels of the test rows, as -1 and 1."""
        return np.where(self.y_test > 0, 1.0, -1.0)


def split(
    name: str,
    X: Array,
    y: np.ndarray,
    groups: np.ndarray,
    x_norm: float,
    *,
    n_rows: int | None = None,
) -> Problem:
    """Shorten rows to the bound and hold a tenth of them out."""
    X, y, groups = X[:n_rows], y[:n_rows], groups[:n_rows]
    X = np.asarray(RowBounds(x_norm).clip(X))
    parts = train_test_split(
        X, y, groups, test_size=TEST_FRACTION, random_state=SPLIT_SEED
    )
    X_train, X_test, y_train, y_test, _, held_out = parts
    return Problem(name, X_train, y_train, X_test, y_test, held_out, x_norm)


@cache
def load(name: str, *, quick: bool = False) -> Problem:
    """Return one of `SETS`, of the first rows alone where it is quick."""
    n_rows = QUICK_ROWS if quick else None
    if name == "celeba_attributes":
        data, groups = datasets.load("celeba_attributes").without("Male")
        signs = 2.0 * np.asarray(data.X) - 1.0
        return split(name, signs, data.y, groups, CELEBA_NORM, n_rows=n_rows)
    if name == "acs_income":
        data, groups = datasets.load("acs_income").without("SEX")
    else:
        data, groups = datasets.load("compas").without("race")
        groups = np.where(np.isin(groups, COMPAS_RACES), groups, "other")
    # the sensitive column had one indicator in every row
    x_norm = float(np.sqrt(round(data.x_norm**2) - 1))
    return split(name, np.asarray(data.X), data.y, groups, x_norm, n_rows=n_rows)
