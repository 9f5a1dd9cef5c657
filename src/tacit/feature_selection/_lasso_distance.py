"""How many rows must change before the lasso keeps other columns.

Each kind of facts names a lasso by public numbers alone and measures a distance: a
lower bound on the rows to change before the support does, which moves by at most one
between neighbors and is zero wherever a neighbor has another support.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit._validate import at_least, plain, positive
from tacit.feature_selection._exact_lasso import ExactLasso, exact_lasso
from tacit.feature_selection._sums import ExactSums

__all__ = [
    "LassoFacts",
    "PaperFacts",
    "SquaredFacts",
    "lasso_distance",
    "safe_distance",
]

Array = NDArray[np.float64]
Support = tuple[int, ...]

# Bound on the error of a computed number of changes, of which see the page
ERROR = 1e-3


class LassoFacts(Protocol):
    """Public facts of a lasso, with the test of its stability that rests on them."""

    @property
    def slack(self) -> float: ...
    def distance(self, X: Any, y: Array) -> tuple[Support, float]: ...


def lasso_distance(X: Any, y: Array, facts: LassoFacts) -> tuple[Support, float]:
    """Return the support of a lasso and its distance to instability.

    Parameters
    ----------
    X
        Features from -1 to 1.
    y
        Targets from -1 to 1.
    facts
        Public facts and the kind of test.
    """
    with np.errstate(all="ignore"):  # a warning would tell of the rows
        return facts.distance(X, y)


def safe_distance(changes: float) -> float:
    """Return the distance to release, from the least of all tests as computed."""
    # [lasso:distance] one change may use up the last unit, and round-off is kept back
    return max(0.0, changes - 1.0 - ERROR) / (1.0 + 2 * ERROR)


@dataclass(frozen=True)
class SquaredFacts:
    """Squared loss, with slacks that follow the change of the solution exactly.

    Parameters
    ----------
    n_select
        Most columns that a support may have.
    penalty
        Weight of the absolute values, against half the sum of squared residuals.
    coef_bound
        Bound on the sum of absolute weights, intercept included.
    incoherence
        Bound on the sum of absolute weights with which columns of the support, and the
        constant, explain any other column.
    rows_changed
        Rows in which neighbors differ: 1, or 2 where one is replaced.
    intercept
        Whether there is a constant column without penalty.

    Notes
    -----
    **Guarantee.** The distance moves by at most one between neighbors and is zero where
    a neighbor has another support; the page on the stability of the lasso proves it.
    """

    n_select: int
    penalty: float
    coef_bound: float
    incoherence: float
    rows_changed: int
    intercept: bool = True

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, n_select=self.n_select, rows_changed=self.rows_changed)
        positive(
            penalty=self.penalty,
            coef_bound=self.coef_bound,
            incoherence=self.incoherence,
        )

    @property
    def residual(self) -> float:
        """Largest residual of a row at weights within the bound."""
        return 1.0 + self.coef_bound

    @property
    def slack(self) -> float:
        """How far neighbors can move the slope of a column outside the support."""
        # [lasso:slopes]
        return self.rows_changed * self.residual * (1 + self.incoherence)

    def distance(self, X: Any, y: Array) -> tuple[Support, float]:
        """Return the support and its distance; zero where it is not certain."""
        sums = ExactSums(X, y, intercept=self.intercept)
        lasso = exact_lasso(
            sums,
            self.penalty,
            most=self.n_select,
            margin=self.slack,
            bound=self.coef_bound,
        )
        if lasso is None:
            return (), 0.0
        changes = (self.penalty - lasso.largest_gradient) / self.slack
        if lasso.positions:
            changes = min(changes, self._inner_changes(lasso))
        return lasso.support, safe_distance(changes)

    def _inner_changes(self, lasso: ExactLasso) -> float:
        """Return the least of the tests on columns of the support and the constant."""
        least = float(np.linalg.eigvalsh(lasso.gram)[0])
        if least <= len(lasso.positions):  # a singular matrix explains nothing
            return 0.0
        explained = np.linalg.solve(lasso.gram, lasso.cross.T)
        return self.changes_inside(
            len(lasso.positions),
            len(lasso.support),
            least=least,
            coherence=float(np.abs(explained).sum(axis=0).max(initial=0.0)),
            norm=float(np.abs(lasso.w).sum()),
            smallest=lasso.smallest,
        )

    def changes_inside(
        self,
        n_positions: int,
        n_support: int,
        *,
        least: float,
        coherence: float,
        norm: float,
        smallest: float,
    ) -> float:
        """Return the rows to change before a column of the support may leave it.

        Parameters
        ----------
        n_positions
            Columns of the support, and the constant where there is one.
        n_support
            Columns of the support.
        least
            Least eigenvalue of their Gram matrix.
        coherence
            Largest sum of absolute weights with which they explain another column.
        norm
            Sum of absolute weights.
        smallest
            Smallest absolute weight.
        """
        h, bound, limit, g = (
            self.rows_changed,
            self.coef_bound,
            self.incoherence,
            n_positions,
        )
        if least <= g:  # a product of two negative numbers must not pass
            return 0.0
        curved = least - g / 2
        pull = h * sqrt(g) * self.residual
        # [lasso:tests] each moves by at most one while all are above one
        tests = [
            least / g - 1,
            (bound - norm) * curved / (sqrt(g) * pull + g * bound),
            (limit - coherence) * (least - g) / (g * (h * (1 + limit) + limit)),
        ]
        if n_support:
            tests.append(smallest * curved / (pull + bound * g / n_support))
        return min(tests)


@dataclass(frozen=True)
class PaperFacts:
    """Squared loss, with the published slacks and both repairs.

    Parameters
    ----------
    n_select
        Most columns that a support may have.
    penalty
        As in `SquaredFacts`.
    curvature
        Least eigenvalue of the Gram matrix of the support that is tested for, as a part
        of the number of rows; twice the constant of the publication.
    rows_changed, intercept
        As in `SquaredFacts`; the constant counts as one more column of the support.

    Notes
    -----
    **Guarantee.** As `SquaredFacts`, by Theorem 6.14 of [1]_ with the largest slope
    outside the support and without the added one.

    References
    ----------
    .. [1] A. Thakurta, "Differentially private convex optimization for empirical risk
       minimization and high-dimensional regression", PhD thesis, Penn State 2013.
    """

    n_select: int
    penalty: float
    curvature: float
    rows_changed: int
    intercept: bool = True

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, n_select=self.n_select, rows_changed=self.rows_changed)
        positive(penalty=self.penalty, curvature=self.curvature)
        if self.curvature > 1:
            raise ValueError(f"curvature must be at most 1, got {self.curvature!r}.")

    @property
    def size(self) -> int:
        """Most weights that are not zero."""
        return self.n_select + self.intercept

    @property
    def slack(self) -> float:
        """The published bound on the move of a slope."""
        # [lasso-paper:slopes]
        return 12 * self.size**2 / (self.curvature / 2)

    @property
    def least_penalty(self) -> float:
        """Penalty that must be passed for any answer."""
        return 16 * self.size**2 / (self.curvature / 2)

    def distance(self, X: Any, y: Array) -> tuple[Support, float]:
        """Return the support and its distance; zero where it is not certain."""
        sums = ExactSums(X, y, intercept=self.intercept)
        # slopes outside are to be below half the penalty, and weights below one
        lasso = exact_lasso(
            sums,
            self.penalty,
            most=self.n_select,
            margin=self.penalty / 2,
            bound=float(self.size),
        )
        if lasso is None or self.penalty <= self.least_penalty:
            return (), 0.0
        n, unit = len(y), 4 * self.size**1.5 / (self.curvature / 2)
        # [lasso-paper:tests]
        tests = [(self.penalty / 2 - lasso.largest_gradient) / self.slack]
        if lasso.positions:
            least = float(np.linalg.eigvalsh(lasso.gram)[0])
            tests.append((least - self.curvature * n) / self.size)
            tests.append((n * (1 - float(np.abs(lasso.w).max())) - 2 * unit) / unit)
        if lasso.support:
            tests.append((n * lasso.smallest - 2 * unit) / unit)
        # a replaced row is one that leaves and one that comes
        changes = min(tests) - (self.rows_changed - 1) - ERROR
        return lasso.support, max(0.0, changes) / (self.rows_changed + 2 * ERROR)
