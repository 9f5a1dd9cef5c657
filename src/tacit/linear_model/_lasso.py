"""Private Lasso and elastic net."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._estimators import numeric
from tacit._random import RandomSource
from tacit._validate import public_range
from tacit.convex import Squared
from tacit.data.declared import TableFacts
from tacit.linear_model._base import Setting
from tacit.linear_model._regressor import PrivateRegressorMixin
from tacit.linear_model._saved import saved_linear
from tacit.linear_model._sparse import SparseLinearModel
from tacit.privacy import Neighbors

__all__ = ["ElasticNet", "Lasso"]

Array = NDArray[np.float64]


class SparseRegressor(PrivateRegressorMixin, SparseLinearModel):
    """Targets in units of their public range, features in units of theirs."""

    def _setting(self, table: TableFacts, y: NDArray[Any] | None = None) -> Setting:
        if y is not None:
            numeric(y)  # before the plan, as bad targets are the simpler mistake
        low, high = public_range(self.y_range)
        setting = self._setting_of(table, loss=Squared())
        setting = replace(setting, center=self.target_unit()[0])
        return setting.assuming(f"targets are clipped to [{low:g}, {high:g}]")

    def _shaped(self, weights: Array, intercepts: Array) -> tuple[Array, Any]:
        """Return weights and intercept in the units of targets and features."""
        return self._in_units(weights, intercepts)

    def _target_scale(self) -> float:
        return self.target_unit()[1]

    def predict(self, X: Any) -> Array:
        """Return the predicted target of each row, clipped to ``feature_bounds``."""
        return self._scores(X)


class Lasso(SparseRegressor):
    """Differentially private Lasso.

    The objective is ``sum (y - x w - b)^2 / (2 n) + alpha |w|_1``, as in scikit-learn,
    in the units of targets and features. Features are mapped to [-1, 1] by their public
    ranges inside, and weights come back. Which features get a weight is as noisy as the
    weights.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the guarantee may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. 0.0 gives pure privacy, which ``"gcd"`` and
        ``"frank_wolfe"`` can give.
    alpha
        Factor of the sum of absolute weights, as in scikit-learn. The more of it, the
        less noise is mistaken for a weight.
    feature_bounds
        Range of each feature, public and required: one number, the largest absolute
        value of any feature; a number for each; a pair for each, the lowest value and
        the highest; a tuple of two numbers, which is one pair for all features and is
        rejected where there are just two; or a dict from the names of columns to
        numbers or pairs. Entries beyond are clipped to it, at fit and at prediction
        alike. It must be chosen without looking at the data.
    y_range
        Lowest and highest target, public and required. Targets beyond are clipped to
        it.
    fit_intercept
        Whether to fit an intercept, which is private and not penalized.
    solver
        ``"cd"`` for `~tacit.solvers.CoordinateDescent`, ``"gcd"`` for
        `~tacit.solvers.GreedyCoordinateDescent`, ``"frank_wolfe"``, an object of one of
        these, or ``"auto"``, which chooses one of the first two from public facts only,
        or `~tacit.solvers.AdaSSP` where noise is next to nothing.
    l1_radius
        Only for ``"frank_wolfe"``, which keeps weights in a ball instead of the
        penalty and does not use ``alpha``: largest sum of absolute weights times the
        half-widths of their ranges, in units of the targets. The intercept counts by
        its distance from the middle of ``y_range``.
    positive
        Whether weights must not be negative.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows, which sets the penalty and steps and never
        the privacy. None for the number of rows where it is public, and otherwise
        one over the root of delta.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for research. A solver
        object brings its own.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.
    verbose
        1 for a bar that counts planned steps, where there are any; 0 for silence.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights in the units of targets and features.
    intercept_ : float
        Intercept.
    sparse_coef_ : sparse array of shape (1, n_features)
        The same weights.
    selected_features_ : ndarray
        Indices of the features with a weight, in order; noisy too.
    selected_names_ : ndarray
        Their names, where ``X`` had names.
    bounds_ : FeatureBounds
        Ranges that entries are clipped to, at fit and at prediction.
    loss_ : Squared
        Loss that was minimized, of targets scaled to [-1, 1].
    path_ : SelectionPath or None
        What each step of ``"gcd"`` released; None for other solvers.
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.
    noise_ : None
        How far noise moves a weight is not known for these models.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors, by the
    theorem of the solver it used; everything else is post-processing, the selection of
    features included. Missing or infinite values are rejected before anything is
    charged.

    scikit-learn's ``StackingRegressor`` around this estimator fits a final model on the
    rows, without noise and without a charge: fit it on public rows, see the sharp
    edges.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon and M. Tommasi, "Differentially private
       coordinate descent for composite empirical risk minimization", ICML 2022.
    .. [2] P. Mangold, A. Bellet, J. Salmon and M. Tommasi, "High-dimensional private
       empirical risk minimization by greedy coordinate descent", AISTATS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import Lasso
    >>> X = np.cos(np.outer(np.arange(5000.0), np.sqrt([2, 3, 5, 7, 11, 13])))
    >>> y = 2 * X[:, 0] - X[:, 3]
    >>> model = Lasso(epsilon=2.0, alpha=0.05, feature_bounds=1.0, y_range=(-3, 3))
    >>> model.fit(X, y).coef_.shape
    (6,)
    >>> sorted({0, 3} - {*model.selected_features_.tolist()})
    []
    """

    model_name = "lasso"
    saved = saved_linear(Squared, ranges=True)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        alpha: float = 1.0,
        feature_bounds: Any = None,
        y_range: tuple[float, float] | None = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
        l1_radius: float | None = None,
        positive: bool = False,
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        noise: str = "grid",
        random_state: RandomSource = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.feature_bounds = feature_bounds
        self.y_range = y_range
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.l1_radius = l1_radius
        self.positive = positive
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose


class ElasticNet(SparseRegressor):
    """Differentially private elastic net.

    The objective is ``sum (y - x w - b)^2 / (2 n) + alpha l1_ratio |w|_1 + alpha
    (1 - l1_ratio) |w|^2 / 2``, as in scikit-learn, in the units of targets and
    features.
    `~tacit.convex.ElasticNet` is the penalty alone, for other models.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the guarantee may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. 0.0 gives pure privacy, which ``"gcd"`` and
        ``"frank_wolfe"`` can give.
    alpha
        Factor of the penalty, as in scikit-learn.
    l1_ratio
        Part of the penalty on absolute weights, 0 to 1; the rest is on half of their
        squares.
    feature_bounds
        Range of each feature, public and required: one number, the largest absolute
        value of any feature; a number for each; a pair for each, the lowest value and
        the highest; a tuple of two numbers, which is one pair for all features and is
        rejected where there are just two; or a dict from the names of columns to
        numbers or pairs. Entries beyond are clipped to it, at fit and at prediction
        alike. It must be chosen without looking at the data.
    y_range
        Lowest and highest target, public and required. Targets beyond are clipped to
        it.
    fit_intercept
        Whether to fit an intercept, which is private and not penalized.
    solver
        ``"cd"`` for `~tacit.solvers.CoordinateDescent`, ``"gcd"`` for
        `~tacit.solvers.GreedyCoordinateDescent`, ``"frank_wolfe"``, an object of one of
        these, or ``"auto"``, which chooses one of the first two from public facts only,
        or `~tacit.solvers.AdaSSP` where noise is next to nothing.
    l1_radius
        Only for ``"frank_wolfe"``, which keeps weights in a ball instead of the
        penalty and does not use ``alpha``: largest sum of absolute weights times the
        half-widths of their ranges, in units of the targets. The intercept counts by
        its distance from the middle of ``y_range``.
    positive
        Whether weights must not be negative.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows, which sets the penalty and steps and never
        the privacy. None for the number of rows where it is public, and otherwise
        one over the root of delta.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for research. A solver
        object brings its own.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.
    verbose
        1 for a bar that counts planned steps, where there are any; 0 for silence.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights in the units of targets and features.
    intercept_ : float
        Intercept.
    sparse_coef_ : sparse array of shape (1, n_features)
        The same weights.
    selected_features_ : ndarray
        Indices of the features with a weight, in order; noisy too.
    selected_names_ : ndarray
        Their names, where ``X`` had names.
    bounds_ : FeatureBounds
        Ranges that entries are clipped to, at fit and at prediction.
    loss_ : Squared
        Loss that was minimized, of targets scaled to [-1, 1].
    path_ : SelectionPath or None
        What each step of ``"gcd"`` released; None for other solvers.
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.
    noise_ : None
        How far noise moves a weight is not known for these models.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors, by the
    theorem of the solver it used; everything else is post-processing, the selection of
    features included. Missing or infinite values are rejected before anything is
    charged.

    scikit-learn's ``StackingRegressor`` around this estimator fits a final model on the
    rows, without noise and without a charge: fit it on public rows, see the sharp
    edges.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon and M. Tommasi, "Differentially private
       coordinate descent for composite empirical risk minimization", ICML 2022.
    .. [2] P. Mangold, A. Bellet, J. Salmon and M. Tommasi, "High-dimensional private
       empirical risk minimization by greedy coordinate descent", AISTATS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import ElasticNet
    >>> X = np.cos(np.outer(np.arange(5000.0), np.sqrt([2, 3, 5, 7, 11, 13])))
    >>> y = 2 * X[:, 0] - X[:, 3]
    >>> model = ElasticNet(epsilon=2.0, alpha=0.05, feature_bounds=1.0, y_range=(-3, 3))
    >>> model.fit(X, y).coef_.shape
    (6,)
    >>> sorted({0, 3} - {*model.selected_features_.tolist()})
    []
    """

    model_name = "elastic-net"
    saved = saved_linear(Squared, ranges=True)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        alpha: float = 1.0,
        l1_ratio: float = 0.5,
        feature_bounds: Any = None,
        y_range: tuple[float, float] | None = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
        l1_radius: float | None = None,
        positive: bool = False,
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        noise: str = "grid",
        random_state: RandomSource = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.feature_bounds = feature_bounds
        self.y_range = y_range
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.l1_radius = l1_radius
        self.positive = positive
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose
