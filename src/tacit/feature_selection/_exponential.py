"""Private selection of a set of columns by the exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._random import RandomSource
from tacit._validate import PlainNumbers, at_least, positive, true_or_false
from tacit.exceptions import PlanError
from tacit.feature_selection._base import PrivateSelector
from tacit.feature_selection._sums import ExactSums, check_row_count
from tacit.mechanisms import Exponential
from tacit.mechanisms.integer_noise import ROW_LIMIT_ASSUMPTION
from tacit.mechanisms.noise import noise_assumptions
from tacit.privacy import BoundedRange, Budget, Event, Neighbors, calibrate

__all__ = ["ExponentialPlan", "ExponentialSelector", "subset_at"]

Array = NDArray[np.float64]

# Ridge in every score, which makes the minimizer unique
RIDGE = 1e-3
# Bound on the error of a computed score, as a fraction of ``(1 + coef_bound)^2``; the
# page on the exponential mechanism over supports proves it
SCORE_ERROR = 1e-4
# With more columns, the bound on weights has too many faces to enumerate
MOST_SELECT = 6


@dataclass(frozen=True)
class ExponentialPlan(PlainNumbers):
    """Plan of the scores and of the draw of ``n_select`` columns, fixed without data.

    ``coef_bound`` bounds the sum of absolute weights, and ``intercept`` says whether a
    constant is added to every set.
    """

    n_features: int
    n_select: int
    coef_bound: float
    intercept: bool
    epsilon: float
    neighbors: Neighbors
    noise: str = "grid"

    @property
    def largest_loss(self) -> float:
        """Largest loss of a row, at weights within the bound."""
        return (1 + self.coef_bound) ** 2 / 2

    @property
    def mechanism(self) -> Exponential:
        """Mechanism that draws the set."""
        # [subsets:sensitivity] an added row lowers all scores, by up to the largest
        # loss: shifted by half of it, they change by at most half
        largest = self.largest_loss
        error = 2 * SCORE_ERROR * (1 + self.coef_bound) ** 2
        if self.neighbors is Neighbors.ADD_OR_REMOVE_ONE:
            largest /= 2
        return Exponential(self.epsilon, largest + error, self.noise)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (ROW_LIMIT_ASSUMPTION, *noise_assumptions(self.noise))

    def scores(self, X: Any, y: Array) -> Array:
        """Return the score of each set of columns, in lexicographic order."""
        from tacit.feature_selection._kernels import all_values  # noqa: PLC0415

        sums = ExactSums(X, y, intercept=self.intercept)
        linear, squares = sums.with_targets()
        gram = sums.with_columns(list(range(sums.n_columns)))
        found = np.empty(comb(self.n_features, self.n_select))
        # [subsets:score] least squares with a fixed ridge
        all_values(
            np.ascontiguousarray(gram),
            linear,
            self.n_features,
            self.n_select,
            RIDGE,
            self.coef_bound,
            found,
        )
        losses = found + squares / 2
        if self.neighbors is Neighbors.ADD_OR_REMOVE_ONE:
            # [subsets:centered] the same shift for all sets changes no probability
            return len(y) * self.largest_loss / 2 - losses
        return -losses


def subset_at(index: int, n_features: int, n_select: int) -> tuple[int, ...]:
    """Return the set of columns at an index of the lexicographic order."""
    chosen: list[int] = []
    first = 0
    for left in range(n_select, 0, -1):
        while True:
            beginning_so = comb(n_features - first - 1, left - 1)
            if index < beginning_so:
                break
            index -= beginning_so
            first += 1
        chosen.append(first)
        first += 1
    return tuple(chosen)


class ExponentialSelector(PrivateSelector):
    """Selection of columns by the exponential mechanism over all sets of them.

    Sets on which least squares has a small error are drawn with high probability. As
    every set of that size is scored, it is for selecting few of not too many columns.
    There is always an answer, and columns may be correlated.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the bound may fail; 0 for a pure guarantee. A positive
        value allows slightly less noise.
    n_features_to_select
        Number of columns, at most 6.
    feature_bounds
        Range of each feature, public and required, as in `PeelingSelector`. Entries are
        clipped to it and mapped to [-1, 1].
    y_range
        Lowest and highest target, public and required. Targets are clipped to it and
        mapped to [-1, 1].
    coef_bound
        Bound on the sum of absolute weights, intercept included, in mapped units. A
        model with predictions in [-1, 1] for all features in [-1, 1] has at most 1. A
        smaller bound needs less noise, and fits larger weights worse.
    fit_intercept
        Whether least squares has an intercept.
    most_supports
        Largest number of sets to score; a fit that needs more is rejected.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``. The latter needs half the noise.
    noise
        ``"grid"`` for an exact draw, ``"float"`` for research.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    selection_ : tuple of int
        Indices of the selected columns, in order.
    support_ : ndarray of bool
        Mask of the selected columns.
    released_ : bool
        True.
    n_features_in_ : int
        Number of columns.
    privacy_ : PrivacyReport
        Guarantee, charge and assumptions.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, 0)-private and of bounded range: the exponential
    mechanism with the minimal sum of squares on each set as its score, which changes by
    at most ``(1 + coef_bound)^2 / 2`` with one row [1]_, Theorem 6.41. Where rows are
    added or removed all scores change in the same direction, and half of that is
    enough. See the page on the exponential mechanism over supports.

    References
    ----------
    .. [1] A. Thakurta, "Differentially private convex optimization for empirical risk
       minimization and high-dimensional regression", PhD thesis, Penn State 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.feature_selection import ExponentialSelector
    >>> X = np.cos(np.outer(np.arange(2000.0), np.sqrt([2, 3, 5, 7, 11, 13])))
    >>> y = 2 * X[:, 0] - X[:, 3]
    >>> selector = ExponentialSelector(
    ...     2.0, n_features_to_select=2, feature_bounds=1.0, y_range=(-3, 3)
    ... )
    >>> selector.fit(X, y).selection_
    (0, 3)
    """

    name = method = "exponential"
    saved = True

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        n_features_to_select: int,
        feature_bounds: Any = None,
        y_range: tuple[float, float] | None = None,
        coef_bound: float = 1.0,
        fit_intercept: bool = True,
        most_supports: int = 2_000_000,
        neighbors: str | Neighbors = "replace_one",
        noise: str = "grid",
        random_state: RandomSource = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_features_to_select = n_features_to_select
        self.feature_bounds = feature_bounds
        self.y_range = y_range
        self.coef_bound = coef_bound
        self.fit_intercept = fit_intercept
        self.most_supports = most_supports
        self.neighbors = neighbors
        self.noise = noise
        self.random_state = random_state

    def plan_selection(
        self, budget: Budget, n_rows: int, n_features: int
    ) -> ExponentialPlan:
        positive(coef_bound=self.coef_bound)
        at_least(1, most_supports=self.most_supports)
        true_or_false(fit_intercept=self.fit_intercept)
        check_row_count("ExponentialSelector", n_rows, budget.neighbors)
        n_select = int(self.n_features_to_select)
        count = comb(n_features, n_select)
        if n_select > MOST_SELECT or count > self.most_supports:
            raise PlanError(
                f"ExponentialSelector scores every set of {n_select} of {n_features} "
                f"columns, at most {MOST_SELECT} columns and most_supports="
                f"{self.most_supports} sets; select fewer, or use PeelingSelector."
            )
        epsilon = budget.epsilon
        if budget.delta > 0:
            multiplier = calibrate(lambda m: BoundedRange(1 / m), budget)
            epsilon = max(epsilon, 1 / multiplier)
        return ExponentialPlan(
            n_features,
            n_select,
            float(self.coef_bound),
            bool(self.fit_intercept),
            epsilon,
            budget.neighbors,
            self.noise,
        )

    def select(
        self, plan: ExponentialPlan, X: Any, y: Array, rng: Generator
    ) -> tuple[int, ...]:
        index = plan.mechanism(plan.scores(X, y), rng)
        return subset_at(index, plan.n_features, plan.n_select)
