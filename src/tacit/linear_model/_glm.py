"""Private linear models of any loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if

from tacit._random import RandomSource
from tacit._validate import nonnegative, one_of
from tacit.convex import Logistic, Loss, OneVsRest
from tacit.convex._protocols import Certified
from tacit.data.declared import TableFacts
from tacit.linear_model._base import PrivateLinearModel, Setting
from tacit.linear_model._classifiers import PrivateClassifierMixin
from tacit.linear_model._regressor import PrivateRegressorMixin
from tacit.linear_model._saved import saved_linear
from tacit.privacy import Neighbors

__all__ = ["GeneralizedLinearModel"]

Array = NDArray[np.float64]


class GeneralizedLinearModel(PrivateLinearModel):
    """Differentially private linear model of any convex loss.

    The loss decides what is predicted: one that declares ``targets = "numbers"`` makes
    a regressor, one that declares ``"labels"``, of -1 and 1, or ``"codes"``, of the
    classes 0 to k - 1, a classifier. A loss of one's own needs no estimator besides.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the guarantee may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. 0.0 gives pure privacy.
    loss
        A `~tacit.convex.Loss`; None for ``Logistic()``. For numbers it is the loss of
        targets that are scaled by ``y_range`` to [-1, 1].
    x_norm
        Bound on the norm of a row, chosen without looking at the data. Longer rows are
        clipped to it, at fit and at prediction alike. None takes the bound that the
        transformer of `tacit.preprocessing` before the model declares, and is rejected
        where there is none.
    bound_norm
        ``"l2"`` or ``"linf"``, the norm that ``x_norm`` bounds. For a classifier
        ``"auto"`` chooses one as in `LogisticRegression`; for numbers it is ``"l2"``.
    y_range
        Lowest and highest target, public and required for numbers. Targets beyond are
        clipped to it.
    classes
        Public labels of a classifier. None takes them from ``y``, which makes the set
        of labels an assumption of the guarantee.
    ridge
        Ridge penalty, in units of the summed loss.
    penalty
        None, or a penalty or a set of `tacit.convex`.
    fit_intercept
        Whether to add a constant feature, which is inside the private bound.
    solver
        ``"auto"``, another name from the guide to choosing a solver, or a solver
        object.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows, which sets penalties and steps and never
        the privacy.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for research.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
    verbose
        1 for a bar that counts planned steps, 0 for silence.

    Attributes
    ----------
    coef_ : ndarray
        Coefficients, as `LogisticRegression` or `HuberRegressor` have them.
    intercept_ : ndarray or float
        Intercepts.
    classes_ : ndarray
        Labels, of a classifier.
    bounds_ : RowBounds
        Bounds that rows are clipped to, at fit and at prediction.
    loss_ : Loss
        Loss that was minimized.
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.
    noise_ : CoefficientNoise or None
        How much of each coefficient is noise, where the solver knows it.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors, by the
    theorem of the solver it used and the bounds that the loss states; everything else
    is post-processing. What a loss of one's own states is not proved: it is enforced by
    clipping where the solver can, and listed in the report otherwise.

    scikit-learn's ``CalibratedClassifierCV``, ``TunedThresholdClassifierCV``,
    ``StackingClassifier`` and ``StackingRegressor`` around this estimator fit a part of
    their own on the rows, without noise and without a charge: fit them on public rows,
    see the sharp edges.

    Examples
    --------
    >>> from tacit.convex import Huber
    >>> from tacit.datasets import make_census
    >>> from tacit.linear_model import GeneralizedLinearModel
    >>> census = make_census(2000, random_state=0)
    >>> model = GeneralizedLinearModel(1.0, loss=Huber(0.5), y_range=(0, 1), x_norm=1.0)
    >>> model.fit(census.X, census.y).predict(census.X).shape
    (2000,)
    """

    model_name = "glm"
    saved = saved_linear(classes=True)

    # as wide as those of the estimators that it stands for
    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        loss: Loss | None = None,
        x_norm: float | None = None,
        bound_norm: str = "auto",
        y_range: tuple[float, float] | None = None,
        classes: Any = None,
        ridge: float = 0.0,
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
        self.loss = loss
        self.x_norm = x_norm
        self.bound_norm = bound_norm
        self.y_range = y_range
        self.classes = classes
        self.ridge = ridge
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _task(self) -> Any:
        """The mixin for the targets of the loss."""
        targets = getattr(self._given_loss(), "targets", None)
        if targets not in ("numbers", "labels", "codes"):
            raise ValueError(
                "loss must be a loss of tacit.convex or declare targets as 'numbers', "
                f"'labels' or 'codes', got {type(self.loss).__name__}."
            )
        return PrivateRegressorMixin if targets == "numbers" else PrivateClassifierMixin

    def _given_loss(self) -> Loss:
        return Logistic() if self.loss is None else self.loss

    def _setting(self, table: TableFacts, y: NDArray[Any] | None = None) -> Setting:
        setting: Setting = self._task._setting(self, table, y)
        return setting

    def _solver_targets(self, y: NDArray[Any], setting: Setting) -> NDArray[Any]:
        targets: NDArray[Any] = self._task._solver_targets(self, y, setting)
        return targets

    def _shaped(self, weights: Array, intercepts: Array) -> tuple[Array, Any]:
        shaped: tuple[Array, Any] = self._task._shaped(self, weights, intercepts)
        return shaped

    def _loss(self, n_classes: Any, *units: float) -> Loss:
        loss = self._given_loss()
        binary = getattr(loss, "targets", None) == "labels"
        if units or (binary and n_classes == 2):
            return loss
        if binary:
            # also a loss of one's own with labels -1 and 1
            return OneVsRest(loss, n_classes)  # type: ignore[arg-type]
        if loss.n_outputs != n_classes or n_classes == 2:
            raise ValueError(
                f"{loss!r} is not for {n_classes} labels; give a loss of labels for "
                "two classes, and one for as many classes otherwise."
            )
        return loss

    # what both kinds of estimators need of the other parameters
    _penalty = PrivateClassifierMixin._penalty
    _public_classes = PrivateClassifierMixin._public_classes

    def _bound_norm(self) -> str:
        one_of(("auto", "l2", "linf"), bound_norm=self.bound_norm)
        return "l2" if self.bound_norm == "auto" else self.bound_norm

    def _ridge(self) -> float:
        nonnegative(ridge=self.ridge)
        return float(self.ridge)

    @available_if(lambda self: self._task is PrivateRegressorMixin)  # type: ignore[untyped-decorator]
    def target_unit(self) -> tuple[float, float]:
        """Return the center and the scale that map targets to [-1, 1]."""
        return PrivateRegressorMixin.target_unit(self)

    @available_if(lambda self: self._task is PrivateClassifierMixin)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Return the margins of rows within their bounds; for a classifier."""
        return PrivateClassifierMixin.decision_function(self, X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely label, or the predicted target, of each row."""
        predictions: NDArray[Any] = self._task.predict(self, X)
        return predictions

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or R^2 of a regressor, on public rows.

        Parameters
        ----------
        X
            Features.
        y
            Labels or targets.
        sample_weight
            Weights of the rows, or None.
        """
        numbers = self._task is PrivateRegressorMixin
        scored: Any = RegressorMixin if numbers else ClassifierMixin
        return float(scored.score(self, X, y, sample_weight))

    def __sklearn_tags__(self) -> Tags:
        """Return the tags of a classifier or a regressor, as the loss says."""
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self._task is PrivateRegressorMixin:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags(poor_score=True)
        else:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags()
        return tags
