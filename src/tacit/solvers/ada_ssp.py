"""Private least squares from noisy sufficient statistics."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from tacit.convex import Free, L2Ball, Squared
from tacit.convex.objective import MOST_ADDITIONS, chunks
from tacit.convex.roundoff import UNIT
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian, SymmetricGaussian
from tacit.mechanisms.grid import check_noise
from tacit.privacy import (
    Budget,
    Composed,
    Event,
    GaussianNoise,
    Neighbors,
    calibrate,
)
from tacit.solvers._base import Problem, noise_assumptions

__all__ = ["AdaSSP", "AdaSSPPlan"]

Array = NDArray[np.float64]

# Share of the squared Gaussian parameter that the least eigenvalue gets, as in Wang's
EIGENVALUE_SHARE = 1 / 3
# Ridge of the rule, in units of the noise of an entry times 1 + sqrt(p)
RIDGE_FACTOR = 0.7


@dataclass(frozen=True)
class AdaSSPPlan:
    """Noise on the moments, and the ridge, fixed without data."""

    problem: Problem
    ridge: float | None
    multiplier: float
    sensitivity: float
    eigenvalue_sensitivity: float
    adaptive: bool = False
    noise: str = "grid"

    @property
    def mechanism(self) -> SymmetricGaussian:
        """What releases both moments at once."""
        share = 1 - EIGENVALUE_SHARE if self.adaptive else 1.0
        return SymmetricGaussian(
            self.multiplier / sqrt(share), self.sensitivity, self.noise
        )

    @property
    def eigenvalue_mechanism(self) -> Gaussian:
        """What releases the least eigenvalue, where the ridge adapts to it."""
        return Gaussian(
            self.multiplier / sqrt(EIGENVALUE_SHARE),
            self.eigenvalue_sensitivity,
            self.noise,
        )

    @property
    def event(self) -> Event:
        if not self.adaptive:
            return self.mechanism.event
        return Composed((self.mechanism.event, self.eigenvalue_mechanism.event))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return noise_assumptions(self.noise)

    @property
    def noise_level(self) -> float:
        """Deviation of the noise on a diagonal entry of the second moments."""
        mechanism = self.mechanism
        size = (self.problem.n_features + 1) * (self.problem.n_features + 2) // 2
        gaussian = Gaussian(mechanism.multiplier, mechanism.sensitivity, self.noise)
        return gaussian.scale(size)


@dataclass(frozen=True)
class AdaSSP:
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
    negative eigenvalues count as zero, is post-processing.

    References
    ----------
    .. [1] Y.-X. Wang, "Revisiting differentially private linear regression", UAI 2018,
       Algorithm 2.
    """

    ridge: float | None = None
    adaptive: bool = False
    noise: str = "grid"

    def __post_init__(self) -> None:
        check_noise(self.noise)
        if self.ridge is not None and not (isfinite(self.ridge) and self.ridge >= 0):
            raise ValueError(f"ridge must be a finite number >= 0, got {self.ridge!r}.")

    def plan(self, problem: Problem, budget: Budget) -> AdaSSPPlan:
        """Find the least noise that fits."""
        _refuse(problem, budget)
        size = problem.n_features + 1
        roundoff = moment_roundoff(problem)
        plan = AdaSSPPlan(
            problem,
            None if self.ridge is None else max(self.ridge, problem.ridge),
            calibrate(GaussianNoise, budget),
            # [ada-ssp:moments] one row's moments, and the round-off of both sums
            moment_sensitivity(budget.neighbors) + 2 * roundoff,
            # [ada-ssp:eigenvalue] Weyl, round-off of the sums and of the eigenvalues
            1.0 + 2 * (roundoff + 64 * size * UNIT * problem.most_rows),
            # a ridge that is given has nothing to adapt to
            self.adaptive and self.ridge is None,
            self.noise,
        )
        # noise too large for the grid is refused here, not after the charge
        if not isfinite(plan.noise_level + plan.eigenvalue_mechanism.scale(1)):
            raise PlanError("The noise is out of range; raise epsilon.")
        return plan

    def run(self, plan: AdaSSPPlan, rows: Rows, rng: Generator) -> Array:
        """Sum the moments in one pass, add noise, and solve."""
        problem, p = plan.problem, plan.problem.n_features
        moments = rows.sum(
            Moments(problem.bounds.x_norm, largest_target(problem), p + 1)
        )[0]
        noisy = plan.mechanism(moments, rng)
        second, first = noisy[:p, :p], noisy[:p, p] * sqrt(2.0)
        # in units where rows and targets are at most one
        unit = problem.bounds.x_norm**2
        ridge = problem.ridge / unit
        if plan.ridge is not None:
            ridge = plan.ridge / unit
        else:
            wanted = RIDGE_FACTOR * (1 + sqrt(p)) * plan.noise_level
            if plan.adaptive:
                wanted = adapted(plan, moments[:p, :p], rng)
            ridge = max(ridge, wanted)
        scale = largest_target(problem) / problem.bounds.x_norm
        radius = problem.regularizer.radius / scale
        return scale * solve(second, first, ridge, radius)[:, None]


