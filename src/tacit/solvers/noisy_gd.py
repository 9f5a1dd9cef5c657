"""Noisy gradient descent over all rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import at_least, fraction, positive
from tacit.convex import L2Ball, Loss, gradient_roundoff
from tacit.convex.objective import MOST_ADDITIONS, chunks
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian
from tacit.mechanisms.grid import check_noise
from tacit.privacy import Budget, Event, GaussianNoise, Neighbors, Repeated, calibrate
from tacit.solvers._base import LARGEST_MARGIN, Problem, noise_assumptions
from tacit.solvers._rules import descent_rule

__all__ = ["NoisyGD", "NoisyGDPlan"]


@dataclass(frozen=True)
class NoisyGDPlan:
    """Steps and noise, fixed without data."""

    problem: Problem
    n_steps: int
    step: float
    momentum: float
    clip: float
    multiplier: float
    sensitivity: float
    noise: str = "grid"

    @property
    def mechanism(self) -> Gaussian:
        """What draws the noise of one step."""
        return Gaussian(self.multiplier, self.sensitivity, self.noise)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return noise_assumptions(self.noise)

    @property
    def event(self) -> Event:
        return Repeated(GaussianNoise(self.multiplier), self.n_steps)


@dataclass(frozen=True)
class NoisyGD:
    """Gradient descent with momentum, each gradient with Gaussian noise.

    Parameters
    ----------
    n_steps
        Number of steps; None for the rule.
    step
        Step size on the summed objective; None for the rule.
    momentum
        Weight of the last move in the next; None for the rule.
    clip
        Bound on the norm of a row's slope, below that of the loss; None for the rule.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy with parameter ``sqrt(n_steps) /
    multiplier``, exactly, under both relations: no sampling, no approximation (Dong,
    Roth and Su 2022, Corollary 3.3). A row moves the sum of gradients by at most the
    clipped slope times its norm; what floating-point sums can add to that is bounded
    and included.
    """

    n_steps: int | None = None
    step: float | None = None
    momentum: float | None = None
    clip: float | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        check_noise(self.noise)

    def plan(self, problem: Problem, budget: Budget) -> NoisyGDPlan:
        """Choose the steps, then the least noise that fits."""
        if budget.delta == 0:
            raise PlanError("NoisyGD needs delta > 0; give a delta.")
        if self.clip is not None:
            positive(clip=self.clip)
        rule = descent_rule(problem, budget, self.clip)
        n_steps = rule.n_steps if self.n_steps is None else self.n_steps
        step = rule.step if self.step is None else self.step
        momentum = rule.momentum if self.momentum is None else self.momentum
        clip = rule.clip if self.clip is None else self.clip
        if not isfinite(clip):
            raise PlanError(
                f"NoisyGD needs a bounded slope, which {problem.loss!r} has not; give "
                "clip=, or use Huber()."
            )
        at_least(1, n_steps=n_steps)
        positive(step=step, clip=clip)
        fraction(momentum=momentum)
        if problem.bounds.norm != "l2":
            raise PlanError("NoisyGD needs rows bounded in norm='l2'.")
        if not isfinite(problem.loss.max_curvature()):
            raise PlanError(f"NoisyGD needs a smooth loss; {problem.loss!r} is not.")
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
            gradient_sensitivity(problem, clip, budget.neighbors),
            self.noise,
        )
        # noise too large for the grid is refused here, not after the charge
        plan.mechanism.scale(problem.size)
        return plan

    def run(self, plan: NoisyGDPlan, rows: Rows, rng: Generator) -> NDArray[np.float64]:
        """Take the planned number of steps."""
        problem = plan.problem
        ball = L2Ball(LARGEST_MARGIN / problem.bounds.x_norm)
        W = np.zeros(problem.shape)
        # a loss whose slope is bounded as tightly by itself needs no clipping
        bound = problem.loss.max_slope(inf, problem.bounds.y_range)
        limit = plan.clip if plan.clip < bound else inf
        ahead = W  # where the gradient is taken: Nesterov's look ahead
        for _ in range(plan.n_steps):
            total = rows.sum(ClippedGradient(problem.loss, ahead, limit))[0]
            gradient = plan.mechanism(total, rng) + problem.ridge * ahead
            moved = ball.prox(ahead - plan.step * gradient, 1.0)
            ahead = ball.prox(moved + plan.momentum * (moved - W), 1.0)
            W = moved
        return W


def gradient_sensitivity(problem: Problem, clip: float, neighbors: Neighbors) -> float:
    """Return how far neighbors can move a computed sum of clipped gradients."""
    x_norm = problem.bounds.x_norm
    roundoff = gradient_roundoff(
        n_rows=problem.most_rows,
        shape=problem.shape,
        additions=MOST_ADDITIONS,
        x_norm=x_norm,
        slope=max(clip, problem.loss.max_slope(LARGEST_MARGIN, problem.bounds.y_range)),
        # clipping the slope to a ball does not make it steeper
        curvature=problem.loss.max_curvature(),
        w_norm=LARGEST_MARGIN / x_norm,
    )
    # [noisy-gd:sensitivity] the rows changed, and the round-off of both sums
    return neighbors.rows_changed * clip * x_norm + 2 * roundoff


@dataclass(frozen=True, eq=False)
class ClippedGradient:
    """Sum over a block of the rows' gradients, slopes shortened to ``clip``."""

    loss: Loss
    W: NDArray[np.float64]
    clip: float

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[NDArray[np.float64]]:
        total = np.zeros(self.W.shape)
        for part, targets in chunks(X, y):
            slope = self.loss.slope(targets, part @ self.W)
            if self.clip < inf:
                norms = np.sqrt(np.einsum("ij,ij->i", slope, slope))
                # a few units below the bound, as the norm is rounded
                limit = self.clip * (1 - 1e-14)
                slope *= (limit / np.maximum(norms, limit))[:, None]
            total += part.T @ slope
        return (total,)
