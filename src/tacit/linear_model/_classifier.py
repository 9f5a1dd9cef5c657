"""Mixin of the private classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from tacit._estimators import guaranteed_budget, labels_found, planning_rows
from tacit._validate import one_of
from tacit.convex import L1Ball, Loss
from tacit.convex._protocols import Certified, Regularizer
from tacit.data import RowBounds
from tacit.data.bounds import sorted_classes
from tacit.linear_model._erm import Setting, bounds_in_words, checked_penalty
from tacit.privacy import Neighbors
from tacit.solvers._auto import auto_norm, named_fact

__all__ = ["LABELS_FROM_ROWS", "PrivateClassifierMixin"]

Array = NDArray[np.float64]

# Radius of the L1 ball for rows bounded entry by entry, by the bound on an entry; the
# best of 1, 5 and 20 on synthetic problems with few features that matter
RADIUS = 5.0
LABELS_FROM_ROWS = "the set of labels is public (taken from y; give classes=)"


class PrivateClassifierMixin(ClassifierMixin):
    """Public classes, with one margin for two of them and one each for more."""

    epsilon: float
    delta: float | None
    x_norm: float
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

    def _setting(
        self,
        n_rows: int,
        n_features: int,
        is_sparse: bool,
        y: NDArray[Any] | None = None,
    ) -> Setting:
        classes = self._public_classes(y)
        bounds = RowBounds(
            self.x_norm,
            self._chosen_norm(n_rows, n_features, is_sparse),
            classes=tuple(classes.tolist()),
        )
        return Setting(
            loss=self._loss(len(classes)),
            bounds=bounds,
            intercept=self._intercept(bounds),
            ridge=self.ridge,
            regularizer=self._penalty(bounds),
            assumptions=(
                bounds_in_words(bounds),
                *((LABELS_FROM_ROWS,) if self.classes is None else ()),
            ),
            labels=classes,
        )

    def _chosen_norm(self, n_rows: int, n_features: int, is_sparse: bool) -> str:
        """Return the norm in which rows are bounded, from public facts."""
        norm = self.bound_norm
        one_of(("auto", "l2", "linf"), bound_norm=norm)
        if norm != "auto":
            return norm
        name = self.solver if isinstance(self.solver, str) else ""
        if named_fact(name, "row_norm") == "linf":
            return "linf"
        if self.penalty is not None or name != "auto":
            return "l2"
        budget = guaranteed_budget(self.epsilon, self.delta, self.neighbors, n_rows)
        planned = planning_rows(budget, n_rows, self.expected_rows)
        return auto_norm(planned, n_features, is_sparse, budget)

    def _penalty(self, bounds: RowBounds) -> Regularizer:
        """Return the penalty given, or an L1 ball for bounded entries."""
        name = self.solver if isinstance(self.solver, str) else ""
        in_ball = name == "auto" or named_fact(name, "ball") is L1Ball
        if self.penalty is None and bounds.norm == "linf" and in_ball:
            return L1Ball(RADIUS / bounds.x_norm)
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
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely label of each row."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels
