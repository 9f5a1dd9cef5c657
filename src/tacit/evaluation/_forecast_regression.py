"""What a private regression costs, from exact formulas and stated guesses."""

from __future__ import annotations

from math import log1p, sqrt
from typing import Any, Protocol

from tacit._estimators import guaranteed_budget
from tacit._validate import at_least, one_of, positive
from tacit.convex import Free, L2Ball, Squared
from tacit.data import RowBounds
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.solvers import Problem
from tacit.solvers._auto import solvers_by_name
from tacit.solvers._least_squares.risk import GUESS, RowGuess

__all__ = ["noise_at", "regression_risk", "rows_for_risk"]

# Rows among which the least number is sought, and how exactly
FEWEST, MOST = 8, 2**31
CLOSE = 1.01


class RiskPlan(Protocol):
    """A plan whose expected risk has a formula."""

    def expected_risk(self, guess: RowGuess) -> float:
        """Return the expected excess of the summed loss, for rows as guessed."""


def regression_risk(
    n_rows: int,
    n_features: int,
    *,
    epsilon: float,
    delta: float | None = None,
    solver: str = "quadratic_perturbation",
    neighbors: str = "replace_one",
    ridge: float | None = None,
    radius: float | None = None,
    spread: float = GUESS.spread,
    decay: float = GUESS.decay,
    signal: float = GUESS.signal,
) -> float:
    """Return the mean squared error that privacy adds to a linear regression.

    For three solvers that have a formula. The default of
    `tacit.linear_model.LinearRegression` with a delta is none of them: it adapts to the
    rows and mostly adds less. Use `tacit.evaluation.expected_score` for it.

    Parameters
    ----------
    n_rows
        Number of rows there will be.
    n_features
        Number of features, the constant one included.
    epsilon
        Privacy budget of one fit.
    delta
        As for `tacit.linear_model.LinearRegression`.
    solver
        ``"quadratic_perturbation"``, ``"adaptive_ridge"`` or ``"ada_ssp"``.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    ridge
        Ridge in sum units of rows of norm one; None for the solver's own rule. Zero
        with ``"ada_ssp"`` is least squares from plain noisy moments.
    radius
        Norm that weights are kept to, in units of the largest target over the row
        norm; None for what the solver takes by itself.
    spread
        Guess of the root mean squared row norm, in units of the bound on it.
    decay
        Guess of how eigenvalues of the second moments fall: like ``1 / i^decay``.
    signal
        Guess of the root mean squared prediction of the best weights, in units of the
        largest target.

    Notes
    -----
    **Bound.** In units of the squared largest target, which is half the width of
    ``y_range`` in a model with an intercept: the expected mean squared residual on the
    rows themselves, less that of the best weights. Exact for the two perturbations on
    rows with the guessed spectrum where no constraint is active; to first order in the
    noise of the second moments for ``"ada_ssp"``. Weights of zero have a risk of the
    signal squared: a figure near it says that nothing is learned.
    """
    guess = RowGuess(spread, decay, signal)
    plan = _planned(
        n_rows, n_features, epsilon, delta, solver, neighbors, ridge, radius
    )
    return 2 * plan.expected_risk(guess) / n_rows


def rows_for_risk(
    target: float, n_features: int, *, epsilon: float, **facts: Any
) -> int | None:
    """Return the least number of rows with at most this risk, within a hundredth.

    For the solvers of `regression_risk`, of which the default of
    `tacit.linear_model.LinearRegression` is none.

    Parameters
    ----------
    target
        Largest risk, as `regression_risk` has it.
    n_features
        Number of features, the constant one included.
    epsilon
        Privacy budget of one fit.
    facts
        Other arguments of `regression_risk`.

    Notes
    -----
    **Bound.** By bisection, as the risk falls with the number of rows. None when two
    billion rows are too few.
    """
    positive(target=target)

    def risk(n_rows: int) -> float:
        return regression_risk(n_rows, n_features, epsilon=epsilon, **facts)

    if risk(FEWEST) <= target:
        return FEWEST
    if risk(MOST) > target:
        return None
    low, high = FEWEST, MOST
    while high > CLOSE * low and high - low > 1:
        middle = int(sqrt(low * high))
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if risk(middle) <= target else (middle, high)
    return high


def noise_at(
    epsilon: float,
    delta: float = 0.0,
    *,
    sensitivity: float = 1.0,
    neighbors: str = "replace_one",
    law: str = "gaussian",
) -> float:
    """Return the scale of the noise that hides one row at this budget.

    Parameters
    ----------
    epsilon
        Privacy budget.
    delta
        Probability with which the bound may fail; Gaussian noise needs some.
    sensitivity
        How far a row that is added can move the number; the L2 norm for a vector with
        Gaussian noise.
    neighbors
        ``"replace_one"``, where two rows count, or ``"add_or_remove_one"``.
    law
        ``"gaussian"``, whose scale is the standard deviation, or ``"laplace"``.

    Notes
    -----
    **Bound.** The least scale there is: Balle and Wang (2018), Theorem 8, for Gaussian
    noise, within one part in a million; for Laplace's one over
    ``epsilon - 2 log(1 - delta)``, as the mass that a shift by t moves beyond epsilon
    is ``1 - exp((epsilon - t) / 2)``.
    """
    one_of(("gaussian", "laplace"), law=law)
    positive(sensitivity=sensitivity)
    budget = Budget(epsilon, delta, Neighbors.of(neighbors))
    if law == "gaussian" and delta == 0:
        raise ValueError("delta must be above 0 for Gaussian noise; or use 'laplace'.")
    moved = sensitivity * budget.neighbors.rows_changed
    if law == "laplace":
        # delta of the shifted distribution is 1 - exp((epsilon - shift) / 2)
        return moved / (epsilon - 2 * log1p(-delta))
    return moved * calibrate(GaussianNoise, budget, rtol=1e-6)


def _planned(
    n_rows: int,
    n_features: int,
    epsilon: float,
    delta: float | None,
    solver: str,
    neighbors: str,
    ridge: float | None,
    radius: float | None,
) -> RiskPlan:
    """Return the plan for rows and targets in units of their bounds."""
    at_least(2, n_rows=n_rows)
    at_least(1, n_features=n_features)
    known = {n: kind for n, kind in solvers_by_name().items() if kind.has_risk_formula}
    one_of(tuple(known), solver=solver)
    if radius is not None:
        positive(radius=radius)
    problem = Problem(
        Squared(),
        RowBounds(),
        n_rows,
        n_features,
        regularizer=Free() if radius is None else L2Ball(radius),
    )
    budget = guaranteed_budget(epsilon, delta, neighbors, n_rows)
    plan: RiskPlan = known[solver](ridge=ridge).plan(problem, budget)
    return plan
