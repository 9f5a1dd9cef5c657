"""Private regression with weights on the simplex."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from tacit._estimators import numeric
from tacit._random import RandomSource
from tacit._validate import positive, public_range
from tacit.convex import Simplex, Squared
from tacit.data import RowBounds
from tacit.data.declared import TableFacts
from tacit.linear_model._base import PrivateLinearModel, Setting, bounds_in_words
from tacit.linear_model._saved import saved_linear
from tacit.privacy import Neighbors

__all__ = ["SimplexRegressor"]

Array = NDArray[np.float64]


class SimplexRegressor(RegressorMixin, PrivateLinearModel):
    """Differentially private regression on a weighted mean of the features.

    Weights are nonnegative and sum to ``radius``: a portfolio, a mixture, an ensemble
    of other predictions. Rows are bounded entry by entry, so that noise hardly grows
    with the number of features. There is no intercept.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the guarantee may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. 0.0 gives pure privacy.
    radius
        Sum of the weights.
    x_max
        Bound on the absolute value of an entry, chosen without looking at the data.
        Larger entries are clipped to it, at fit and at prediction alike.
        None takes the bound that the transformer of `tacit.preprocessing` before the
        model declares, and is rejected where there is none.
    y_range
        Lowest and highest target, public and required. Targets beyond are clipped to
        it.
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
        Weights, for entries clipped to ``x_max``.
    intercept_ : float
        Zero.
    bounds_ : RowBounds
        Bounds that rows are clipped to, at fit and at prediction.
    loss_ : Squared
        Loss that was minimized.
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
    >>> import numpy as np
    >>> from tacit.linear_model import SimplexRegressor
    >>> X = np.sign(np.cos(np.arange(4000.0) ** 2)).reshape(1000, 4)
    >>> y = X @ [0.7, 0.3, 0.0, 0.0]
    >>> model = SimplexRegressor(epsilon=2.0, x_max=1.0, y_range=(-1, 1)).fit(X, y)
    >>> float(round(model.coef_.sum(), 6))
    1.0
    """

    model_name = "simplex"
    saved = saved_linear(Squared)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        radius: float = 1.0,
        x_max: float | None = None,
        y_range: tuple[float, float] | None = None,
        solver: Any = "auto",
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        noise: str = "grid",
        random_state: RandomSource = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.x_max = x_max
        self.y_range = y_range
        self.solver = solver
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose

    def _solver_targets(self, y: NDArray[Any], setting: Setting) -> NDArray[Any]:
        """Return targets clipped to their range."""
        return setting.bounds.clip_target(numeric(y))

    def _shaped(self, weights: Array, intercepts: Array) -> tuple[Array, Any]:
        """Return weights of the given sum; there is no intercept."""
        return weights[:, 0] * self.radius, 0.0

    def _setting(self, table: TableFacts, y: NDArray[Any] | None = None) -> Setting:
        if y is not None:
            numeric(y)  # before the plan, as bad targets are the simpler mistake
        y_range = public_range(self.y_range)
        x_max = table.x_norm(self.x_max, "linf", "x_max")
        positive(x_max=x_max, radius=self.radius)
        bounds = RowBounds(x_max, "linf", y_range)
        return Setting(
            loss=Squared(),
            bounds=bounds,
            # weights that sum to one, of features that are this much larger
            scale=float(self.radius),
            intercept=None,
            ridge=0.0,
            regularizer=Simplex(),
            assumptions=(
                bounds_in_words(bounds, table.origin(self.x_max)),
                "targets are clipped to [{:g}, {:g}]".format(*y_range),
            ),
        )

    def predict(self, X: Any) -> Array:
        """Return the predicted target of each row, entries clipped to ``x_max``."""
        return self._scores(X)

    def __sklearn_tags__(self) -> Tags:
        """Return the tags; not every target is a mean of features."""
        tags: Tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
