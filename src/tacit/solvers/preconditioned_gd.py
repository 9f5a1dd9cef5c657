"""Noisy gradient descent in the geometry of privately released second moments."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import frexp, isfinite, ldexp, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import at_least, if_given, plain, positive
from tacit.convex import Logistic
from tacit.convex.objective import chunks, second_moments
from tacit.data import Rows
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
    WeightNoise,
    require_delta,
)
from tacit.solvers._gradients.descent import (
    at_zero,
    clip_needed,
    derivative_clipped,
    descend,
    gradient_sensitivity,
    gradient_unit,
    noise_level,
    usual_clip,
)

__all__ = [
    "MOST_FEATURES",
    "Landing",
    "PreconditionedGD",
    "PreconditionedGDPlan",
    "descent_noise",
]

Array = NDArray[np.float64]

# Columns up to which a matrix of second moments is worth its noise, time and memory
MOST_FEATURES = 2000

# The rule: the best of a random search over problems like those of
# benchmarks/synthetic_problems.py; fit_rule.py there prints what lies around it
MOMENT_FRACTION = 0.02  # of the squared privacy parameter
STEP = 0.8  # of a Newton step at zero weights
MOMENTUM = 0.8
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
        # long: one field of the plan after another, with noise found for all at once
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

        plan = planned(calibrate(lambda noise: planned(noise).event, budget))
        # noise too large for the grid is rejected here, not after the charge
        plan.mechanism.scale(problem.size)
        plan.moments.scale(problem.n_features)
        return plan

    def _reject(self, problem: Problem, budget: Budget) -> None:
        problem.check_penalty("PreconditionedGD", "NoisyGD or AMP")
        require_delta(budget, "PreconditionedGD", "AMP")
        problem.require_l2_rows("PreconditionedGD")
        problem.require_smooth("PreconditionedGD")
        if problem.n_features > MOST_FEATURES:
            raise PlanError(
                f"PreconditionedGD takes up to {MOST_FEATURES} columns, got "
                f"{problem.n_features}; use NoisyGD."
            )

    def run(self, plan: PreconditionedGDPlan, rows: Rows, rng: Generator) -> Result:
        """Release the moments, then take the planned number of steps."""
        problem = plan.problem
        noisy = plan.moments(rows.sum(Moments(problem.n_features))[0], rng)
        direction = _preconditioner(plan, noisy)

        def noisy_direction(W: Array) -> Array:
            total = rows.sum(derivative_clipped(problem, W, plan.clip))[0]
            gradient = plan.mechanism(total, rng) + problem.ridge * W
            return np.asarray(direction @ gradient, dtype=np.float64)

        (W,) = deque(descend(plan, "PreconditionedGD", noisy_direction), maxlen=1)
        landing = Landing(
            W,
            direction,
            noisy,
            plan.moments.scale(problem.n_features),
            plan.mechanism.scale(problem.size),
        )
        return Result(W, descent_noise(plan, landing))


@dataclass(frozen=True)
class Moments:
    """Sum over a block of ``x x^T``."""

    n_features: int

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        total = np.zeros((self.n_features, self.n_features))
        for part, _ in chunks(X, y):
            total += second_moments(part)
        return (total,)


def _preconditioner(plan: PreconditionedGDPlan, noisy: Array) -> Array:
    """Return the inverse of the noisy Hessian at zero weights, damped."""
    spread, axes = np.linalg.eigh(noisy)
    # the exact moments have no negative eigenvalue
    spread = np.maximum(spread, 0.0) + plan.damping * plan.problem.n_rows
    curved = plan.curvature * spread + plan.problem.ridge
    inverse: Array = (axes / curved) @ axes.T
    return inverse


def damping_rule(problem: Problem, budget: Budget, n_steps: int, clip: float) -> float:
    """Return what to add to the eigenvalues of the mean of ``x x^T``."""
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
    low_noise = reach * (0.04 * ratio + ratio**2) * clip / typical
    return 0.5 * moments + low_noise * squared


# Points of a normal distribution, and their weights
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# The noisy moments are moved by this many standard deviations of an entry, down and up:
# where any stated standard deviation changes by more than the factor, the moments do
# not settle it
DOUBT = 2.0
LEAST_CERTAIN = 1.25


@dataclass(frozen=True, eq=False)
class Landing:
    """Released numbers of a descent: its last weights and what led to them.

    ``moment_scale`` is the noise on the diagonal of ``moments``, ``scale`` that on
    each entry of a gradient.
    """

    W: Array
    direction: Array
    moments: Array
    moment_scale: float
    scale: float


def descent_noise(plan: PreconditionedGDPlan, landing: Landing) -> WeightNoise | None:
    """Return the noise of the last weights, or None where it does not show.

    For the logistic loss of two classes, as others do not determine what curvature
    their rows have, and where the moments are known well enough.
    """
    loss = plan.problem.loss
    if not isinstance(loss, Logistic) or isfinite(clip_needed(plan.problem, plan.clip)):
        return None
    values, axes = np.linalg.eigh(landing.moments)
    best = _cleaned(values, landing.moment_scale)
    doubt = DOUBT * landing.moment_scale
    stated, low, high = (
        _std(plan, loss, landing, (axes * np.maximum(spread, 0.0)) @ axes.T)
        for spread in (best, best + doubt, np.maximum(best, 0.0) - doubt)
    )
    certain = np.isfinite(stated) & (high <= LEAST_CERTAIN * low)
    if not bool(certain.all()):
        return None
    return WeightNoise(
        stated[:, None],
        "approximate: the response of the last steps to their noise, for rows that are "
        "about normal and weights near the minimum",
    )


def _cleaned(values: Array, scale: float) -> Array:
    """Return what the exact moments are along the axes of the noisy ones.

    Noise pushes eigenvalues apart; this takes it back (Bun, Allez, Bouchaud and Potters
    2016, for symmetric Gaussian noise).
    """
    unit = _unit(scale)
    gaps, scale = (values[:, None] - values) / unit, scale / unit
    push = gaps / (gaps**2 + 2 * scale**2)
    cleaned: Array = values - scale**2 * push.sum(axis=1) * unit
    return cleaned


def _unit(size: float) -> float:
    """Return what to divide numbers of a size by, so that their squares are numbers.

    One for usual sizes, and a power of two for others, which rounds nothing.
    """
    return 1.0 if 1e-70 < size < 1e70 else ldexp(1.0, frexp(size)[1])


def _std(
    plan: PreconditionedGDPlan, loss: Logistic, landing: Landing, moments: Array
) -> Array:
    """Return the standard deviation of the last weights, given exact moments."""
    unit = _unit(sqrt(float(np.abs(landing.direction).max()))) ** 2
    P = landing.direction / unit
    values, axes = np.linalg.eigh(P)
    root = (axes * np.sqrt(np.maximum(values, 0.0))) @ axes.T
    hessian = _hessian(plan, loss, moments, landing.W[:, 0])
    if hessian is None:
        return np.full(len(P), np.nan)
    contraction, basis = np.linalg.eigh(root @ (hessian * unit) @ root)
    response = _responses(plan, np.maximum(contraction, 0.0))
    spread = (response.T @ response) * (basis.T @ P @ basis)
    back = root @ basis
    variance: Array = np.einsum("ij,jk,ik->i", back, spread, back)
    return landing.scale * unit * np.sqrt(np.maximum(variance, 0.0))


def _hessian(
    plan: PreconditionedGDPlan, loss: Logistic, moments: Array, w: Array
) -> Array | None:
    """Return the Hessian at ``w`` of rows that are about normal with these moments.

    None where margins would have no spread, which is a sign of too much noise.

    Labels follow the model itself. A function f of the margin z has by Stein's identity
    ``E f(z) x x^T = E f C + E f'' C w w^T C`` for centered rows of covariance C, and
    the mean adds terms with f'.
    """
    problem, n = plan.problem, plan.problem.n_rows
    second = moments / n
    # without a constant feature the moments do not contain the mean
    constant = problem.constant
    mean = np.zeros(len(w)) if constant is None else second[-1] / constant
    covariance = second - np.outer(mean, mean)
    center = float(w @ mean)
    variance = float(w @ covariance @ w)
    if not variance > 0:
        return None
    width = sqrt(variance)
    z = center + width * NODES
    up = loss.probability(z)
    ones = np.ones(len(z))
    curved = up * loss.curvature(ones, z[:, None])[:, 0]
    curved += (1 - up) * loss.curvature(-ones, z[:, None])[:, 0]
    flat, tilt, bend = (
        float(WEIGHTS @ (curved * part)) for part in (ones, NODES, NODES**2 - 1)
    )
    along = covariance @ w / width
    hessian = flat * second + bend * np.outer(along, along)
    hessian += tilt * (np.outer(along, mean) + np.outer(mean, along))
    result: Array = n * hessian + problem.ridge * np.eye(len(w))
    return result


def _responses(plan: PreconditionedGDPlan, contraction: Array) -> Array:
    """Return, for noise one step ago, two and so on, how far it moved the weights."""
    out = np.zeros((plan.n_steps, len(contraction)))
    W = np.zeros(len(contraction))
    ahead, noise = W, 1.0
    for row in out:
        moved = ahead - plan.step * (contraction * ahead + noise)
        ahead, W, noise = moved + plan.momentum * (moved - W), moved, 0.0
        row[:] = W
    return out
