"""Noisy gradient descent over all rows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import at_least, fraction, plain, positive
from tacit.data import Rows
from tacit.mechanisms import Gaussian
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, Event, GaussianNoise, Repeated, calibrate
from tacit.solvers._base import Problem, Result, Solver, SolverPlan
from tacit.solvers._gradients.descent import descend, descent_rule
from tacit.solvers._gradients.row_clip import (
    clipped_gradient,
    reach_of,
    sum_sensitivity,
    wanted_clip,
)

__all__ = ["NoisyGD", "NoisyGDPlan"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NoisyGDPlan(SolverPlan):
    """Steps and noise, fixed without data."""

    clips_derivatives = True

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
    def event(self) -> Event:
        return Repeated(GaussianNoise(self.multiplier), self.n_steps)


@dataclass(frozen=True)
class NoisyGD(Solver[NoisyGDPlan]):
    """DP-GD: gradient descent with momentum, each gradient with Gaussian noise.

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
        Bound on the norm of a row's gradient instead of ``clip``, as in DP-SGD: short
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
        wanted = wanted_clip("NoisyGD", problem, budget, self.clip, self.clip_norm)
        rule = descent_rule(problem, budget, wanted)
        n_steps = rule.n_steps if self.n_steps is None else self.n_steps
        step = rule.step if self.step is None else self.step
        momentum = rule.momentum if self.momentum is None else self.momentum
        clip = rule.clip if wanted is None else wanted
        problem.require_bounded_derivative(
            "NoisyGD", clip, "use Huber(), or pass clip="
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
