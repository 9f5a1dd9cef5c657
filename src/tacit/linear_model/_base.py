"""Base of the private linear models."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    ExplicitSeed,
    Saved,
    all_or_nothing,
    checked_shape,
    checked_targets,
    guaranteed_budget,
    listed,
)
from tacit._random import RandomSource
from tacit._validate import at_least, true_or_false
from tacit.data import RowBounds
from tacit.data.features import FeatureBounds
from tacit.linear_model._erm import (
    FittedFacts,
    PlannedFit,
    Setting,
    checked_features,
    planned_fit,
    private_erm,
)
from tacit.privacy import Ledger, Neighbors, PrivacyReport
from tacit.solvers._base import INTERCEPT_FRACTION

__all__ = [
    "NOISE_ARRAYS",
    "PATH_ARRAYS",
    "CoefficientNoise",
    "PrivateLinearModel",
    "saved_linear",
]

Array = NDArray[np.float64]

# What is saved of the noise in coefficients, and of what each update released
NOISE_ARRAYS = ("noise_coef", "noise_intercept")
PATH_ARRAYS = ("path_features", "path_gradient", "path_deviation")


@dataclass(frozen=True, eq=False)
class CoefficientNoise:
    """How much of each coefficient is noise, given the rows.

    It follows from what the fit released and from its plan, so it costs no budget. It
    measures how much another fit of the same rows would differ, not how much a fit of
    other rows would.

    Parameters
    ----------
    coef
        Standard deviations, of the shape of ``coef_``.
    intercept
        That of each intercept, of the shape of ``intercept_``; zero without one.
    how
        Where the numbers come from, and how good they are.
    law
        Distribution of the noise: ``"gaussian"``, ``"laplace"`` or ``"gamma"``.
    """

    coef: Array
    intercept: Array | float
    how: str
    law: str = "gaussian"

    def stds(self, level: float) -> float:
        """Return how many standard deviations cover ``level`` of the noise, or more."""
        if self.law == "gaussian":
            return float(ndtri((1 + level) / 2))
        if self.law == "laplace":
            return log(1 / (1 - level)) / sqrt(2)
        return 1 / sqrt(1 - level)  # Chebyshev's inequality, for any distribution


class PrivateLinearModel(ExplicitSeed, BaseEstimator):
    """Base of linear models: fit, plan and margins of clipped rows.

    An estimator describes its problem in ``_setting``, from public facts and the labels
    alone. ``_solver_targets`` gives the targets of that problem, and ``_shaped`` brings
    coefficients back into the units of rows and targets.
    """

    epsilon: float
    delta: float | None
    fit_intercept: bool
    solver: Any
    neighbors: str | Neighbors
    expected_rows: int | None
    noise: str
    random_state: RandomSource
    verbose: int
    n_features_in_: int
    coef_: Array
    intercept_: Any
    loss_: Any
    bounds_: RowBounds | FeatureBounds
    privacy_: PrivacyReport
    _facts: FittedFacts

    @abstractmethod
    def _setting(
        self,
        n_rows: int,
        n_features: int,
        is_sparse: bool,
        y: NDArray[Any] | None = None,
    ) -> Setting:
        """Return the problem of a fit, from parameters and labels."""

    @abstractmethod
    def _solver_targets(self, y: NDArray[Any], setting: Setting) -> NDArray[Any]:
        """Return the targets of the problem."""

    @abstractmethod
    def _shaped(self, weights: Array, intercepts: Array) -> tuple[Array, Any]:
        """Return weights and intercepts in the form and units of the attributes."""

    def fit(
        self, X: Any, y: Any, *, ledger: Ledger | None = None, **options: Any
    ) -> Self:
        """Fit the model, charging the ledger first.

        Parameters
        ----------
        X
            Features, dense or CSR, one row a person.
        y
            Labels or targets.
        ledger
            Account of the data set to charge; None opens one for this fit alone.
        **options
            Rejected; rows cannot have weights.
        """
        for name in options:
            weights = "; rows cannot have weights" if name == "sample_weight" else ""
            raise TypeError(
                f"{type(self).__name__}.fit() got an unexpected keyword argument "
                f"{name!r}{weights}."
            )
        with all_or_nothing(self):
            X = listed(X)
            least = 2 if self._counted() else 0
            n_rows, n_features = checked_shape(
                self, X, fitting=True, least_rows=least, accept_sparse=True
            )
            y = checked_targets(y, n_rows, labels=is_classifier(self))
            setting = self._setting(n_rows, n_features, sparse.issparse(X), y)
            found = private_erm(
                self._rows(X),
                self._solver_targets(y, setting),
                setting,
                self._planned(setting, n_rows, n_features),
                ledger=ledger,
                random_state=self.random_state,
                verbose=self.verbose,
                label=type(self).__name__,
            )
            self._keep(*found)
        return self

    def plan(self, n_rows: int, n_features: int, *, sparse: bool = False) -> PlannedFit:
        """Return what `fit` will do and spend on rows of this shape; reads no row.

        Parameters
        ----------
        n_rows
            Number of rows, which is public or a guess.
        n_features
            Number of columns.
        sparse
            Whether rows will come as a sparse matrix.
        """
        at_least(1, n_features=n_features)
        at_least(2 if self._counted() else 0, n_rows=n_rows)
        n_rows, n_features = int(n_rows), int(n_features)
        return self._planned(
            self._setting(n_rows, n_features, sparse), n_rows, n_features
        )

    def _counted(self) -> bool:
        """Return whether the number of rows is public."""
        return Neighbors.of(self.neighbors) is Neighbors.REPLACE_ONE

    def _planned(self, setting: Setting, n_rows: int, n_features: int) -> PlannedFit:
        return planned_fit(
            setting,
            n_rows,
            n_features,
            solver=self.solver,
            noise=self.noise,
            budget=guaranteed_budget(self.epsilon, self.delta, self.neighbors, n_rows),
            expected_rows=self.expected_rows,
        )

    def _intercept(self, bounds: RowBounds) -> float | None:
        """Return the value of the constant feature, or None."""
        true_or_false(fit_intercept=self.fit_intercept)
        if not self.fit_intercept:
            return None
        # entry by entry, a constant as large as the bound costs nothing
        return bounds.x_norm * (INTERCEPT_FRACTION if bounds.norm == "l2" else 1.0)

    def _rows(self, X: Any) -> Any:
        """Return the rows as the solver takes them."""
        return X

    def _keep(self, W: Array, facts: FittedFacts, report: PrivacyReport) -> None:
        """Set the fitted attributes, in the units of the rows and the targets."""
        setting = facts.setting
        self._facts, self.privacy_ = facts, report
        self.loss_ = facts.planned.problem.loss
        self.bounds_ = setting.row_bounds
        self.coef_, intercept = self._shaped(*self._parts(W))
        if setting.labels is None:
            self.intercept_ = float(setting.center + intercept)
        else:
            self.classes_, self.intercept_ = setting.labels, intercept
        self.noise_ = self._coefficient_noise()

    def _parts(self, W: Array) -> tuple[Array, Array]:
        """Return the weights of the features and the intercepts, from all weights."""
        constant = self._facts.setting.intercept
        if constant is None:
            return W, np.zeros(W.shape[1])
        return W[:-1], W[-1] * constant

    def _coefficient_noise(self) -> CoefficientNoise | None:
        """Return the noise of the coefficients, where the solver knows it."""
        noise = self._facts.noise
        if noise is None:
            return None
        coef, intercept = self._shaped(*self._parts(noise.std))
        return CoefficientNoise(coef, intercept, noise.how, noise.law)

    def _synthetic(self, n_features: int) -> dict[str, Any]:
        """Return what to change for features and targets from -1 to 1: nothing."""
        return {}

    def _scores(self, X: Any) -> Array:
        """Return the margins of rows within the bounds."""
        check_is_fitted(self)
        X = listed(X)
        checked_shape(self, X, fitting=False, accept_sparse=True)
        X = checked_features(X)
        margins: Array = self.bounds_.clip(X) @ self.coef_.T + self.intercept_
        return margins

    def __sklearn_tags__(self) -> Tags:
        """Return the tags, which accept sparse rows."""
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def saved_linear(
    *losses: type, classes: bool = False, ranges: bool = False, selected: bool = False
) -> Saved:
    """Return what is kept of a linear model that minimizes one of these losses.

    ``ranges`` are those of models whose features have one each, and ``selected`` says
    that they select their columns first.
    """
    fitted: tuple[str, ...] = ("bounds", "loss", "noise")
    fitted += ("classes",) * classes + ("selection",) * selected
    arrays: tuple[str, ...] = ("coef", "intercept")
    if not (ranges or selected):
        optional: tuple[str, ...] = NOISE_ARRAYS
    else:
        arrays += ("low", "high")
        optional = PATH_ARRAYS if ranges else ()
    return Saved("linear", fitted, arrays, optional, losses or None)
