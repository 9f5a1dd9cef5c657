"""Private logistic regression."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from tacit.convex import Logistic, Softmax
from tacit.data import RowBounds
from tacit.linear_model._base import private_erm, promised_budget, validated
from tacit.privacy import Ledger, Neighbors
from tacit.solvers import INTERCEPT_SHARE

__all__ = ["LogisticRegression"]


class LogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression that does not tell on its rows.

    Two classes give one set of weights, more give a joint softmax.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the bound may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one.
    x_norm
        Bound on the Euclidean norm of a row. Longer rows are shortened to it, at fit
        and at prediction alike. It must not be read off the data.
    ridge
        Least ridge penalty, in units of the summed loss (scikit-learn's ``1 / C``).
        The plan takes more when privacy or accuracy ask for it.
    fit_intercept
        Whether to add a constant feature, which is inside the private bound.
    classes
        Public labels. None takes them from ``y``, which makes the set of labels an
        assumption of the guarantee.
    solver
        ``"auto"``, ``"amp"``, ``"noisy_gd"``, or a solver object. ``"auto"`` chooses
        from public facts only.
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
        None for the operating system's randomness. A seed is for tests only, and is
        flagged in the report.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Weights, for rows shortened to ``x_norm``.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercepts.
    loss_ : Logistic or Softmax
        Loss that was minimized; its slope is capped when that saves noise.
    privacy_ : PrivacyReport
        Promise, spend and assumptions.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors, by the
    theorem of the solver it used; everything else is post-processing. Missing or
    infinite values and labels outside ``classes`` are refused before anything is
    charged.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tacit.linear_model import LogisticRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LogisticRegression(epsilon=1.0, x_norm=1.0, classes=range(10))
    >>> model.fit(X / 16, y).coef_.shape
    (10, 64)
    >>> model.privacy_.promise.epsilon
    1.0
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=None,
        *,
        x_norm=1.0,
        ridge=0.0,
        fit_intercept=True,
        classes=None,
        solver="auto",
        neighbors="replace_one",
        expected_rows=None,
        noise="grid",
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.x_norm = x_norm
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.solver = solver
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state

    def fit(self, X, y, *, ledger: Ledger | None = None):
        """Fit the model, charging the ledger first.

        Parameters
        ----------
        X
            Features, dense or CSR, one row a person.
        y
            Labels.
        ledger
            Account of the data set to charge; None opens one for this fit alone.
        """
        before = vars(self).copy()
        try:
            return self._fit(X, y, ledger)
        except BaseException:
            # all or nothing: scikit-learn's validation has left its marks by now
            vars(self).clear()
            vars(self).update(before)
            raise

    def _fit(self, X, y, ledger):
        X, y = validated(self, X, y)
        with warnings.catch_warnings():
            # it warns about labels that look like numbers, which depends on them
            warnings.simplefilter("ignore", UserWarning)
            check_classification_targets(y)
        classes = self._public_classes(y)
        bounds = RowBounds(self.x_norm, classes=tuple(classes.tolist()))
        codes = bounds.codes(y)
        binary = len(classes) == 2
        intercept = INTERCEPT_SHARE * self.x_norm if self.fit_intercept else None
        budget = promised_budget(self.epsilon, self.delta, self.neighbors, X.shape[0])
        weights, self.loss_, report = private_erm(
            X,
            2.0 * codes - 1.0 if binary else codes,
            loss=Logistic() if binary else Softmax(len(classes)),
            bounds=bounds,
            intercept=intercept,
            ridge=self.ridge,
            solver=self.solver,
            noise=self.noise,
            budget=budget,
            ledger=ledger,
            expected_rows=self.expected_rows,
            random_state=self.random_state,
            label=type(self).__name__,
            assumptions=self._assumptions(budget.neighbors),
        )
        self.classes_ = classes
        if intercept is None:
            self.coef_ = weights.T.copy()
            self.intercept_ = np.zeros(weights.shape[1])
        else:
            self.coef_ = weights[:-1].T.copy()
            self.intercept_ = weights[-1] * intercept
        self.privacy_ = report
        return self

    def _public_classes(self, y):
        """Return the sorted labels, given or taken from ``y``."""
        if self.classes is None:
            classes = np.unique(y)
            if len(classes) < 2:
                raise ValueError(
                    "y holds one class; give the public labels as classes= to fit "
                    "with fewer labels than there are."
                )
            return classes
        classes = np.unique(np.asarray(self.classes))
        if len(classes) < 2 or (classes.dtype.kind == "f" and np.isnan(classes).any()):
            raise ValueError(
                "classes must name at least 2 labels, none of them missing."
            )
        return classes

    def _assumptions(self, neighbors: Neighbors) -> tuple[str, ...]:
        found = [f"rows are shortened to norm {self.x_norm:g}, set without the data"]
        if neighbors is Neighbors.REPLACE_ONE:
            found.append("the number of rows is public")
        if self.classes is None:
            found.append("the set of labels is public (taken from y; give classes=)")
        return tuple(found)

    def decision_function(self, X):
        """Return the margins of rows shortened to ``x_norm``."""
        check_is_fitted(self)
        X = validated(self, X)
        scores = RowBounds(self.x_norm).clip(X) @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        """Return the most likely label of each row."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def predict_proba(self, X):
        """Return the probability of each class for each row."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack(
                [self.loss_.probability(-scores), self.loss_.probability(scores)]
            )
        return special.softmax(scores, axis=1)

    def predict_log_proba(self, X):
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def __sklearn_tags__(self):
        """Tell scikit-learn that sparse rows are fine."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
