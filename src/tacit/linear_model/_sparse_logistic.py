"""Private sparse logistic regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from tacit._class_margins import class_probabilities
from tacit._random import RandomSource
from tacit.convex import Logistic
from tacit.data.declared import TableFacts
from tacit.linear_model._base import Setting
from tacit.linear_model._classifiers import LABELS_FROM_ROWS, PrivateClassifierMixin
from tacit.linear_model._saved import saved_linear
from tacit.linear_model._sparse import SparseLinearModel
from tacit.privacy import Neighbors

__all__ = ["SparseLogisticRegression"]

Array = NDArray[np.float64]


class SparseLogisticRegression(PrivateClassifierMixin, SparseLinearModel):
    """Differentially private sparse logistic regression of two classes.

    The objective is ``sum log(1 + exp(-y (x w + b))) / n + alpha l1_ratio |w|_1 + alpha
    (1 - l1_ratio) |w|^2 / 2`` with labels -1 and 1, in the units of the features. In
    scikit-learn's `LogisticRegression` this ``alpha`` is ``1 / (n C)``.

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
        Factor of the penalty of the mean loss.
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
    fit_intercept
        Whether to fit an intercept, which is private and not penalized.
    classes
        Two public labels. None takes them from ``y``, which makes the set of labels an
        assumption of the guarantee.
    solver
        ``"cd"`` for `~tacit.solvers.CoordinateDescent`, ``"gcd"`` for
        `~tacit.solvers.GreedyCoordinateDescent`, ``"frank_wolfe"``, an object of one of
        these, or ``"auto"``, which chooses one of the first two from public facts only.
    l1_radius
        Only for ``"frank_wolfe"``, which keeps weights in a ball instead of the
        penalty and does not use ``alpha``: largest sum of absolute weights times the
        half-widths of their ranges, the intercept included.
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
    classes_ : ndarray of shape (2,)
        Labels.
    coef_ : ndarray of shape (1, n_features)
        Weights in the units of the features.
    intercept_ : ndarray of shape (1,)
        Intercept.
    sparse_coef_ : sparse array of shape (1, n_features)
        The same weights.
    selected_features_ : ndarray
        Indices of the features with a weight, in order; noisy too.
    selected_names_ : ndarray
        Their names, where ``X`` had names.
    bounds_ : FeatureBounds
        Ranges that entries are clipped to, at fit and at prediction.
    loss_ : Logistic
        Loss that was minimized.
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
    features included. Missing or infinite values and labels outside
    ``classes`` are rejected before anything is charged.

    scikit-learn's ``CalibratedClassifierCV``, ``TunedThresholdClassifierCV`` and
    ``StackingClassifier`` around this estimator fit a part of their own on the rows,
    without noise and without a charge: fit them on public rows, see the sharp edges.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon and M. Tommasi, "Differentially private
       coordinate descent for composite empirical risk minimization", ICML 2022.
    .. [2] P. Mangold, A. Bellet, J. Salmon and M. Tommasi, "High-dimensional private
       empirical risk minimization by greedy coordinate descent", AISTATS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import SparseLogisticRegression
    >>> X = np.cos(np.outer(np.arange(5000.0), np.sqrt([2, 3, 5, 7, 11, 13])))
    >>> y = np.where(X[:, 0] > X[:, 3], "yes", "no")
    >>> model = SparseLogisticRegression(
    ...     epsilon=2.0, alpha=0.02, feature_bounds=1.0, classes=["no", "yes"]
    ... )
    >>> model.fit(X, y).coef_.shape
    (1, 6)
    >>> sorted({0, 3} - {*model.selected_features_.tolist()})
    []
    """

    model_name = "sparse-logistic"
    saved = saved_linear(Logistic, ranges=True, classes=True)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        alpha: float = 0.01,
        l1_ratio: float = 1.0,
        feature_bounds: Any = None,
        fit_intercept: bool = True,
        classes: Any = None,
        solver: Any = "auto",
        l1_radius: float | None = None,
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
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.solver = solver
        self.l1_radius = l1_radius
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose

    def _setting(self, table: TableFacts, y: NDArray[Any] | None = None) -> Setting:
        classes = self._public_classes(y)
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                "multiclass: give two classes, or use LogisticRegression with "
                "penalty=L1(weight)."
            )
        setting = self._setting_of(
            table,
            loss=Logistic(),
            classes=tuple(classes.tolist()),
        )
        setting = replace(setting, labels=classes)
        known = self.classes is not None
        return setting if known else setting.assuming(LABELS_FROM_ROWS)

    def _shaped(self, weights: Array, intercepts: Array) -> tuple[Array, Any]:
        """Return weights and intercept in the units of the features."""
        coef, intercept = self._in_units(weights, intercepts)
        return coef[None, :], np.array([intercept])

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class for each row."""
        return class_probabilities(self.decision_function(X), self.loss_)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Tags:
        """Return the tags of a binary classifier."""
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
