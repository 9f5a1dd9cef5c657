"""Private robust regression."""

from __future__ import annotations

from typing import Any

from tacit._random import RandomSource
from tacit._validate import nonnegative, positive
from tacit.convex import Huber
from tacit.convex._protocols import Certified
from tacit.linear_model._base import PrivateLinearModel
from tacit.linear_model._regressor import PrivateRegressorMixin
from tacit.linear_model._saved import saved_linear
from tacit.privacy import Neighbors

__all__ = ["HuberRegressor"]

# Threshold as a share of the public range: 1.35 standard deviations, the usual choice,
# where the range is about nine of them wide
THRESHOLD_FRACTION = 0.15


class HuberRegressor(PrivateRegressorMixin, PrivateLinearModel):
    """Differentially private regression with the Huber loss.

    The loss is half the squared residual up to a threshold and is linear beyond it,
    which bounds the gradient of a row and with it the noise.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the guarantee may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. 0.0 gives pure privacy.
    threshold
        Residual at which the loss turns linear, in units of the targets. None for
        15 percent of the width of ``y_range``. It is a public number, not an estimate:
        the scale of the residuals is not fitted.
    alpha
        Least ridge penalty, for half the squared weights; the plan takes more when
        privacy or accuracy need it.
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
    loss_ : Huber
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
    >>> from tacit.linear_model import HuberRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = HuberRegressor(epsilon=2.0, x_norm=0.2, y_range=(0, 400))
    >>> model.fit(X, y).coef_.shape
    (10,)
    >>> model.privacy_.guarantee.epsilon
    2.0
    """

    model_name = "huber"
    saved = saved_linear(Huber)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        threshold: float | None = None,
        alpha: float = 0.0,
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
        self.threshold = threshold
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

    def _loss(self, low: float, high: float, scale: float) -> Huber:
        if self.threshold is None:
            return Huber(THRESHOLD_FRACTION * (high - low) / scale)
        positive(threshold=self.threshold)
        return Huber(self.threshold / scale)

    def _ridge(self) -> float:
        nonnegative(alpha=self.alpha)
        return float(self.alpha)
