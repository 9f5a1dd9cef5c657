"""Objective perturbation: the exact minimizer of a randomly tilted objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf, log1p, sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import release
from tacit._validate import if_given, one_of, plain, positive
from tacit.convex import Free, L2Ball, Objective
from tacit.convex.proximal import certified_names, is_certified
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, Event, GaussianNoise, calibrate
from tacit.solvers._base import MinimumNoise, Problem, Result, Solver
from tacit.solvers._minimizers.minimum import (
    certified_minimum,
    gradient_tolerance,
    largest_weights,
)
from tacit.solvers._minimizers.noise_distributions import (
    DISTRIBUTIONS,
    NoiseDistribution,
    PlannedNoise,
    choose_distribution,
)
from tacit.solvers._minimizers.ridge_rules import (
    cheap_ridge,
    general_ridge_rule,
    ridge_for_weights,
    ridge_rule,
)
from tacit.solvers._published import (
    check_accounting,
    check_saveable,
    check_width,
    objective_multiplier,
    objective_ridge,
)

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
    rank = problem.loss.derivative_rank()
    trace = problem.loss.max_trace() * problem.bounds.x_norm**2
    # [tilted:offset]
    return rank * log1p(trace / (rank * ridge))


def check_choices(
    ridge: float | None,
    weight_norm: float | None,
    distribution: str | None,
    accounting: str,
) -> None:
    """Check the parameters that perturbations of a minimum share."""
    one_of((*DISTRIBUTIONS, None), law=distribution)
    check_accounting(accounting)
    if_given(positive, ridge=ridge, weight_norm=weight_norm)
    if ridge is not None and weight_norm is not None:
        raise ValueError("Give ridge or weight_norm, not both.")


def check_regularizer(problem: Problem) -> None:
    """Reject penalties that have no certified minimizer."""
    regularizer = problem.regularizer
    if not (isinstance(regularizer, Free) or is_certified(regularizer)):
        *names, last = (f"{name}()" for name in certified_names())
        raise PlanError(
            f"No minimum with {regularizer!r} can be certified; use a ridge, "
            f"{', '.join(names)} or {last}, or NoisyGD."
        )


def check_weight_norm(problem: Problem, distribution: NoiseDistribution) -> None:
    """Reject ``weight_norm`` where the risk grows with the number of features."""
    if distribution.name != "gaussian" or not isinstance(problem.regularizer, Free):
        raise PlanError(
            "weight_norm= is for Gaussian noise and no penalty but the ridge, where "
            "the risk does not grow with the number of features; give ridge= instead."
        )


def rule_ridge(
    problem: Problem, budget: Budget, distribution: NoiseDistribution
) -> float:
    """Return the default ridge, from public facts."""
    gaussian = distribution.name == "gaussian"
    if gaussian and isinstance(problem.regularizer, Free):
        return ridge_rule(problem, budget)
    multiplier = (
        calibrate(GaussianNoise, budget, rtol=1e-3) if gaussian else 1 / budget.epsilon
    )
    sensitivity = problem.sensitivity(budget.neighbors)
    noise = sensitivity * distribution.std(multiplier) * sqrt(problem.size)
    return general_ridge_rule(problem, noise, budget.epsilon)


def weight_norm_ridge(
    problem: Problem,
    budget: Budget,
    distribution: NoiseDistribution,
    weight_norm: float,
) -> float:
    """Return the ridge for best weights of this norm, at any number of features."""
    check_weight_norm(problem, distribution)
    least = max(problem.ridge, cheap_ridge(problem, budget.epsilon))
    chosen, rank = least, problem.loss.derivative_rank()
    # noise falls a little as the ridge grows: two rounds settle it
    for _ in range(2):
        tilted = partial(distribution.tilted, tilt_offset(problem, chosen), rank=rank)
        noise = distribution.std(calibrate(tilted, budget, rtol=1e-3))
        wanted = ridge_for_weights(problem, budget.neighbors, weight_norm, noise)
        chosen = max(least, wanted)
    return chosen


def check_ridge(problem: Problem, budget: Budget, ridge: float) -> None:
    """Reject a ridge so small that the determinant takes all of epsilon."""
    if tilt_offset(problem, ridge) >= 0.99 * budget.epsilon:
        raise PlanError(
            f"A ridge of {ridge:.3g} leaves nothing of epsilon={budget.epsilon:g} for "
            "noise; raise ridge or epsilon."
        )


@dataclass(frozen=True)
class ObjectivePerturbationPlan(PlannedNoise):
    """Ridge and tilt, fixed without data."""

    problem: Problem
    ridge: float
    multiplier: float
    sensitivity: float
    gradient_tolerance: float
    noise: str = "grid"
    law: str = "gaussian"
    reach: float = inf  # norm that weights are kept to

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            *super().assumptions,
            "arithmetic is exact: the last digits of the weights leak rows; AMP "
            "covers them",
        )

    def minimum_noise(self) -> MinimumNoise | None:
        """Return the noise that intervals of the weights rest on."""
        if self.law != "gaussian":
            return None
        return MinimumNoise(self.ridge, self.scale(), 0.0)

    @property
    def event(self) -> Event:
        offset = tilt_offset(self.problem, self.ridge)
        rank = self.problem.loss.derivative_rank()
        return self.noise_distribution.tilted(offset, self.multiplier, rank)


@dataclass(frozen=True)
class ObjectivePerturbation(Solver[ObjectivePerturbationPlan]):
    """Objective perturbation: a ridge and a random linear term in the objective.

    Parameters
    ----------
    ridge
        Ridge penalty in sum units; None for the rule, which sees public facts only.
    law
        Distribution of the tilt: ``"gaussian"``, or ``"gamma"`` or ``"laplace"``, which
        bound the loss itself. None is Gaussian, or Laplace for a budget with delta
        zero.
    accounting
        ``"tight"``, or ``"paper"`` for the ridge and noise of [1]_.
    weight_norm
        Public bound on the norm of the best weights, from which the ridge follows in
        any dimension; Gaussian noise and no other penalty only.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private for the exact minimizer, with any convex
    penalty and in any closed convex set: the loss of `TiltedMinimum`
    [1]_, with the determinant and the projected noise bounded as on the guarantees page
    [2]_; for the other distributions pure with the determinant's bound plus one over
    the multiplier. What is released here is a point with a gradient a millionth of one
    row's, computed in floating point, so the guarantee is that of exact arithmetic with
    a continuous tilt. In the digits actually released it does not hold: who knows all
    rows but one can rerun the minimizer for every tilt on the grid. `AMP` covers the
    digits with noise and is the one to use on real rows; this solver is for
    comparisons, and estimators take it as an object only.

    References
    ----------
    .. [1] Kifer, Smith and Thakurta, "Private convex empirical risk minimization and
       high-dimensional regression", COLT 2012, Theorem 2.
    .. [2] Redberg, Koskela and Wang, "Improving the privacy and practicality of
       objective perturbation for differentially private linear learners", NeurIPS
       2023, Theorem 3.1.
    """

    saved = True
    ball = L2Ball

    ridge: float | None = None
    law: str | None = None
    accounting: str = "tight"
    weight_norm: float | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        check_choices(self.ridge, self.weight_norm, self.law, self.accounting)

    def plan(self, problem: Problem, budget: Budget) -> ObjectivePerturbationPlan:
        """Choose the ridge, then the least tilt that fits."""
        if self.accounting == "paper":
            check_width(problem)
            least = objective_ridge(problem, budget.epsilon)
            planned = self.with_ridge(problem, budget, least)
            distribution = choose_distribution(
                self.law, budget, problem.size, self.noise
            )
            plan = planned(objective_multiplier(distribution.name, budget))
            check_saveable(plan.event, budget)
        else:
            planned = self.with_ridge(problem, budget)
            plan = planned(calibrate(lambda noise: planned(noise).event, budget))
        # noise too large for the grid is rejected here, not after the charge
        plan.scale()
        return plan

    def with_ridge(
        self, problem: Problem, budget: Budget, published: float | None = None
    ) -> Callable[[float], ObjectivePerturbationPlan]:
        """Return the plan as a function of its noise, every other choice made.

        ``published`` is the least ridge of published constants, and the ridge when none
        is given.
        """
        # long: one field of the plan after another; only the noise is left open
        sensitivity = problem.sensitivity(budget.neighbors)
        check_regularizer(problem)
        problem.require_smooth("ObjectivePerturbation")
        distribution = choose_distribution(self.law, budget, problem.size, self.noise)
        if self.ridge is not None:
            ridge = self.ridge
        elif self.weight_norm is not None:
            ridge = weight_norm_ridge(problem, budget, distribution, self.weight_norm)
            ridge = max(ridge, published or 0.0)
        else:
            ridge = (
                rule_ridge(problem, budget, distribution)
                if published is None
                else published
            )
        ridge = max(problem.ridge, ridge)
        if published is not None and ridge < published:
            raise PlanError(
                f"The published constants need a ridge of at least {published:.6g}; "
                "raise ridge, or use accounting='tight'."
            )
        check_ridge(problem, budget, ridge)

        def planned(multiplier: float) -> ObjectivePerturbationPlan:
            tilt_norm = sensitivity * distribution.norm(multiplier)
            facts = problem, budget.neighbors
            # the tolerance follows the noise, which vanishes as the budget grows
            noise = sensitivity * min(1.0, multiplier)
            return ObjectivePerturbationPlan(
                problem,
                ridge,
                multiplier,
                sensitivity,
                gradient_tolerance(*facts, noise, ridge, tilt_norm),
                self.noise,
                distribution.name,
                largest_weights(*facts, ridge, tilt_norm),
            )

        return planned

    def run(
        self, plan: ObjectivePerturbationPlan, rows: Rows, rng: Generator
    ) -> Result:
        """Draw the tilt once and minimize."""
        return Result(tilted_minimum(plan, rows, rng))


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
        draw=lambda: certified_minimum(
            problem,
            Objective(problem.loss, plan.ridge, tilt),
            rows,
            plan.gradient_tolerance,
            plan.reach,
        ),
    )
