"""Private linear models of any loss."""

from __future__ import annotations

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from tacit._validate import one_of
from tacit.convex import Logistic, OneVsRest
from tacit.linear_model._base import PrivateLinearModel, saved_linear
from tacit.linear_model._classifier import PrivateClassifierMixin
from tacit.linear_model._regressor import PrivateRegressorMixin, nonnegative

__all__ = ["GeneralizedLinearModel"]


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
        clipped to it, at fit and at prediction alike.
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
    is post-processing.

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
    >>> model = GeneralizedLinearModel(1.0, loss=Huber(0.5), y_range=(0, 1))
    >>> model.fit(census.X, census.y).predict(census.X).shape
    (2000,)
    """

    model_name = "glm"
    saved = saved_linear(classes=True)

    # as wide as those of the estimators that it stands for
    def __init__(
        self,
        epsilon=1.0,
        delta=None,
        *,
        loss=None,
        x_norm=1.0,
        bound_norm="auto",
        y_range=None,
        classes=None,
        ridge=0.0,
        penalty=None,
        fit_intercept=True,
        solver="auto",
        neighbors="replace_one",
        expected_rows=None,
        noise="grid",
        random_state=None,
        verbose=0,
    ):
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
    def _task(self):
        """The mixin for the targets of the loss."""
        targets = getattr(self._given_loss(), "targets", None)
        if targets not in ("numbers", "labels", "codes"):
            raise ValueError(
                "loss must be a loss of tacit.convex or declare targets as 'numbers', "
                f"'labels' or 'codes', got {type(self.loss).__name__}."
            )
        return PrivateRegressorMixin if targets == "numbers" else PrivateClassifierMixin

    def _given_loss(self):
        return Logistic() if self.loss is None else self.loss

    def _setting(self, n_rows, n_features, is_sparse, y=None):
        return self._task._setting(self, n_rows, n_features, is_sparse, y)

    def _solver_targets(self, y, setting):
        return self._task._solver_targets(self, y, setting)

    def _shaped(self, weights, intercepts):
        return self._task._shaped(self, weights, intercepts)

    def _loss(self, n_classes, *units):
        loss = self._given_loss()
        if units or (loss.targets == "labels" and n_classes == 2):
            return loss
        if loss.targets == "labels":
            return OneVsRest(loss, n_classes)
        if loss.n_outputs != n_classes or n_classes == 2:
            raise ValueError(
                f"{loss!r} is not for {n_classes} labels; give a loss of labels for "
                "two classes, and one for as many classes otherwise."
            )
        return loss

    # what both kinds of estimators need of the other parameters
    _chosen_norm = PrivateClassifierMixin._chosen_norm
    _penalty = PrivateClassifierMixin._penalty
    _public_classes = PrivateClassifierMixin._public_classes

    def _bound_norm(self):
        one_of(("auto", "l2", "linf"), bound_norm=self.bound_norm)
        return "l2" if self.bound_norm == "auto" else self.bound_norm

    def _ridge(self):
        return nonnegative(ridge=self.ridge)

    @available_if(lambda self: self._task is PrivateRegressorMixin)
    def target_unit(self):
        """Return the center and the scale that map targets to [-1, 1]."""
        return PrivateRegressorMixin.target_unit(self)

    @available_if(lambda self: self._task is PrivateClassifierMixin)
    def decision_function(self, X):
        """Return the margins of rows within their bounds; for a classifier."""
        return PrivateClassifierMixin.decision_function(self, X)

    def predict(self, X):
        """Return the most likely label, or the predicted target, of each row."""
        return self._task.predict(self, X)

    def score(self, X, y, sample_weight=None):
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
        scored = RegressorMixin if numbers else ClassifierMixin
        return scored.score(self, X, y, sample_weight)

    def __sklearn_tags__(self):
        """Return the tags of a classifier or a regressor, as the loss says."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self._task is PrivateRegressorMixin:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags(poor_score=True)
        else:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags()
        return tags
