"""Least squares with a ridge only where rows leave the curvature wanting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import log1p, sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import release
from tacit._validate import plain
from tacit.convex import L2Ball
from tacit.convex.objective import UNIT
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, Event, Neighbors
from tacit.solvers._base import Problem, Result, Solver
from tacit.solvers._least_squares.quadratic import (
    gradient_sensitivity,
    in_ball,
    least_squares_sums,
    minimum_in,
    quadratic_of,
)
from tacit.solvers._least_squares.risk import MIN_NOISE_FRACTION
from tacit.solvers._minimizers.noise_distributions import choose_distribution
from tacit.solvers.amp import allowed
from tacit.solvers.objective_perturbation import (
    ObjectivePerturbationPlan,
    check_choices,
)
from tacit.solvers.quadratic_perturbation import (
    QuadraticPerturbationPlan,
    TiltedPlans,
    within_set,
)

__all__ = ["AdaptiveRidge", "AdaptiveRidgePlan"]

Array = NDArray[np.float64]

# Backward error of computed eigenvectors, in units of p^1.5 times the norm: ten times p
# in spectral norm is what LAPACK states, and measured it is below one
EIGEN_UNITS = 32


def determinant_offset(neighbors: Neighbors, ratio: float) -> float:
    """Return how far one row can move the log-determinant, a radial penalty included.

    ``ratio`` is the squared row norm over the least curvature, below one.

    Notes
    -----
    **Bound.** The lifted eigenvalues of one row more are above those without it, and by
    interlacing their determinant grows by at most ``1 + ratio``. What a radial penalty
    adds is of rank one; its factor is between ``1 / (1 + ratio)`` and
    ``1 / (1 - ratio)``.
    """
    # [adaptive:determinant]
    grown, shrunk = log1p(ratio), -log1p(-ratio)
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return grown + shrunk
    # [adaptive:replaced] both data sets against their common rows
    return 2 * grown + shrunk


def turned(neighbors: Neighbors, problem: Problem) -> float:
    """Return how far neighbors can move the matrix, times the norm of weights.

    In Frobenius norm: lifting eigenvalues does not enlarge distances.
    """
    # [adaptive:matrix]
    root = sqrt(neighbors.rows_changed)
    return root * problem.smoothness * problem.regularizer.radius


# deep: the plan of another solver, with an event of its own
@dataclass(frozen=True)
class _LiftedTilt(ObjectivePerturbationPlan):
    """Least curvature and tilt, fixed without data."""

    neighbors: Neighbors = Neighbors.REPLACE_ONE

    @property
    def event(self) -> Event:
        ratio = self.problem.smoothness / self.ridge
        offset = determinant_offset(self.neighbors, ratio)
        distribution = self.noise_distribution
        if distribution.name == "gaussian":
            # [adaptive:tilt] the mean of |K b|, in units of the noise
            matrix = turned(self.neighbors, self.problem)
            offset += matrix / (self.multiplier * self.sensitivity)
        # concentration has the tail of the norm of two normals
        return distribution.tilted(
            offset, self.multiplier, 2 // self.neighbors.rows_changed
        )


# deep: the plan of another solver, with a curvature of its own
@dataclass(frozen=True)
class AdaptiveRidgePlan(QuadraticPerturbationPlan):
    """Least curvature, tilt, gradient norm to reach, and the noise that is left."""

    def curvature(self, spectrum: Array) -> Array:
        """Return the eigenvalues of the Hessian, from those of the second moments."""
        tilted = self.tilted
        # [adaptive:lift]
        lifted: Array = np.maximum(spectrum + tilted.problem.ridge, tilted.ridge)
        return lifted


@dataclass(frozen=True)
class AdaptiveRidge(Solver[AdaptiveRidgePlan]):
    """Adaptive ridge: ``X^T X`` with lifted eigenvalues, a tilt, a minimum in a ball.

    Directions in which rows are plenty get no ridge at all, so that what is released
    there is least squares plus noise. The rotation to the eigenvectors, without which
    the method is not private, is inside.

    Parameters
    ----------
    ridge
        What no eigenvalue of the Hessian is below, in sum units; None for the one of
        least expected risk, by the exact formula for guesses of the spectrum and of
        the weights. It must be above the squared row norm.
    law
        Distribution of the tilt and of the final noise: ``"gaussian"``, or ``"gamma"``
        or ``"laplace"``, which bound the loss itself. None is Gaussian, or Laplace for
        a budget with delta zero.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private in floating point, by the proof on the
    guarantees page: lifting eigenvalues moves no two matrices apart in Frobenius norm,
    the determinant moves little in any ball, and the tilt's part of the loss is
    concentrated. The algorithm is Algorithm 4.2 of [1]_ repaired: as printed, with a
    diagonal ridge that is not rotated, it has no proof and moves the determinant many
    times further than it says.

    It needs more noise than `QuadraticPerturbation`, whose bias is of second order
    where rows are plenty, and is for comparisons and for data with few directions in
    which rows are few.

    References
    ----------
    .. [1] A. Thakurta, "Differentially private convex optimization for empirical risk
       minimization and high-dimensional regression", PhD thesis, Penn State 2013,
       Algorithm 4.2.
    """

    saved = True
    name = "adaptive_ridge"
    brings_set = True
    has_risk_formula = True

    ridge: float | None = None
    law: str | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        check_choices(self.ridge, None, self.law, "tight")

    def plan(self, problem: Problem, budget: Budget) -> AdaptiveRidgePlan:
        """Choose the floor, then the least tilt that fits with the final noise."""
        problem, default = within_set(
            problem, "AdaptiveRidge", L2Ball, instead="QuadraticPerturbation or AMP"
        )
        neighbors = budget.neighbors
        # [adaptive:gradient] two rows less so, as lifting may turn what it moves
        turn = sqrt(neighbors.rows_changed)
        return TiltedPlans(
            AdaptiveRidgePlan,
            partial(_LiftedTilt, neighbors=neighbors),
            problem,
            budget,
            choose_distribution(self.law, budget, problem.size, self.noise),
            gradient_sensitivity(problem, neighbors, turn),
            default,
            _check_floor,
            _floors,
        ).tight(self.ridge)

    def run(self, plan: AdaptiveRidgePlan, rows: Rows, rng: Generator) -> Result:
        """Sum the moments in one pass, lift them, tilt, minimize, add final noise."""
        tilted, problem = plan.tilted, plan.tilted.problem
        second, first = least_squares_sums(problem, rows)
        values, axes = np.linalg.eigh(second)
        lifted = plan.curvature(values)
        tilt = tilted.mechanism(np.zeros(problem.shape), rng)[:, 0]

        def product(w: Array) -> Array:
            turned_back: Array = axes @ (lifted * (axes.T @ w))
            return turned_back

        def minimum() -> Array:
            within = problem.regularizer
            assert isinstance(within, L2Ball)
            p, n_rows = problem.n_features, rows.n_rows
            quadratic = quadratic_of(
                problem,
                (second, first),
                n_rows,
                tilted.ridge,
                tilt,
                product,
                # [adaptive:eigenvectors]
                EIGEN_UNITS * p**1.5 * UNIT * n_rows * problem.smoothness,
            )
            along = axes.T @ quadratic.first
            start = axes @ in_ball(along, lifted, within.radius)
            w = minimum_in(quadratic, start, within, tilted.gradient_tolerance)
            return w[:, None]

        W = release(
            "LiftedMinimum",
            # what neighbors move, at the point that is released, is the gradient
            value=lambda W: product(W[:, 0]) - first,
            sensitivity=tilted.sensitivity,
            norm="l2",
            draw=minimum,
        )
        return Result(allowed(problem, plan.mechanism(W, rng), 0.0))


def _floors(problem: Problem, budget: Budget) -> tuple[float, float]:
    """Return the floors worth trying.

    At the first the determinant leaves just enough of epsilon.
    """
    most = (1 - MIN_NOISE_FRACTION) * budget.epsilon
    low, high = 0.0, 0.999
    for _ in range(60):
        ratio = (low + high) / 2
        kept = determinant_offset(budget.neighbors, ratio) <= most
        low, high = (ratio, high) if kept else (low, ratio)
    lowest = max(problem.smoothness / low, problem.ridge)
    return lowest, max(1e3 * lowest, problem.n_rows * problem.smoothness)


def _check_floor(problem: Problem, budget: Budget, ridge: float) -> None:
    ratio = problem.smoothness / ridge
    if ratio >= 1:
        raise PlanError(
            f"AdaptiveRidge needs a ridge above {problem.smoothness:.3g}, the squared "
            f"row norm, got {ridge:.3g}; raise ridge."
        )
    if determinant_offset(budget.neighbors, ratio) >= 0.99 * budget.epsilon:
        raise PlanError(
            f"A ridge of {ridge:.3g} leaves nothing of epsilon={budget.epsilon:g} for "
            "noise; raise ridge or epsilon."
        )
