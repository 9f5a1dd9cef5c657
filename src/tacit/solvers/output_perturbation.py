"""Output perturbation: the minimizer with noise that hides how far a row moves it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.random import Generator

from tacit._validate import plain
from tacit.convex import L2Ball, Objective
from tacit.convex._protocols import is_set
from tacit.data import Rows
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, calibrate
from tacit.solvers._base import MinimumNoise, Problem, Result, Solver, WeightNoise
from tacit.solvers._minimizers.minimum import (
    certified_minimum,
    gradient_tolerance,
    largest_weights,
)
from tacit.solvers._minimizers.noise_distributions import (
    PlannedNoise,
    choose_distribution,
)
from tacit.solvers._minimizers.ridge_rules import ridge_for_weights
from tacit.solvers._published import check_saveable, output_scale
from tacit.solvers.objective_perturbation import (
    check_choices,
    check_regularizer,
    check_weight_norm,
)

__all__ = ["OutputPerturbation", "OutputPerturbationPlan"]

# Norm of the best weights that the ridge is set for, in units of one over the row norm;
# fitted on synthetic problems by ``benchmarks/fit_rule.py``
USUAL_MARGIN = 10.0


@dataclass(frozen=True)
class OutputPerturbationPlan(PlannedNoise):
    """Ridge and noise, fixed without data."""

    problem: Problem
    ridge: float
    multiplier: float
    sensitivity: float
    gradient_tolerance: float
    noise: str = "grid"
    law: str = "gaussian"
    reach: float = inf  # norm that weights are kept to

    def minimum_noise(self) -> MinimumNoise | None:
        """Return the noise that intervals of the weights rest on."""
        if self.law != "gaussian":
            return None
        return MinimumNoise(self.ridge, 0.0, self.scale())


@dataclass(frozen=True)
class OutputPerturbation(Solver[OutputPerturbationPlan]):
    """Output perturbation: noise on the minimizer of the loss plus a ridge.

    Parameters
    ----------
    ridge
        Ridge penalty in sum units; None for the rule, which sees public facts only.
        The noise is proportional to one over it.
    law
        Distribution of the noise: ``"gaussian"``, or ``"gamma"`` or ``"laplace"``,
        which bound the loss itself. None is Gaussian, or Laplace for a budget with
        delta zero.
    accounting
        ``"tight"``, or ``"paper"`` for the noise of [1]_ if pure, of [2]_ if Gaussian.
    weight_norm
        Public bound on the norm of the best weights, from which the ridge follows in
        any dimension; Gaussian noise and no other penalty only.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** That of the mechanism, Gaussian or pure, in floating point. The
    objective is ``ridge``-strongly convex, so the rows in which neighbors differ move
    its minimizer by at most their number times the Lipschitz constant over the ridge
    [1]_, once, as strong convexity is used at both minimizers and not at one. The
    computed point is certified to be near the exact one, and that distance is in the
    sensitivity. Where the penalty is a set, the noisy weights are moved back into it;
    zeros that another penalty makes do not outlive the noise.

    References
    ----------
    .. [1] Thakurta, "Differentially private convex optimization for empirical risk
       minimization and high-dimensional regression", dissertation, Pennsylvania State
       University, 2013, Lemma 3.1.
    .. [2] Jain and Thakurta, "(Near) dimension independent risk bounds for
       differentially private learning", ICML 2014, Theorem 1.
    """

    saved = True
    name = "output_perturbation"
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

    def plan(self, problem: Problem, budget: Budget) -> OutputPerturbationPlan:
        """Choose the ridge, then the least noise that fits."""
        neighbors = budget.neighbors
        moved = problem.sensitivity(neighbors)
        check_regularizer(problem)
        problem.require_smooth("OutputPerturbation")
        distribution = choose_distribution(self.law, budget, problem.size, self.noise)
        if self.weight_norm is not None:
            check_weight_norm(problem, distribution)
        multiplier = calibrate(distribution.event, budget)
        ridge = self.ridge
        if ridge is None:
            weight_norm = self.weight_norm or USUAL_MARGIN / problem.bounds.x_norm
            noise = distribution.std(multiplier)
            ridge = ridge_for_weights(problem, neighbors, weight_norm, noise)
        ridge = max(problem.ridge, ridge)
        tolerance = gradient_tolerance(problem, neighbors, moved, ridge)
        # [output:sensitivity] the rows changed, and the distance of both points found
        sensitivity = (moved + 2 * tolerance) / ridge
        if self.accounting == "paper":
            published = output_scale(
                distribution.name, budget, problem.lipschitz, ridge
            )
            multiplier = published / sensitivity
        plan = OutputPerturbationPlan(
            problem,
            ridge,
            multiplier,
            sensitivity,
            tolerance,
            self.noise,
            distribution.name,
            largest_weights(problem, neighbors, ridge),
        )
        if self.accounting == "paper":
            check_saveable(plan.event, budget)
        # noise too large for the grid is rejected here, not after the charge
        plan.scale()
        return plan

    def run(self, plan: OutputPerturbationPlan, rows: Rows, rng: Generator) -> Result:
        """Minimize, add the noise, and move back into the set if there is one."""
        problem = plan.problem
        W = certified_minimum(
            problem,
            Objective(problem.loss, plan.ridge),
            rows,
            plan.gradient_tolerance,
            plan.reach,
        )
        noisy = plan.mechanism(W, rng)
        if is_set(problem.regularizer):
            return Result(problem.regularizer.prox(noisy, 1.0))
        return Result(noisy, _added(plan))


def _added(plan: OutputPerturbationPlan) -> WeightNoise:
    """Return the noise as planned: nothing else moves the weights of given rows."""
    # a coordinate of the gamma distribution has the variance of size + 1 normals
    units = {"gaussian": 1.0, "laplace": sqrt(2), "gamma": sqrt(plan.problem.size + 1)}
    std = plan.scale() * units[plan.law]
    return WeightNoise(
        np.full(plan.problem.shape, std),
        f"exact: the {plan.law} noise that was added to the weights",
        plan.law,
    )
