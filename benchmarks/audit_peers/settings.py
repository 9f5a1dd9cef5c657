"""What is attacked: public bounds, and the two neighbors that show most there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.audit.pairs import Pair

# Of each bound; some thirty bounds on the page then hold together with 97 percent
CONFIDENCE = 0.999


@dataclass(frozen=True)
class LogisticSetting:
    """A logistic regression on rows of zeros but one, which is replaced by zeros.

    A row at the bound bends the objective as much as a row can, and a row of zeros not
    at all: this is the pair on which the determinant of the Hessian differs most.

    Parameters
    ----------
    norm
        Public bound on the norm of a row, and norm of the row that is replaced.
    C
        Inverse of the penalty, for the library that asks for one.
    n_rows
        Rows in either data set; both have both labels.
    """

    name: str
    norm: float
    fit_intercept: bool = False
    C: float = 1.0
    n_rows: int = 4
    epsilon: float = 2.0
    runs: int = 3000

    def pair(self) -> Pair:
        X = np.zeros((self.n_rows, 1))
        X[0] = self.norm
        y = (np.arange(self.n_rows) + 1) % 2
        return Pair((X, y), (np.zeros_like(X), y))


@dataclass(frozen=True)
class LinearSetting:
    """A regression on one column of zeros, in one row of which is the upper bound.

    Targets are zero, so that all that differs is the sum of squares of the column.
    """

    name: str
    bounds: tuple[float, float]
    fit_intercept: bool = False
    n_rows: int = 4
    epsilon: float = 2.0
    runs: int = 400

    def pair(self) -> Pair:
        X = np.zeros((self.n_rows, 1))
        X[0] = self.bounds[1]
        y = np.zeros(self.n_rows)
        return Pair((X, y), (np.zeros_like(X), y))


LOGISTIC = (
    LogisticSetting("norm 1, no intercept", 1.0),
    LogisticSetting("norm 12, no intercept", 12.0),
    LogisticSetting("norm 100, no intercept", 100.0),
    LogisticSetting("norm 1000, no intercept", 1000.0),
    LogisticSetting(
        "norm 1, intercept, C 3", 1.0, fit_intercept=True, C=3.0, n_rows=3, runs=5000
    ),
    LogisticSetting(
        "norm 1, intercept", 1.0, fit_intercept=True, n_rows=2, epsilon=1.0, runs=6000
    ),
)
LINEAR = (
    LinearSetting("column from -1 to 1, no intercept", (-1.0, 1.0)),
    LinearSetting("column from 0 to 1, no intercept", (0.0, 1.0)),
    LinearSetting("column from 0 to 1, intercept", (0.0, 1.0), fit_intercept=True),
)
