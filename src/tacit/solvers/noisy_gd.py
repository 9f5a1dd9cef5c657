"""Noisy gradient descent over all rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._progress import steps
from tacit._validate import PlainNumbers, at_least, fraction, plain, positive
from tacit.convex import L2Ball, Loss
from tacit.convex.objective import MOST_ADDITIONS, chunks
from tacit.convex.roundoff import gradient_roundoff
from tacit.data import Rows
from tacit.mechanisms import Gaussian
from tacit.mechanisms.grid import check_noise
from tacit.privacy import Budget, Event, GaussianNoise, Neighbors, Repeated, calibrate
from tacit.solvers._base import (
    LARGEST_MARGIN,
    Problem,
    Result,
    Solver,
    plan_assumptions,
    require_delta,
)
from tacit.solvers._row_clip import (
    REACH,
    RowClippedGradient,
    check_clip_norm,
    row_clip_sensitivity,
)
from tacit.solvers._rules import descent_rule

__all__ = ["NoisyGD", "NoisyGDPlan"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NoisyGDPlan(PlainNumbers):
    """Steps and noise, fixed without data."""

    problem: Problem
    n_steps: int
    step: float
    momentum: float
    clip: float
    multiplier: float
    sensitivity: float
    noise: str = "grid"
    clip_norm: float | None = None

    @property
    def mechanism(self) -> Gaussian:
        """What draws the noise of one step."""
        return Gaussian(self.multiplier, self.sensitivity, self.noise)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return plan_assumptions(self.problem, self.noise)

    @property
    def event(self) -> Event:
        return Repeated(GaussianNoise(self.multiplier), self.n_steps)


@dataclass(frozen=True)
class NoisyGD(Solver[NoisyGDPlan]):
    """Gradient descent with momentum, each gradient with Gaussian noise.

    A penalty or a set enters by its proximal map after each step.

    Parameters
    ----------
    n_steps
        Number of steps; None for the rule.
    step
        Step size on the summed objective; None for the rule.
    momentum
        Weight of the last move in the next; None for the rule.
    clip
        Bound on the norm of a row's derivative, below that of the loss; None for the
        rule.
    noise
        ``"grid"`` or ``"float"``.
    clip_norm
        Bound on the norm of a row's gradient in place of ``clip``, as in DP-SGD: short
        rows may then have steep derivatives. None for the bound on derivatives.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy with parameter ``sqrt(n_steps) /
    multiplier``, exactly, under both relations: no sampling, no approximation (Dong,
    Roth and Su 2022, Corollary 3.3). A row moves the sum of gradients by at most the
    clipped derivative times its norm, or by ``clip_norm``; what floating-point sums can
    add to that is bounded and included.
    """

    saved = True
    name = "noisy_gd"
    clips = True

    n_steps: int | None = None
    step: float | None = None
    momentum: float | None = None
    clip: float | None = None
    noise: str = "grid"
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)

    def plan(self, problem: Problem, budget: Budget) -> NoisyGDPlan:
        """Choose the steps, then the least noise that fits."""
        require_delta(budget, "NoisyGD", "AMP")
        problem.require_l2_rows("NoisyGD")
        problem.require_smooth("NoisyGD")
        if self.clip is not None:
            positive(clip=self.clip)
        check_clip_norm(self.clip_norm, self.clip, problem.bounds.y_range)
        wanted = clip_for(problem, self.clip, self.clip_norm)
        rule = descent_rule(problem, budget, wanted)
        n_steps = rule.n_steps if self.n_steps is None else self.n_steps
        step = rule.step if self.step is None else self.step
        momentum = rule.momentum if self.momentum is None else self.momentum
        clip = rule.clip if wanted is None else wanted
        problem.require_bounded_derivative(
            "NoisyGD", clip, "give clip=, or use Huber()"
        )
        at_least(1, n_steps=n_steps)
        positive(step=step, clip=clip)
        fraction(momentum=momentum)
        multiplier = calibrate(
            lambda noise: Repeated(GaussianNoise(noise), n_steps), budget
        )
        plan = NoisyGDPlan(
            problem,
            n_steps,
            step,
            momentum,
            clip,
            multiplier,
            sum_sensitivity(problem, clip, self.clip_norm, budget.neighbors),
            self.noise,
            self.clip_norm,
        )
        # noise too large for the grid is rejected here, not after the charge
        plan.mechanism.scale(problem.size)
        return plan

    def run(self, plan: NoisyGDPlan, rows: Rows, rng: Generator) -> Result:
        """Take the planned number of steps."""
        problem = plan.problem

        def noisy_gradient(W: Array) -> Array:
            total = rows.sum(clipped_gradient(problem, W, plan.clip, plan.clip_norm))
            return plan.mechanism(total[0], rng) + problem.ridge * W

        iterates = descend(plan, "NoisyGD", noisy_gradient, reach_of(plan.clip_norm))
        (W,) = deque(iterates, maxlen=1)
        # once more for sets that the ball reaches out of
        return Result(problem.regularizer.prox(W, 0.0))


class DescentPlan(Protocol):
    """What `descend` reads of a plan."""

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


def clip_for(
    problem: Problem, clip: float | None, clip_norm: float | None = None
) -> float | None:
    """Return the given clip, or the derivative that a set allows, or None.

    Looking ahead may leave the set, where clipping keeps derivatives to that bound. A
    bound on gradients stands for the derivative of the longest rows.
    """
    if clip_norm is not None:
        return clip_norm / problem.bounds.x_norm
    anywhere = problem.loss.max_derivative(inf, problem.bounds.y_range)
    return (
        problem.max_derivative
        if clip is None and problem.max_derivative < anywhere
        else clip
    )


def clip_needed(problem: Problem, clip: float) -> float:
    """Return the clip, or infinity where the loss bounds its derivative as tightly."""
    return (
        clip if clip < problem.loss.max_derivative(inf, problem.bounds.y_range) else inf
    )


def largest_margin(problem: Problem, reach: float = LARGEST_MARGIN) -> float:
    """Return the margin up to which gradients are taken."""
    radius = problem.regularizer.radius
    if not isfinite(radius):
        return reach
    # a set that reaches further needs no clipping
    return max(reach, problem.bounds.x_norm * radius)


def reach_of(clip_norm: float | None) -> float:
    """Return that margin: far where no round-off depends on it."""
    return LARGEST_MARGIN if clip_norm is None else REACH


def clipped_gradient(
    problem: Problem, W: Array, clip: float, clip_norm: float | None
) -> ClippedGradient | RowClippedGradient:
    """Return the sum of gradients, clipped by derivative or by norm."""
    if clip_norm is not None:
        return RowClippedGradient(problem.loss, W, clip_norm)
    return ClippedGradient(problem.loss, W, clip_needed(problem, clip))


def sum_sensitivity(
    problem: Problem,
    clip: float,
    clip_norm: float | None,
    neighbors: Neighbors,
    n_rows: int | None = None,
    additions: int = MOST_ADDITIONS,
) -> float:
    """Return how far neighbors can move a computed sum of either kind."""
    if clip_norm is None:
        return gradient_sensitivity(problem, clip, neighbors, n_rows, additions)
    rows = problem.most_rows if n_rows is None else n_rows
    return row_clip_sensitivity(problem, clip_norm, neighbors, rows, additions)


def gradient_sensitivity(
    problem: Problem,
    clip: float,
    neighbors: Neighbors,
    n_rows: int | None = None,
    additions: int = MOST_ADDITIONS,
) -> float:
    """Return how far neighbors can move a computed sum of clipped gradients.

    The sum is over ``n_rows`` rows, or as many as round-off is bounded for.
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
    """Clip derivatives to ``clip`` in place; no-op where it is infinite."""
    if clip < inf:
        norms = np.sqrt(np.einsum("ij,ij->i", derivative, derivative))
        # a few units below the bound, as the norm is rounded
        limit = clip * (1 - 1e-14)
        derivative *= (limit / np.maximum(norms, limit))[:, None]
    return derivative
