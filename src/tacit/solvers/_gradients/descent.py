"""Noisy gradient descent: steps, clipped gradients and their sensitivity.

Every rule for the steps is a function of the number of rows planned for, the number of
features and outputs, the bounds and the budget. The constants were fitted on synthetic
problems: those for labels by ``benchmarks/fit_rule.py``, those for residuals by hand on
synthetic regressions. The clip of one class against the rest was also looked at on
digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, isfinite, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit._execution import steps
from tacit.convex import L2Ball, Logistic, Loss, OneVsRest, Softmax
from tacit.convex.foreign import is_foreign
from tacit.convex.losses import has_residuals
from tacit.convex.objective import MOST_ADDITIONS, chunks, gradient_roundoff
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.solvers._base import LARGEST_MARGIN, Problem

__all__ = [
    "ClippedGradient",
    "Descent",
    "DescentPlan",
    "at_zero",
    "capped_where_noisy",
    "checked_reach",
    "clip_needed",
    "derivative_clipped",
    "descend",
    "descent_rule",
    "entries_clipped",
    "finite_norms",
    "gradient_sensitivity",
    "gradient_unit",
    "largest_margin",
    "noise_fraction",
    "noise_level",
    "norm_clipped",
    "usual_clip",
]

Array = NDArray[np.float64]

# Where the noise is less than this part of the gradient, a cap moves the weights more
# than the noise that it saves: AMP then minimizes the logistic loss itself
NEGLIGIBLE = 3e-4

# Below this part, clipped derivatives of several outputs move the weights more than the
# noise that they save. Measured as error, log-loss and accuracy on synthetic softmax
# problems of 3 to 10 classes
UNCLIPPED = 1e-3

# Norms below have lost digits, as the squares of entries underflow
SMALL = 1e-140


def noise_level(problem: Problem, budget: Budget, derivative: float) -> float:
    """Return the norm of the noise that hides the gradient of one row, once."""
    sensitivity = budget.neighbors.rows_changed * derivative * problem.bounds.x_norm
    size = problem.size
    return sensitivity * _multiplier(budget) * sqrt(size)


@lru_cache(maxsize=128)
def _multiplier(budget: Budget) -> float:
    # several rules of one fit need it
    return calibrate(GaussianNoise, budget, rtol=1e-3)


def capped_where_noisy(problem: Problem, budget: Budget) -> Loss:
    """Return the logistic loss with a cap of one half, if noise matters.

    At zero weights every derivative is one half. Letting rows on the wrong side count
    no more than that halves the sensitivity, for a loss that still ranks alike.
    """
    loss = problem.loss
    one = loss.loss if isinstance(loss, OneVsRest) else loss
    if not isinstance(one, Logistic) or budget.delta == 0:
        return loss
    level = noise_level(problem, budget, derivative=1.0) / problem.n_rows
    if level / gradient_unit(problem) <= NEGLIGIBLE:
        return loss
    capped = Logistic(cap=0.5)
    return replace(loss, loss=capped) if isinstance(loss, OneVsRest) else capped


def gradient_unit(problem: Problem) -> float:
    """Return the gradient of a row that is off by a margin of one or a largest target.

    Rules are in this unit, so that nothing depends on the units of the features.
    """
    if not has_residuals(problem.loss):
        return problem.bounds.x_norm
    return problem.bounds.x_norm * problem.largest_target


def noise_fraction(problem: Problem, budget: Budget) -> float:
    """Return the noise of one release as a part of the largest gradient of all rows."""
    derivative = problem.loss.max_derivative(inf, problem.bounds.y_range)
    return noise_level(problem, budget, derivative) / (
        problem.n_rows * gradient_unit(problem)
    )


def usual_clip(problem: Problem, budget: Budget) -> float:
    """Return the clip of descents: a typical derivative, none where noise is low."""
    start = at_zero(problem)
    steepest = problem.loss.max_derivative(inf, problem.bounds.y_range)
    if isfinite(steepest) and noise_fraction(problem, budget) < UNCLIPPED:
        return steepest
    return start.shrink * start.typical


@dataclass(frozen=True)
class Start:
    """Facts about a loss at zero weights, where every descent begins.

    ``typical`` is the norm that derivatives have, of which the part ``shrink`` is worth
    keeping, and ``curvature`` the largest eigenvalue of a row's Hessian.
    """

    typical: float
    shrink: float
    curvature: float


def at_zero(problem: Problem) -> Start:
    """Return the derivative and curvature that descents are planned for."""
    loss = problem.loss
    if isinstance(loss, Softmax):
        return Start(sqrt(1 - 1 / loss.n_classes), 0.7, 1 / loss.n_classes)
    if isinstance(loss, OneVsRest):
        # at zero all classes pull, later on that of the row: no more than one counts
        one = loss.loss
        typical = one.max_derivative(inf, problem.bounds.y_range)
        return Start(typical, 0.7, one.max_curvature())
    return Start(
        loss.max_derivative(inf, problem.bounds.y_range), 1.0, loss.max_curvature()
    )


@dataclass(frozen=True)
class Descent:
    """Steps, step size, momentum and derivative bound of a noisy descent."""

    n_steps: int
    step: float
    momentum: float
    clip: float


def descent_rule(
    problem: Problem, budget: Budget, clip: float | None = None
) -> Descent:
    """Return the steps of a noisy descent, with a given or the usual clip."""
    start = at_zero(problem)
    typical, shrink, curvature = start.typical, start.shrink, start.curvature
    if clip is not None:
        typical, shrink = clip, 1.0
    noise = noise_level(problem, budget, typical) / sqrt(problem.loss.n_outputs)
    unit = gradient_unit(problem)
    ratio = noise / (problem.n_rows * unit)
    n_steps = int(min(max(0.6 / ratio, 30), 100))
    momentum = 1 - 6 / n_steps
    # a step that is stable where the loss is most curved at zero weights
    stable = min(4 / 0.7, 1.3 / curvature)
    stable /= problem.n_rows * problem.bounds.x_norm**2
    # how far to go in all, as the sum of step sizes
    if has_residuals(problem.loss):
        going = residual_duration(problem, noise)
    else:
        going = unit / problem.bounds.x_norm**2 / (noise * (0.1 + ratio)) / shrink
    low_noise = going * (1 - momentum) / n_steps
    bound = usual_clip(problem, budget) if clip is None else clip
    return Descent(n_steps, min(stable, low_noise), momentum, bound)


def residual_duration(problem: Problem, noise: float) -> float:
    """Return the sum of step sizes of a descent on residuals, by their noise.

    Labels only need the side of a margin, targets its size, so less noise will do. The
    longer the way, the more of the signal is learned, up to all of it after one over
    the curvature, and the more noise is gathered. Here predictions are off by at most
    a third of the largest target, and by less where not all of the signal is learned.
    """
    size, x_norm = problem.size, problem.bounds.x_norm
    # noise of a prediction after one over the curvature, where rows are spread evenly
    off = sqrt(size) * noise / (problem.n_rows * gradient_unit(problem))
    learned = size / (problem.n_rows * x_norm**2)
    return learned * max(1.0, 0.3 / off) / (1 + 11 * off**2)


class DescentPlan(Protocol):
    """Parts of a plan that `descend` reads."""

    @property
    def problem(self) -> Problem: ...
    @property
    def n_steps(self) -> int: ...
    @property
    def step(self) -> float: ...
    @property
    def momentum(self) -> float: ...


def descend(
    plan: DescentPlan,
    label: str,
    noisy_gradient: Callable[[Array], Array],
    reach: float = LARGEST_MARGIN,
) -> Iterator[Array]:
    """Yield the weights after each of the planned steps, from zero on.

    ``reach`` is the margin up to which gradients are taken where no set is larger.
    """
    problem, penalty = plan.problem, plan.problem.regularizer
    ball = L2Ball(largest_margin(problem, reach) / problem.bounds.x_norm)
    W = np.zeros(problem.shape)
    ahead = W  # where the gradient is taken: Nesterov's look ahead
    for _ in steps(plan.n_steps, label):
        moved = penalty.prox(ahead - plan.step * noisy_gradient(ahead), plan.step)
        moved = ball.prox(moved, 1.0)
        ahead = ball.prox(moved + plan.momentum * (moved - W), 1.0)
        W = moved
        yield W


def clip_needed(problem: Problem, clip: float) -> float:
    """Return the clip, or infinity where the loss bounds its derivative as tightly.

    What a loss from outside of the library states is not proved, and is enforced.
    """
    steepest = problem.loss.max_derivative(inf, problem.bounds.y_range)
    # [noisy-gd:foreign]
    return clip if is_foreign(problem.loss) or clip < steepest else inf


def largest_margin(problem: Problem, reach: float = LARGEST_MARGIN) -> float:
    """Return the margin up to which gradients are taken."""
    radius = problem.regularizer.radius
    if not isfinite(radius):
        return reach
    # a set that reaches further needs no clipping
    return max(reach, problem.bounds.x_norm * radius)


def derivative_clipped(problem: Problem, W: Array, clip: float) -> ClippedGradient:
    """Return the sum of gradients, clipped by derivative.

    It takes weights within ``largest_margin(problem) / x_norm`` only, as
    `gradient_sensitivity` holds for no others.
    """
    checked_reach(problem, W)
    return ClippedGradient(problem.loss, W, clip_needed(problem, clip))


def checked_reach(problem: Problem, W: Array) -> None:
    """Raise where weights are beyond those that gradients are bounded at."""
    # [noisy-gd:reach] a mistake of the solver, whatever the rows are
    reach = largest_margin(problem) / problem.bounds.x_norm
    assert float(np.linalg.norm(W)) <= reach * (1 + 1e-9), "project the weights first"


def gradient_sensitivity(
    problem: Problem,
    clip: float,
    neighbors: Neighbors,
    n_rows: int | None = None,
    additions: int = MOST_ADDITIONS,
) -> float:
    """Return how far neighbors can move a computed sum of clipped gradients.

    The sum is over ``n_rows`` rows, or as many as round-off is bounded for. It holds at
    weights of norm at most ``largest_margin(problem) / x_norm`` only: a solver projects
    its weights on that ball before each gradient, as `descend` does.
    """
    x_norm, reach = problem.bounds.x_norm, largest_margin(problem)
    roundoff = gradient_roundoff(
        n_rows=problem.most_rows if n_rows is None else n_rows,
        shape=problem.shape,
        additions=additions,
        x_norm=x_norm,
        derivative=max(
            clip, problem.loss.max_derivative(reach, problem.bounds.y_range)
        ),
        # clipping the derivative to a ball does not make it steeper
        curvature=problem.loss.max_curvature(),
        w_norm=reach / x_norm,
    )
    # [noisy-gd:sensitivity] the rows changed, and the round-off of both sums
    return neighbors.rows_changed * clip * x_norm + 2 * roundoff


@dataclass(frozen=True, eq=False)
class ClippedGradient:
    """Sum over a block of the rows' gradients, derivatives clipped to ``clip``."""

    loss: Loss
    W: Array
    clip: float

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        total = np.zeros(self.W.shape)
        for part, targets in chunks(X, y):
            derivative = self.loss.derivative(targets, part @ self.W)
            total += part.T @ norm_clipped(derivative, self.clip)
        return (total,)