def _refuse(problem: Problem, budget: Budget) -> None:
    if not isinstance(problem.loss, Squared):
        raise PlanError(
            f"AdaSSP solves least squares only, got {problem.loss!r}; use AMP or "
            "NoisyGD."
        )
    if problem.bounds.norm != "l2":
        raise PlanError("AdaSSP needs rows bounded in norm='l2'.")
    if not isinstance(problem.regularizer, Free | L2Ball):
        raise PlanError(
            "AdaSSP takes no penalty but a ridge and no set but L2Ball, got "
            f"{problem.regularizer!r}; use FrankWolfe for sets with few corners."
        )
    if budget.delta == 0:
        raise PlanError(
            "AdaSSP needs delta > 0; give a delta, or use OutputPerturbation with a "
            "set, or SampleAndAggregate."
        )


def adapted(plan: AdaSSPPlan, second: Array, rng: Generator) -> float:
    """Return the ridge that lifts the least eigenvalue to the norm of the noise."""
    mechanism = plan.eigenvalue_mechanism
    eigenvalues: Array = np.asarray(np.linalg.eigvalsh(second), dtype=np.float64)
    least = mechanism(eigenvalues[:1], rng)
    surely = max(float(least[0]) - 2 * mechanism.scale(1), 0.0)
    return max(sqrt(2 * len(second)) * plan.noise_level - surely, 0.0)


def largest_target(problem: Problem) -> float:
    """Return the largest absolute target."""
    return max(abs(end) for end in problem.bounds.y_range)


def moment_sensitivity(neighbors: Neighbors) -> float:
    """Return how far neighbors can move both moments together, in Frobenius norm.

    Rows and targets are in units of their bounds. The matrix holds ``x x^T`` and,
    twice, ``x y / sqrt(2)``.
    """
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return sqrt(2.0)
    # [ada-ssp:joint] (2 + c^2) / sqrt(2) at c = 1, where the rows are 60 degrees apart
    return 3 / sqrt(2.0)


def moment_roundoff(problem: Problem) -> float:
    """Return a bound on the error of the computed moments, in Frobenius norm."""
    # each entry goes through two scalings, a product, the target's division by the
    # root of two and the additions; matrices of absolute terms have norm at most
    # sqrt(2) a row
    operations = MOST_ADDITIONS + 16
    return 1.01 * operations * UNIT * sqrt(2.0) * problem.most_rows


@dataclass(frozen=True)
class Moments:
    """Sum over a block of the second moments of ``(x, y)``, with a corner of zero."""

    x_norm: float
    y_max: float
    size: int

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        total = np.zeros((self.size, self.size))
        p = self.size - 1
        for part, targets in chunks(X, y):
            unit = part / self.x_norm
            # targets beyond the public bound would break the promise
            target = np.clip(targets / self.y_max, -1.0, 1.0) / sqrt(2.0)
            gram = unit.T @ unit
            total[:p, :p] += gram.toarray() if sparse.issparse(gram) else gram
            total[:p, p] += unit.T @ target
        total[p, :p] = total[:p, p]
        return (total,)


def solve(second: Array, first: Array, ridge: float, radius: float) -> Array:
    """Return the minimizer of ``w^T (S + ridge) w / 2 - <first, w>`` in a ball.

    Negative eigenvalues of S count as zero, and directions without curvature get
    weight zero. On the ball's surface the multiplier solves the secular equation.
    """
    values, vectors = np.linalg.eigh(second)
    curvature = np.maximum(values, 0.0) + ridge
    along = vectors.T @ first
    flat = curvature <= 1e-14 * max(float(curvature.max()), 1e-300)
    along, curvature = np.where(flat, 0.0, along), np.where(flat, 1.0, curvature)

    def length(extra: float) -> float:
        return float(np.linalg.norm(along / (curvature + extra)))

    extra = 0.0
    if length(0.0) > radius:
        # the norm falls as the multiplier grows; |first| / radius is too much
        low, high = 0.0, float(np.linalg.norm(along)) / radius
        while high - low > 1e-15 * high:
            extra = (low + high) / 2
            if extra in (low, high):
                break
            low, high = (extra, high) if length(extra) > radius else (low, extra)
        extra = high
    return np.asarray(vectors @ (along / (curvature + extra)), dtype=np.float64)
