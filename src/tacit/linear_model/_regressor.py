"""Mixin of the private regressors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from tacit._estimators import numeric
from tacit._validate import one_of, public_range, target_unit
from tacit.convex import Loss, Squared
from tacit.convex._protocols import Certified, is_set
from tacit.data import RowBounds
from tacit.data.declared import TableFacts
from tacit.linear_model._base import (
    MAX_COEFFICIENT,
    Setting,
    bounds_in_words,
    checked_penalty,
)
from tacit.solvers._auto import named_fact

__all__ = ["PrivateRegressorMixin"]

Array = NDArray[np.float64]


class PrivateRegressorMixin(RegressorMixin):
    """Targets in a public range, scaled to [-1, 1] for the fit."""

    delta: float | None
    x_norm: float | None
    bound_norm: str
    y_range: tuple[float, float] | None
    penalty: Certified | None
    fit_intercept: bool
    solver: Any
    _intercept: Callable[[RowBounds], float | None]
    _scores: Callable[[Any], Array]
    _loss: Callable[[float, float, float], Loss]
    _ridge: Callable[[], float]

    def _solver_targets(self, y: NDArray[Any], setting: Setting) -> NDArray[Any]:
        """Return targets clipped to the range, in the unit of the fit."""
        low, high = public_range(self.y_range)
        center, scale = self.target_unit()
        moved = (np.clip(numeric(y), low, high) - center) / scale
        return setting.bounds.clip_target(moved)

    def _shaped(self, weights: Array, intercepts: Array) -> tuple[Array, Any]:
        """Return weights and intercept in the unit of the targets."""
        _, scale = self.target_unit()
        return weights[:, 0] * scale, float(intercepts[0] * scale)

    def _bound_norm(self) -> str:
        one_of(("l2", "linf"), bound_norm=self.bound_norm)
        return self.bound_norm

    def target_unit(self) -> tuple[float, float]:
        """Return the center and the scale that map targets to [-1, 1]."""
        return target_unit(self.y_range, self.fit_intercept)

    def _setting(self, table: TableFacts, y: NDArray[Any] | None = None) -> Setting:
        if y is not None:
            numeric(y)  # before the plan: an invalid y is the simpler error
        low, high = public_range(self.y_range)
        norm = self._bound_norm()
        bounds = RowBounds(table.x_norm(self.x_norm, norm), norm, (-1.0, 1.0))
        intercept = self._intercept(bounds)
        center, scale = self.target_unit()
        if scale / min(bounds.x_norm, 1.0) > MAX_COEFFICIENT:
            raise ValueError(
                f"y_range is too wide for x_norm={bounds.x_norm:g}: coefficients would "
                f"not be finite numbers, got {self.y_range!r}; rescale the targets."
            )
        penalty = checked_penalty(self.penalty, self.fit_intercept)
        loss = self._loss(low, high, scale)
        bounded = is_set(penalty) or named_fact(self.solver, "brings_set")
        # a subclass may have bounded derivatives
        if type(loss) is Squared and self.delta == 0 and not bounded:
            raise ValueError(
                "delta=0.0 needs weights in a set, such as penalty=L2Ball(radius) with "
                "a radius in units of the targets, or HuberRegressor; or give a delta."
            )
        return Setting(
            loss=loss,
            bounds=bounds,
            intercept=intercept,
            ridge=self._ridge(),
            regularizer=penalty.rescaled(scale),
            assumptions=(
                bounds_in_words(bounds, table.origin(self.x_norm)),
                f"targets are clipped to [{low:g}, {high:g}]",
            ),
            center=center,
            is_sparse=table.is_sparse,
        )

    def predict(self, X: Any) -> Array:
        """Return the predicted target of each row, clipped to ``y_range``.

        Rows are clipped to ``x_norm``.
        """
        return np.clip(self._scores(X), *public_range(self.y_range))

    def __sklearn_tags__(self) -> Tags:
        """Return the tags; on few rows a small budget predicts little."""
        tags: Tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
