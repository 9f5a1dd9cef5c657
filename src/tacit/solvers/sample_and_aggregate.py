"""Sample and aggregate: any estimator made private by averaging over blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._execution import attempt, steps
from tacit._validate import at_least, if_given, one_of, plain, positive
from tacit.convex import Free, Objective, minimize
from tacit.convex._protocols import is_set
from tacit.convex.foreign import ForeignPenalty, given_loss, is_foreign
from tacit.convex.objective import UNIT
from tacit.data import Rows
from tacit.data.rows import ArrayRows, arrays_of
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise
from tacit.mechanisms.subsets import random_blocks
from tacit.privacy import Budget, calibrate
from tacit.solvers._base import (
    Problem,
    Result,
    Solver,
    loss_assumptions,
    penalty_assumptions,
)
from tacit.solvers._minimizers.noise_distributions import (
    DISTRIBUTIONS,
    PlannedNoise,
    choose_distribution,
)

__all__ = ["SampleAndAggregate", "SampleAndAggregatePlan"]

Array = NDArray[np.float64]
Estimate = Callable[[Any, NDArray[Any]], Any]

# Length of the weights in the rule, in units that make a margin as large as a target
REACH = 4.0


@dataclass(frozen=True)
class SampleAndAggregatePlan(PlannedNoise):
    """Blocks, length of an estimate and noise, fixed without data."""

    problem: Problem
    estimate: Estimate
    n_blocks: int
    radius: float
    multiplier: float
    sensitivity: float
    noise: str = "grid"
    law: str = "gaussian"

    @property
    def assumptions(self) -> tuple[str, ...]:
        # estimates are clipped, so that no bound on the loss or a penalty is needed
        stated = (*loss_assumptions(self.problem), *penalty_assumptions(self.problem))
        usual = tuple(words for words in super().assumptions if words not in stated)
        loss = self.problem.loss
        if not isinstance(self.estimate, BlockMinimizer):
            return (*usual, "estimate keeps nothing from block to block")
        if not is_foreign(loss):
            return usual
        # each evaluation has a copy, but classes and modules are shared
        name = type(given_loss(loss)).__name__
        return (*usual, f"the loss {name} keeps nothing from block to block")


@dataclass(frozen=True)
class SampleAndAggregate(Solver[SampleAndAggregatePlan]):
    """Sample and aggregate: the noisy average of an estimate over blocks of rows.

    Parameters
    ----------
    estimate
        Maps the features and targets of a block to weights, such as ``lambda X, y:
        Ridge().fit(X, y).coef_[:, None]``; None for the minimizer of the problem's
        loss with a ridge. It may fail: whatever does not give finite weights of the
        right shape counts as zero.
    n_blocks
        Number of blocks; None for the rule.
    radius
        Length to which every estimate is clipped; None for that of the problem's
        set, or else for the rule, four times what makes the margin of the longest row
        as large as the largest target.
    ridge
        Ridge penalty of a block, in sum units, for the estimate that is built in; None
        for the curvature of one row.
    law
        ``"gaussian"``, ``"laplace"`` or ``"gamma"``, which has less noise than the
        second and needs a delta, if only of 1e-20; None for the first where delta is
        positive and the second where it is zero.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Gaussian with parameter ``1 / multiplier``, or pure with that, under
    both relations, for any estimate that keeps nothing from one block to the next. A
    loss of one's own is copied for each evaluation, and must keep nothing elsewhere.
    Every row has its block by an independent draw, so neighbors differ in one block,
    whose clipped estimate moves by at most twice the radius (Nissim, Raskhodnikova
    and Smith 2007 [1]_; the average is that of Smith [2]_). What fails, and how long it
    takes, is not released; warnings of the estimate are dropped.

    References
    ----------
    .. [1] K. Nissim, S. Raskhodnikova, A. Smith, "Smooth sensitivity and sampling in
       private data analysis", STOC 2007, Section 4.
    .. [2] A. Smith, "Privacy-preserving statistical estimation with optimal convergence
       rates", STOC 2011.
    """

    saved = True
    name = "sample_and_aggregate"
    reads = "rows"

    estimate: Estimate | None = None
    n_blocks: int | None = None
    radius: float | None = None
    ridge: float | None = None
    law: str | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        if_given(at_least, 1, n_blocks=self.n_blocks)
        if_given(positive, radius=self.radius, ridge=self.ridge)
        one_of((*DISTRIBUTIONS, None), law=self.law)

    def plan(self, problem: Problem, budget: Budget) -> SampleAndAggregatePlan:
        """Choose blocks and radius, then the least noise that fits."""
        distribution = choose_distribution(self.law, budget, problem.size, self.noise)
        if not (isinstance(problem.regularizer, Free) or is_set(problem.regularizer)):
            raise PlanError(
                "SampleAndAggregate takes sets and a ridge, got "
                f"{problem.regularizer!r}; give an estimate with that penalty and "
                "Free() as the regularizer, or use FrankWolfe with a set."
            )
        multiplier = calibrate(distribution.event, budget)
        n_blocks = self.n_blocks
        if n_blocks is None:
            n_blocks = block_rule(problem, multiplier)
        radius = self._radius(problem)
        estimate = self.estimate
        if estimate is None:
            estimate = self._minimizer(problem, n_blocks, radius)
        plan = SampleAndAggregatePlan(
            problem,
            estimate,
            n_blocks,
            radius,
            multiplier,
            average_sensitivity(n_blocks, radius),
            self.noise,
            distribution.name,
        )
        # noise too large for the grid is rejected here, not after the charge
        plan.scale()
        return plan

    def _radius(self, problem: Problem) -> float:
        rule = REACH * problem.largest_target / _l2_norm(problem)
        radius = rule if self.radius is None else self.radius
        within = problem.regularizer.radius
        if isfinite(within) and (self.radius is None or within < radius):
            return within
        return radius

    def _minimizer(
        self, problem: Problem, n_blocks: int, radius: float
    ) -> BlockMinimizer:
        curvature = problem.loss.max_curvature()
        if not isfinite(curvature):
            raise PlanError(
                f"SampleAndAggregate has no estimate of its own for {problem.loss!r}, "
                "which is not smooth; give estimate=."
            )
        ridge = self.ridge
        if ridge is None:
            ridge = curvature * _l2_norm(problem) ** 2
        return BlockMinimizer(problem, max(ridge, problem.ridge / n_blocks), radius)

    def run(self, plan: SampleAndAggregatePlan, rows: Rows, rng: Generator) -> Result:
        """Estimate on every block, clip, average, and add noise."""
        problem, k = plan.problem, plan.n_blocks
        X, y = arrays_of(rows, "SampleAndAggregate")
        # [aggregate:blocks] a label a row, independent of all others
        labels = random_blocks(rows.n_rows, k, rng)
        order = np.argsort(labels, kind="stable")
        ends = np.searchsorted(labels[order], np.arange(k + 1))
        total = np.zeros(problem.shape)
        for block in steps(k, "SampleAndAggregate"):
            members = order[ends[block] : ends[block + 1]]
            # indexing copies, so an estimate cannot write into the rows
            estimate = _attempt(plan.estimate, X[members], y[members], problem)
            total += norm_clipped(estimate, plan.radius)
        noisy = plan.mechanism(total / k, rng)
        return Result(problem.regularizer.prox(noisy, 1.0))


def average_sensitivity(n_blocks: int, radius: float) -> float:
    """Return how far neighbors can move the average of clipped estimates."""
    roundoff = 1.01 * (n_blocks + 4) * UNIT * radius
    # [aggregate:average] one block changes; each computed average is off by as much
    return 2 * radius / n_blocks + 2 * roundoff


def block_rule(problem: Problem, multiplier: float) -> int:
    """Return the number of blocks, from public facts.

    More blocks mean less noise and more bias: the noise has a norm of ``2 multiplier
    sqrt(size) / k`` radii, and the bias of an estimate from n / k rows is about k / n
    of them. They are equal at the number below, kept within n^(1/2) to n^(2/3).
    """
    n = problem.n_rows
    balanced = sqrt(2 * multiplier * n * sqrt(problem.size))
    return max(1, round(min(max(balanced, sqrt(n)), float(n ** (2 / 3)))))


def norm_clipped(estimate: Array, radius: float) -> Array:
    """Return an estimate of exact norm at most ``radius``."""
    with np.errstate(over="ignore"):  # an infinite norm clips to zero
        norm = float(np.sqrt(np.sum(np.square(estimate))))
    # below the bound by more than the norm, the factor and the product are rounded
    limit = radius * (1 - (estimate.size + 16) * 2 * UNIT)
    return estimate if norm <= limit else estimate * (limit / norm)


def _attempt(estimate: Estimate, X: Any, y: NDArray[Any], problem: Problem) -> Array:
    """Return the estimate on a block, or zero for whatever goes wrong."""
    nothing = np.zeros(problem.shape)
    if X.shape[0] == 0:
        return nothing
    found: Array | None = attempt(lambda: np.array(estimate(X, y), dtype=np.float64))
    if found is None or found.shape != problem.shape or not np.isfinite(found).all():
        return nothing
    return found


def _l2_norm(problem: Problem) -> float:
    """Return a bound on the L2 norm of a row, whichever norm is declared."""
    wide = 1.0 if problem.bounds.norm == "l2" else sqrt(problem.n_features)
    return problem.bounds.x_norm * wide


@dataclass(frozen=True)
class BlockMinimizer:
    """The minimizer of the loss and a ridge on a block, brought into the set.

    Not into a set of others, which clips the released average only.
    """

    problem: Problem
    ridge: float
    radius: float

    def __call__(self, X: Any, y: NDArray[Any]) -> Array:
        problem, x_norm = self.problem, _l2_norm(self.problem)
        reach = x_norm * self.radius if isfinite(self.radius) else inf
        derivative = problem.loss.max_derivative(reach, problem.bounds.y_range)
        found = minimize(
            Objective(problem.loss, self.ridge),
            ArrayRows(X, y),
            # far below what a row can move, above round-off in blocks of any size
            tolerance=max(1e-7, 1e-11 * len(y)) * derivative * x_norm,
            x_norm=x_norm,
            y_range=problem.bounds.y_range,
        ).W
        if isinstance(problem.regularizer, ForeignPenalty):
            return found  # a set of others sees released weights only
        return problem.regularizer.prox(found, 1.0)
