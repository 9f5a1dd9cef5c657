"""The one path from rows to private weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._progress import progress
from tacit._random import as_generator, is_seeded
from tacit._validate import at_least
from tacit.convex import Box, Loss, Regularizer
from tacit.data import RowBounds, bounded_rows
from tacit.mechanisms.grid import check_noise
from tacit.privacy import Budget, Ledger, Neighbors, PrivacyReport
from tacit.solvers import (
    SOLVER_NAMES,
    EntropySampling,
    Problem,
    capped_where_noisy,
    named_solver,
)

__all__ = ["planning_rows", "private_erm"]


def planning_rows(budget: Budget, n_rows: int, expected_rows: int | None) -> int:
    """Return the public number of rows that step sizes and penalties are set for."""
    if expected_rows is not None:
        at_least(1, expected_rows=expected_rows)
        return expected_rows
    if budget.neighbors is Neighbors.REPLACE_ONE:
        return n_rows
    # delta is chosen well below one over the rows: the usual choice gives them back
    return 2**31 if budget.delta == 0 else int(min(2**31, max(2, budget.delta**-0.5)))


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
) -> tuple[NDArray[np.float64], Loss, PrivacyReport]:
    """Plan, charge, clip, run, report: in this order, and nowhere else."""
    if ledger is not None and not isinstance(ledger, Ledger):
        raise TypeError(f"ledger must be a Ledger, got {type(ledger).__name__}.")
    check_noise(noise)
    if not isinstance(verbose, bool):
        at_least(0, verbose=verbose)
    problem = Problem(
        loss=loss,
        bounds=bounds if intercept is None else bounds.with_intercept(intercept),
        n_rows=planning_rows(budget, X.shape[0], expected_rows),
        n_features=X.shape[1] + (intercept is not None),
        ridge=ridge,
        regularizer=regularizer,
    )
    if isinstance(regularizer, Box) and regularizer.size is None:
        # how far its corners are is known only now
        sized = replace(regularizer, size=problem.size)
        problem = replace(problem, regularizer=sized)
    problem = replace(problem, loss=capped_where_noisy(problem, budget))
    chosen = _solver(solver, noise, problem, budget)
    plan = chosen.plan(problem, budget)
    if isinstance(chosen, EntropySampling) and X.shape[0] > problem.n_rows:
        raise ValueError(
            "expected_rows must be at least the number of rows for EntropySampling, "
            f"whose privacy rests on it, got {expected_rows!r}."
        )
    rng = as_generator(random_state)

    own = Ledger(budget) if ledger is None else ledger
    entry = own.charge(
        plan.event, label, promise=budget, seeded=is_seeded(random_state)
    )

    rows = bounded_rows(X, y, bounds, intercept)
    with progress(bool(verbose)):
        W = chosen.run(plan, rows, rng)
    report = PrivacyReport(
        promise=budget,
        spent=plan.event.curve(budget.neighbors).epsilon(budget.delta),
        entries=(entry,),
        assumptions=(
            *assumptions,
            f"planned for {problem.n_rows} rows; another number costs accuracy only",
            *getattr(plan, "assumptions", ()),
            *(() if ledger is not None else ("this fit has a ledger of its own",)),
        ),
    )
    return W, problem.loss, report


def _solver(solver: Any, noise: str, problem: Problem, budget: Budget) -> Any:
    if isinstance(solver, str):
        return named_solver(solver, problem, budget, noise)
    if not (hasattr(solver, "plan") and hasattr(solver, "run")):
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
