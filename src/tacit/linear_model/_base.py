"""Base of the private linear models: one path from rows to private weights.

`PrivateLinearModel.fit` checks shapes and targets, describes the problem, makes a plan
and hands both to `private_erm`, which charges, clips, runs and reports.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    ExplicitSeed,
    all_or_nothing,
    checked_shape,
    checked_targets,
    checked_values,
    guaranteed_budget,
    listed,
    planning_rows,
)
from tacit._execution import progress
from tacit._random import RandomSource, is_seeded, noise_generator
from tacit._release import Release, charged_run, noise_warning
from tacit._validate import at_least, true_or_false
from tacit.convex import Free, Loss, Simplex
from tacit.convex._protocols import Certified, Regularizer
from tacit.convex.foreign import given_loss
from tacit.convex.proximal import certified_names, is_certified
from tacit.data import RowBounds, bounded_rows
from tacit.data.bounds import canonical
from tacit.data.declared import TableFacts, declared_bounds
from tacit.data.features import FeatureBounds
from tacit.data.rows import is_on_disk, require_in_memory
from tacit.exceptions import NoiseWarning, PlanError
from tacit.linear_model._saved import CoefficientNoise
from tacit.mechanisms.integer_noise import MAX_INTEGER_ROWS
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, Event, Ledger, Neighbors, PrivacyReport
from tacit.solvers import Problem
from tacit.solvers._auto import chosen_solver
from tacit.solvers._base import (
    INTERCEPT_FRACTION,
    Plan,
    WeightNoise,
    result_of,
    solver_fact,
)
from tacit.solvers._drowned import noise_notes
from tacit.solvers._gradients.descent import capped_where_noisy

__all__ = [
    "FittedFacts",
    "PlannedFit",
    "PrivateLinearModel",
    "Setting",
    "bounds_in_words",
    "checked_features",
    "checked_penalty",
    "private_erm",
]

Array = NDArray[np.float64]

# Coefficients with their noise are finite up to this many targets over features
MAX_COEFFICIENT = 1e200
# A file of up to so many bytes is read for solvers that copy rows into columns
MOST_COPIED = 2**31
# Rows on disk whose values are checked together
CHECKED_ROWS = 2**14


@dataclass(frozen=True)
class Setting:
    """Learning problem of an estimator, from its parameters and public labels only.

    ``scale`` multiplies the clipped rows; the bounds are those before. ``features``
    are ranges to map to [-1, 1] first, and the bounds those after. ``labels`` are the
    classes of a classifier, and ``center`` is the target that counts as zero.
    ``is_sparse`` is that of the rows.
    """

    loss: Loss
    bounds: RowBounds
    intercept: float | None
    ridge: float
    regularizer: Regularizer
    assumptions: tuple[str, ...]
    scale: float = 1.0
    features: FeatureBounds | None = None
    labels: NDArray[Any] | None = field(default=None, compare=False, repr=False)
    center: float = 0.0
    is_sparse: bool = False

    def assuming(self, *words: str) -> Setting:
        """Return the setting with more assumptions."""
        return replace(self, assumptions=(*self.assumptions, *words))

    @property
    def row_bounds(self) -> RowBounds | FeatureBounds:
        """Bounds of the rows as they are given."""
        return self.bounds if self.features is None else self.features

    @property
    def stretch(self) -> tuple[RowBounds, float] | FeatureBounds | None:
        """What is done to rows before they are bounded for the solver."""
        if self.features is not None:
            return self.features
        return None if self.scale == 1.0 else (self.bounds, self.scale)

    @property
    def scaled_bounds(self) -> RowBounds:
        """Bounds of the rows as the solver sees them, without the constant."""
        return replace(self.bounds, x_norm=self.bounds.x_norm * self.scale)


@dataclass(frozen=True)
class PlannedFit:
    """Plan of a fit and what it spends, made before a value of the features is read.

    Parameters
    ----------
    budget
        Guarantee of the fit.
    problem
        Public facts that the plan was made from.
    solver
        Algorithm that was chosen.
    plan
        Its noise levels and steps.
    assumptions
        Assumptions of the guarantee, in words.
    """

    budget: Budget
    problem: Problem
    solver: Any
    plan: Plan
    assumptions: tuple[str, ...]

    @property
    def event(self) -> Event:
        """What the ledger is charged."""
        return self.plan.event


@dataclass(frozen=True, eq=False)
class FittedFacts:
    """Facts about the fit of a model, public or released.

    Parameters
    ----------
    setting
        What the estimator wanted.
    planned
        Plan that was run.
    noise
        How far noise moves the weights, where the solver knows.
    path
        What each update released, where the solver keeps it.
    """

    setting: Setting
    planned: PlannedFit
    noise: WeightNoise | None
    path: tuple[Any, ...] | None = None


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
    def _setting(self, table: TableFacts, y: NDArray[Any] | None = None) -> Setting:
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
            Ledger to charge; None creates one for this fit.
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
            declared = declared_bounds(X)
            X = listed(X)
            least = 2 if self._counted() else 0
            n_rows, n_features = checked_shape(
                self, X, fitting=True, least_rows=least, accept_sparse=True
            )
            y = checked_targets(y, n_rows, labels=is_classifier(self))
            table = TableFacts(n_rows, n_features, sparse.issparse(X), declared)
            setting = self._setting(table, y)
            planned = self._planned(setting, n_rows, n_features)
            drowned = noise_warning(planned.assumptions)
            if drowned is not None:
                warnings.warn(drowned, NoiseWarning, stacklevel=2)
            found = private_erm(
                self._rows(X),
                self._solver_targets(y, setting),
                setting,
                planned,
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
        return self._plan_of(TableFacts(n_rows, n_features, sparse))

    def _plan_of(self, table: TableFacts) -> PlannedFit:
        """Return the plan for a table of which these facts are public."""
        return self._planned(self._setting(table), table.n_rows, table.n_features)

    def _counted(self) -> bool:
        """Return whether the number of rows is public."""
        return Neighbors.of(self.neighbors) is Neighbors.REPLACE_ONE

    def _planned(self, setting: Setting, n_rows: int, n_features: int) -> PlannedFit:
        """Choose a solver and make its plan, from public facts."""
        # long: one public fact after another, each needed by the next
        solver, noise = self._given_solver(setting, n_features)
        budget = guaranteed_budget(self.epsilon, self.delta, self.neighbors, n_rows)
        check_noise(noise)
        bounds, intercept = setting.scaled_bounds, setting.intercept
        problem = Problem(
            loss=setting.loss,
            bounds=bounds if intercept is None else bounds.with_intercept(intercept),
            n_rows=planning_rows(budget, n_rows, self.expected_rows),
            n_features=n_features + (intercept is not None),
            ridge=setting.ridge,
            regularizer=setting.regularizer,
            constant=intercept,
            guessed_rows=self.expected_rows is not None,
        )
        # where it is private, the number of rows decides nothing
        unknown = not self._counted() and self.expected_rows is None
        capped = replace(problem, loss=capped_where_noisy(problem, budget))
        chosen = chosen_solver(solver, noise, capped, budget)
        # coordinates have clips of their own, which leave the loss as it is
        if solver_fact(chosen, "reads") != "columns":
            problem = capped
        elif unknown and problem.n_rows > MAX_INTEGER_ROWS:
            raise PlanError(
                "expected_rows must be given for neighbors='add_or_remove_one' where "
                "delta is 0 or tiny: a public guess of the rows, at most "
                f"{MAX_INTEGER_ROWS} for {type(chosen).__name__}."
            )
        plan = chosen.plan(problem, budget)
        if solver_fact(chosen, "rows_are_bounded") and n_rows > problem.n_rows:
            raise ValueError(
                "expected_rows must be at least the number of rows for "
                f"{type(chosen).__name__}, whose privacy rests on it, got "
                f"{self.expected_rows!r}."
            )
        of_plan = getattr(plan, "assumptions", ())
        notes = noise_notes(problem, budget, is_sparse=setting.is_sparse)
        assumptions = (*setting.assumptions, *of_plan, *notes)
        return PlannedFit(budget, problem, chosen, plan, assumptions)

    def _given_solver(self, setting: Setting, n_features: int) -> tuple[Any, str]:
        """Return the solver and its kind of noise, as they were given."""
        return self.solver, self.noise

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
        self.loss_ = given_loss(facts.planned.problem.loss)
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


def private_erm(
    X: Any,
    y: NDArray[Any],
    setting: Setting,
    planned: PlannedFit,
    *,
    ledger: Ledger | None,
    random_state: Any,
    verbose: int,
    label: str,
) -> tuple[NDArray[np.float64], FittedFacts, PrivacyReport]:
    """Check the budget, then the features; charge, clip, run and report."""
    if not isinstance(verbose, bool):
        at_least(0, verbose=verbose)
    if is_on_disk(X):
        X = _readable(X, planned.solver)  # before the charge
    rng = noise_generator(random_state)

    def run(X: Any) -> tuple[NDArray[np.float64], FittedFacts]:
        rows = bounded_rows(
            X, y, setting.scaled_bounds, setting.intercept, setting.stretch
        )
        with progress(bool(verbose)):
            shape = planned.problem.shape
            found = result_of(planned.solver, planned.plan, rows, rng, shape)
        facts = FittedFacts(setting, planned, found.noise, found.path)
        return found.coefficients, facts

    release = Release(
        planned.plan.event,
        planned.budget,
        label,
        planned.assumptions,
        seeded=is_seeded(random_state),
    )
    (W, facts), report = charged_run(
        release, ledger, run, check=lambda: checked_features(X)
    )
    return W, facts, report


def _readable(X: Any, solver: Any) -> Any:
    """Return rows of a file as the solver can read them, or raise."""
    needed = solver_fact(solver, "reads")
    if needed == "columns" and X.nbytes <= MOST_COPIED:
        return np.array(X)
    if needed != "blocks":
        require_in_memory(type(solver).__name__)
    return X


def checked_features(X: Any) -> Any:
    """Return features in floats, every entry of a sparse row stored once."""
    if sparse.issparse(X) and X.dtype.kind in "fiub":
        X = canonical(X, np.float64)  # entries stored twice may add up to inf
    if is_on_disk(X):
        for start in range(0, X.shape[0], CHECKED_ROWS):
            checked_values(X[start : start + CHECKED_ROWS])
        return X
    return checked_values(X, accept_sparse=True)


def checked_penalty(penalty: Any, fit_intercept: bool) -> Certified | Free:
    """Return the penalty of the problem; no penalty for None."""
    if penalty is None:
        return Free()
    if not is_certified(penalty):
        names = ", ".join(certified_names())
        raise ValueError(
            f"penalty must be None or one of {names} from tacit.convex, got "
            f"{type(penalty).__name__}."
        )
    if isinstance(penalty, Simplex) and fit_intercept:
        raise ValueError(
            "penalty=Simplex() leaves no room for an intercept; set "
            "fit_intercept=False."
        )
    return penalty


def bounds_in_words(bounds: RowBounds, origin: str) -> str:
    """Return the assumption of a report about the bound on rows."""
    size = "L2 norm" if bounds.norm == "l2" else "largest entry"
    return f"rows are clipped to {size} {bounds.x_norm:g} ({origin})"
