"""Penalties, steps and solvers chosen from public facts alone.

Every rule is a function of the number of rows planned for, the number of features and
outputs, the bounds and the budget. The constants were fitted on synthetic problems
only, by ``benchmarks/fit_rule.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

from tacit.convex import Logistic, Loss, Softmax, gradient_roundoff
from tacit.convex.objective import MOST_ADDITIONS
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.solvers._base import LARGEST_MARGIN, Problem

__all__ = [
    "INTERCEPT_SHARE",
    "Descent",
    "capped_where_noisy",
    "descent_rule",
    "gradient_tolerance",
    "noise_level",
    "ridge_rule",
]

# Value of the constant feature, in units of the row norm
INTERCEPT_SHARE = 0.25

# Where the noise is less than this part of the gradient, there is nothing to save
NEGLIGIBLE = 1e-5


def noise_level(problem: Problem, budget: Budget, slope: float) -> float:
    """Return the norm of the noise that hides the gradient of one row, once."""
    sensitivity = budget.neighbors.rows_changed * slope * problem.bounds.x_norm
    size = problem.size
    return sensitivity * calibrate(GaussianNoise, budget, rtol=1e-3) * sqrt(size)


def capped_where_noisy(problem: Problem, budget: Budget) -> Loss:
    """Return the logistic loss with its slope capped at one half, if noise matters.

    At zero weights every slope is one half. Letting rows on the wrong side count no
    more than that halves the sensitivity, for a loss that still ranks alike.
    """
    if not isinstance(problem.loss, Logistic) or budget.delta == 0:
        return problem.loss
    level = noise_level(problem, budget, slope=1.0) / problem.n_rows
    return Logistic(cap=0.5) if level > NEGLIGIBLE else problem.loss


def ridge_rule(problem: Problem, budget: Budget) -> float:
    """Return the ridge for a tilted objective, in sum units."""
    slope = problem.loss.max_slope(inf, problem.bounds.y_range)
    noise = noise_level(problem, budget, slope)
    share = noise / problem.n_rows
    # what the noise asks for, and what keeps the determinant cheap
    wanted = noise * (0.04 + 4 * share + 40 * share**2)
    cheap = 1.5 * problem.bounds.x_norm**2 / budget.epsilon
    return max(wanted, cheap)


@dataclass(frozen=True)
class Descent:
    """Steps, step size, momentum and slope bound of a noisy descent."""

    n_steps: int
    step: float
    momentum: float
    clip: float


def descent_rule(
    problem: Problem, budget: Budget, clip: float | None = None
) -> Descent:
    """Return the steps of a noisy descent, for slopes cut at ``clip`` if given."""
    loss = problem.loss
    if isinstance(loss, Softmax):
        # every slope has this norm at zero weights, and a little less serves better
        typical, shrink = sqrt(1 - 1 / loss.n_classes), 0.7
        curvature = 1 / loss.n_classes
    else:
        typical, shrink = loss.max_slope(inf, problem.bounds.y_range), 1.0
        curvature = loss.max_curvature()
    if clip is not None:
        typical, shrink = clip, 1.0
    noise = noise_level(problem, budget, typical) / sqrt(loss.n_outputs)
    share = noise / problem.n_rows
    n_steps = int(min(max(0.6 / share, 30), 100))
    momentum = 1 - 6 / n_steps
    # a step that is stable where the loss is most curved at zero weights
    stable = min(4 / 0.7, 1.3 / curvature)
    stable /= problem.n_rows * problem.bounds.x_norm**2
    quiet = (1 - momentum) / (n_steps * noise * (0.1 + share)) / shrink
    return Descent(n_steps, min(stable, quiet), momentum, shrink * typical)


def gradient_tolerance(
    problem: Problem, neighbors: Neighbors, sensitivity: float
) -> float:
    """Return the gradient norm to certify: far below the noise, above round-off.

    Where the number of rows is private it must be within reach for any number of them,
    or failing would tell.
    """
    private = neighbors is Neighbors.ADD_OR_REMOVE_ONE
    x_norm = problem.bounds.x_norm
    roundoff = gradient_roundoff(
        n_rows=problem.most_rows if private else max(problem.n_rows, 2**20),
        shape=problem.shape,
        additions=MOST_ADDITIONS,
        x_norm=x_norm,
        slope=problem.loss.max_slope(inf, problem.bounds.y_range),
        curvature=problem.loss.max_curvature(),
        # weights of this norm have margins far beyond any useful model
        w_norm=LARGEST_MARGIN / x_norm,
    )
    return max(1e-6 * sensitivity, 2 * roundoff)
