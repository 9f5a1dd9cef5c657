"""Private classifiers: logistic regression and support vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from tacit._class_margins import (
    class_margins,
    class_probabilities,
    likeliest_labels,
)
from tacit._estimators import labels_found
from tacit._random import RandomSource
from tacit.convex import HuberizedHinge, L1Ball, Logistic, Loss, OneVsRest, Softmax
from tacit.convex._protocols import Certified, Regularizer
from tacit.data import RowBounds
from tacit.data.bounds import sorted_classes
from tacit.data.declared import TableFacts
from tacit.linear_model._base import (
    PrivateLinearModel,
    Setting,
    bounds_in_words,
    checked_penalty,
)
from tacit.linear_model._row_limits import row_limits
from tacit.linear_model._saved import saved_linear
from tacit.privacy import Neighbors
from tacit.solvers._auto import named_fact

__all__ = [
    "LABELS_FROM_ROWS",
    "LinearSVC",
    "LogisticRegression",
    "PrivateClassifierMixin",
]

Array = NDArray[np.float64]

LABELS_FROM_ROWS = "the set of labels is public (taken from y; give classes=)"


class PrivateClassifierMixin(ClassifierMixin):
    """Public classes, with one margin for two of them and one each for more."""

    epsilon: float
    delta: float | None
    x_norm: float | None
    bound_norm: str
    ridge: float
    penalty: Certified | None
    fit_intercept: bool
    classes: Any
    solver: Any
    neighbors: str | Neighbors
    expected_rows: int | None
    classes_: NDArray[Any]
    _intercept: Callable[[RowBounds], float | None]
    _scores: Callable[[Any], Array]
    _loss: Callable[[int], Loss]

    def _solver_targets(self, y: NDArray[Any], setting: Setting) -> NDArray[Any]:
        """Return labels -1 and 1 of two classes, or codes of more."""
        codes = setting.bounds.codes(y)
        return 2.0 * codes - 1.0 if len(setting.bounds.classes or ()) == 2 else codes

    def _shaped(self, weights: Array, intercepts: Array) -> tuple[Array, Any]:
        """Return numbers of weights and intercepts in the form of the attributes."""
        return weights.T.copy(), intercepts

    def _setting(self, table: TableFacts, y: NDArray[Any] | None = None) -> Setting:
        classes = self._public_classes(y)
        x_norm, norm, radius = row_limits(self, table, len(classes))
        bounds = RowBounds(x_norm, norm, classes=tuple(classes.tolist()))
        return Setting(
            loss=self._loss(len(classes)),
            bounds=bounds,
            intercept=self._intercept(bounds),
            ridge=self.ridge,
            regularizer=self._penalty(bounds, radius),
            assumptions=(
                bounds_in_words(bounds, table.origin(self.x_norm)),
                *((LABELS_FROM_ROWS,) if self.classes is None else ()),
            ),
            labels=classes,
            is_sparse=table.is_sparse,
        )

    def _penalty(self, bounds: RowBounds, radius: float) -> Regularizer:
        """Return the penalty given, or an L1 ball for bounded entries."""
        name = self.solver if isinstance(self.solver, str) else ""
        in_ball = name == "auto" or named_fact(name, "ball") is L1Ball
        if self.penalty is None and bounds.norm == "linf" and in_ball:
            return L1Ball(radius / bounds.x_norm)
        return checked_penalty(self.penalty, self.fit_intercept)

    def _public_classes(self, y: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the sorted labels, given or taken from ``y``."""
        if self.classes is not None:
            return sorted_classes(self.classes)
        if y is None:
            raise ValueError("classes must be given for a plan, which sees no labels.")
        return labels_found(y)

    def decision_function(self, X: Any) -> Array:
        """Return the margins of rows within their bounds."""
        return class_margins(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely label of each row."""
        return likeliest_labels(self.decision_function(X), self.classes_)


class LogisticRegression(PrivateClassifierMixin, PrivateLinearModel):
    """Differentially private logistic regression.

    Two classes give one set of weights, more give a joint softmax or one set of weights
    each against the rest.

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
        largest entry; the weights are then kept in ``L1Ball(5 / x_norm)`` unless
        another penalty is given. ``"auto"`` is ``"l2"``, but for solvers that bound
        entries, and where columns are more than rows and the budget is small for them.
        Sparse rows of two classes then have entries up to ``x_norm / 8``, and a ball
        whose radius follows from the budget.
    ridge
        Least ridge penalty, in units of the summed loss (scikit-learn's ``1 / C``).
        The plan takes more when privacy or accuracy need it.
    penalty
        None, or one of `~tacit.convex.L1`, `~tacit.convex.ElasticNet`,
        `~tacit.convex.GroupL1`, `~tacit.convex.L2Ball`, `~tacit.convex.L1Ball`,
        `~tacit.convex.Box` and `~tacit.convex.Simplex`, in units of the summed loss.
        The weight of the constant feature counts like any other.
    fit_intercept
        Whether to add a constant feature, which is inside the private bound.
    classes
        Public labels. None takes them from ``y``, which makes the set of labels an
        assumption of the guarantee.
    multi_class
        What three classes or more are fitted with: ``"softmax"`` for one joint model
        of their probabilities, ``"one_vs_rest"`` for a binary model each. Both are
        one fit, whose noise is accounted for all classes together.
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
    classes_ : ndarray of shape (n_classes,)
        Labels.
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Weights, for rows clipped to ``x_norm``.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercepts.
    bounds_ : RowBounds
        Bounds that rows are clipped to, at fit and at prediction.
    loss_ : Logistic, Softmax or OneVsRest
        Loss that was minimized; its derivative is capped when that saves noise.
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.
    noise_ : CoefficientNoise or None
        How much of each coefficient is noise, where the solver knows it.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors, by the
    theorem of the solver it used; everything else is post-processing. Missing or
    infinite values and labels outside ``classes`` are rejected before anything is
    charged.

    scikit-learn's ``CalibratedClassifierCV``, ``TunedThresholdClassifierCV`` and
    ``StackingClassifier`` around this estimator fit a part of their own on the rows,
    without noise and without a charge: fit them on public rows, see the sharp edges.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tacit.linear_model import LogisticRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LogisticRegression(epsilon=1.0, x_norm=1.0, classes=range(10))
    >>> model.fit(X / 16, y).coef_.shape
    (10, 64)
    >>> model.privacy_.guarantee.epsilon
    1.0

    A penalty is an object, in units of the summed loss.

    >>> from tacit.convex import L1
    >>> few = LogisticRegression(4.0, penalty=L1(20.0), classes=range(10), x_norm=1.0)
    >>> few.fit(X / 16, y).coef_.shape
    (10, 64)
    """

    model_name = "logistic"
    saved = saved_linear(Logistic, Softmax, classes=True)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        x_norm: float | None = None,
        bound_norm: str = "auto",
        ridge: float = 0.0,
        penalty: Certified | None = None,
        fit_intercept: bool = True,
        classes: Any = None,
        multi_class: str = "softmax",
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
        self.ridge = ridge
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.multi_class = multi_class
        self.solver = solver
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, n_classes: int) -> Loss:
        if self.multi_class not in ("softmax", "one_vs_rest"):
            raise ValueError(
                "multi_class must be 'softmax' or 'one_vs_rest', got "
                f"{self.multi_class!r}."
            )
        if n_classes == 2:
            return Logistic()
        if self.multi_class == "softmax":
            return Softmax(n_classes)
        return OneVsRest(Logistic(), n_classes)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class for each row."""
        return class_probabilities(self.decision_function(X), self.loss_)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))


