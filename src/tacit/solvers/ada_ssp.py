"""Private least squares from noisy sufficient statistics."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import if_given, nonnegative, plain
from tacit.convex import Free, L2Ball
from tacit.convex.composite import Step, accelerate
from tacit.convex.objective import UNIT
from tacit.data import Rows
from tacit.mechanisms import Gaussian
from tacit.mechanisms.additive import SymmetricGaussian
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, Composed, Event, GaussianNoise, calibrate
from tacit.solvers._base import (
    Problem,
    Result,
    Solver,
    SolverPlan,
    WeightNoise,
    require_delta,
)
from tacit.solvers._least_squares.quadratic import (
    JointMoments,
    in_ball,
    joint_sensitivity,
    require_squared,
)
from tacit.solvers._least_squares.risk import RowGuess, expected_excess

__all__ = ["AdaSSP", "AdaSSPPlan"]

Array = NDArray[np.float64]

# Fraction of the squared Gaussian parameter that the least eigenvalue gets, as in
# Wang's
EIGENVALUE_FRACTION = 1 / 3
# Ridge of the rule, in units of the noise of an entry times 1 + sqrt(p)
RIDGE_FACTOR = 0.7
# Most proximal steps on the noisy moments, each a product with a matrix of them
PROXIMAL_STEPS = 20_000


@dataclass(frozen=True)
class AdaSSPPlan(SolverPlan):
    """Noise on the moments, and the ridge, fixed without data."""

    problem: Problem
    ridge: float | None
    multiplier: float
    sensitivity: float
    eigenvalue_sensitivity: float
    adaptive: bool = False
    noise: str = "grid"

    @property
    def states_response(self) -> bool:
        """Whether its noise on the weights is stated such that intervals follow."""
        return not self.adaptive

    @property
    def mechanism(self) -> SymmetricGaussian:
        """What releases both moments at once."""
        fraction = 1 - EIGENVALUE_FRACTION if self.adaptive else 1.0
        return SymmetricGaussian(
            self.multiplier / sqrt(fraction), self.sensitivity, self.noise
        )

    @property
    def eigenvalue_mechanism(self) -> Gaussian:
        """What releases the least eigenvalue, where the ridge adapts to it."""
        return Gaussian(
            self.multiplier / sqrt(EIGENVALUE_FRACTION),
            self.eigenvalue_sensitivity,
            self.noise,
        )

    @property
    def event(self) -> Event:
        if not self.adaptive:
            return self.mechanism.event
        return Composed((self.mechanism.event, self.eigenvalue_mechanism.event))

    @property
    def noise_level(self) -> float:
        """Standard deviation of the noise on a diagonal entry of the moments."""
        return self.mechanism.scale(self.problem.n_features + 1)

    @property
    def row_norm(self) -> float:
        """Bound on the L2 norm of a row, also where its entries are bounded."""
        bounds = self.problem.bounds
        if bounds.norm == "l2":
            return bounds.x_norm
        # the root and the product round by one unit at most
        return bounds.x_norm * sqrt(self.problem.n_features) * (1 + 1e-12)

    @property
    def unit(self) -> float:
        """Weight that turns the longest row into the largest target."""
        return self.problem.largest_target / self.row_norm

    def expected_risk(self, guess: RowGuess) -> float:
        """Return the excess of the summed loss, to first order in the noise.

        The solution without noise w is off by the inverse of the Hessian times
        ``e - E w``: a normal vector whose variance along axis i is that of an entry
        times ``1 + (|w|^2 + w_i^2) / 2``.
        """
        problem = self.problem
        spectrum, weights = guess.spectrum(problem), guess.weights(problem)
        ridge = self.ridge
        if ridge is None:
            ridge = RIDGE_FACTOR * (1 + sqrt(problem.n_features)) * self.noise_level
        curvature = spectrum + ridge
        w = spectrum * weights / curvature
        noise = self.noise_level * np.sqrt(1 + (w @ w + w**2) / 2)
        return expected_excess(spectrum, weights, curvature, noise)


@dataclass(frozen=True)
class AdaSSP(Solver[AdaSSPPlan]):
    """Least squares from noisy moments ``X^T X`` and ``X^T y``, with a ridge.

    Parameters
    ----------
    ridge
        Ridge penalty in sum units; None for the rule, which is 0.7 (1 + sqrt(p)) times
        the noise on an entry of the second moments.
    adaptive
        Also release the least eigenvalue of the second moments, and use no more ridge
        than it leaves wanting, after [1]_ but with other constants. Off by default: on
        synthetic data the budget is better spent on the moments.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy with parameter ``1 / multiplier``,
    exactly, under both relations. Both moments are one Gaussian release: a row that
    moves the first most does not move the second most, so the joint sensitivity under
    replacement is 1.5 root-2 units, where two separate releases [1]_ would pay for
    root 6. Floating-point sums are bounded and included. The solution, in which
    negative eigenvalues count as zero and any penalty or set is taken into account, is
    post-processing. Rows whose p entries are bounded are at most the root of p times as
    long.

    References
    ----------
    .. [1] Y.-X. Wang, "Revisiting differentially private linear regression", UAI 2018,
       Algorithm 2.
    """

    saved = True
    name = "ada_ssp"
    has_risk_formula = True

    ridge: float | None = None
    adaptive: bool = False
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        if_given(nonnegative, ridge=self.ridge)

    def plan(self, problem: Problem, budget: Budget) -> AdaSSPPlan:
        """Find the least noise that fits."""
        require_squared(problem, "AdaSSP", "AMP or NoisyGD")
        instead = "OutputPerturbation with a set, or SampleAndAggregate"
        require_delta(budget, "AdaSSP", instead)
        size = problem.n_features + 1
        roundoff = problem.moment_roundoff(sqrt(2.0))
        plan = AdaSSPPlan(
            problem,
            None if self.ridge is None else max(self.ridge, problem.ridge),
            calibrate(GaussianNoise, budget),
            # [ada-ssp:moments] one row's moments, and the round-off of both sums
            joint_sensitivity(budget.neighbors) + 2 * roundoff,
            # [ada-ssp:eigenvalue] Weyl, round-off of the sums and of the eigenvalues
            1.0 + 2 * (roundoff + 64 * size * UNIT * problem.most_rows),
            # a ridge that is given has nothing to adapt to
            self.adaptive and self.ridge is None,
            self.noise,
        )
        # noise too large for the grid is rejected here, not after the charge
        plan.mechanism.scale(size)
        plan.eigenvalue_mechanism.scale(1)
        return plan

    def run(self, plan: AdaSSPPlan, rows: Rows, rng: Generator) -> Result:
        """Sum the moments in one pass, add noise, and solve."""
        problem, p = plan.problem, plan.problem.n_features
        moments = rows.sum(JointMoments(plan.row_norm, problem.largest_target, p))[0]
        noisy = plan.mechanism(moments, rng)
        second, first = noisy[:p, :p], noisy[:p, p] * sqrt(2.0)
        # in units where rows and targets are at most one
        unit = plan.row_norm**2
        ridge = problem.ridge / unit
        if plan.ridge is not None:
            ridge = plan.ridge / unit
        else:
            wanted = RIDGE_FACTOR * (1 + sqrt(p)) * plan.noise_level
            if plan.adaptive:
                wanted = adapted(plan, moments[:p, :p], rng)
            ridge = max(ridge, wanted)
        if not isinstance(problem.regularizer, (Free, L2Ball)):
            return Result(penalized(plan, second, first, ridge))
        radius = problem.regularizer.radius / plan.unit
        w = solve(second, first, ridge, radius)
        noise = None
        # on the surface of a ball, noise moves weights along it only
        if float(np.linalg.norm(w)) < (1 - 1e-9) * radius:
            noise = _moment_noise(plan, second, ridge, w)
        return Result(plan.unit * w[:, None], noise)


def adapted(plan: AdaSSPPlan, second: Array, rng: Generator) -> float:
    """Return the ridge that lifts the least eigenvalue to the norm of the noise."""
    mechanism = plan.eigenvalue_mechanism
    eigenvalues: Array = np.asarray(np.linalg.eigvalsh(second), dtype=np.float64)
    least = mechanism(eigenvalues[:1], rng)
    surely = max(float(least[0]) - 2 * mechanism.scale(1), 0.0)
    return max(sqrt(2 * len(second)) * plan.noise_level - surely, 0.0)


def _moment_noise(
    plan: AdaSSPPlan, second: Array, ridge: float, w: Array
) -> WeightNoise | None:
    """Return the noise of weights that solve ``(S + ridge) w = first``.

    With E and e the noise of the two moments, the weights are off those without noise
    by exactly ``(S + E + ridge)^-1 (e - E w)``, w those without; here those with noise.
    """
    values, axes = np.linalg.eigh(second)
    curved = np.maximum(values, 0.0) + ridge
    if not curved.min() > 1e-14 * curved.max():
        return None
    # the entries of E have half the variance off the diagonal
    level = plan.noise_level**2
    pull = level * ((1 + w @ w / 2) * np.eye(len(w)) + np.outer(w, w) / 2)
    if plan.adaptive:  # the ridge has noise as well
        pull += plan.eigenvalue_mechanism.scale(1) ** 2 * np.outer(w, w)
    inverse = (axes / curved) @ axes.T
    std = plan.unit * np.sqrt(np.diag(inverse @ pull @ inverse))
    x_norm = plan.row_norm
    return WeightNoise(
        std[:, None],
        "to first order, from the noise of the moments and the noisy moments",
        response=x_norm**2 * ((axes * curved) @ axes.T),
        pull=(plan.unit * x_norm**2) ** 2 * pull,
    )


def penalized(plan: AdaSSPPlan, second: Array, first: Array, ridge: float) -> Array:
    """Return the minimizer of the noisy objective plus a penalty, or in a set.

    All of it uses what is released already, so that the number of steps may too.
    """
    problem = plan.problem
    values, axes = np.linalg.eigh(second)
    curvature = plan.row_norm**2 * (np.maximum(values, 0.0) + ridge)
    hessian = (axes * curvature) @ axes.T
    pull = plan.row_norm * problem.largest_target * first[:, None]
    size = 1 / max(1.01 * float(curvature.max()), 1e-200)

    def proximal_step(W: Array) -> Step:
        U = W - size * (hessian @ W - pull)
        return Step(problem.regularizer.prox(U, size), U, size)

    least, goal = float(curvature.min()), 1e-12 * float(np.linalg.norm(pull))
    start = np.zeros(problem.shape)
    return accelerate(proximal_step, start, size, least, PROXIMAL_STEPS, goal).V


def solve(second: Array, first: Array, ridge: float, radius: float) -> Array:
    """Return the minimizer of ``w^T (S + ridge) w / 2 - <first, w>`` in a ball.

    Negative eigenvalues of S count as zero, and directions without curvature get
    weight zero.
    """
    values, vectors = np.linalg.eigh(second)
    curvature = np.maximum(values, 0.0) + ridge
    along = vectors.T @ first
    flat = curvature <= 1e-14 * max(float(curvature.max()), 1e-300)
    along, curvature = np.where(flat, 0.0, along), np.where(flat, 1.0, curvature)
    weights = vectors @ in_ball(along, curvature, radius)
    return np.asarray(weights, dtype=np.float64)
