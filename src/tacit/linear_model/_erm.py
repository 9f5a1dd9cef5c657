"""The one path from rows to private weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._estimators import (
    checked_values,
    planning_rows,
)
from tacit._execution import progress
from tacit._random import is_seeded, noise_generator
from tacit._release import Release, charged_run
from tacit._validate import at_least
from tacit.convex import Free, Loss, Simplex
from tacit.convex._protocols import Certified, Regularizer
from tacit.convex.proximal import certified_names, is_certified
from tacit.data import RowBounds, bounded_rows
from tacit.data.bounds import canonical
from tacit.data.features import FeatureBounds
from tacit.data.rows import is_on_disk, require_in_memory
from tacit.exceptions import PlanError
from tacit.mechanisms.integer_noise import MAX_INTEGER_ROWS
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, Event, Ledger, Neighbors, PrivacyReport
from tacit.solvers import Problem
from tacit.solvers._auto import named_solver, solver_names
from tacit.solvers._base import Plan, WeightNoise, result_of, solver_fact
from tacit.solvers._gradients.descent import capped_where_noisy

__all__ = [
    "FittedFacts",
    "PlannedFit",
    "Setting",
    "bounds_in_words",
    "checked_features",
    "checked_penalty",
    "chosen_solver",
    "planned_fit",
    "private_erm",
]


# A file of up to so many bytes is read for solvers that copy rows into columns
MOST_COPIED = 2**31
# Rows on disk whose values are checked together
CHECKED_ROWS = 2**14


@dataclass(frozen=True)
class Setting:
    """What an estimator wants, from its parameters and the public labels alone.

    ``scale`` multiplies the clipped rows; the bounds are those before. ``features``
    are ranges to map to [-1, 1] first, and the bounds those after. ``labels`` are the
    classes of a classifier, and ``center`` is the target that counts as zero.
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
    """Plan of a fit and what it spends, made before any row is read.

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
    """How the weights of a fitted model were computed; public or released.

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


def planned_fit(
    setting: Setting,
    n_rows: int,
    n_features: int,
    *,
    solver: Any,
    noise: str,
    budget: Budget,
    expected_rows: int | None,
) -> PlannedFit:
    """Choose a solver and make its plan, from public facts alone."""
    # long: one public fact after another, each needed by the next
    check_noise(noise)
    bounds, intercept = setting.scaled_bounds, setting.intercept
    problem = Problem(
        loss=setting.loss,
        bounds=bounds if intercept is None else bounds.with_intercept(intercept),
        n_rows=planning_rows(budget, n_rows, expected_rows),
        n_features=n_features + (intercept is not None),
        ridge=setting.ridge,
        regularizer=setting.regularizer,
        constant=intercept,
        guessed_rows=expected_rows is not None,
    )
    # where it is private, the number of rows decides nothing
    counted = budget.neighbors is Neighbors.REPLACE_ONE
    capped = replace(problem, loss=capped_where_noisy(problem, budget))
    chosen = chosen_solver(solver, noise, capped, budget)
    # coordinates have clips of their own, which leave the loss as it is
    if solver_fact(chosen, "reads") != "columns":
        problem = capped
    elif not counted and expected_rows is None and problem.n_rows > MAX_INTEGER_ROWS:
        raise PlanError(
            "expected_rows must be given for neighbors='add_or_remove_one' where delta "
            f"is 0 or tiny: a public guess of the rows, at most {MAX_INTEGER_ROWS} for "
            f"{type(chosen).__name__}."
        )
    plan = chosen.plan(problem, budget)
    if solver_fact(chosen, "rows_are_bounded") and n_rows > problem.n_rows:
        raise ValueError(
            "expected_rows must be at least the number of rows for "
            f"{type(chosen).__name__}, whose privacy rests on it, got "
            f"{expected_rows!r}."
        )
    assumptions = (*setting.assumptions, *getattr(plan, "assumptions", ()))
    return PlannedFit(budget, problem, chosen, plan, assumptions)


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
    """Check the budget, then the values; charge, clip, run and report."""
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
            found = result_of(planned.solver, planned.plan, rows, rng)
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
        X = canonical(X.astype(np.float64))  # entries stored twice may add up to inf
    if is_on_disk(X):
        for start in range(0, X.shape[0], CHECKED_ROWS):
            checked_values(X[start : start + CHECKED_ROWS])
        return X
    return checked_values(X, accept_sparse=True)


def chosen_solver(solver: Any, noise: str, problem: Problem, budget: Budget) -> Any:
    """Return the solver of this name, or the object itself."""
    if isinstance(solver, str):
        return named_solver(solver, problem, budget, noise)
    usable = hasattr(solver, "plan") and hasattr(solver, "run")
    if isinstance(solver, type) or not usable:
        names = ", ".join(repr(name) for name in solver_names())
        raise ValueError(
            f"solver must be one of {names}, or an object with plan and run, got "
            f"{type(solver).__name__}."
        )
    if noise != "grid":
        raise ValueError(
            f"noise={noise!r} is for solvers given by name; set it on the solver."
        )
    return solver


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


def bounds_in_words(bounds: RowBounds) -> str:
    """Return the assumption of a report about the bound on rows."""
    size = "norm" if bounds.norm == "l2" else "largest entry"
    return f"rows are shortened to {size} {bounds.x_norm:g}, set without the data"
