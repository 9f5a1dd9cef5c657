"""The one path from rows to a private model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from tacit._random import as_generator, is_seeded
from tacit._validate import at_least
from tacit.convex import Loss
from tacit.data import RowBounds, bounded_rows
from tacit.data.bounds import canonical
from tacit.mechanisms.grid import check_noise
from tacit.privacy import Budget, Ledger, Neighbors, PrivacyReport
from tacit.solvers import (
    AMP,
    NoisyGD,
    Problem,
    auto_solver,
    capped_where_noisy,
)

__all__ = ["planning_rows", "private_erm", "promised_budget"]

SOLVERS = {
    "amp": AMP,
    "noisy_gd": NoisyGD,
}


def validated(estimator: Any, X: Any, y: Any = "no_validation") -> Any:
    """Return features, and targets when given, as scikit-learn checks them.

    What scikit-learn says of flat, complex or text input quotes the input, so those
    are refused here, in words that do not.
    """
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    if len(shape) == 1:
        raise ValueError(
            "X must have 2 dimensions, got 1. Reshape your data to one row a person."
        )
    if getattr(getattr(X, "dtype", None), "kind", None) == "c":
        raise ValueError("Complex data not supported: X must hold real numbers.")
    fitting = not isinstance(y, str)
    if sparse.issparse(X) and X.dtype.kind in "fiub":
        X = canonical(X.astype(np.float64))  # entries stored twice may add up to inf
    try:
        return validate_data(
            estimator,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if fitting else 1,
            reset=fitting,
        )
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
    raise ValueError("X must hold numbers only; encode text before the fit.")


def promised_budget(
    epsilon: float, delta: float | None, neighbors: str | Neighbors, n_rows: int
) -> Budget:
    """Return the budget, with delta 1/n^2 by default where the row count is public."""
    relation = Neighbors.of(neighbors)
    if delta is None:
        if relation is not Neighbors.REPLACE_ONE:
            raise ValueError(
                "delta must be given when neighbors='add_or_remove_one', where the "
                "number of rows is private; 1 / (rows you expect)^2 is usual."
            )
        delta = 1 / n_rows**2
    return Budget(epsilon, delta, relation)


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
    solver: Any,
    noise: str,
    budget: Budget,
    ledger: Ledger | None,
    expected_rows: int | None,
    random_state: Any,
    label: str,
    assumptions: tuple[str, ...],
) -> tuple[NDArray[np.float64], Loss, PrivacyReport]:
    """Plan, charge, clip, run, report: in this order, and nowhere else."""
    if ledger is not None and not isinstance(ledger, Ledger):
        raise TypeError(f"ledger must be a Ledger, got {type(ledger).__name__}.")
    check_noise(noise)
    problem = Problem(
        loss=loss,
        bounds=bounds if intercept is None else bounds.with_intercept(intercept),
        n_rows=planning_rows(budget, X.shape[0], expected_rows),
        n_features=X.shape[1] + (intercept is not None),
        ridge=ridge,
    )
    problem = replace(problem, loss=capped_where_noisy(problem, budget))
    chosen = _solver(solver, noise, problem, budget)
    plan = chosen.plan(problem, budget)
    rng = as_generator(random_state)

    own = Ledger(budget) if ledger is None else ledger
    entry = own.charge(
        plan.event, label, promise=budget, seeded=is_seeded(random_state)
    )

    W = chosen.run(plan, bounded_rows(X, y, bounds, intercept), rng)
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
    if not isinstance(solver, str):
        if not (hasattr(solver, "plan") and hasattr(solver, "run")):
            raise ValueError(
                "solver must be 'auto', a solver's name or an object with plan and "
                f"run, got {type(solver).__name__}."
            )
        if noise != "grid":
            raise ValueError(
                f"noise={noise!r} is for solvers given by name; set it on the solver."
            )
        return solver
    if solver == "auto":
        return auto_solver(problem, budget, noise)
    if solver not in SOLVERS:
        names = ", ".join(repr(name) for name in ("auto", *SOLVERS))
        raise ValueError(f"solver must be one of {names}, got {solver!r}.")
    return SOLVERS[solver](noise=noise)
