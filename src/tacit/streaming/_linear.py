"""Linear models on streams: their methods, tables, scores and regressions."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    checked_shape,
    checked_targets,
    checked_values,
    listed,
    numeric,
)
from tacit._validate import public_range
from tacit.data import RowBounds
from tacit.data.declared import given_norm
from tacit.privacy import Budget
from tacit.streaming._model import PlannedStream, StreamLearner, StreamTerms
from tacit.streaming._reader import LinearReader, TargetRange, constant_feature

__all__ = [
    "StreamMethod",
    "StreamRegressor",
    "checked_table",
    "is_method",
    "linear_scores",
]

Array = NDArray[np.float64]

# Maximum ratio of targets to features: beyond, a noisy sum of squared residuals may be
# infinite
MAX_RESIDUAL_RATIO = 1e120


class StreamMethod(Protocol):
    """Algorithm for streams: `plan` sees public facts and a budget, no rows."""

    def plan(self, problem: Any, budget: Budget, terms: StreamTerms) -> StreamLearner:
        """Return the learner of a problem; ``problem`` is a `tacit.solvers.Problem`."""
        ...


def is_method(method: object) -> TypeGuard[StreamMethod]:
    """Return whether this is a method object, neither a name nor a class."""
    named = isinstance(method, str | type)
    return not named and callable(getattr(method, "plan", None))


def checked_table(model: Any, X: Any, y: Any) -> NDArray[Any]:
    """Return the targets of a whole table, whose values may be rejected.

    All of it is there before the charge, so that an error leaks nothing.
    """
    targets = checked_targets(y, X.shape[0], labels=is_classifier(model))
    checked_values(X, accept_sparse=True)
    return targets


def linear_scores(model: Any, X: Any) -> Array:
    """Return the margins of rows, clipped to the bound of the model."""
    check_is_fitted(model)
    X = listed(X)
    checked_shape(model, X, fitting=False, accept_sparse=True)
    X = checked_values(X, accept_sparse=True)
    found: Array = RowBounds(model.x_norm).clip(X) @ model.coef_.T + model.intercept_
    return found


class StreamRegressor(RegressorMixin):
    """Mixin of linear regressions with a public range of targets."""

    y_range: Any
    x_norm: float | None
    fit_intercept: bool
    coef_: Any
    intercept_: Any

    def target_unit(self) -> tuple[float, float]:
        """Return the target that is zero internally, and the distance that is one."""
        targets = TargetRange.of(self.y_range, self.fit_intercept)
        return targets.center, targets.scale

    def _reader(self) -> LinearReader:
        bounds = RowBounds(given_norm(self.x_norm))
        targets = TargetRange.of(self.y_range, self.fit_intercept)
        if targets.scale / min(bounds.x_norm, 1.0) > MAX_RESIDUAL_RATIO:
            raise ValueError(
                f"y_range is too wide for x_norm={bounds.x_norm:g}: squared residuals "
                f"would not be finite numbers, got {self.y_range!r}; rescale the "
                "targets."
            )
        constant = constant_feature(bounds.x_norm, self.fit_intercept)
        return LinearReader(bounds, constant, targets)

    def _table_targets(self, X: Any, y: Any) -> NDArray[Any]:
        return numeric(checked_table(self, X, y))

    def _publish(self, planned: PlannedStream, weights: Array) -> None:
        center, scale = self.target_unit()
        reader: Any = planned.reader
        weights, intercepts = reader.split(weights)
        self.coef_ = weights[:, 0] * scale
        self.intercept_ = float(center + intercepts[0] * scale)

    def predict(self, X: Any) -> Array:
        """Return the predicted target of each row, clipped to ``y_range``.

        Parameters
        ----------
        X
            Features, clipped to ``x_norm``.
        """
        return np.clip(linear_scores(self, X), *public_range(self.y_range))

    def __sklearn_tags__(self) -> Any:
        """Return tags which say that a small budget on few rows predicts little."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.input_tags.sparse = True
        return tags
