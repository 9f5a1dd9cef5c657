"""Linear models on streams: how rows are clipped, and how weights predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
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
from tacit._validate import true_or_false
from tacit.convex import Loss
from tacit.data import RowBounds
from tacit.privacy import Ledger
from tacit.solvers import Problem
from tacit.streaming._terms import PlannedStream, StreamTerms

__all__ = [
    "ClassLabels",
    "LinearReader",
    "StreamClassifier",
    "StreamRegressor",
    "TargetRange",
]

Array = NDArray[np.float64]

# The constant feature, in units of the bound on a row
INTERCEPT_FRACTION = 0.5
# Maximum ratio of targets to features: beyond, a noisy sum of squared residuals may be
# infinite
MAX_DERIVATIVE = 1e120


@dataclass(frozen=True)
class TargetRange:
    """Public range of targets, which are centered and scaled to [-1, 1].

    Parameters
    ----------
    low, high
        Ends of the range.
    center, scale
        Target that becomes zero, and distance from it that becomes one.
    """

    low: float
    high: float
    center: float
    scale: float

    @classmethod
    def of(cls, y_range: Any, fit_intercept: bool) -> TargetRange:
        """Return the range of an estimator."""
        low, high = public_range(y_range)
        # without an intercept zero must stay zero
        center = low + (high - low) / 2 if fit_intercept else 0.0
        return cls(low, high, center, max(high - center, center - low))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Clipping of targets, in words."""
        return (f"targets are clipped to [{self.low:g}, {self.high:g}]",)

    def encoded(self, y: Any, *, first: bool) -> tuple[Array, NDArray[np.bool_]]:
        """Return targets in [-1, 1], and which of them are numbers."""
        values = float_targets(y, first=first)
        usable = np.isfinite(values)
        values = np.clip(np.where(usable, values, self.center), self.low, self.high)
        return np.clip((values - self.center) / self.scale, -1.0, 1.0), usable


@dataclass(frozen=True)
class ClassLabels:
    """Public class labels: -1 and 1 for two of them, codes for more.

    Parameters
    ----------
    classes
        Sorted labels. The bounds of the same reader have them as plain values, to
        compare plans by.
    seen
        Whether they came with the first rows.
    """

    classes: NDArray[Any] = field(repr=False, compare=False)
    seen: bool = False

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Where the labels are from, in words."""
        if not self.seen:
            return ()
        return ("the set of labels is public (given or seen with the first rows)",)

    def encoded(self, y: Any, *, first: bool) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return labels as the loss expects them, and which of them are known."""
        positions = class_positions(self.classes, y)
        two = len(self.classes) == 2
        return (2.0 * positions - 1.0 if two else positions), positions >= 0


