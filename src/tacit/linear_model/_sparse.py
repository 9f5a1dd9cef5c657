"""Base of the private sparse models."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import guaranteed_budget, planning_rows
from tacit._validate import nonnegative, positive, true_or_false
from tacit.convex import L1Ball, Loss
from tacit.convex._protocols import Regularizer
from tacit.convex.regularizers import CoordinatePenalty
from tacit.data import RowBounds
from tacit.data.declared import TableFacts
from tacit.data.features import FeatureBounds, columns_with_bounds
from tacit.linear_model._base import (
    MAX_COEFFICIENT,
    FittedFacts,
    PrivateLinearModel,
    Setting,
)
from tacit.privacy import PrivacyReport
from tacit.solvers import Problem
from tacit.solvers._auto import named_fact, solvers_by_name

__all__ = ["SelectionPath", "SparseLinearModel", "features_in_words"]

Array = NDArray[np.float64]

# Larger than any sum of derivatives: a larger penalty changes nothing
MOST_PENALTY = 1e100


@dataclass(frozen=True, eq=False)
class SelectionPath:
    """Selection path of greedy coordinate descent, in the order of its updates.

    A feature whose noisy gradient is many times the standard deviation of its noise was
    not chosen because of noise, though it need not matter: correlated features, clipped
    derivatives and an imbalanced target move gradients too. A smaller gradient may be
    noise. The fit released all of this, so it costs no budget.

    Parameters
    ----------
    features
        Index of the feature that was updated; -1 for the intercept.
    gradient
        Noisy mean of clipped derivatives of the loss, for features mapped to
        [-1, 1] and targets in units of half of ``y_range``.
    std
        Standard deviation of the noise in it.
    """

    features: NDArray[np.int64]
    gradient: Array
    std: Array

    @classmethod
    def of(cls, visits: Any, problem: Problem) -> SelectionPath:
        """Return the path of a solver that was given this problem."""
        positions, gradients, stds = (
            np.array(part) for part in zip(*visits, strict=True)
        )
        if problem.constant is not None:
            positions[positions == problem.n_features - 1] = -1
        n_rows = problem.n_rows
        return cls(positions, gradients / n_rows, stds / n_rows)

    @property
    def signal(self) -> Array:
        """Noisy gradients, each over the standard deviation of its noise."""
        return self.gradient / self.std

    def __len__(self) -> int:
        return len(self.features)


class SparseLinearModel(PrivateLinearModel):
    """A penalty in the units of the features, whose ranges are public."""

    alpha: float
    feature_bounds: Any
    l1_radius: float | None
    # where a model has no parameter for it
    l1_ratio: float = 1.0
    positive: bool = False

    @property
    def sparse_coef_(self) -> sparse.csr_array:
        """The weights as a sparse matrix with one row."""
        check_is_fitted(self)
        return sparse.csr_array(np.atleast_2d(self.coef_))

    @property
    def selected_features_(self) -> NDArray[np.int64]:
        """Indices of the features with a weight, in order."""
        check_is_fitted(self)
        return np.flatnonzero(np.atleast_2d(self.coef_)[0])

    @property
    def selected_names_(self) -> NDArray[Any]:
        """Names of the features with a weight, where columns have names."""
        positions = self.selected_features_
        if not hasattr(self, "feature_names_in_"):
            raise AttributeError(
                "selected_names_ needs names: X had none; fit a DataFrame, or use "
                "selected_features_."
            )
        names: NDArray[Any] = self.feature_names_in_[positions]
        return names

    def _target_scale(self) -> float:
        """Return the unit of targets inside; labels have none."""
        return 1.0

    def _setting_of(
        self,
        table: TableFacts,
        *,
        loss: Loss,
        **targets: Any,
    ) -> Setting:
        """Return the setting for this loss, features and targets in their units."""
        self._check_solver()
        constant = self._intercept(RowBounds(1.0, "linf"))
        features = FeatureBounds.of(
            self.feature_bounds,
            columns_with_bounds(self, table.n_features),
            # centering needs an intercept, and makes sparse rows dense
            centered=constant is not None and not table.is_sparse,
            **targets,
        )
        if table.is_sparse:
            features.require_zero()
        if self._target_scale() / features.half_width.min() > MAX_COEFFICIENT:
            raise ValueError(
                "y_range is too wide for the narrowest of feature_bounds: coefficients "
                "would not be finite numbers; rescale the targets or the features."
            )
        n_rows = table.n_rows
        budget = guaranteed_budget(self.epsilon, self.delta, self.neighbors, n_rows)
        planned = planning_rows(budget, n_rows, self.expected_rows)
        return Setting(
            loss=loss,
            bounds=RowBounds(1.0, "linf", (-1.0, 1.0), features.classes),
            intercept=constant,
            ridge=0.0,
            regularizer=self._weight_penalty(features, planned, constant is not None),
            assumptions=(features_in_words(features),),
            features=features,
        )

    def _keep(self, W: Array, facts: FittedFacts, report: PrivacyReport) -> None:
        """Set the fitted attributes, and the path that was released."""
        super()._keep(W, facts, report)
        path, problem = facts.path, facts.planned.problem
        self.path_ = None if path is None else SelectionPath.of(path, problem)

    def _check_solver(self) -> None:
        solver = self.solver
        if solver != "auto" and not named_fact(solver, "makes_zeros"):
            usable = {n: k for n, k in solvers_by_name().items() if k.makes_zeros}
            names = ", ".join(map(repr, ("auto", *usable)))
            kinds = ", ".join(kind.__name__ for kind in usable.values())
            got = repr(solver) if isinstance(solver, str) else type(solver).__name__
            raise ValueError(
                f"solver must be one of {names}, or an object of {kinds}, got {got}."
            )

    def _in_ball(self) -> bool:
        """Return whether weights are kept in a ball instead of a penalty."""
        return named_fact(self.solver, "ball") is L1Ball

    def _weight_penalty(
        self, features: FeatureBounds, n_rows: int, with_constant: bool
    ) -> Regularizer:
        """Return the penalty of weights for features in units and scaled targets."""
        nonnegative(alpha=self.alpha)
        ratio = self.l1_ratio
        real = isinstance(ratio, Real) and not isinstance(ratio, bool)
        if not real or not 0 <= ratio <= 1:
            raise ValueError(f"l1_ratio must be between 0 and 1, got {ratio!r}.")
        true_or_false(positive=self.positive)
        if self._in_ball():
            return self._ball()
        if self.l1_radius is not None:
            raise ValueError(
                "l1_radius is for solver='frank_wolfe' alone; set alpha instead, or "
                f"take that solver, got {self.l1_radius!r}."
            )
        half = features.half_width
        with np.errstate(over="ignore"):
            l1 = n_rows * (self.alpha * ratio) / half / self._target_scale()
            l2 = n_rows * (self.alpha * (1 - ratio)) / half / half
        parts = [
            np.minimum(l1, MOST_PENALTY),
            np.minimum(l2, MOST_PENALTY),
            np.full(len(half), 0.0 if self.positive else -np.inf),
            np.full(len(half), np.inf),
        ]
        if with_constant:  # not penalized, as in scikit-learn
            free = (0.0, 0.0, -np.inf, np.inf)
            parts = [np.append(*both) for both in zip(parts, free, strict=True)]
        return CoordinatePenalty(*(tuple(part.tolist()) for part in parts))

    def _ball(self) -> L1Ball:
        if self.l1_radius is None:
            raise ValueError(
                "l1_radius must be given for solver='frank_wolfe': the largest sum of "
                "absolute weights times the half-widths of their features."
            )
        positive(l1_radius=self.l1_radius)
        if self.l1_ratio < 1:
            raise ValueError(
                "l1_ratio must be 1.0 for solver='frank_wolfe', which keeps weights in "
                f"a ball and takes no penalty, got {self.l1_ratio!r}."
            )
        if self.positive:
            raise ValueError(
                "positive=True is not for solver='frank_wolfe'; use 'cd' or 'gcd'."
            )
        return L1Ball(self.l1_radius / self._target_scale())

    def _synthetic(self, n_features: int) -> dict[str, Any]:
        """Return parameters that do the same for features and targets in -1 to 1."""
        columns = columns_with_bounds(self, n_features)
        bounds = FeatureBounds.of(self.feature_bounds, columns)
        half = float(np.exp(np.mean(np.log(bounds.half_width))))  # one for all
        scale = self._target_scale()
        l1 = self.alpha * self.l1_ratio / half / scale
        l2 = self.alpha * (1 - self.l1_ratio) / half**2
        changes = {"feature_bounds": 1.0, "alpha": l1 + l2}
        if "l1_ratio" in self.get_params(deep=False) and l1 + l2 > 0:
            changes["l1_ratio"] = l1 / (l1 + l2)
        if self.l1_radius is not None:
            changes["l1_radius"] = self.l1_radius / scale
        return changes

    def _in_units(self, weights: Array, intercepts: Array) -> tuple[Array, float]:
        """Return weights (p,) and intercept in the units of features and targets."""
        features, scale = self._facts.setting.features, self._target_scale()
        assert features is not None  # every sparse model has ranges
        coef = weights[:, 0] / features.half_width * scale
        return coef, float(intercepts[0] * scale - coef @ features.center)

    def _coefficient_noise(self) -> None:
        """Return None: the noise of a weight that may be left out is not known."""
        return None


def features_in_words(features: FeatureBounds) -> str:
    """Return the assumption of a report about the ranges of features."""
    low, high = features.ends
    if len(set(features.low)) == len(set(features.high)) == 1:
        return (
            f"features are clipped to [{low[0]:g}, {high[0]:g}] "
            "(chosen without looking at the data)"
        )
    return "features are clipped to a range each (chosen without looking at the data)"
