"""Least squares in a set, by a random linear term in the exact objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import release
from tacit._validate import plain
from tacit.convex import Box, Free, L2Ball
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, calibrate
from tacit.solvers._base import Problem, Result, Solver
from tacit.solvers._least_squares.quadratic import (
    check_problem,
    gradient_sensitivity,
    in_ball,
    least_squares_sums,
    minimum_in,
    minimum_in_box,
    quadratic_of,
    quadratic_tolerance,
)
from tacit.solvers._least_squares.risk import (
    RowGuess,
    expected_excess,
    least_risk_ridge,
    output_risk,
    ridge_range,
    rough_noise,
)
from tacit.solvers._minimizers.noise_distributions import (
    NoiseDistribution,
    choose_distribution,
)
from tacit.solvers._published import (
    check_saveable,
    objective_multiplier,
    objective_ridge,
)
from tacit.solvers.amp import CoveredTilt, allowed, output_ratio
from tacit.solvers.objective_perturbation import (
    ObjectivePerturbationPlan,
    check_choices,
    check_ridge,
)

__all__ = [
    "DEFAULT_RADIUS",
    "QuadraticPerturbation",
    "QuadraticPerturbationPlan",
    "TiltedPlans",
    "within_set",
]

Array = NDArray[np.float64]

# Radius of the ball that weights are kept in where no set is given, in units of the
# largest target over the row norm: the constant feature of a model with an intercept is
# a quarter of that norm, so targets at one end of their range take four of it
DEFAULT_RADIUS = 5.0


@dataclass(frozen=True)
class QuadraticPerturbationPlan(CoveredTilt):
    """A tilt, the gradient norm to reach, and the noise that covers what is left."""

    default_set: bool = False

    @property
    def assumptions(self) -> tuple[str, ...]:
        released = super().assumptions
        if not self.default_set:
            return released
        problem = self.tilted.problem
        return (
            *released,
            f"weights are kept in {problem.regularizer!r}, in units of targets of at "
            f"most {problem.largest_target:g}, as no set was given: "
            f"{DEFAULT_RADIUS:g} times the largest target over the row norm",
        )

    @property
    def output_std(self) -> float:
        """Standard deviation of the final noise on a weight."""
        distribution = self.tilted.noise_distribution
        return distribution.std(self.output_multiplier) * self.output_sensitivity

    @property
    def tilt_std(self) -> float:
        """Standard deviation of the tilt in any one direction."""
        tilted = self.tilted
        return tilted.noise_distribution.std(tilted.multiplier) * tilted.sensitivity

    def curvature(self, spectrum: Array) -> Array:
        """Return the eigenvalues of the Hessian, from those of the second moments."""
        return spectrum + self.tilted.ridge

    def expected_risk(self, guess: RowGuess) -> float:
        """Return the expected excess of the summed loss, for rows as guessed."""
        problem = self.tilted.problem
        spectrum, weights = guess.spectrum(problem), guess.weights(problem)
        curvature = self.curvature(spectrum)
        tilted = expected_excess(spectrum, weights, curvature, self.tilt_std)
        return tilted + output_risk(spectrum, self.output_std)


P = TypeVar("P", bound=QuadraticPerturbationPlan)


def within_set(
    problem: Problem, solver: str, *sets: type, instead: str
) -> tuple[Problem, bool]:
    """Return the problem with weights in a set, and whether that is the default."""
    check_problem(problem, solver)
    problem.check_penalty(solver, instead, *sets)
    if not isinstance(problem.regularizer, Free):
        return problem, False
    radius = DEFAULT_RADIUS * problem.largest_target / problem.bounds.x_norm
    return replace(problem, regularizer=L2Ball(radius)), True


@dataclass(frozen=True)
class TiltedPlans(Generic[P]):
    """Plans of one problem, of which each ridge and noise has its own.

    ``kind`` makes a plan of a tilt, the final noise, and whether the set is the
    default; ``tilt`` makes a tilt of the fields of `ObjectivePerturbationPlan`.
    ``sensitivity`` is how far neighbors can move the gradient. ``reject`` rejects a
    ridge that is too small for the budget, and ``ridges`` returns the least and the
    largest worth trying.
    """

    kind: Callable[[Any, float, bool], P]
    tilt: Callable[..., ObjectivePerturbationPlan]
    problem: Problem
    budget: Budget
    distribution: NoiseDistribution
    sensitivity: float
    default: bool
    reject: Callable[[Problem, Budget, float], None]
    ridges: Callable[[Problem, Budget], tuple[float, float]]

    def at(self, ridge: float) -> Callable[[float], P]:
        """Return the plan with this ridge as a function of its noise."""
        problem, neighbors, distribution = (
            self.problem,
            self.budget.neighbors,
            self.distribution,
        )
        self.reject(problem, self.budget, ridge)
        moved = self.sensitivity

        def planned(multiplier: float) -> P:
            tilt_norm = moved * distribution.norm(multiplier)
            tilted = self.tilt(
                problem,
                ridge,
                multiplier,
                moved,
                quadratic_tolerance(problem, neighbors, moved, ridge, tilt_norm),
                distribution.noise,
                distribution.name,
                problem.regularizer.radius,
            )
            return self.kind(
                tilted, output_ratio(distribution.name) * multiplier, self.default
            )

        return planned

    def tight(self, ridge: float | None) -> P:
        """Return the plan of least noise with this ridge, or that of least risk."""
        if ridge is None:
            lowest, highest = self.ridges(self.problem, self.budget)
            lowest = max(lowest, self.problem.ridge)
            ridge = least_risk_ridge(self._rough, lowest, highest)
        planned = self.at(max(ridge, self.problem.ridge))
        plan = planned(calibrate(lambda noise: planned(noise).event, self.budget))
        # noise too large for the grid is rejected here, not after the charge
        plan.output_scale()
        return plan

    def _rough(self, ridge: float) -> P:
        """Return a plan to compare ridges by."""
        planned = self.at(ridge)
        return planned(rough_noise(lambda m: planned(m).tilted.event, self.budget))


@dataclass(frozen=True)
class QuadraticPerturbation(Solver[QuadraticPerturbationPlan]):
    """Objective perturbation of least squares in a set, with a ridge.

    The sums ``X^T X`` and ``X^T y`` are read off the rows once, without noise, and the
    quadratic they make is minimized exactly: in a box by steps from face to face, in a
    ball by its secular equation.

    Parameters
    ----------
    ridge
        Ridge penalty in sum units; None for the one of least expected risk, by the
        exact formula for guesses of the spectrum and of the weights.
    law
        Distribution of the tilt and of the final noise: ``"gaussian"``, or ``"gamma"``
        or ``"laplace"``, which bound the loss itself. None is Gaussian, or Laplace for
        a budget with delta zero.
    accounting
        ``"tight"``, or ``"paper"`` for the ridge and noise of [1]_.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private in floating point: the exact minimizer has
    the loss of `TiltedMinimum` [2]_, with derivatives bounded by the set,
    or a pure one for the other distributions; the computed point is certified to be
    within ``tolerance / ridge`` of it, round-off of the sums included, and a little
    noise at the end covers twice that, as in `AMP`.

    Weights are kept in a `~tacit.convex.Box` or an `~tacit.convex.L2Ball`, without
    which squared residuals have no bounded derivative. Where no set is given it is a
    ball of five times the largest target over the row norm, and the assumptions say so.

    References
    ----------
    .. [1] A. Thakurta, "Differentially private convex optimization for empirical risk
       minimization and high-dimensional regression", PhD thesis, Penn State 2013,
       Algorithm 4.1.
    .. [2] Kifer, Smith and Thakurta, "Private convex empirical risk minimization and
       high-dimensional regression", COLT 2012, Theorem 2.
    """

    saved = True
    name = "quadratic_perturbation"
    brings_set = True
    has_risk_formula = True

    ridge: float | None = None
    law: str | None = None
    accounting: str = "tight"
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        check_choices(self.ridge, None, self.law, self.accounting)

    def plan(self, problem: Problem, budget: Budget) -> QuadraticPerturbationPlan:
        """Choose the ridge, then the least tilt that fits with the final noise."""
        problem, default = within_set(
            problem, "QuadraticPerturbation", Box, L2Ball, instead="AMP"
        )
        distribution = choose_distribution(self.law, budget, problem.size, self.noise)
        paper = self.accounting == "paper"
        neighbors = budget.neighbors
        plans = TiltedPlans(
            QuadraticPerturbationPlan,
            ObjectivePerturbationPlan,
            problem,
            budget,
            distribution,
            problem.sensitivity(neighbors)
            if paper
            else gradient_sensitivity(problem, neighbors),
            default,
            check_ridge,
            ridge_range,
        )
        if not paper:
            return plans.tight(self.ridge)
        ridge = self._published_ridge(problem, budget)
        plan = plans.at(ridge)(objective_multiplier(distribution.name, budget))
        check_saveable(plan.event, budget)
        # noise too large for the grid is rejected here, not after the charge
        plan.output_scale()
        return plan

    def _published_ridge(self, problem: Problem, budget: Budget) -> float:
        published = objective_ridge(problem, budget.epsilon)
        if self.ridge is not None and self.ridge < published:
            raise PlanError(
                f"The published constants need a ridge of at least {published:.6g}; "
                "raise ridge, or use accounting='tight'."
            )
        return max(published, problem.ridge, self.ridge or 0.0)

    def run(
        self, plan: QuadraticPerturbationPlan, rows: Rows, rng: Generator
    ) -> Result:
        """Sum the moments in one pass, draw the tilt, minimize, add the final noise."""
        tilted, problem = plan.tilted, plan.tilted.problem
        second, first = least_squares_sums(problem, rows)
        tilt = tilted.mechanism(np.zeros(problem.shape), rng)[:, 0]

        def minimum() -> Array:
            matrix = second + tilted.ridge * np.eye(len(first))
            quadratic = quadratic_of(
                problem,
                (second, first),
                rows.n_rows,
                tilted.ridge,
                tilt,
                lambda w: matrix @ w,
            )
            within, tolerance = problem.regularizer, tilted.gradient_tolerance
            if isinstance(within, Box):
                w = minimum_in_box(quadratic, matrix, within, tolerance)
            else:
                assert isinstance(within, L2Ball)
                values, axes = np.linalg.eigh(matrix)
                curved = np.maximum(values, tilted.ridge)
                start = axes @ in_ball(axes.T @ quadratic.first, curved, within.radius)
                w = minimum_in(quadratic, start, within, tolerance)
            return w[:, None]

        W = release(
            "TiltedMinimum",
            # what neighbors move, at the point that is released, is the gradient
            value=lambda W: second @ W - first[:, None],
            sensitivity=tilted.sensitivity,
            norm="l2",
            draw=minimum,
        )
        noisy = plan.mechanism(W, rng)
        return Result(allowed(problem, noisy, 0.0))
