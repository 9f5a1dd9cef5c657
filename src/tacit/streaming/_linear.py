"""Linear models on streams: bounded rows in, coefficients out."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    checked_shape,
    checked_targets,
    checked_values,
    labels_found,
    listed,
    numeric,
    public_range,
)
from tacit._stream_values import (
    checked_classes,
    class_positions,
    dense_values,
    float_targets,
)
from tacit.data import RowBounds
from tacit.solvers import Problem
from tacit.streaming._model import StreamModel

__all__ = ["StreamClassifierMixin", "StreamLinearModel", "StreamRegressorMixin"]

# The constant feature, in units of the bound on a row
INTERCEPT_FRACTION = 0.5
# Targets over features: beyond, a sum of squared residuals with its noise may be
# infinite
MAX_DERIVATIVE = 1e120


class StreamLinearModel(StreamModel):
    """Rows within ``x_norm``, a constant feature, and weights shown as coefficients."""

    def _constant(self):
        """Return the value of the constant feature, or None."""
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(
                f"fit_intercept must be True or False, got {self.fit_intercept!r}."
            )
        return self.x_norm * INTERCEPT_FRACTION if self.fit_intercept else None

    def _problem(self, loss, terms, n_features):
        """Return the problem of a stream, without a penalty."""
        bounds, constant = self._bounds(), self._constant()
        if constant is not None:
            bounds = bounds.with_intercept(constant)
        return Problem(
            loss,
            bounds,
            terms.n_rows,
            n_features + (constant is not None),
            constant=constant,
        )

    def _row_assumptions(self):
        """Return what the guarantee assumes of rows."""
        norm = self._bounds().x_norm
        return (f"rows are shortened to norm {norm:g}, set without the data",)

    def _integer_targets(self, X, y):
        # a table is all there before the charge, so that bad values can be refused
        y = checked_targets(y, X.shape[0], labels=is_classifier(self))
        checked_values(X, accept_sparse=True)
        return y

    def _leaf(self, X, y):
        """Return features with the constant, and targets; zeros for unusable rows."""
        X = dense_values(X, first=self._is_first())
        targets, usable = self._targets(y)
        usable = usable & np.isfinite(X).all(axis=1)
        # in the order of rows, so that a norm is summed up alike whatever the table was
        X = np.ascontiguousarray(np.where(usable[:, None], X, 0.0))
        X = self._bounds().clip(X)
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
        X = listed(X)
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
        bounds, (_, scale) = RowBounds(self.x_norm), self.target_unit()
        if scale / min(bounds.x_norm, 1.0) > MAX_DERIVATIVE:
            raise ValueError(
                f"y_range is too wide for x_norm={bounds.x_norm:g}: squared residuals "
                f"would not be finite numbers, got {self.y_range!r}; rescale the "
                "targets."
            )
        return bounds

    def _integer_targets(self, X, y):
        return numeric(super()._integer_targets(X, y))

    def _targets(self, y):
        """Return targets in [-1, 1], and which of them are numbers."""
        low, high = public_range(self.y_range)
        values = float_targets(y, first=self._is_first())
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

    def partial_fit(self, X, y, classes=None, *, ledger=None):
        """Take the rows of one step and release a model.

        The first step charges the whole horizon. Rows with a missing or infinite
        number, or with a label that is not among the classes, count as if they were
        not there: a refusal would tell about them.

        Parameters
        ----------
        X
            Features, one row for each row of the step.
        y
            Labels.
        classes
            Labels that can come, where the estimator was not given them; at the first
            step, as in scikit-learn. They are public.
        ledger
            Account to charge at the first step; None opens one for this stream alone.
            Later steps take the same or None.
        """
        return self._step(X, y, ledger, type(self).__name__, told=classes)

    def _learn(self, classes):
        """Remember labels given with the first step; refuse others than are known."""
        given = checked_classes(classes)
        begun = hasattr(self, "_n_steps")
        if self.classes is None and not begun:
            self._given_classes = given
        if not np.array_equal(self._classes(), given):
            raise ValueError(
                "classes must be those of the estimator and of the first step."
            )

    def _integer_targets(self, X, y):
        y = super()._integer_targets(X, y)
        vars(self).pop("_given_classes", None)
        if self.classes is None:
            self._given_classes = labels_found(y)
        return y

    def _classes(self):
        """Return the sorted public labels, those of the first step at later ones."""
        return self._first_classes() if self._is_first() else self.classes_

    def _first_classes(self):
        classes = self.classes
        if classes is None:
            classes = vars(self).get("_given_classes")
        if classes is None:
            raise ValueError(
                "classes must be given: the labels that can come, set without the data."
            )
        return checked_classes(classes)

    def _class_assumptions(self):
        """Return what the guarantee assumes of the labels."""
        if self.classes is not None:
            return ()
        return ("the set of labels is public (given or seen with the first rows)",)

    def _targets(self, y):
        """Return labels as the loss wants them, and which of them are known."""
        classes = self._classes()
        positions = class_positions(classes, y)
        targets = 2.0 * positions - 1.0 if len(classes) == 2 else positions
        return targets, positions >= 0

    def _publish(self, weights):
        if "classes_" not in vars(self) or self._n_steps == 1:
            self.classes_ = self._first_classes()
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
        positions = (
            (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        )
        return self.classes_[positions]

    def __sklearn_tags__(self):
        """Tell scikit-learn that a small budget on few rows predicts little."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
