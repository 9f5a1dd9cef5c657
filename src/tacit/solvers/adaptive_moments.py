"""Private least squares on rows in units that earlier releases have found."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from numpy.random import Generator

from tacit._validate import plain
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.solvers._base import Problem, Result, Solver, require_delta
from tacit.solvers._least_squares.adaptive_plan import (
    COUNT_WEIGHT,
    NORM_WEIGHT,
    AdaptiveMomentsPlan,
    descent_plan,
)
from tacit.solvers._least_squares.adaptive_rounds import Rounds, final_weights
from tacit.solvers._least_squares.quadratic import require_squared
from tacit.solvers.preconditioned_gd import MOST_FEATURES

__all__ = ["AdaptiveMoments", "AdaptiveMomentsPlan"]

# Fraction of the squared privacy parameter that sums get, with and without an
# intercept, and weight of the targets among them: little, as the mean is found again
# with derivatives
CENTER_FRACTION, COUNT_FRACTION, TARGET_WEIGHT = 0.05, 0.05, 2.0
# More of the budget by this times the noise on a mean, and by up to this where noise on
# all derivatives is so much, in units of a mean, that they are lost
MORE_CENTER, LOST_CENTER, MOST_CENTER, MOST_WEIGHT = 1.0, 0.8, 0.9, 1e3
LOST = 3.0


@dataclass(frozen=True)
class AdaptiveMoments(Solver[AdaptiveMomentsPlan]):
    """Least squares by a preconditioned descent in the units that the rows have.

    Bounds are wide and rows are not: noise in proportion to bounds hides features that
    fill little of their range. Here means come first, then mean distances from them,
    each with a little of the budget. Features and targets are centered and scaled by
    these and clipped where few rows are, so that noise is in proportion to their
    spread. A fiftieth of the rest buys second moments of these rows, and a descent
    along noisy Newton directions has what is left. Its clip of residuals, its damping
    and its number of steps follow the noise.

    Parameters
    ----------
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy with parameter ``1 / multiplier``,
    exactly, under both relations: every release is a Gaussian mechanism whose squared
    parameter is its fraction, and may depend on those before (Dong, Roth and Su 2022,
    Corollary 3.3). Rows are clipped after they are moved, so bounds hold for whatever
    was released. Scaling by what was released before is the idea of [1]_.

    References
    ----------
    .. [1] S. Biswas, Y. Dong, G. Kamath and J. Ullman, "CoinPress: practical private
       mean and covariance estimation", NeurIPS 2020.
    """

    saved = True
    name = "adaptive_moments"

    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)

    def plan(self, problem: Problem, budget: Budget) -> AdaptiveMomentsPlan:
        """Divide the budget, then take the least noise that fits."""
        # long: one field of the plan after another
        _reject(problem, budget)
        multiplier = calibrate(GaussianNoise, budget)
        neighbors, size = budget.neighbors, problem.n_columns
        changed = neighbors.rows_changed
        counted = COUNT_WEIGHT if neighbors is Neighbors.ADD_OR_REMOVE_ONE else 0.0
        center, target_weight = COUNT_FRACTION if counted else 0.0, 0.0
        if problem.constant is not None:
            level = changed * multiplier / problem.n_rows
            lost = (size * level / LOST) ** 2
            more = MORE_CENTER * level + LOST_CENTER * lost / (1 + lost)
            center = min(MOST_CENTER, CENTER_FRACTION + more)
            target_weight = TARGET_WEIGHT + min(lost, MOST_WEIGHT)
        normed = sqrt(1 + NORM_WEIGHT**2)
        summed = sqrt(1 + target_weight**2)
        row = sqrt(summed**2 + counted**2)
        plan = AdaptiveMomentsPlan(
            problem,
            neighbors,
            multiplier,
            center,
            target_weight,
            # [adaptive-moments:sums] opposite rows, or one row and its count
            _computed(2 * summed if changed == 2 else row, row, problem),
            # [adaptive-moments:spreads] vectors without a negative entry
            _computed(sqrt(changed) * normed, normed, problem),
            # [adaptive-moments:target] a number from zero to one
            _computed(1.0, 1.0, problem),
            descent_plan(problem, budget, multiplier, center, self.noise),
            self.noise,
        )
        plan.check_noise()
        return plan

    def run(self, plan: AdaptiveMomentsPlan, rows: Rows, rng: Generator) -> Result:
        """Release sums and spreads, then descend in these units."""
        rounds = Rounds(plan, rows, rng)
        center = rounds.center()
        found = rounds.descended(rounds.standard(center))
        return Result(final_weights(plan.problem, found, center.count))


def _computed(exact: float, row: float, problem: Problem) -> float:
    """Return the sensitivity of a computed sum, whose rows have at most this norm."""
    return exact + 2 * problem.moment_roundoff(row)


def _reject(problem: Problem, budget: Budget) -> None:
    require_squared(problem, "AdaptiveMoments", "AMP or NoisyGD")
    problem.require_l2_rows("AdaptiveMoments")
    problem.check_penalty("AdaptiveMoments", "AdaSSP for a ball, or NoisyGD")
    require_delta(
        budget, "AdaptiveMoments", "OutputPerturbation with a set, or AMP with one"
    )
    if not 1 <= problem.n_columns <= MOST_FEATURES:
        raise PlanError(
            f"AdaptiveMoments takes 1 to {MOST_FEATURES} columns, got "
            f"{problem.n_columns}; use NoisyGD."
        )
