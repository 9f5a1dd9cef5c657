"""Objective perturbation: the exact minimizer of a randomly tilted objective."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log1p

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._tape import release
from tacit._validate import positive
from tacit.convex import Objective, minimize
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian
from tacit.mechanisms.grid import check_noise
from tacit.privacy import Budget, Event, TiltedMinimum, calibrate
from tacit.solvers._base import Problem, noise_assumptions
from tacit.solvers._rules import gradient_tolerance, ridge_rule

__all__ = ["ObjectivePerturbation", "ObjectivePerturbationPlan", "tilt_offset"]


def tilt_offset(problem: Problem, ridge: float) -> float:
    """Return how far one row can move the log-determinant of the Hessian.

    Notes
    -----
    **Bound.** A row adds a positive semi-definite term whose rank and trace are
    bounded by the loss, to a Hessian that is at least ``ridge``; the sum of
    ``log(1 + eigenvalue / ridge)`` is largest when the trace is spread evenly. Both
    data sets of a replacement lie between the common part and this much above it.
    """
    rank = problem.loss.slope_rank()
    trace = problem.loss.max_trace() * problem.bounds.x_norm**2
    # [tilted:offset]
    return rank * log1p(trace / (rank * ridge))


def choose_ridge(problem: Problem, budget: Budget, ridge: float | None) -> float:
    """Return the ridge to plan with, or say why there is none."""
    if not isfinite(problem.smoothness):
        raise PlanError(
            f"Objective perturbation needs a smooth loss; {problem.loss!r} is not. "
            "Use NoisyGD, or a smooth loss."
        )
    if budget.delta == 0:
        raise PlanError(
            "Objective perturbation with Gaussian noise needs delta > 0; give a delta."
        )
    if ridge is not None:
        positive(ridge=ridge)
    chosen = ridge_rule(problem, budget) if ridge is None else ridge
    chosen = max(problem.ridge, chosen)
    if tilt_offset(problem, chosen) >= 0.99 * budget.epsilon:
        raise PlanError(
            f"A ridge of {chosen:.3g} leaves nothing of epsilon={budget.epsilon:g} for "
            "noise; raise ridge or epsilon."
        )
    return chosen


@dataclass(frozen=True)
class ObjectivePerturbationPlan:
    """Ridge and tilt, fixed without data."""

    problem: Problem
    ridge: float
    multiplier: float
    sensitivity: float
    gradient_tolerance: float
    noise: str = "grid"

    @property
    def mechanism(self) -> Gaussian:
        """What draws the tilt."""
        return Gaussian(self.multiplier, self.sensitivity, self.noise)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            *noise_assumptions(self.noise),
            "arithmetic is exact: the last digits of the weights tell rows apart; AMP "
            "covers them",
        )

    @property
    def event(self) -> Event:
        return TiltedMinimum(
            tilt_offset(self.problem, self.ridge),
            self.multiplier,
            self.problem.loss.slope_rank(),
        )


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Minimize the loss plus a ridge plus a random linear term.

    Parameters
    ----------
    ridge
        Ridge penalty in sum units; None for the rule, which sees public facts only.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private for the exact minimizer: the loss of
    `tacit.privacy.TiltedMinimum` [1]_, with the determinant and the projected noise
    bounded as on the guarantees page [2]_. What is released here is a point with a
    gradient a millionth of one row's, computed in floating point, so the guarantee is
    that of exact arithmetic with a continuous tilt. In the digits actually released it
    does not hold: who knows all rows but one can rerun the minimizer for every tilt on
    the grid. `AMP` covers the digits with noise and is the one to use on real rows;
    this solver is for comparisons, and estimators take it as an object only.

    References
    ----------
    .. [1] Kifer, Smith and Thakurta, "Private convex empirical risk minimization and
       high-dimensional regression", COLT 2012, Theorem 2.
    .. [2] Redberg, Koskela and Wang, "Improving the privacy and practicality of
       objective perturbation for differentially private linear learners", NeurIPS
       2023, Theorem 3.1.
    """

    ridge: float | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        check_noise(self.noise)

    def plan(self, problem: Problem, budget: Budget) -> ObjectivePerturbationPlan:
        """Choose the ridge, then the least tilt that fits."""
        sensitivity = problem.sensitivity(budget.neighbors)
        ridge = choose_ridge(problem, budget, self.ridge)
        tolerance = gradient_tolerance(problem, budget.neighbors, sensitivity)

        def planned(multiplier: float) -> ObjectivePerturbationPlan:
            return ObjectivePerturbationPlan(
                problem, ridge, multiplier, sensitivity, tolerance, self.noise
            )

        plan = planned(calibrate(lambda noise: planned(noise).event, budget))
        # noise too large for the grid is refused here, not after the charge
        plan.mechanism.scale(problem.size)
        return plan

    def run(
        self, plan: ObjectivePerturbationPlan, rows: Rows, rng: Generator
    ) -> NDArray[np.float64]:
        """Draw the tilt once and minimize."""
        return tilted_minimum(plan, rows, rng)


def tilted_minimum(
    plan: ObjectivePerturbationPlan, rows: Rows, rng: Generator
) -> NDArray[np.float64]:
    """Return the minimizer of the tilted objective to a certified gradient norm."""
    problem = plan.problem
    tilt = plan.mechanism(np.zeros(problem.shape), rng)
    data = Objective(problem.loss, ridge=0.0)
    return release(
        "TiltedMinimum",
        # what neighbors move, at the point that is released, is the gradient
        value=lambda W: data.gradient(rows, W),
        sensitivity=plan.sensitivity,
        norm="l2",
        draw=lambda: (
            minimize(
                Objective(problem.loss, plan.ridge, tilt),
                rows,
                tolerance=plan.gradient_tolerance,
                x_norm=problem.bounds.x_norm,
                y_range=problem.bounds.y_range,
            ).W
        ),
    )
