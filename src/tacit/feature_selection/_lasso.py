"""Private support of a Lasso, released where no single row can change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any

from numpy.random import Generator

from tacit._random import RandomSource
from tacit._release import rows_note
from tacit._validate import (
    PlainNumbers,
    at_most,
    if_given,
    one_of,
    positive,
    true_or_false,
)
from tacit.exceptions import PlanError
from tacit.feature_selection._base import PrivateSelector
from tacit.feature_selection._lasso_distance import (
    LassoFacts,
    PaperFacts,
    SquaredFacts,
    lasso_distance,
)
from tacit.feature_selection._sums import check_row_count
from tacit.mechanisms import NoAnswer, StableRelease
from tacit.mechanisms.integer_noise import ROW_LIMIT_ASSUMPTION
from tacit.privacy import Budget, Event, Neighbors
from tacit.solvers._base import require_delta

__all__ = ["LassoStabilityPlan", "LassoStabilitySelector"]

ACCOUNTINGS = ("tight", "paper")
# Probability of no answer at the distance that the default penalty aims at
WITHHELD = 0.01
# Fraction of the penalty reserved for columns correlated with the selected ones
CORRELATED = 0.25


@dataclass(frozen=True)
class LassoStabilityPlan(PlainNumbers):
    """Plan of a lasso and of the test of its stability, fixed without data.

    ``n_rows`` is what the penalty was planned for.
    """

    facts: LassoFacts
    release: StableRelease
    n_rows: int

    @property
    def event(self) -> Event:
        return self.release.event

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            ROW_LIMIT_ASSUMPTION,
            rows_note(self.n_rows),
        )


class LassoStabilitySelector(PrivateSelector):
    """Support of a Lasso, released where no single row can change it.

    The answer is the support itself, without noise, or `tacit.mechanisms.NoAnswer`. It
    may have fewer columns than ``n_features_to_select``, or none where no column is
    strong enough for the penalty.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the bound may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. It must not be zero.
    n_features_to_select
        Maximum number of columns; a larger support is not released.
    feature_bounds
        Range of each feature, public and required, as in `PeelingSelector`. Entries are
        clipped to it and mapped to [-1, 1].
    y_range
        Lowest and highest target, public and required. Targets are clipped to it and
        mapped to [-1, 1].
    penalty
        Weight of the sum of absolute weights, against half the sum of squared
        residuals, for features and targets mapped to [-1, 1]. None for the smallest at
        which noise of ``noise_level`` is not mistaken for signal and the budget allows
        an answer.
    noise_level
        Expected standard deviation of the residuals, in mapped units. It is used for
        the default penalty only.
    coef_bound
        Bound on the sum of absolute weights, intercept included, in mapped units. A
        model with predictions in [-1, 1] for all features in [-1, 1] has at most 1. A
        lasso beyond the bound gives no answer.
    incoherence
        Bound on the sum of absolute weights in the regression of any other column on
        the selected ones and the constant. Columns beyond it give no answer.
    curvature
        Lower bound on the eigenvalues of the second moments of the selected columns;
        for ``accounting="paper"``. Columns below it give no answer.
    accounting
        ``"tight"``, or ``"paper"`` for the published bounds, corrected where they do
        not hold, which need hundreds of times as many rows.
    fit_intercept
        Whether the lasso has an intercept, which is not penalized.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows that the default penalty is planned for;
        privacy does not rest on it. None for the number of rows where it is public, and
        otherwise for one over the square root of delta.
    fallback
        Columns to use where there is no answer, or an empty support: ``"all"``, a list
        of columns, or None to raise an error.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    selection_ : tuple of int or NoAnswer
        Indices of the selected columns, in order.
    support_ : ndarray of bool or None
        Mask of the selected columns; None without an answer.
    released_ : bool
        Whether there is an answer.
    n_features_in_ : int
        Number of columns.
    privacy_ : PrivacyReport
        Guarantee, charge and assumptions.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors. Whether
    the support is released depends on a lower bound on the number of rows to change
    before the support changes. That bound differs by at most one between neighbors. The
    idea and the first such bound are in [1]_, Section 6.3.4, and [2]_; their test does
    not hold where the support is smaller than allowed. The page on the stability of the
    lasso proves the bounds used here.

    References
    ----------
    .. [1] A. Thakurta, "Differentially private convex optimization for empirical risk
       minimization and high-dimensional regression", PhD thesis, Penn State 2013.
    .. [2] A. Smith, A. Thakurta, "Differentially private feature selection via
       stability arguments, and the robustness of the lasso", COLT 2013, Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.feature_selection import LassoStabilitySelector
    >>> X = np.cos(np.outer(np.arange(5000.0), np.sqrt([2, 3, 5, 7, 11, 13])))
    >>> y = 2 * X[:, 0] - X[:, 3]
    >>> selector = LassoStabilitySelector(
    ...     2.0, n_features_to_select=2, feature_bounds=1.0, y_range=(-3, 3)
    ... )
    >>> selector.fit(X, y).selection_
    (0, 3)
    """

    name = "lasso"
    method = "stability"
    saved = True

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        n_features_to_select: int,
        feature_bounds: Any = None,
        y_range: tuple[float, float] | None = None,
        penalty: float | None = None,
        noise_level: float = 0.25,
        coef_bound: float = 1.5,
        incoherence: float = 1.5,
        curvature: float = 0.05,
        accounting: str = "tight",
        fit_intercept: bool = True,
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        fallback: str | Sequence[int | str] | None = None,
        random_state: RandomSource = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_features_to_select = n_features_to_select
        self.feature_bounds = feature_bounds
        self.y_range = y_range
        self.penalty = penalty
        self.noise_level = noise_level
        self.coef_bound = coef_bound
        self.incoherence = incoherence
        self.curvature = curvature
        self.accounting = accounting
        self.fit_intercept = fit_intercept
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.fallback = fallback
        self.random_state = random_state

    def plan_selection(
        self, budget: Budget, n_rows: int, n_features: int
    ) -> LassoStabilityPlan:
        self._check()
        instead = "ExponentialSelector or PeelingSelector"
        require_delta(budget, "LassoStabilitySelector", instead)
        check_row_count("LassoStabilitySelector", n_rows, budget.neighbors)
        release = StableRelease(budget.epsilon, budget.delta)
        needed = release.distance_needed(WITHHELD)
        facts = self._facts(budget.neighbors.rows_changed)
        penalty = self.penalty
        if penalty is None:
            penalty = self._penalty(facts, n_rows, n_features, needed)
        if penalty >= n_rows:
            why = "as given" if self.penalty is not None else "needed for the budget"
            raise PlanError(
                f"LassoStabilitySelector: a penalty of {penalty:.3g}, {why}, selects "
                f"no column with {n_rows} rows; raise epsilon or delta, or use "
                "PeelingSelector."
            )
        facts = replace(facts, penalty=penalty)
        if isinstance(facts, PaperFacts) and penalty <= facts.least_penalty:
            raise PlanError(
                f"accounting='paper' needs a penalty above {facts.least_penalty:.3g}, "
                f"got {penalty:.3g}; raise it, or use accounting='tight'."
            )
        return LassoStabilityPlan(facts, release, n_rows)

    def _check(self) -> None:
        one_of(ACCOUNTINGS, accounting=self.accounting)
        positive(
            noise_level=self.noise_level,
            coef_bound=self.coef_bound,
            incoherence=self.incoherence,
            curvature=self.curvature,
        )
        if_given(positive, penalty=self.penalty)
        at_most(1, curvature=self.curvature)
        true_or_false(fit_intercept=self.fit_intercept)

    def _facts(self, rows_changed: int) -> PaperFacts | SquaredFacts:
        """Return the public parameters, with a placeholder for the penalty."""
        rest = (rows_changed, bool(self.fit_intercept))
        n_select = self.n_features_to_select
        if self.accounting == "paper":
            return PaperFacts(n_select, 1.0, self.curvature, *rest)
        return SquaredFacts(n_select, 1.0, self.coef_bound, self.incoherence, *rest)

    def _penalty(
        self,
        facts: PaperFacts | SquaredFacts,
        n_rows: int,
        n_features: int,
        needed: float,
    ) -> float:
        """Return the smallest penalty at which there can be an answer."""
        noise = self.noise_level * sqrt(2 * n_rows * log(2 * n_features))
        if isinstance(facts, PaperFacts):
            # gradients of other columns are compared with half of the penalty, and a
            # replaced row counts twice
            changes = facts.rows_changed * (needed + 1)
            return 2 * (noise + changes * facts.slack) / (1 - 2 * CORRELATED)
        return (noise + (needed + 2) * facts.slack) / (1 - CORRELATED)

    def select(
        self, plan: LassoStabilityPlan, X: Any, y: Any, rng: Generator
    ) -> tuple[int, ...] | NoAnswer:
        support, distance = lasso_distance(X, y, plan.facts)
        return plan.release(support, distance, rng)
