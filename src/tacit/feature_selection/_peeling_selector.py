"""Private selection of columns by noisy correlations, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.random import Generator
from numpy.typing import NDArray

from tacit._random import RandomSource
from tacit._validate import one_of
from tacit.feature_selection._base import PrivateSelector
from tacit.feature_selection._peel import Peel, PeelPlan
from tacit.feature_selection._sums import check_row_count
from tacit.privacy import Budget, Neighbors

__all__ = ["PeelingSelector"]

METHODS = ("pursuit", "correlation")


class PeelingSelector(PrivateSelector):
    """Selection of columns one by one, by their noisy correlation with the target.

    There is always an answer. With too few rows for the budget, some of the columns are
    chosen by chance.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the bound may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. 0.0 for a pure guarantee.
    n_features_to_select
        Number of columns, at most those of ``X``.
    feature_bounds
        Range of each feature, public and required: one number, the largest absolute
        value of any feature; a number for each; a pair for each, the lowest value and
        the highest; a tuple of two numbers, which is one pair for all features and is
        rejected where there are just two; or a dict from the names of columns to
        numbers or pairs. Entries are clipped to it. It must not be computed from the
        data.
    y_range
        Lowest and highest target, public and required unless there are ``classes``.
        Targets are clipped to it. A range that is too wide costs little accuracy.
    classes
        Two public labels, instead of ``y_range``.
    method
        ``"pursuit"`` chooses each column by its correlation with the residuals of a
        private regression on the columns chosen so far: better where columns are
        correlated, and where few of them explain much. ``"correlation"`` chooses all
        by their correlation with the target itself.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows, used to divide the budget; privacy does not
        rest on it. None for the number of rows where it is public, and otherwise for
        one over the square root of delta.
    noise
        ``"grid"`` for exact noise, ``"float"`` for research.
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
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors: two
    quantiles of the target by exponential mechanisms, sums with Gaussian or Laplace
    noise, and one exponential mechanism for each column on sums of integers, which
    one row changes by at most one unit [1]_, [2]_. ``"pursuit"`` adds noisy normal
    equations of the columns chosen so far [3]_. See the page on peeling among the
    guarantees.

    References
    ----------
    .. [1] C. Dwork, W. Su, L. Zhang, "Differentially private false discovery rate
       control", Journal of Privacy and Confidentiality 11(2), 2021, Algorithm 1.
    .. [2] D. Durfee, R. Rogers, "Practical differentially private top-k selection with
       pay-what-you-get composition", NeurIPS 2019, Section 4.
    .. [3] T. T. Cai, Y. Wang, L. Zhang, "The cost of privacy: optimal rates of
       convergence for parameter estimation with differential privacy", Annals of
       Statistics 49(5), 2021, Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.feature_selection import PeelingSelector
    >>> X = np.cos(np.outer(np.arange(5000.0), np.sqrt([2, 3, 5, 7, 11, 13])))
    >>> y = 2 * X[:, 0] - X[:, 3]
    >>> selector = PeelingSelector(
    ...     2.0, n_features_to_select=2, feature_bounds=1.0, y_range=(-3, 3)
    ... )
    >>> selector.fit(X, y).selection_
    (0, 3)
    """

    name = "peeling"
    saved = True
    takes_sparse = True

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        n_features_to_select: int,
        feature_bounds: Any = None,
        y_range: tuple[float, float] | None = None,
        classes: Sequence[Any] | NDArray[Any] | None = None,
        method: str = "pursuit",
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        noise: str = "grid",
        random_state: RandomSource = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_features_to_select = n_features_to_select
        self.feature_bounds = feature_bounds
        self.y_range = y_range
        self.classes = classes
        self.method = method
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state

    def _peel(self) -> Peel:
        one_of(METHODS, method=self.method)
        return Peel(
            int(self.n_features_to_select),
            pursuit=self.method == "pursuit",
            labels=self.classes is not None,
            noise=self.noise,
        )

    def plan_selection(self, budget: Budget, n_rows: int, n_features: int) -> PeelPlan:
        check_row_count("PeelingSelector", n_rows, budget.neighbors)
        return self._peel().plan(budget, n_rows, n_features)

    def select(self, plan: PeelPlan, X: Any, y: Any, rng: Generator) -> tuple[int, ...]:
        return self._peel().run(plan, X, y, rng)
