"""Passes over one random order of the rows, then noise on the last weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from tacit._execution import steps as planned
from tacit._validate import at_least, if_given, nonnegative, plain, positive
from tacit.convex import Free, L2Ball
from tacit.convex.foreign import is_foreign
from tacit.convex.implicit import kernel_loss
from tacit.convex.objective import UNIT, gradient_roundoff
from tacit.data.rows import Rows, arrays_of
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise
from tacit.mechanisms.subsets import permutation
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.solvers._base import LARGEST_MARGIN, Problem, Result, Solver
from tacit.solvers._gradients.descent import gradient_unit, norm_clipped
from tacit.solvers._minimizers.noise_distributions import (
    PlannedNoise,
    choose_distribution,
)
from tacit.solvers._published import check_accounting, check_saveable, paper_noise

__all__ = ["PermutedSGD", "PermutedSGDPlan", "largest_influence"]

Array = NDArray[np.float64]

# Fitted: the sum of all steps, in units of rows over the noise that hides one
DURATION = 2.0


@dataclass(frozen=True)
class PermutedSGDPlan(PlannedNoise):
    """Passes, steps and the noise at their end, fixed without data.

    ``step`` is None for steps that fall with the number of updates.
    """

    problem: Problem
    n_passes: int
    batch: int
    step: float | None
    ridge: float
    multiplier: float
    sensitivity: float
    noise: str = "grid"
    law: str = "gaussian"

    @property
    def n_batches(self) -> int:
        """Updates in one pass."""
        return -(-self.problem.n_rows // self.batch)

    @property
    def strength(self) -> float:
        """Strong convexity of the average loss: the ridge is in sum units."""
        return self.ridge / self.problem.n_rows

    @property
    def reach(self) -> float:
        """Bound on the norm of the weights that needs no projection."""
        lipschitz = largest_derivative(self.problem) * self.problem.bounds.x_norm
        total = float(self.steps().sum()) * lipschitz
        return min(total, lipschitz / self.strength) if self.strength > 0 else total

    @property
    def radius(self) -> float:
        """Norm to which weights are clipped after each update; inf for never."""
        set_radius = self.problem.regularizer.radius
        useful = LARGEST_MARGIN / self.problem.bounds.x_norm
        # weights that go far beyond any useful model would only add round-off
        return useful if set_radius == inf and self.reach > useful else set_radius

    def steps(self) -> Array:
        """Return the step of each update, on the average over its rows."""
        n_updates = self.n_passes * self.n_batches
        if self.step is not None:
            return np.full(n_updates, self.step)
        longest = 1 / (self.problem.smoothness + self.strength)
        # [permuted:schedule] counting updates; counting passes is not private
        return np.minimum(longest, 1 / (self.strength * np.arange(1, n_updates + 1)))


def largest_influence(steps: Array, strength: float, n_batches: int) -> float:
    """Return how much of a row's gradients can be left in the last weights.

    A row is in one batch, the same in every pass. What it adds at an update, the step
    times its gradient, shrinks by ``1 - step * strength`` at each later one.
    """
    left = np.cumprod((1 - steps * strength)[::-1])[::-1]
    kept = steps * np.append(left[1:], 1.0)
    # [permuted:influence] the batch whose row is left most of
    influence = float(kept.reshape(-1, n_batches).sum(axis=0).max())
    return influence * (1 + 16 * len(steps) * UNIT)


def last_weights_sensitivity(plan: PermutedSGDPlan) -> float:
    """Return how far the replacement of a row can move the computed last weights."""
    problem, steps = plan.problem, plan.steps()
    derivative, radius = largest_derivative(problem), plan.radius
    lipschitz = derivative * problem.bounds.x_norm
    influence = largest_influence(steps, plan.strength, plan.n_batches)
    # [permuted:norm] no weights on the way are longer, their round-off included
    longest = 1.01 * min(plan.reach, radius + float(steps[0]) * lipschitz)
    gradient = gradient_roundoff(
        n_rows=plan.batch,
        shape=problem.shape,
        additions=plan.batch + 8,
        x_norm=problem.bounds.x_norm,
        derivative=derivative,
        curvature=problem.loss.max_curvature(),
        w_norm=longest,
        products=problem.n_features + 8,
    )
    units = 16 + (problem.size if radius < inf else 0)
    # [permuted:roundoff] maps that move nothing apart only add up their errors
    error = float(steps.sum()) * gradient / plan.batch
    error += len(steps) * 1.01 * units * UNIT * longest
    # [permuted:sensitivity] both rows of the replacement, both runs' round-off
    return 2 * lipschitz * influence / plan.batch + 2 * error


def largest_derivative(problem: Problem) -> float:
    """Return the bound on derivatives at weights in the ball, up to its round-off."""
    reach = problem.bounds.x_norm * problem.regularizer.radius * (1 + 1e-9)
    return problem.loss.max_derivative(reach, problem.bounds.y_range)


@dataclass(frozen=True)
class Passes:
    """Passes, rows of a batch, time along the gradients, and a ridge."""

    n_passes: int
    batch: int
    duration: float
    ridge: float


def permuted_rule(problem: Problem, budget: Budget) -> Passes:
    """Return passes and steps from public facts.

    The weights move by the sum of steps times gradients, and so does a row's fraction
    of them: what counts is that sum, in units of the noise that hides a row. How it is
    split into passes and batches matters little. Fitted on synthetic problems only.
    """
    n_rows, size = problem.n_rows, problem.size
    if budget.delta == 0:
        hiding = sqrt(2) * size / budget.epsilon
    else:
        hiding = sqrt(size) * calibrate(GaussianNoise, budget, rtol=1e-3)
    # time along the gradients of the average loss
    duration = DURATION * n_rows / (2 * largest_derivative(problem) * hiding)
    duration *= gradient_unit(problem) / problem.bounds.x_norm**3
    batch = min(n_rows, max(8, n_rows // 2000))
    updates = duration * problem.smoothness * batch / n_rows
    n_passes = min(max(5, ceil(updates)), 100)
    return Passes(n_passes, batch, duration, n_rows / duration)


@dataclass(frozen=True)
class PermutedSGD(Solver[PermutedSGDPlan]):
    """Permutation-based SGD: passes over one order, noise on the last weights.

    Parameters
    ----------
    n_passes
        Times every row is read; None for the rule.
    batch
        Rows of an update, whose gradients are averaged; None for the rule.
    step
        Constant step on that average. None falls as one over the number of updates
        with a ridge, and follows the rule without one.
    ridge
        Ridge penalty in sum units, where above that of the problem. None for the
        problem's, raised to the rule where it is not zero.
    accounting
        ``"tight"`` for the least noise that fits, ``"paper"`` for the published
        formula where it fits.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private under replacing a row, by one Gaussian
    release of the last weights. Gradient steps of a smooth convex loss move no two
    weights apart, so a row counts by its own gradients only: by ``2 n_passes lipschitz
    step / batch`` at a constant step no longer than two over the smoothness, and by at
    most ``2 lipschitz / ridge`` with a ridge [1]_. The number of updates is counted for
    falling steps; counting passes, as in Algorithm 3 of [2]_, is not private. Nothing
    is claimed for the random order. With delta zero the noise is Laplace.

    References
    ----------
    .. [1] X. Wu, F. Li, A. Kumar, K. Chaudhuri, S. Jha and J. Naughton, "Bolt-on
       differential privacy for scalable stochastic gradient descent-based analytics",
       SIGMOD 2017.
    .. [2] R. Iyengar, J. Near, D. Song, O. Thakkar, A. Thakurta and L. Wang, "Towards
       practical differentially private convex optimization", IEEE S&P 2019.
    """

    saved = True
    name = "permuted_sgd"
    reads = "rows"
    ball = L2Ball

    n_passes: int | None = None
    batch: int | None = None
    step: float | None = None
    ridge: float | None = None
    accounting: str = "tight"
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        check_accounting(self.accounting)

    def plan(self, problem: Problem, budget: Budget) -> PermutedSGDPlan:
        """Choose passes and steps, then the least noise that fits."""
        check_problem(problem, budget)
        chosen = self._chosen(problem, budget)
        sensitivity = last_weights_sensitivity(chosen)
        if self.accounting == "paper":
            multiplier = paper_noise(budget, closed_form(chosen)) / sensitivity
        else:
            multiplier = calibrate(chosen.noise_distribution.event, budget)
        plan = replace(chosen, multiplier=multiplier, sensitivity=sensitivity)
        if self.accounting == "paper":
            check_saveable(plan.event, budget)
        # noise too large for the grid is rejected here, not after the charge
        plan.scale()
        return plan

    def _chosen(self, problem: Problem, budget: Budget) -> PermutedSGDPlan:
        """Return a plan of the steps, whose noise is still to be found."""
        if_given(nonnegative, ridge=self.ridge)
        rule = permuted_rule(problem, budget)
        n_passes = rule.n_passes if self.n_passes is None else self.n_passes
        batch = rule.batch if self.batch is None else min(self.batch, problem.n_rows)
        at_least(1, n_passes=n_passes, batch=batch)
        ridge = problem.ridge if self.ridge is None else self.ridge
        if self.ridge is None and problem.ridge > 0:
            ridge = rule.ridge
        ridge = max(problem.ridge, ridge)
        step = self.step
        if step is None and ridge == 0:
            wanted = rule.duration * batch / (n_passes * problem.n_rows)
            step = min(wanted, 1 / problem.smoothness)
        if step is not None:
            positive(step=step)
            strength = ridge / problem.n_rows
            # [permuted:longest] beyond it a step can move weights apart
            longest = 2 / (problem.smoothness + 2 * strength)
            if step > longest:
                raise PlanError(
                    f"PermutedSGD needs a step of at most {longest:.4g} for this loss, "
                    f"got {step:.4g}; NoisySGD takes any."
                )
        distribution = choose_distribution(None, budget, problem.size, self.noise)
        return PermutedSGDPlan(
            problem,
            n_passes,
            batch,
            step,
            ridge,
            multiplier=1.0,
            sensitivity=1.0,
            noise=self.noise,
            law=distribution.name,
        )

    def run(self, plan: PermutedSGDPlan, rows: Rows, rng: Generator) -> Result:
        """Draw the order, make the planned updates, add the noise."""
        X, y = arrays_of(rows, "PermutedSGD")
        order = permutation(X.shape[0], rng)
        return Result(plan.mechanism(last_weights(plan, X, y, order), rng))


def check_problem(problem: Problem, budget: Budget) -> None:
    """Reject what the proof does not cover, naming what can do it."""
    if budget.neighbors is not Neighbors.REPLACE_ONE:
        raise PlanError(
            "PermutedSGD holds under neighbors='replace_one' only; use NoisyGD or AMP "
            "for 'add_or_remove_one'."
        )
    problem.require_l2_rows("PermutedSGD")
    problem.check_penalty("PermutedSGD", "NoisySGD or NoisyGD", L2Ball)
    problem.require_bounded_derivative(
        "PermutedSGD",
        largest_derivative(problem),
        "use Huber(), or give a set such as L2Ball()",
    )
    problem.require_smooth("PermutedSGD")


def closed_form(plan: PermutedSGDPlan) -> float:
    """Return the published sensitivity of the last weights, in exact arithmetic."""
    lipschitz = largest_derivative(plan.problem) * plan.problem.bounds.x_norm
    if plan.step is None:
        return 2 * lipschitz / plan.ridge
    return 2 * plan.n_passes * lipschitz * plan.step / plan.batch


def last_weights(
    plan: PermutedSGDPlan, X: Any, y: NDArray[Any], order: NDArray[np.intp]
) -> Array:
    """Return the weights after the planned updates, without noise.

    Rows beyond the planned batches are left out, and batches that find too few rows
    are still divided by the planned number, so that no row ever counts for more.
    """
    updates = plan.steps().reshape(plan.n_passes, plan.n_batches)
    decays = 1 - updates * plan.strength
    order = order[: plan.n_batches * plan.batch]
    one_pass = _pass_over(plan, X, y, order)
    W = np.zeros(plan.problem.shape)
    for t in planned(plan.n_passes, "PermutedSGD"):
        W = one_pass(W, updates[t], decays[t])
    return W


def _pass_over(
    plan: PermutedSGDPlan, X: Any, y: NDArray[Any], order: NDArray[np.intp]
) -> Callable[[Array, Array, Array], Array]:
    """Return what makes one pass, compiled for the losses that are known."""
    from tacit.solvers._gradients import kernels  # noqa: PLC0415 - numba is slow to load

    radius, known = plan.radius, kernel_loss(plan.problem.loss)
    if known is None or known[0]:
        return lambda W, steps, decays: any_loss_pass(
            plan, X, y, order, W, steps, decays
        )
    targets = y.astype(np.float64)
    if sparse.issparse(X):
        data = X.data.astype(np.float64, copy=False)

        def csr_pass(W: Array, steps: Array, decays: Array) -> Array:
            rows = (data, X.indices, X.indptr, targets, order, plan.batch)
            kernels.permuted_csr(*rows, steps, decays, radius, *known[1:], W)
            return W

        return csr_pass
    dense = np.ascontiguousarray(X, dtype=np.float64)

    def dense_pass(W: Array, steps: Array, decays: Array) -> Array:
        V = np.ascontiguousarray(W.T)
        rows = (dense, targets, order, plan.batch)
        kernels.permuted_dense(*rows, steps, decays, radius, *known[1:], V)
        return V.T

    return dense_pass


def any_loss_pass(
    plan: PermutedSGDPlan,
    X: Any,
    y: NDArray[Any],
    order: NDArray[np.intp],
    W: Array,
    steps: Array,
    decays: Array,
) -> Array:
    """Make one pass with any loss, a minibatch at a time."""
    problem, radius = plan.problem, plan.radius
    ball = L2Ball(radius) if radius < inf else Free()
    # [permuted:foreign] what a loss of others states is enforced
    clip = largest_derivative(problem) if is_foreign(problem.loss) else inf
    for t, (step, decay) in enumerate(zip(steps, decays, strict=True)):
        positions = order[t * plan.batch : (t + 1) * plan.batch]
        part = X[positions]
        derivative = problem.loss.derivative(y[positions], part @ W)
        derivative = norm_clipped(derivative, clip)
        W = decay * W - (step / plan.batch) * (part.T @ derivative)
        W = ball.prox(W, 1.0)
    return W
