"""The one path from rows to private weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._estimators import checked_values, open_account, report_of
from tacit._progress import progress
from tacit._random import as_generator, is_seeded
from tacit._validate import at_least
from tacit.convex import Loss, Regularizer
from tacit.data import RowBounds, bounded_rows
from tacit.data.bounds import canonical
from tacit.mechanisms.grid import check_noise
from tacit.privacy import Budget, Ledger, Neighbors, PrivacyReport
from tacit.solvers import (
    SOLVER_NAMES,
    EntropySampling,
    Problem,
    capped_where_noisy,
    named_solver,
)

__all__ = ["checked_features", "planning_rows", "private_erm"]


# Rows that anyone plans for: more do not fit in memory
MOST_EXPECTED = 2**31


def planning_rows(budget: Budget, n_rows: int, expected_rows: int | None) -> int:
    """Return the public number of rows that step sizes and penalties are set for."""
    if expected_rows is not None:
        at_least(1, expected_rows=expected_rows)
        if expected_rows > MOST_EXPECTED:
            raise ValueError(
                f"expected_rows must be at most 2**31, got {expected_rows!r}."
            )
        return int(expected_rows)
    if budget.neighbors is Neighbors.REPLACE_ONE:
        return n_rows
    # delta is chosen well below one over the rows: the usual choice gives them back
    if budget.delta == 0:
        return MOST_EXPECTED
    return int(min(MOST_EXPECTED, max(2, budget.delta**-0.5)))


def private_erm(
    X: Any,
    y: NDArray[Any],
    *,
    loss: Loss,
    bounds: RowBounds,
    intercept: float | None,
    ridge: float,
    regularizer: Regularizer,
    solver: Any,
    noise: str,
    budget: Budget,
    ledger: Ledger | None,
    expected_rows: int | None,
    random_state: Any,
    verbose: int,
    label: str,
    assumptions: tuple[str, ...],
    scale: float = 1.0,
) -> tuple[NDArray[np.float64], Loss, PrivacyReport]:
    """Plan, refuse an overspend, check the values, charge, clip, run, report.

    ``scale`` multiplies the clipped rows; the bounds are those before.
    """
    check_noise(noise)
    if not isinstance(verbose, bool):
        at_least(0, verbose=verbose)
    scaled = replace(bounds, x_norm=bounds.x_norm * scale)
    problem = Problem(
        loss=loss,
        bounds=scaled if intercept is None else scaled.with_intercept(intercept),
        n_rows=planning_rows(budget, X.shape[0], expected_rows),
        n_features=X.shape[1] + (intercept is not None),
        ridge=ridge,
        regularizer=regularizer,
    )
    problem = replace(problem, loss=capped_where_noisy(problem, budget))
    chosen = _solver(solver, noise, problem, budget)
    plan = chosen.plan(problem, budget)
    if isinstance(chosen, EntropySampling) and X.shape[0] > problem.n_rows:
        raise ValueError(
            "expected_rows must be at least the number of rows for EntropySampling, "
            f"whose privacy rests on it, got {expected_rows!r}."
        )
    rng = as_generator(random_state)

    told = (*assumptions, *getattr(plan, "assumptions", ()))
    account = open_account(ledger, budget, plan.event, label)
    X = checked_features(X)
    entry = account.charge(
        plan.event, label, promise=budget, seeded=is_seeded(random_state)
    )

    if scale != 1.0:
        X = bounds.clip(X) * scale
    rows = bounded_rows(X, y, scaled, intercept)
    with progress(bool(verbose)):
        W = chosen.run(plan, rows, rng)
    return W, problem.loss, report_of(entry, budget, ledger, told)


def checked_features(X: Any) -> Any:
    """Return features in floats, every entry of a sparse row stored once."""
    if sparse.issparse(X) and X.dtype.kind in "fiub":
        X = canonical(X.astype(np.float64))  # entries stored twice may add up to inf
    return checked_values(X, accept_sparse=True)


def _solver(solver: Any, noise: str, problem: Problem, budget: Budget) -> Any:
    if isinstance(solver, str):
        return named_solver(solver, problem, budget, noise)
    usable = hasattr(solver, "plan") and hasattr(solver, "run")
    if isinstance(solver, type) or not usable:
        names = ", ".join(repr(name) for name in SOLVER_NAMES)
        raise ValueError(
            f"solver must be one of {names}, or an object with plan and run, got "
            f"{type(solver).__name__}."
        )
    if noise != "grid":
        raise ValueError(
            f"noise={noise!r} is for solvers given by name; set it on the solver."
        )
    return solver
