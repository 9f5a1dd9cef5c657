"""The plan of adaptive moments: budget fractions and noise of its rounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

from tacit.convex import Huber
from tacit.data import RowBounds
from tacit.mechanisms import Gaussian
from tacit.privacy import Budget, Composed, Event, GaussianNoise, Neighbors
from tacit.solvers._base import Problem, SolverPlan
from tacit.solvers.preconditioned_gd import (
    MOMENT_FRACTION,
    MOMENTUM,
    STEP,
    PreconditionedGD,
    PreconditionedGDPlan,
)

__all__ = [
    "CONSTANT",
    "COUNT_WEIGHT",
    "FARTHEST",
    "NORM_WEIGHT",
    "AdaptiveMomentsPlan",
    "descent_plan",
]

# Fraction of the squared privacy parameter that is left after the sums, of both spreads
SPREAD_FRACTION = 0.07
# Weights of the count beside rows of norm one, of their norm beside absolute features
COUNT_WEIGHT, NORM_WEIGHT = 0.5, 0.5
# Constant feature of the descent, beside rows of norm one
CONSTANT = 0.25

# What follows was chosen by benchmarks/regression/grid.py.
# Residuals of the descent are clipped here, in spreads of the targets, or further out
# where noise on predictions still is at most so many spreads; and targets there
RESIDUAL_CLIP, NEGLIGIBLE, FARTHEST = 0.3, 0.003, 8.0
# Damping: by the noise on an entry of the moments, by that on a gradient, and by the
# square of the latter
# The first and the last were raised by half for tables of pure noise, as in
# tests/solvers/test_adaptive_moments.py
BY_MOMENTS, BY_GRADIENT, BY_SQUARE = 3.0, 0.04, 3.0
# Number of steps: one for so much noise on a gradient, at least and at most so many
STEP_NOISE, FEWEST_STEPS, MOST_STEPS = 1e-4, 8, 30


# wide: one field for each number that a run needs
@dataclass(frozen=True)
class AdaptiveMomentsPlan(SolverPlan):
    """Budget fractions and noise of all releases, fixed without data.

    The sensitivities are those of the sums, of absolute features and of absolute
    targets, for rows and targets within one. ``descent`` is on rows in a unit ball.
    """

    problem: Problem
    neighbors: Neighbors
    multiplier: float
    center_fraction: float
    target_weight: float
    sum_sensitivity: float
    spread_sensitivity: float
    target_sensitivity: float
    descent: PreconditionedGDPlan
    noise: str = "grid"

    @property
    def spread_fraction(self) -> float:
        """Fraction of the spreads of features, and again of targets."""
        return spread_fraction(self.center_fraction)

    def sums(self) -> Gaussian:
        """Return what releases the sums."""
        return self._gaussian(self.center_fraction, self.sum_sensitivity)

    def spreads(self) -> Gaussian:
        """Return what releases absolute features."""
        return self._gaussian(self.spread_fraction, self.spread_sensitivity)

    def target_spread(self) -> Gaussian:
        """Return what releases absolute targets."""
        return self._gaussian(self.spread_fraction, self.target_sensitivity)

    def _gaussian(self, fraction: float, sensitivity: float) -> Gaussian:
        return Gaussian(self.multiplier / sqrt(fraction), sensitivity, self.noise)

    def check_noise(self) -> None:
        """Reject noise that is too large for the grid; before the charge."""
        size = self.problem.n_columns
        self.spreads().scale(size + 1)
        self.target_spread().scale(1)
        if self.center_fraction > 0:
            self.sums().scale(size + 2)
        self.descent.check_noise()

    @property
    def event(self) -> Event:
        # [adaptive-moments:fractions] the squared parameters of Gaussian mechanisms add
        # up, and the descent has what is left
        first = [self.center_fraction] if self.center_fraction > 0 else []
        before = (*first, self.spread_fraction, self.spread_fraction)
        units = (GaussianNoise(self.multiplier / sqrt(part)) for part in before)
        return Composed((*units, self.descent.event))


def spread_fraction(center_fraction: float) -> float:
    """Return the fraction of either spread, given that of the sums."""
    return SPREAD_FRACTION * (1 - center_fraction) / 2


def descent_plan(
    problem: Problem,
    budget: Budget,
    multiplier: float,
    center_fraction: float,
    noise: str,
) -> PreconditionedGDPlan:
    """Return the plan of a descent on standardized rows, with the rest of the budget.

    Rows are in a unit ball and targets in units of their spread, so that noise on the
    mean of gradients is in proportion to the clip of residuals. On the predictions of
    rows that are even in all directions it is then larger by the number of columns,
    after full Newton steps.
    """
    rest = 1 - center_fraction - 2 * spread_fraction(center_fraction)
    bounds = RowBounds(1.0, y_range=(-FARTHEST, FARTHEST))
    if problem.constant is not None:
        bounds = bounds.with_intercept(CONSTANT)
    changed, size = budget.neighbors.rows_changed, problem.n_features
    entry = multiplier / sqrt(rest) / problem.n_rows
    level = changed * entry
    clip = min(max(RESIDUAL_CLIP, NEGLIGIBLE / (size * level)), FARTHEST)
    gradient = sqrt(size) * level * RESIDUAL_CLIP
    n_steps = round(min(max(gradient / STEP_NOISE, FEWEST_STEPS), MOST_STEPS))
    gradient *= clip / RESIDUAL_CLIP
    # how far all steps together go, in units of a Newton step
    reach = STEP * n_steps / (1 - MOMENTUM)
    damping = BY_MOMENTS * sqrt(changed / MOMENT_FRACTION) * entry
    # rows are longer than even ones by one spread
    longer = (1 + 1 / sqrt(size)) ** 2
    damping += reach * (BY_GRADIENT * gradient + BY_SQUARE * longer * gradient**2)
    standard = replace(
        problem, loss=Huber(clip), bounds=bounds, ridge=0.0, constant=None
    )
    solver = PreconditionedGD(n_steps=n_steps, damping=damping, noise=noise)
    return solver.planner(standard, budget)(multiplier / sqrt(rest))
