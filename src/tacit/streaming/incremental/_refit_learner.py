"""Learner that keeps its rows and is fitted again at steps fixed in advance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from tacit._execution import attempt
from tacit._state import kept
from tacit._validate import public_range
from tacit.convex._protocols import is_set
from tacit.convex.foreign import given_loss
from tacit.data.bounds import class_positions
from tacit.data.declared import TableFacts
from tacit.data.features import FeatureBounds
from tacit.mechanisms import NO_ANSWER
from tacit.privacy import Budget, Event, Ledger, Neighbors
from tacit.streaming._reader import dense_values, float_targets
from tacit.streaming.incremental._refit_plan import Refit

__all__ = [
    "RefitLearner",
    "RefitReader",
    "RefitState",
    "described",
    "fit_parameters",
    "prepared_estimator",
]

Array = NDArray[np.float64]

# Parameters of an estimator that a stream sets for each fit
SET_HERE = ("epsilon", "delta", "neighbors", "expected_rows", "random_state", "verbose")
# Code of a row that cannot be used, instead of that of its class
NO_LABEL = -1


@kept
@dataclass(frozen=True, eq=False)
class RefitState:
    """All rows so far, and the weights released last.

    Rows are kept in blocks of falling size, so that appending copies few of them.
    """

    n_steps: int
    weights: Array
    _private_X: tuple[Array, ...] = field(repr=False)
    _private_y: tuple[NDArray[Any], ...] = field(repr=False)


class _RefitLedger(Ledger):
    """Ledger that only accepts the planned event of one fit, charged already."""

    def __init__(self, refit: Refit) -> None:
        super().__init__(refit.budget)
        self._planned = refit.event

    def _checked(self, event: Event, guarantee: Budget | None) -> Any:
        # [incremental-erm:planned] anything else was not charged
        if event != self._planned:
            raise RuntimeError("The event of the fit is not the one of its plan.")
        return super()._checked(event, guarantee)


@dataclass(frozen=True)
class RefitReader:
    """Rows as fits take them, with zeros or no row instead of unusable ones.

    Parameters
    ----------
    unusable
        Target of an unusable row.
    drop
        Whether unusable rows are left out.
    classes
        Public labels of a classifier, whose codes are targets; None for regression.
    """

    unusable: float
    drop: bool
    classes: NDArray[Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, estimator: Any, neighbors: Neighbors) -> RefitReader:
        """Return the reader of an estimator."""
        labels = estimator._public_classes() if is_classifier(estimator) else None
        drop = neighbors is not Neighbors.REPLACE_ONE
        return cls(unusable_target(estimator), drop, labels)

    def read(self, X: Any, y: Any, *, first: bool) -> tuple[Array, NDArray[Any]]:
        """Return features, and targets or codes of labels."""
        X = dense_values(X, first=first)
        targets: NDArray[Any]
        if self.classes is not None:
            targets = class_positions(self.classes, y)
            usable = targets != NO_LABEL
        else:
            targets = float_targets(y, first=first)
            usable = np.isfinite(targets)
        usable = usable & np.isfinite(X).all(axis=1)
        if self.drop:
            # [incremental-erm:left-out] one row of the stream is one row less
            return np.ascontiguousarray(X[usable]), targets[usable]
        # [incremental-erm:unusable] an unusable row is the same whatever its values are
        X = np.where(usable[:, None], X, 0.0)
        return X, np.where(usable, targets, self.unusable)


@dataclass(frozen=True)
class RefitLearner:
    """Learner that is fitted again to all rows so far, at steps fixed in advance.

    Parameters
    ----------
    described
        Parameters of the estimator, as a string.
    n_features
        Number of columns.
    refits
        Steps and budgets of the fits.
    event
        Composition of all of them.
    assumptions
        Assumptions of the guarantee, in words.
    unusable
        Target of an unusable row.
    estimator
        Estimator as all fits have it, except for their budgets.

    Notes
    -----
    **Guarantee.** Each fit is private by the theorem of its solver with an event that
    was fixed before the first row, and the charge is their composition
    (Kasiviswanathan, Nissim and Jin 2017, Theorem 3.1).
    """

    described: str
    n_features: int
    refits: tuple[Refit, ...]
    event: Event
    assumptions: tuple[str, ...]
    unusable: float
    estimator: Any = field(repr=False, compare=False)

    def init(self) -> RefitState:
        """Return the state before any row, with weights that depend on none."""
        return RefitState(0, self._start(), (), ())

    def step(
        self, state: RefitState, X: Array, y: NDArray[Any], rng: Generator
    ) -> RefitState:
        """Add the rows, and fit if a fit is due."""
        blocks_X, blocks_y = _with(state._private_X, X), _with(state._private_y, y)
        n_steps, weights = state.n_steps + 1, state.weights
        due = next((refit for refit in self.refits if refit.step == n_steps), None)
        if due is not None:
            weights = self._fitted(
                due, np.concatenate(blocks_X), np.concatenate(blocks_y), rng
            )
        return RefitState(n_steps, weights, blocks_X, blocks_y)

    def weights(self, state: RefitState) -> Array:
        """Return coefficients above intercepts, as the estimator shows them."""
        return state.weights

    def last_refit(self, n_steps: int) -> Refit | None:
        """Return the last fit within so many steps, if there was one."""
        past = [refit for refit in self.refits if refit.step <= n_steps]
        return past[-1] if past else None

    def shown(self, weights: Array, n_steps: int, guarantee: Budget) -> Any:
        """Return the estimator with these weights, as if it had been fitted to them."""
        refit = self.last_refit(n_steps) or self.refits[0]
        model = clone(self.estimator)
        # planned for the budget of the fit, and shown with that of the stream
        model.set_params(**fit_parameters(refit.budget, refit.n_rows))
        model.n_features_in_ = self.n_features
        shape = max(refit.n_rows, 2), self.n_features
        model.loss_ = given_loss(model.plan(*shape).problem.loss)
        model.bounds_ = model._setting(TableFacts(*shape)).row_bounds
        model.set_params(**fit_parameters(guarantee, refit.n_rows))
        coef, intercept = weights[:-1].T.copy(), weights[-1].copy()
        if is_classifier(model):
            model.classes_ = model._public_classes()
            model.coef_, model.intercept_ = coef, intercept
        else:
            model.coef_, model.intercept_ = coef[0], float(intercept[0])
        model.noise_ = None
        if hasattr(model, "feature_bounds"):
            model.path_ = None
        if hasattr(model, "n_features_to_select"):
            chosen = np.flatnonzero(model.coef_)
            model.selection_ = tuple(map(int, chosen)) if len(chosen) else NO_ANSWER
        return model

    def _start(self) -> Array:
        """Return the weights nearest to zero, in the units of the estimator."""
        refit, model = self.refits[0], self.estimator
        fit = clone(model).set_params(**fit_parameters(refit.budget, refit.n_rows))
        problem = fit.plan(max(refit.n_rows, 2), self.n_features).problem
        W = np.zeros(problem.shape)
        if is_set(problem.regularizer):
            W = problem.regularizer.prox(W, 1.0)
        intercepts = np.zeros(W.shape[1])
        if problem.constant is not None:
            W, intercepts = W[:-1], W[-1] * problem.constant
        center, scale = 0.0, getattr(model, "radius", 1.0)
        if hasattr(model, "target_unit"):
            center, scale = model.target_unit()
        return np.vstack([W * scale, center + intercepts * scale])

    def _fitted(self, refit: Refit, X: Array, y: NDArray[Any], rng: Generator) -> Array:
        """Return the weights of one fit; an error does not quote its cause."""
        model = clone(self.estimator)
        model.set_params(**fit_parameters(refit.budget, refit.n_rows), random_state=rng)
        if Neighbors.of(model.neighbors) is Neighbors.REPLACE_ONE:
            X, y = self._at_least_two(X, y)
        if is_classifier(model):
            n_classes = len(model._public_classes())
            # an unusable row has zeros, and a label by its index
            y = np.where(y == NO_LABEL, np.arange(len(y)) % n_classes, y)
            model.set_params(classes=range(n_classes))
        done = attempt(model.fit, X, y, ledger=_RefitLedger(refit))
        if done is None:
            raise RuntimeError(
                "A fit on the rows so far failed; the step was not taken, and the last "
                "model remains."
            )
        return np.vstack(
            [np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)]
        )

    def _at_least_two(self, X: Array, y: NDArray[Any]) -> tuple[Array, NDArray[Any]]:
        """Return rows padded with unusable ones to two, the minimum of a fit."""
        missing = max(0, 2 - len(y))
        X = np.vstack([X, np.zeros((missing, X.shape[1]))])
        return X, np.append(y, [self.unusable] * missing).astype(y.dtype)


def _with(blocks: tuple[Any, ...], block: Any) -> tuple[Any, ...]:
    """Return the blocks and one more, to which those no larger than it are joined."""
    while blocks and len(blocks[-1]) <= len(block):
        blocks, block = blocks[:-1], np.concatenate([blocks[-1], block])
    return (*blocks, block)


def fit_parameters(budget: Budget, n_rows: int) -> dict[str, Any]:
    """Return the parameters of a fit with this budget, planned for so many rows."""
    return {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "neighbors": budget.neighbors,
        "expected_rows": n_rows,
    }


def prepared_estimator(estimator: Any, neighbors: Neighbors, names: Any) -> Any:
    """Return the estimator as all fits have it, except for their budgets, or reject it.

    Parameters
    ----------
    estimator
        Estimator of `tacit.linear_model`.
    neighbors
        Neighbor relation of the stream.
    names
        Names of the columns, or None.
    """
    known: set[str] = set()
    if hasattr(estimator, "get_params") and not isinstance(estimator, type):
        known = set(estimator.get_params(deep=False))
    if not (set(SET_HERE) <= known and hasattr(estimator, "plan")):
        kind = estimator if isinstance(estimator, type) else type(estimator)
        raise ValueError(
            "estimator must be an object of a class of tacit.linear_model, got "
            f"{kind.__name__}."
        )
    if is_classifier(estimator) and estimator.classes is None:
        raise ValueError(
            "classes of the estimator must be given: the labels that can occur, set "
            "without the data."
        )
    changes: dict[str, Any] = {
        "neighbors": neighbors,
        "random_state": None,
        "verbose": 0,
    }
    bounds = getattr(estimator, "feature_bounds", None)
    if isinstance(bounds, Mapping):
        # fits take arrays without column names
        columns = list(bounds if names is None else names)
        changes["feature_bounds"] = np.column_stack(
            FeatureBounds.of(bounds, columns).ends
        )
    return clone(estimator).set_params(**changes)


def described(estimator: Any) -> str:
    """Return all parameters as a string, with arrays in full."""
    with np.printoptions(threshold=2**62, precision=17):
        given = sorted(estimator.get_params(deep=True).items())
        return f"{type(estimator).__name__}({given!r})"


def unusable_target(estimator: Any) -> float:
    """Return the target of an unusable row."""
    if is_classifier(estimator):
        return NO_LABEL
    if hasattr(estimator, "target_unit"):
        return float(estimator.target_unit()[0])
    low, high = public_range(estimator.y_range)
    return min(max(0.0, low), high)