class LinearSVC(PrivateClassifierMixin, PrivateLinearModel):
    """Differentially private linear support vector classification.

    The hinge is rounded at its corner, as noise needs a smooth loss. Three classes or
    more are each set against the rest, in one fit whose noise is accounted for all
    classes together. There are no probabilities; `LogisticRegression` has them.

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
        largest entry; the weights are then kept in ``L1Ball(5 / x_norm)`` unless
        another penalty is given. ``"auto"`` is ``"l2"``, but for solvers that bound
        entries, and where columns are more than rows and the budget is small for them.
        Sparse rows of two classes then have entries up to ``x_norm / 8``, and a ball
        whose radius follows from the budget.
    ridge
        Least ridge penalty, in units of the summed loss (scikit-learn's ``1 / C``).
        The plan takes more when privacy or accuracy need it.
    h
        Half-width of the part of the hinge that is rounded off, in units of the
        margin. Smaller is closer to the hinge and costs more noise.
    penalty
        None, or one of `~tacit.convex.L1`, `~tacit.convex.ElasticNet`,
        `~tacit.convex.GroupL1`, `~tacit.convex.L2Ball`, `~tacit.convex.L1Ball`,
        `~tacit.convex.Box` and `~tacit.convex.Simplex`, in units of the summed loss.
        The weight of the constant feature counts like any other.
    fit_intercept
        Whether to add a constant feature, which is inside the private bound.
    classes
        Public labels. None takes them from ``y``, which makes the set of labels an
        assumption of the guarantee.
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
    classes_ : ndarray of shape (n_classes,)
        Labels.
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Weights, for rows clipped to ``x_norm``.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercepts.
    bounds_ : RowBounds
        Bounds that rows are clipped to, at fit and at prediction.
    loss_ : HuberizedHinge or OneVsRest
        Loss that was minimized.
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.
    noise_ : CoefficientNoise or None
        How much of each coefficient is noise, where the solver knows it.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors, by the
    theorem of the solver it used; everything else is post-processing. Missing or
    infinite values and labels outside ``classes`` are rejected before anything is
    charged.

    scikit-learn's ``CalibratedClassifierCV``, ``TunedThresholdClassifierCV`` and
    ``StackingClassifier`` around this estimator fit a part of their own on the rows,
    without noise and without a charge: fit them on public rows, see the sharp edges.

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> from tacit.linear_model import LinearSVC
    >>> census = make_census(2000, random_state=0)
    >>> model = LinearSVC(epsilon=1.0, classes=[0, 1], x_norm=1.0)
    >>> model.fit(census.X, census.y).decision_function(census.X).shape
    (2000,)
    """

    model_name = "svm"
    saved = saved_linear(HuberizedHinge, classes=True)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        x_norm: float | None = None,
        bound_norm: str = "auto",
        ridge: float = 0.0,
        h: float = 0.5,
        penalty: Certified | None = None,
        fit_intercept: bool = True,
        classes: Any = None,
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
        self.ridge = ridge
        self.h = h
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.solver = solver
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, n_classes: int) -> Loss:
        hinge = HuberizedHinge(self.h)
        return hinge if n_classes == 2 else OneVsRest(hinge, n_classes)
