"""Distance of a Lasso to instability: how many rows must change to change its support.

The distance is a lower bound on that number. It differs by at most one between
neighbors, and is zero wherever a neighbor has another support.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit._validate import at_least, at_most, plain, positive
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

# Bound on the error of a computed number of changes; the page on the stability of the
# lasso proves it
ERROR = 1e-3


class LassoFacts(Protocol):
    """Public parameters of a lasso, with the test of its stability."""

    @property
    def slack(self) -> float: ...
    def distance(self, X: Any, y: Array) -> tuple[Support, float]: ...


def lasso_distance(X: Any, y: Array, facts: LassoFacts) -> tuple[Support, float]:
    """Return the support of a lasso and its distance to instability.

    Features and targets are from -1 to 1.
    """
    with np.errstate(all="ignore"):  # a warning would leak
        return facts.distance(X, y)


def safe_distance(changes: float) -> float:
    """Return the distance, from the computed minimum of all tests."""
    # [lasso:distance] less one for the last change, and less round-off
    return max(0.0, changes - 1.0 - ERROR) / (1.0 + 2 * ERROR)


@dataclass(frozen=True)
class SquaredFacts:
    """Lasso and its test of stability, by exact bounds on the change of the solution.

    A support has at most ``n_select`` columns. The penalty is against half the squared
    residuals, and ``coef_bound`` bounds the sum of absolute weights, intercept
    included. ``incoherence`` bounds that of the regression of any other column on the
    support and the constant, which ``intercept`` says there is, without penalty.

    Notes
    -----
    **Guarantee.** The distance differs by at most one between neighbors and is zero
    where a neighbor has another support; the page on the stability of the lasso proves
    it.
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
        """Bound on the change of the gradient in a column outside the support."""
        # [lasso:gradients]
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
        """Return the minimum of the tests of the columns of the support."""
        least = float(np.linalg.eigvalsh(lasso.gram)[0])
        if least <= len(lasso.positions):  # nearly singular
            return 0.0
        regressions = np.linalg.solve(lasso.gram, lasso.cross.T)
        return self.changes_inside(
            len(lasso.positions),
            len(lasso.support),
            least=least,
            coherence=float(np.abs(regressions).sum(axis=0).max(initial=0.0)),
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
        """Return how many rows to change before a column of the support may leave it.

        ``n_positions`` counts the constant with the ``n_support`` columns. ``least`` is
        the least eigenvalue of their Gram matrix, ``coherence`` the largest sum of
        absolute weights in a regression of another column on them; ``norm`` is the sum
        of absolute weights of the lasso and ``smallest`` the least of them.
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
        # [lasso:tests] each changes by at most one while all are above one
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
    """Lasso and its test of stability as published, with both corrections.

    ``curvature`` is the least eigenvalue of the Gram matrix of the support that is
    required, as a fraction of the number of rows: twice the constant of the
    publication. The constant counts as one more column of the support. The rest is as
    in `SquaredFacts`.

    Notes
    -----
    **Guarantee.** As `SquaredFacts`, by Theorem 6.14 of [1]_ with the largest gradient
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
        at_most(1, curvature=self.curvature)

    @property
    def size(self) -> int:
        """Maximum number of nonzero weights."""
        return self.n_select + self.intercept

    @property
    def slack(self) -> float:
        """The published bound on the change of a gradient."""
        # [lasso-paper:gradients]
        return 12 * self.size**2 / (self.curvature / 2)

    @property
    def least_penalty(self) -> float:
        """Penalty below which there is no answer."""
        return 16 * self.size**2 / (self.curvature / 2)

    def distance(self, X: Any, y: Array) -> tuple[Support, float]:
        """Return the support and its distance; zero where it is not certain."""
        sums = ExactSums(X, y, intercept=self.intercept)
        # gradients outside must be below half the penalty, and weights below one
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
        # a replaced row is one removed and one added
        changes = min(tests) - (self.rows_changed - 1) - ERROR
        return lasso.support, max(0.0, changes) / (self.rows_changed + 2 * ERROR)
