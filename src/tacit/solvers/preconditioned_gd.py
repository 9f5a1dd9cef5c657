"""Noisy gradient descent in the geometry of privately released second moments."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import at_least, if_given, plain, positive
from tacit.convex.objective import chunks, second_moments
from tacit.data import Rows
from tacit.data.rows import BlockFunction
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian
from tacit.mechanisms.additive import SymmetricGaussian
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, Composed, Event, GaussianNoise, Repeated, calibrate
from tacit.solvers._base import (
    Problem,
    Result,
    Solver,
    SolverPlan,
    require_delta,
)
from tacit.solvers._gradients.descent import (
    at_zero,
    derivative_clipped,
    descend,
    gradient_sensitivity,
    gradient_unit,
    noise_level,
    usual_clip,
)
from tacit.solvers._gradients.response import (
    Landing,
    cleaned_eigenvalues,
    descent_noise,
)

__all__ = [
    "MOST_FEATURES",
    "PreconditionedGD",
    "PreconditionedGDPlan",
]

Array = NDArray[np.float64]

# Columns up to which a matrix of second moments is worth its noise, time and memory
MOST_FEATURES = 2000

# The rule: the best of a random search over problems like those of
# benchmarks/synthetic_problems.py; fit_rule.py there prints what lies around it
MOMENT_FRACTION = 0.02  # of the squared privacy parameter
STEP = 0.8  # of a Newton step at zero weights
MOMENTUM = 0.8
# Damping by the noise on the moments, and by that on a gradient: less of the latter
# below a limit, where the good weights may be long
BY_MOMENTS, BY_GRADIENT, LIMIT = 0.5, 0.04, 0.001
STEPS_ONE, STEPS_SEVERAL = 30, 20  # for one output, for several


@dataclass(frozen=True)
class PreconditionedGDPlan(SolverPlan):
    """Steps, damping and both noises, fixed without data."""

    clips_derivatives = True

    problem: Problem
    n_steps: int
    step: float
    momentum: float
    clip: float
    damping: float
    curvature: float
    moment_multiplier: float
    moment_sensitivity: float
    multiplier: float
    sensitivity: float
    noise: str = "grid"

    @property
    def moments(self) -> SymmetricGaussian:
        """What draws the noise of the second moments."""
        return SymmetricGaussian(
            self.moment_multiplier, self.moment_sensitivity, self.noise
        )

    @property
    def mechanism(self) -> Gaussian:
        """What draws the noise of one step."""
        return Gaussian(self.multiplier, self.sensitivity, self.noise)

    def check_noise(self) -> None:
        """Reject noise that is too large for the grid; before the charge."""
        self.mechanism.scale(self.problem.size)
        self.moments.scale(self.problem.n_features)

    @property
    def event(self) -> Event:
        return Composed(
            (
                GaussianNoise(self.moment_multiplier),
                Repeated(GaussianNoise(self.multiplier), self.n_steps),
            )
        )


@dataclass(frozen=True)
class PreconditionedGD(Solver[PreconditionedGDPlan]):
    """Preconditioned gradient descent, along noisy Newton directions.

    A fiftieth of the budget buys ``X^T X`` with noise. Its inverse, damped as much as
    the noise requires, turns noisy gradients into nearly Newton steps, of which a few
    suffice: features that are far from centered or of unequal spread cost no accuracy,
    and the noise of each step is that of few steps instead of many.

    Parameters
    ----------
    n_steps
        Number of steps; None for the rule.
    damping
        Number added to the eigenvalues of the mean of ``x x^T``; None for the rule.
    clip
        Bound on the norm of a row's derivative, below that of the loss; None for the
        rule.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy, exactly, under both relations: the
    moments are one Gaussian mechanism, each step another (Dong, Roth and Su 2022,
    Corollary 3.3); the inverse is post-processing. A row moves the moments by at most
    ``x_norm^2`` in Frobenius norm, a replacement by the root of two times that.
    """

    saved = True
    name = "preconditioned_gd"
    clips = True

    n_steps: int | None = None
    damping: float | None = None
    clip: float | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)

    def plan(self, problem: Problem, budget: Budget) -> PreconditionedGDPlan:
        """Choose steps and damping, then the least noise that fits."""
        planned = self.planner(problem, budget)
        plan = planned(calibrate(lambda noise: planned(noise).event, budget))
        plan.check_noise()
        return plan

    def planner(
        self, problem: Problem, budget: Budget
    ) -> Callable[[float], PreconditionedGDPlan]:
        """Return what plans for one Gaussian mechanism of a given multiplier.

        For algorithms of which this is a part, with the budget of the whole.
        """
        # long: one field of the plan after another
        self._reject(problem, budget)
        if_given(positive, clip=self.clip)
        start = at_zero(problem)
        clip = usual_clip(problem, budget) if self.clip is None else self.clip
        problem.require_bounded_derivative(
            "PreconditionedGD", clip, "use Huber(), or pass clip="
        )
        several = problem.loss.n_outputs > 1
        n_steps = self.n_steps
        if n_steps is None:
            n_steps = STEPS_SEVERAL if several else STEPS_ONE
        at_least(1, n_steps=n_steps)
        damping = self.damping
        if damping is None:
            damping = damping_rule(problem, budget, n_steps, clip)
        positive(damping=damping)

        squared = problem.bounds.x_norm**2
        # [preconditioned:moments] two matrices x x^T are at most orthogonal, and the
        # round-off of both sums
        moved = sqrt(budget.neighbors.rows_changed) * squared
        moved += 2 * problem.moment_roundoff(squared)

        def planned(multiplier: float) -> PreconditionedGDPlan:
            # one Gaussian mechanism of this multiplier, split into a small and a large
            # part
            return PreconditionedGDPlan(
                problem,
                n_steps,
                STEP,
                MOMENTUM,
                clip,
                damping,
                start.curvature,
                multiplier / sqrt(MOMENT_FRACTION),
                moved,
                multiplier * sqrt(n_steps / (1 - MOMENT_FRACTION)),
                gradient_sensitivity(problem, clip, budget.neighbors),
                self.noise,
            )

        return planned

    def _reject(self, problem: Problem, budget: Budget) -> None:
        problem.check_penalty("PreconditionedGD", "NoisyGD or AMP")
        require_delta(budget, "PreconditionedGD", "AMP")
        problem.require_l2_rows("PreconditionedGD")
        problem.require_smooth("PreconditionedGD")
        if problem.n_columns > MOST_FEATURES:
            raise PlanError(
                f"PreconditionedGD takes up to {MOST_FEATURES} columns, got "
                f"{problem.n_columns}; use NoisyGD."
            )

    def run(self, plan: PreconditionedGDPlan, rows: Rows, rng: Generator) -> Result:
        """Release the moments, then take the planned number of steps."""
        landing = self.landing(plan, rows, rng)
        return Result(landing.W, descent_noise(plan, landing))

    def landing(
        self,
        plan: PreconditionedGDPlan,
        rows: Rows,
        rng: Generator,
        sums: Sums | None = None,
    ) -> Landing:
        """Do what `run` does, and return everything that it released.

        For algorithms of which this is a part. ``sums`` is what is summed over blocks
        where rows are not features; None for features.
        """
        problem = plan.problem
        sums = sums or FeatureSums(problem, plan.clip)
        path: list[tuple[Array, Array]] = []
        noisy = plan.moments(rows.sum(sums.moments)[0], rng)
        root = _preconditioner_root(plan, noisy)
        direction = root @ root.T

        def noisy_direction(W: Array) -> Array:
            total = rows.sum(sums.gradient(W))[0]
            gradient = plan.mechanism(total, rng)
            path.append((W, gradient))
            step = direction @ (gradient + problem.ridge * W)
            return np.asarray(step, dtype=np.float64)

        (W,) = deque(descend(plan, "PreconditionedGD", noisy_direction), maxlen=1)
        return Landing(
            W,
            root,
            noisy,
            plan.moments.scale(problem.n_features),
            plan.mechanism.scale(problem.size),
            tuple(path),
        )


class Sums(Protocol):
    """What a descent sums over rows."""

    def moments(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        """Return the sum of ``x x^T`` over a block."""
        ...

    def gradient(self, W: Array) -> BlockFunction:
        """Return what sums clipped gradients at these weights over a block."""
        ...


@dataclass(frozen=True)
class FeatureSums:
    """Sums over rows of features."""

    problem: Problem
    clip: float

    def moments(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        """Return the sum of ``x x^T`` over a block."""
        total = np.zeros((self.problem.n_features, self.problem.n_features))
        for part, _ in chunks(X, y):
            total += second_moments(part)
        return (total,)

    def gradient(self, W: Array) -> BlockFunction:
        """Return what sums clipped gradients at these weights over a block."""
        return derivative_clipped(self.problem, W, self.clip)


def _preconditioner_root(plan: PreconditionedGDPlan, noisy: Array) -> Array:
    """Return R with ``R R^T`` the inverse of the damped Hessian at zero weights."""
    spread, axes = np.linalg.eigh(noisy)
    scale = plan.moments.scale(plan.problem.n_features)
    # the exact moments have no negative eigenvalue
    spread = np.maximum(cleaned_eigenvalues(spread, scale), 0.0)
    spread += plan.damping * plan.problem.n_rows
    root: Array = axes / np.sqrt(plan.curvature * spread + plan.problem.ridge)
    return root


def damping_rule(
    problem: Problem,
    budget: Budget,
    n_steps: int,
    clip: float,
    by_moments: float = BY_MOMENTS,
) -> float:
    """Return what to add to the eigenvalues of the mean of ``x x^T``.

    ``by_moments`` is the coefficient of the noise on the moments.
    """
    start = at_zero(problem)
    typical = min(start.typical, clip)  # where the loss has no bound, the clip is all
    squared = problem.bounds.x_norm**2
    once = calibrate(GaussianNoise, budget, rtol=1e-3)
    # the norm that a symmetric noise matrix has
    rows_changed = budget.neighbors.rows_changed
    moments = once / sqrt(MOMENT_FRACTION) * sqrt(rows_changed) * squared
    moments *= sqrt(2 * problem.n_features) / problem.n_rows
    noise = noise_level(problem, budget, typical) / sqrt(problem.loss.n_outputs)
    ratio = noise / (problem.n_rows * gradient_unit(problem))
    # how far all steps together go, in units of one
    reach = STEP * n_steps / ((1 - MOMENTUM) * start.curvature)
    by_gradient = BY_GRADIENT * min(1.0, ratio / LIMIT)
    low_noise = reach * ratio * (by_gradient + ratio) * clip / typical
    return by_moments * moments + low_noise * squared