@dataclass(frozen=True)
class LinearReader:
    """Rows clipped to their bound, with a constant feature, and encoded targets.

    Parameters
    ----------
    bounds
        Bounds on the features of a row.
    constant
        Value of the constant feature, or None.
    targets
        Encoding of the targets.
    keep
        Which rows count, from clipped features; None for all.
    """

    bounds: RowBounds
    constant: float | None
    targets: TargetRange | ClassLabels
    keep: Callable[[Array], NDArray[np.bool_]] | None = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Clipping of rows and targets, in words."""
        norm = self.bounds.x_norm
        return (
            f"rows are clipped to L2 norm {norm:g} (chosen without looking at the "
            "data)",
            *self.targets.assumptions,
        )

    def problem(self, loss: Loss, terms: StreamTerms, n_features: int) -> Problem:
        """Return the problem of a stream, without a penalty."""
        bounds, constant = self.bounds, self.constant
        if constant is not None:
            bounds = bounds.with_intercept(constant)
        n_columns = n_features + (constant is not None)
        return Problem(loss, bounds, terms.n_rows, n_columns, constant=constant)

    def read(self, X: Any, y: Any, *, first: bool) -> tuple[Array, NDArray[Any]]:
        """Return clipped rows with the constant, and targets; zeros if unusable."""
        X = dense_values(X, first=first)
        targets, usable = self.targets.encoded(y, first=first)
        usable = usable & np.isfinite(X).all(axis=1)
        # in C order, so that a norm is summed in one order whatever the table was
        X = np.ascontiguousarray(np.where(usable[:, None], X, 0.0))
        X = self.bounds.clip(X)
        kept = usable if self.keep is None else self.keep(X)
        if self.constant is not None:
            X = np.column_stack([X, np.where(usable, self.constant, 0.0)])
        # [streams:unusable] an unusable row is zero whatever its values are
        X, targets = np.ascontiguousarray(X), np.where(usable, targets, 0)
        if self.keep is None:
            return X, targets
        # [incremental:keep] row by row, so that one row only decides about itself
        return np.where(kept[:, None], X, 0.0), np.where(kept, targets, 0.0)

    def split(self, weights: Array) -> tuple[Array, Array]:
        """Return the weights of the features, and the intercepts."""
        if self.constant is None:
            return weights, np.zeros(weights.shape[1])
        return weights[:-1], weights[-1] * self.constant


def constant_feature(x_norm: float, fit_intercept: Any) -> float | None:
    """Return the value of the constant feature, or None."""
    true_or_false(fit_intercept=fit_intercept)
    return x_norm * INTERCEPT_FRACTION if fit_intercept else None


def checked_table(model: Any, X: Any, y: Any) -> NDArray[Any]:
    """Return the targets of a whole table, whose values may be rejected.

    All of it is there before the charge, so that an error leaks nothing.
    """
    targets = checked_targets(y, X.shape[0], labels=is_classifier(model))
    checked_values(X, accept_sparse=True)
    return targets


class StreamRegressor(RegressorMixin):
    """Mixin of linear regressions with a public range of targets."""

    y_range: Any
    x_norm: float
    fit_intercept: bool
    coef_: Any
    intercept_: Any

    def target_unit(self) -> tuple[float, float]:
        """Return the target that is zero internally, and the distance that is one."""
        targets = TargetRange.of(self.y_range, self.fit_intercept)
        return targets.center, targets.scale

    def _reader(self) -> LinearReader:
        bounds = RowBounds(self.x_norm)
        targets = TargetRange.of(self.y_range, self.fit_intercept)
        if targets.scale / min(bounds.x_norm, 1.0) > MAX_DERIVATIVE:
            raise ValueError(
                f"y_range is too wide for x_norm={bounds.x_norm:g}: squared residuals "
                f"would not be finite numbers, got {self.y_range!r}; rescale the "
                "targets."
            )
        constant = constant_feature(self.x_norm, self.fit_intercept)
        return LinearReader(bounds, constant, targets)

    def _table_targets(self, X: Any, y: Any) -> NDArray[Any]:
        return numeric(checked_table(self, X, y))

    def _publish(self, planned: PlannedStream, weights: Array) -> None:
        center, scale = self.target_unit()
        weights, intercepts = _linear_reader(planned).split(weights)
        self.coef_ = weights[:, 0] * scale
        self.intercept_ = float(center + intercepts[0] * scale)

    def predict(self, X: Any) -> Array:
        """Return the predicted target of each row, clipped to ``y_range``.

        Parameters
        ----------
        X
            Features, clipped to ``x_norm``.
        """
        return np.clip(_scores(self, X), *public_range(self.y_range))

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that a small budget on few rows predicts little."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.input_tags.sparse = True
        return tags


class StreamClassifier(ClassifierMixin):
    """Mixin of linear classifiers with public class labels."""

    classes: Any
    x_norm: float
    fit_intercept: bool
    coef_: Any
    intercept_: Any
    _n_steps: int

    def partial_fit(
        self: Any, X: Any, y: Any, classes: Any = None, *, ledger: Ledger | None = None
    ) -> Any:
        """Take the rows of one step and release a model.

        The first step charges the whole horizon. Rows with a missing or infinite
        value, or with a label that is not among the classes, count as absent: an error
        would leak information about them.

        Parameters
        ----------
        X
            Features, one row for each row of the step.
        y
            Labels.
        classes
            Public labels, if the estimator was not given them; at the first step, as
            in scikit-learn.
        ledger
            Ledger to charge at the first step; None creates one for this stream. Later
            steps take the same or None.
        """
        with self._exclusive_step():
            if classes is not None:
                self._remember_classes(classes)
            self._show(self._next(X, y, ledger, type(self).__name__))
        return self

    def _remember_classes(self, classes: Any) -> None:
        """Store labels given with the first step; reject others than are known."""
        given = checked_classes(classes)
        if self.classes is None and not hasattr(self, "_n_steps"):
            self._given_classes = given
        if not np.array_equal(self._public_classes(), given):
            raise ValueError(
                "classes must be those of the estimator and of the first step."
            )

    def _public_classes(self) -> NDArray[Any]:
        """Return the sorted public labels."""
        classes = self.classes
        if classes is None:
            classes = vars(self).get("_given_classes")
        if classes is None:
            raise ValueError(
                "classes must be given: the labels that can occur, set without the "
                "data."
            )
        return checked_classes(classes)

    def _reader(self) -> LinearReader:
        classes = self._public_classes()
        return LinearReader(
            RowBounds(self.x_norm, classes=tuple(classes.tolist())),
            constant_feature(self.x_norm, self.fit_intercept),
            ClassLabels(classes, seen=self.classes is None),
        )

    def _table_targets(self, X: Any, y: Any) -> NDArray[Any]:
        labels = checked_table(self, X, y)
        self.__dict__.pop("_given_classes", None)
        if self.classes is None:
            self._given_classes = labels_found(labels)
        return labels

    def _publish(self, planned: PlannedStream, weights: Array) -> None:
        if "classes_" not in vars(self) or self._n_steps == 1:
            self.classes_ = self._public_classes()
        weights, self.intercept_ = _linear_reader(planned).split(weights)
        self.coef_ = weights.T.copy()

    def decision_function(self, X: Any) -> Array:
        """Return the margins of each row: one for two classes, else one per class.

        Parameters
        ----------
        X
            Features, clipped to ``x_norm``.
        """
        scores = _scores(self, X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely label of each row.

        Parameters
        ----------
        X
            Features, clipped to ``x_norm``.
        """
        scores = self.decision_function(X)
        positions = (
            (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        )
        found: NDArray[Any] = self.classes_[positions]
        return found

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that a small budget on few rows predicts little."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = True
        return tags


def _linear_reader(planned: PlannedStream) -> LinearReader:
    assert isinstance(planned.reader, LinearReader)  # as the mixins plan it
    return planned.reader


def _scores(model: Any, X: Any) -> Array:
    """Return the margins of rows, clipped to the bound of the model."""
    check_is_fitted(model)
    X = listed(X)
    checked_shape(model, X, fitting=False, accept_sparse=True)
    X = checked_values(X, accept_sparse=True)
    found: Array = RowBounds(model.x_norm).clip(X) @ model.coef_.T + model.intercept_
    return found
