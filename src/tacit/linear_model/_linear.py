"""Private least squares."""

from __future__ import annotations

from typing import Any

from tacit._random import RandomSource
from tacit._validate import nonnegative
from tacit.convex import Squared
from tacit.convex._protocols import Certified
from tacit.linear_model._base import PrivateLinearModel
from tacit.linear_model._regressor import PrivateRegressorMixin
from tacit.linear_model._saved import saved_linear
from tacit.privacy import Neighbors

__all__ = ["LinearRegression", "Ridge"]


class LinearRegression(PrivateRegressorMixin, PrivateLinearModel):
    """Differentially private least squares.

    Targets are centered and scaled by their public range inside, and weights come back
    in the units of the targets. ``"auto"`` first spends a part of the budget on
    estimating what part of their ranges features and targets fill, and gives rows
    beyond it less weight. Predictions are clipped to the range of the targets.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the guarantee may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. 0.0 gives pure privacy.
    x_norm
        Bound on the norm of a row, chosen without looking at the data. Longer rows are
        clipped to it, at fit and at prediction alike. None takes the bound that the
        transformer of `tacit.preprocessing` before the model declares, and is rejected
        where there is none.
    bound_norm
        ``"l2"`` if ``x_norm`` bounds the Euclidean norm, ``"linf"`` if it bounds the
        largest entry, as ``"frank_wolfe"`` needs.
    y_range
        Lowest and highest target, public and required. Targets beyond are clipped to
        it.
    penalty
        None, or one of `~tacit.convex.L1`, `~tacit.convex.ElasticNet`,
        `~tacit.convex.GroupL1`, `~tacit.convex.L2Ball`, `~tacit.convex.L1Ball` and
        `~tacit.convex.Box`, in units of the summed loss.
        The weight of the constant feature counts like any other.
    fit_intercept
        Whether to add a constant feature, which is inside the private bound.
    solver
        ``"auto"``, another name from the guide to choosing a solver, or a solver
        object. ``"auto"`` chooses from public facts only.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows, which sets penalties and steps and never
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
        Weights in units of the targets, for rows clipped to ``x_norm``.
    intercept_ : float
        Intercept.
    bounds_ : RowBounds
        Bounds that rows are clipped to, at fit and at prediction.
    loss_ : Squared
        Loss that was minimized, of targets scaled to [-1, 1].
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.
    noise_ : CoefficientNoise or None
        How much of each coefficient is noise, where the solver knows it.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors, by the
    theorem of the solver it used; everything else is post-processing. Missing or
    infinite values are rejected before anything is charged.

    scikit-learn's ``StackingRegressor`` around this estimator fits a final model on the
    rows, without noise and without a charge: fit it on public rows, see the sharp
    edges.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tacit.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearRegression(epsilon=2.0, x_norm=0.2, y_range=(0, 400))
    >>> model.fit(X, y).coef_.shape
    (10,)
    >>> model.privacy_.guarantee.epsilon
    2.0
    """

    model_name = "linear"
    saved = saved_linear(Squared)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        x_norm: float | None = None,
        bound_norm: str = "l2",
        y_range: tuple[float, float] | None = None,
        penalty: Certified | None = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        noise: str = "grid",
        random_state: RandomSource = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.x_norm = x_norm
        self.bound_norm = bound_norm
        self.y_range = y_range
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, low: float, high: float, scale: float) -> Squared:
        return Squared()

    def _ridge(self) -> float:
        return 0.0


class Ridge(PrivateRegressorMixin, PrivateLinearModel):
    """Differentially private ridge regression.

    The objective is half of ``sum (y - x w)^2 + alpha |w|^2``, as in scikit-learn, with
    the weight of the constant feature inside the penalty. Targets are centered and
    scaled by their public range inside, and weights come back in the units of the
    targets. ``"auto"`` first spends a part of the budget on estimating what part of
    their ranges features and targets fill, and gives rows beyond it less weight.
    Predictions are clipped to the range of the targets.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the guarantee may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. 0.0 gives pure privacy.
    alpha
        Least ridge penalty; the plan takes more when privacy or accuracy need it.
    x_norm
        Bound on the norm of a row, chosen without looking at the data. Longer rows are
        clipped to it, at fit and at prediction alike. None takes the bound that the
        transformer of `tacit.preprocessing` before the model declares, and is rejected
        where there is none.
    bound_norm
        ``"l2"`` if ``x_norm`` bounds the Euclidean norm, ``"linf"`` if it bounds the
        largest entry, as ``"frank_wolfe"`` needs.
    y_range
        Lowest and highest target, public and required. Targets beyond are clipped to
        it.
    penalty
        None, or one of `~tacit.convex.L1`, `~tacit.convex.ElasticNet`,
        `~tacit.convex.GroupL1`, `~tacit.convex.L2Ball`, `~tacit.convex.L1Ball` and
        `~tacit.convex.Box`, in units of the summed loss.
        The weight of the constant feature counts like any other.
    fit_intercept
        Whether to add a constant feature, which is inside the private bound.
    solver
        ``"auto"``, another name from the guide to choosing a solver, or a solver
        object. ``"auto"`` chooses from public facts only.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows, which sets penalties and steps and never
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
        Weights in units of the targets, for rows clipped to ``x_norm``.
    intercept_ : float
        Intercept.
    bounds_ : RowBounds
        Bounds that rows are clipped to, at fit and at prediction.
    loss_ : Squared
        Loss that was minimized, of targets scaled to [-1, 1].
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.
    noise_ : CoefficientNoise or None
        How much of each coefficient is noise, where the solver knows it.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors, by the
    theorem of the solver it used; everything else is post-processing. Missing or
    infinite values are rejected before anything is charged.

    scikit-learn's ``StackingRegressor`` around this estimator fits a final model on the
    rows, without noise and without a charge: fit it on public rows, see the sharp
    edges.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tacit.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge(epsilon=2.0, x_norm=0.2, y_range=(0, 400))
    >>> model.fit(X, y).coef_.shape
    (10,)
    >>> model.privacy_.guarantee.epsilon
    2.0
    """

    model_name = "ridge"
    saved = saved_linear(Squared)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        alpha: float = 1.0,
        x_norm: float | None = None,
        bound_norm: str = "l2",
        y_range: tuple[float, float] | None = None,
        penalty: Certified | None = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        noise: str = "grid",
        random_state: RandomSource = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.x_norm = x_norm
        self.bound_norm = bound_norm
        self.y_range = y_range
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, low: float, high: float, scale: float) -> Squared:
        return Squared()

    def _ridge(self) -> float:
        nonnegative(alpha=self.alpha)
        return float(self.alpha)
