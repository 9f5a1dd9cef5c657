"""Noisy gradient descent on a random sample of the rows at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, inf, log
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from tacit._random import spawn
from tacit._validate import PlainNumbers, at_least, fraction, if_given, plain, positive
from tacit.data.rows import Rows, arrays_of
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian
from tacit.mechanisms.noise import check_noise
from tacit.mechanisms.subsets import RATE_CELLS as CELLS
from tacit.mechanisms.subsets import fixed_subset, poisson_subset
from tacit.privacy import (
    Budget,
    Event,
    GaussianNoise,
    Neighbors,
    PoissonSampled,
    Repeated,
    calibrate,
)
from tacit.privacy.combined import FixedSizeSampled
from tacit.privacy.curve import ComposedProfile
from tacit.privacy.losses import FixedSizeLoss, PoissonLoss
from tacit.solvers._base import Problem, Result, Solver, SolverPlan
from tacit.solvers._gradients.descent import (
    ClippedGradient,
    Descent,
    descend,
    descent_rule,
    norm_clipped,
)
from tacit.solvers._gradients.row_clip import (
    RowClippedGradient,
    clipped_gradient,
    reach_of,
    sum_sensitivity,
    wanted_clip,
)

__all__ = ["NoisySGD", "NoisySGDPlan", "least_log_noise"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Fitted: least noise of a sample, least sample, and fraction of the rows beyond which
# their choice is taken as it is
HIDDEN, SMALLEST, LARGEST_FRACTION = 2.0, 256, 0.05
# Rows whose gradients are summed before anything else is added to the sum
CHUNK = 4096


@dataclass(frozen=True)
class Sampling(PlainNumbers):
    """Sampling of rows: number of steps, rows of each, and how they are drawn.

    ``poisson`` says whether rows come in independently, as under add/remove, or in a
    fixed number, as under replacement.
    """

    n_rows: int
    batch: int
    n_steps: int
    poisson: bool

    @property
    def cells(self) -> int:
        """Probability of a row, in whole cells, so that it is drawn exactly."""
        rate = Fraction(min(self.batch, self.n_rows), self.n_rows)
        return max(1, round(rate * CELLS))

    def event(self, multiplier: float) -> Event:
        """Return the event of all steps."""
        noise = GaussianNoise(multiplier)
        if self.batch >= self.n_rows:
            return Repeated(noise, self.n_steps)
        if self.poisson:
            # [noisy-sgd:rate] the very probability that rows are drawn with
            return Repeated(PoissonSampled(noise, self.cells / CELLS), self.n_steps)
        return Repeated(FixedSizeSampled(noise, self.batch, self.n_rows), self.n_steps)

    def profile(self, multiplier: float) -> ComposedProfile:
        """Return the exact part of the curve of that event, for samples."""
        loss = (
            PoissonLoss(1 / multiplier, self.cells / CELLS)
            if self.poisson
            else FixedSizeLoss(1 / multiplier, self.batch / self.n_rows)
        )
        return ComposedProfile(((loss, self.n_steps),))

    def draw(self, n_rows: int, rng: Generator) -> Indices | None:
        """Return the rows of one step, out of those that there are; None for all."""
        if self.batch >= self.n_rows:
            return None
        if self.poisson:
            return poisson_subset(n_rows, self.cells, rng)
        # [noisy-sgd:missing] rows that were planned for and are not there count as zero
        drawn = fixed_subset(max(n_rows, self.n_rows), self.batch, rng)
        return drawn[drawn < n_rows]


@lru_cache(maxsize=256)
def least_noise(sampling: Sampling, budget: Budget) -> float:
    """Return the least noise that fits, within a thousandth.

    The search evaluates nothing but the bound that decides, and answers are kept.
    """
    if sampling.batch >= sampling.n_rows:
        return calibrate(sampling.event, budget)
    all_rows = Sampling(sampling.n_rows, sampling.n_rows, sampling.n_steps, False)
    rate = sampling.batch / sampling.n_rows
    # what many steps on small samples come to
    start = log(max(0.4, rate * calibrate(all_rows.event, budget, rtol=1e-2)))

    def spent(multiplier: float) -> float:
        return sampling.profile(multiplier).epsilon(budget.delta)

    return exp(least_log_noise(spent, budget.epsilon, start))


@dataclass(frozen=True)
class NoisySGDPlan(SolverPlan):
    """Steps, sampling and noise, fixed without data."""

    clips_derivatives = True

    problem: Problem
    sampling: Sampling
    step: float
    momentum: float
    clip: float
    average: bool
    multiplier: float
    sensitivity: float
    noise: str = "grid"
    clip_norm: float | None = None

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return self.sampling.n_steps

    @property
    def mechanism(self) -> Gaussian:
        """What draws the noise of one step."""
        return Gaussian(self.multiplier, self.sensitivity, self.noise)

    @property
    def event(self) -> Event:
        return self.sampling.event(self.multiplier)


@dataclass(frozen=True)
class SampledDescent(Descent):
    """A noisy descent on samples."""

    batch: int


def sgd_rule(
    problem: Problem, budget: Budget, clip: float | None, n_steps: int | None
) -> SampledDescent:
    """Return the steps from public facts, and samples as small as cost little.

    Below some noise a sample no longer hides its rows as well as all rows would, and
    the fewer rows, the more their choice adds to the noise. Fitted on synthetic
    problems only.
    """
    rule = descent_rule(problem, budget, clip)
    n_rows, n_steps = problem.n_rows, rule.n_steps if n_steps is None else n_steps
    all_rows = Sampling(n_rows, n_rows, n_steps, False)
    noise = calibrate(all_rows.event, budget, rtol=1e-2)
    # rows at which their choice adds as much as the noise
    equal = (n_rows / noise) ** 2 / problem.size
    wanted = max(
        SMALLEST, HIDDEN * n_rows / noise, min(equal, LARGEST_FRACTION * n_rows)
    )
    batch = min(n_rows, ceil(wanted))
    return SampledDescent(n_steps, rule.step, rule.momentum, rule.clip, batch)


@dataclass(frozen=True)
class NoisySGD(Solver[NoisySGDPlan]):
    """DP-SGD: gradient descent with momentum on random samples, Gaussian noise.

    A penalty or a set enters by its proximal map after each step.

    Parameters
    ----------
    n_steps
        Number of steps; None for the rule.
    batch
        Expected rows of a step; None for the rule. From the number of rows planned for
        on, every step reads all rows.
    step
        Step size on the summed objective, as for `NoisyGD`; None for the rule.
    momentum
        Weight of the last move in the next; None for the rule.
    clip
        Bound on the norm of a row's derivative, below that of the loss; None for the
        rule.
    average
        Whether to return the mean of the second half of the weights, not the last.
    noise
        ``"grid"`` or ``"float"``.
    clip_norm
        Bound on the norm of a row's gradient instead of ``clip``, as for `NoisyGD`.

    Notes
    -----
    **Guarantee.** Under adding or removing a row, each row is in a step with a fixed
    probability and the composed loss is computed numerically; under replacing one, a
    step has a fixed number of rows and the bound of [1]_ for one step is composed
    numerically. The samples stay secret. A row moves the sum of a step by at most the
    clipped derivative times its norm, or by ``clip_norm``; round-off is bounded and
    included. Published closed forms for the noise [2]_ are not used, as they fall short
    where noise is small or samples are large.

    Reading all rows at each step wastes none of the budget, so `NoisyGD` is the
    default for accuracy; this solver is for rows too many to be read so often.

    References
    ----------
    .. [1] B. Balle, G. Barthe and M. Gaboardi, "Privacy amplification by subsampling:
       tight analyses via couplings and divergences", NeurIPS 2018, Theorem 10.
    .. [2] M. Abadi, A. Chu, I. Goodfellow, B. McMahan, I. Mironov, K. Talwar and
       L. Zhang, "Deep learning with differential privacy", CCS 2016, Theorem 1.
    """

    saved = True
    name = "noisy_sgd"
    reads = "rows"
    clips = True

    n_steps: int | None = None
    batch: int | None = None
    step: float | None = None
    momentum: float | None = None
    clip: float | None = None
    average: bool = False
    noise: str = "grid"
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)

    def plan(self, problem: Problem, budget: Budget) -> NoisySGDPlan:
        """Choose steps and samples, then the least noise that fits."""
        if_given(at_least, 1, n_steps=self.n_steps, batch=self.batch)
        wanted = wanted_clip("NoisySGD", problem, budget, self.clip, self.clip_norm)
        derivative = problem.max_derivative if wanted is None else wanted
        problem.require_bounded_derivative(
            "NoisySGD", derivative, "use Huber(), or pass clip="
        )
        rule = sgd_rule(problem, budget, wanted, self.n_steps)
        batch = rule.batch if self.batch is None else self.batch
        step = rule.step if self.step is None else self.step
        momentum = rule.momentum if self.momentum is None else self.momentum
        positive(step=step)
        fraction(momentum=momentum)
        private = budget.neighbors is Neighbors.ADD_OR_REMOVE_ONE
        sampling = Sampling(problem.n_rows, batch, rule.n_steps, poisson=private)
        plan = NoisySGDPlan(
            problem,
            sampling,
            step,
            momentum,
            rule.clip,
            self.average,
            least_noise(sampling, budget),
            sample_sensitivity(
                problem, sampling, rule.clip, budget.neighbors, self.clip_norm
            ),
            self.noise,
            self.clip_norm,
        )
        # noise too large for the grid is rejected here, not after the charge
        plan.mechanism.scale(problem.size)
        return plan

    def run(self, plan: NoisySGDPlan, rows: Rows, rng: Generator) -> Result:
        """Take the planned number of steps."""
        X, y = arrays_of(rows, "NoisySGD")
        problem = plan.problem
        scale = max(1.0, problem.n_rows / plan.sampling.batch)
        # apart, so that what is drawn of one does not shift the other
        sampler, noise = spawn(rng, 2)

        def noisy_gradient(W: Array) -> Array:
            positions = plan.sampling.draw(X.shape[0], sampler)
            gradient = clipped_gradient(problem, W, plan.clip, plan.clip_norm)
            total = sampled_sum(gradient, X, y, positions)
            return scale * plan.mechanism(total, noise) + problem.ridge * W

        mean = np.zeros(problem.shape)
        iterates = descend(plan, "NoisySGD", noisy_gradient, reach_of(plan.clip_norm))
        for t, W in enumerate(iterates):
            averaged = t + 1 - plan.n_steps // 2 if plan.average else 1
            mean = W if averaged <= 1 else mean + (W - mean) / averaged
        # once more for sets that the ball reaches out of
        return Result(problem.regularizer.prox(mean, 0.0))


def sample_sensitivity(
    problem: Problem,
    sampling: Sampling,
    clip: float,
    neighbors: Neighbors,
    clip_norm: float | None = None,
) -> float:
    """Return how far neighbors can move the computed sum over a sample."""
    all_rows = sampling.poisson or sampling.batch >= problem.n_rows
    n_rows = problem.most_rows if all_rows else sampling.batch
    # within a chunk, which a dense one is halved for, and over the chunks
    additions = CHUNK + 2 * (n_rows // CHUNK) + 64
    # [noisy-sgd:sensitivity] as if the sample were all there is
    return sum_sensitivity(problem, clip, clip_norm, neighbors, n_rows, additions)


def sampled_sum(
    gradient: ClippedGradient | RowClippedGradient,
    X: Any,
    y: NDArray[Any],
    positions: Indices | None,
) -> Array:
    """Return the sum of clipped gradients over some rows, all for None."""
    if positions is None:
        return gradient(X, y)[0]
    if isinstance(gradient, RowClippedGradient):
        return gradient.at(X, y, positions)
    total = np.zeros(gradient.W.shape)
    for low in range(0, len(positions), CHUNK):
        some = positions[low : low + CHUNK]
        if sparse.issparse(X):
            total += _csr_sum(gradient, X, y[some], some)
        else:
            total += gradient(X[some], y[some])[0]
    return total


def _csr_sum(
    gradient: ClippedGradient, X: Any, targets: NDArray[Any], positions: Indices
) -> Array:
    """Read the rows where they lie: gathering them would cost more than the sums."""
    from tacit.solvers._gradients import kernels  # noqa: PLC0415 - numba is slow to load

    rows = (X.data, X.indices, X.indptr, positions)
    margins = kernels.gathered_margins(*rows, gradient.W)
    derivatives = norm_clipped(
        gradient.loss.derivative(targets, margins), gradient.clip
    )
    total = np.zeros(gradient.W.shape)
    kernels.gathered_sum(*rows, derivatives, total)
    return total


# Relative distance of what is spent from what may be
CLOSE = 1e-3


def least_log_noise(spent: Callable[[float], float], epsilon: float, x: float) -> float:
    """Return the log noise at which just under epsilon is spent, from a guess.

    Log epsilon is nearly a straight line in log noise: a few points on it will do.
    Where it is not, as for single rows of very many, the points close in from both
    sides.
    """
    derivative, fitting, failing = -1.2, inf, -inf
    last: tuple[float, float] | None = None
    for _ in range(40):
        found = spent(exp(x))
        gap = log(min(max(found / epsilon, 0.1), 10.0))
        if found <= epsilon:
            fitting = min(fitting, x)
            if gap >= -CLOSE:
                break
        else:
            failing = max(failing, x)
        if last is not None and x != last[0]:
            derivative = min(-0.8, (gap - last[1]) / (x - last[0]))
        last = (x, gap)
        # a little to the safe side of the root
        x -= (gap + CLOSE / 2) / derivative
        if failing < fitting < inf and not failing < x < fitting:
            if fitting - failing < CLOSE / 10:
                break
            x = (failing + fitting) / 2 if failing > -inf else fitting - 1.0
    if fitting == inf:
        raise PlanError(
            f"No noise was found that keeps epsilon={epsilon:g} with these samples; "
            "raise epsilon or delta, or use NoisyGD."
        )
    return fitting
