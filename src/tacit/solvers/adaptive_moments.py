"""Private least squares from moments of rows that earlier releases have moved."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import one_of, plain
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.solvers._base import Problem, Result, Solver, require_delta
from tacit.solvers._least_squares.adaptive_plan import (
    CONSTANT,
    COUNT_WEIGHT,
    NORM_WEIGHT,
    AdaptiveMomentsPlan,
    crowd,
)
from tacit.solvers._least_squares.adaptive_rounds import Rounds, final_weights
from tacit.solvers._least_squares.quadratic import require_squared

__all__ = ["MOST_VIEWED", "AdaptiveMoments", "AdaptiveMomentsPlan"]

Array = NDArray[np.float64]

# Columns up to which a pass over moved rows is worth its time
MOST_VIEWED = 2000

# How often second moments are released: twice up to the quiet crowd, or once with too
# many columns for that; beyond, steps are taken instead, and with too many columns for
# those one step. Chosen by benchmarks/regression/fit_adaptive.py
TIMES, LOW_NOISE = ("steps", "never", "once", "twice"), 0.003
# Columns up to which twice, as the second time costs their square for each row, and in
# steps, as these are many passes over the rows
MOST_WHITENED, MOST_STEPPED = 300, 200

# Fraction of the squared privacy parameter that sums get, with and without an
# intercept, and weight of the targets among them: little, as the mean is found again
# with derivatives
CENTER_FRACTION, COUNT_FRACTION, TARGET_WEIGHT = 0.05, 0.05, 2.0
# More of the budget by this times the noise on a mean, and by up to this where noise on
# so many derivatives is so much that they are lost. Of many columns few are to be found
MORE_CENTER, LOST_CENTER, MOST_CENTER, MOST_WEIGHT = 1.0, 0.5, 0.9, 1e3
FEW_OF = 10.0


@dataclass(frozen=True)
class AdaptiveMoments(Solver[AdaptiveMomentsPlan]):
    """Least squares from noisy moments in the units that the rows turn out to have.

    Bounds are wide and rows are not: noise in proportion to bounds hides features that
    fill little of their range. Here means come first, then mean distances from them,
    each with a little of the budget. Features and targets are centered and scaled by
    these, clipped where few rows are, and only then multiplied with each other, so that
    the noise is in proportion to the spread of the rows. Mostly these products are
    gradients, for a descent that takes shorter steps the more noise there is. Where the
    budget is large they are moments, released twice: the second time with orthogonal
    features and with a first prediction subtracted from the targets. The noise of every
    release is known, so coefficients are averaged over priors, each weighted by how
    likely it makes what was released.

    Parameters
    ----------
    moments
        ``"once"`` or ``"twice"``; ``"steps"`` for gradients, one after the other;
        ``"never"`` for products of features with targets alone, few of which are then
        distinguished from noise, and a step along the direction that they give; None
        for the rule.
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

    moments: str | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        if self.moments is not None:
            one_of(TIMES, moments=self.moments)

    def plan(self, problem: Problem, budget: Budget) -> AdaptiveMomentsPlan:
        """Choose what to release, then the least noise that fits."""
        # long: one field of the plan after another
        _reject(problem, budget)
        multiplier = calibrate(GaussianNoise, budget)
        neighbors, size = budget.neighbors, problem.n_columns
        changed = neighbors.rows_changed
        level = changed * multiplier / problem.n_rows
        moments = _rule(problem, level) if self.moments is None else self.moments
        counted = COUNT_WEIGHT if neighbors is Neighbors.ADD_OR_REMOVE_ONE else 0.0
        center, target_weight, pulled = COUNT_FRACTION if counted else 0.0, 0.0, 1.0
        if problem.constant is not None:
            lost = (min(size, FEW_OF * sqrt(size)) * level) ** 2
            more = MORE_CENTER * level + LOST_CENTER * lost / (1 + lost)
            center = min(MOST_CENTER, CENTER_FRACTION + more)
            target_weight = TARGET_WEIGHT + min(lost, MOST_WEIGHT)
            pulled = sqrt(1 + CONSTANT**2)
        normed = sqrt(1 + NORM_WEIGHT**2)
        summed = sqrt(1 + target_weight**2)
        row = sqrt(summed**2 + counted**2)
        plan = AdaptiveMomentsPlan(
            problem,
            neighbors,
            moments,
            level,
            multiplier,
            center,
            target_weight,
            # [adaptive-moments:sums] opposite rows, or one row and its count
            _computed(2 * summed if changed == 2 else row, row, problem),
            # [adaptive-moments:spreads] vectors without a negative entry
            _computed(sqrt(changed) * normed, normed, problem),
            # [adaptive-moments:target] a number from zero to one
            _computed(1.0, 1.0, problem),
            # [adaptive-moments:second] two matrices x x^T are at most orthogonal
            _computed(sqrt(changed), 1.0, problem),
            # [adaptive-moments:pull] opposite residuals of the longest row
            _computed(changed * pulled, pulled, problem),
            self.noise,
        )
        # noise too large for the grid is rejected here, not after the charge
        least = min(plan.fractions)
        plan.pull(least).scale(size + 1)
        plan.second(least).scale(size)
        if center > 0:
            plan.sums().scale(size + 2)
        return plan

    def run(self, plan: AdaptiveMomentsPlan, rows: Rows, rng: Generator) -> Result:
        """Release sums, spreads and moments, each in the units of those before."""
        rounds = Rounds(plan, rows, rng)
        center = rounds.center()
        frame = rounds.standard(center)
        if plan.moments == "steps":
            found = rounds.stepped(frame)
        elif plan.moments == "never":
            found = rounds.along(frame)
        else:
            if plan.moments == "twice":
                frame = rounds.whitened(frame)
            found = rounds.fitted(frame)
        return Result(final_weights(plan.problem, found, center.count))


def _rule(problem: Problem, level: float) -> str:
    """Return what is released once the units are known."""
    crowded, size = crowd(problem, level), problem.n_columns
    if crowded < LOW_NOISE:
        return "twice" if size <= MOST_WHITENED else "once"
    return "steps" if size <= MOST_STEPPED else "never"


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
    if not 1 <= problem.n_columns <= MOST_VIEWED:
        raise PlanError(
            f"AdaptiveMoments takes 1 to {MOST_VIEWED} columns, got "
            f"{problem.n_columns}; use NoisyGD."
        )