def norm_clipped(derivative: Array, clip: float) -> Array:
    """Clip derivatives to ``clip``, in place if possible; no-op where it is infinite.

    Derivatives without a finite norm, as only a wrong loss has them, become zero.
    """
    if clip < inf:
        derivative, norms = finite_norms(derivative)
        # a few units below the bound, as the norm is rounded
        limit = clip * (1 - 1e-14)
        derivative *= (limit / np.maximum(norms, limit))[:, None]
    return derivative


def finite_norms(derivative: Array) -> tuple[Array, Array]:
    """Return derivatives and their norms; those without a finite norm become zero.

    Only a wrong loss has them, and one such row would decide the whole sum.
    """
    derivative = np.require(derivative, np.float64, "W")
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", derivative, derivative))
    small = norms < SMALL
    if small.any():
        # [noisy-gd:small] squares that underflow are taken of multiples
        rows = derivative[small]
        scale = np.abs(rows).max(axis=1, initial=0.0)
        unit = rows / np.where(scale > 0, scale, 1.0)[:, None]
        norms[small] = scale * np.sqrt(np.einsum("ij,ij->i", unit, unit))
    lost = ~np.isfinite(norms)
    derivative[lost], norms[lost] = 0.0, 0.0
    return derivative, norms


def entries_clipped(derivative: Array, bound: float) -> Array:
    """Return derivatives with each entry clipped, and zero where it is NaN."""
    clipped = np.clip(derivative, -bound, bound)
    return np.nan_to_num(clipped, copy=False, posinf=bound, neginf=-bound)
