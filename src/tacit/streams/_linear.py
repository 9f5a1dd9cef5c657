"""Linear models on streams: bounded rows in, coefficients out."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    checked_shape,
    checked_values,
    promised_budget,
    public_range,
)
from tacit.data import RowBounds
from tacit.streams._model import StreamModel
from tacit.streams._terms import StreamTerms

__all__ = ["StreamClassifierMixin", "StreamLinearModel", "StreamRegressorMixin"]

# The constant feature, in units of the bound on a row
INTERCEPT_SHARE = 0.5


class StreamLinearModel(StreamModel):
    """Rows within ``x_norm``, a constant feature, and weights shown as coefficients."""

    def _terms(self):
        return StreamTerms(self.horizon, self.rows_per_step, self.rows_per_person)

    def _budget(self, terms):
        return promised_budget(self.epsilon, self.delta, self.neighbors, terms.n_rows)

    def _constant(self):
        """Return the value of the constant feature, or None."""
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(
                f"fit_intercept must be True or False, got {self.fit_intercept!r}."
            )
        return self.x_norm * INTERCEPT_SHARE if self.fit_intercept else None

    def _leaf(self, X, y):
        """Return features with the constant, and targets; zeros for unusable rows."""
        X = dense_values(X)
        targets, usable = self._targets(y)
        usable = usable & np.isfinite(X).all(axis=1)
        X = self._bounds().clip(np.where(usable[:, None], X, 0.0))
        constant = self._constant()
        if constant is not None:
            X = np.column_stack([X, np.where(usable, constant, 0.0)])
        # [streams:unusable] a row that cannot be used is zero whatever it holds
        return np.ascontiguousarray(X), np.where(usable, targets, 0)

    def _parts(self, weights):
        """Return the weights of the features and the intercepts, from all weights."""
        constant = self._constant()
        if constant is None:
            return weights, np.zeros(weights.shape[1])
        return weights[:-1], weights[-1] * constant

    def _scores(self, X):
        """Return the margins of rows within the bounds."""
        check_is_fitted(self)
        X = X if hasattr(X, "shape") else np.asarray(X)
        checked_shape(self, X, fitting=False, accept_sparse=True)
        X = checked_values(X, accept_sparse=True)
        return self._bounds().clip(X) @ self.coef_.T + self.intercept_

    def __sklearn_tags__(self):
        """Tell scikit-learn that sparse rows are fine."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class StreamRegressorMixin(RegressorMixin):
    """Targets within a public range, centered and scaled by it inside."""

    def _bounds(self):
        public_range(self.y_range)
        return RowBounds(self.x_norm)

    def _targets(self, y):
        """Return targets in [-1, 1], and which of them are numbers."""
        low, high = public_range(self.y_range)
        values = float_targets(y)
        usable = np.isfinite(values)
        center, scale = self.target_unit()
        moved = (np.clip(np.where(usable, values, center), low, high) - center) / scale
        return np.clip(moved, -1.0, 1.0), usable

    def target_unit(self):
        """Return the target that counts as zero inside, and what counts as one."""
        low, high = public_range(self.y_range)
        # without an intercept zero must stay zero
        center = low + (high - low) / 2 if self.fit_intercept else 0.0
        return center, max(high - center, center - low)

    def _publish(self, weights):
        center, scale = self.target_unit()
        weights, intercepts = self._parts(weights)
        self.coef_ = weights[:, 0] * scale
        self.intercept_ = float(center + intercepts[0] * scale)

    def predict(self, X):
        """Return the predicted target of each row, cut to ``y_range``.

        Parameters
        ----------
        X
            Features, shortened to ``x_norm``.
        """
        return np.clip(self._scores(X), *public_range(self.y_range))

    def __sklearn_tags__(self):
        """Tell scikit-learn that a small budget on few rows predicts little."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class StreamClassifierMixin(ClassifierMixin):
    """Public classes; labels -1 and 1 of two of them, codes of more."""

    def _bounds(self):
        return RowBounds(self.x_norm, classes=tuple(self._classes().tolist()))

    def _classes(self):
        """Return the sorted public labels."""
        if self.classes is None:
            raise ValueError(
                "classes must be given: the labels that can come, set without the data."
            )
        classes = np.unique(np.asarray(self.classes))
        if len(classes) < 2 or (classes.dtype.kind == "f" and np.isnan(classes).any()):
            raise ValueError(
                "classes must name at least 2 labels, none of them missing."
            )
        return classes

    def _targets(self, y):
        """Return labels as the loss wants them, and which of them are known."""
        classes = self._classes()
        code = {label: place for place, label in enumerate(classes.tolist())}
        places = np.array([code.get(label, -1) for label in np.asarray(y).tolist()])
        places = places.astype(np.int64)
        targets = 2.0 * places - 1.0 if len(classes) == 2 else places
        return targets, places >= 0

    def _publish(self, weights):
        self.classes_ = self._classes()
        weights, self.intercept_ = self._parts(weights)
        self.coef_ = weights.T.copy()

    def decision_function(self, X):
        """Return the margins of each row: one for two classes, else one a class.

        Parameters
        ----------
        X
            Features, shortened to ``x_norm``.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        """Return the likeliest label of each row.

        Parameters
        ----------
        X
            Features, shortened to ``x_norm``.
        """
        scores = self.decision_function(X)
        places = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[places]

    def __sklearn_tags__(self):
        """Tell scikit-learn that a small budget on few rows predicts little."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


def dense_values(X):
    """Return features in dense float64, whatever they hold; refuse what is no number."""
    if sparse.issparse(X):
        X = X.toarray()
    return np.asarray(checked_values(X, finite=False), dtype=np.float64)


def float_targets(y):
    """Return targets in float64, NaN where one is missing; refuse texts and the like."""
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError("y should be a 1d array, with one target for each row.")
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    raise ValueError("y must hold numbers only.")
