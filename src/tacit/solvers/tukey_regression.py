"""Least squares on blocks, and a point deep among their weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import nextafter, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from tacit._execution import steps
from tacit._validate import PlainNumbers, at_least, if_given, moderate, one_of, plain
from tacit.convex import Free, Squared
from tacit.convex._protocols import is_set
from tacit.data import Rows
from tacit.data.rows import arrays_of
from tacit.exceptions import PlanError
from tacit.mechanisms import NoAnswer, StableRelease
from tacit.mechanisms.nested import NestedExponential
from tacit.mechanisms.noise import check_noise
from tacit.mechanisms.subsets import block_members
from tacit.privacy import ApproxDP, Budget, Composed, Event, Neighbors
from tacit.solvers._base import Problem, Result, Solver, plan_assumptions
from tacit.solvers._depth import (
    depth_boxes,
    distance_to_unsafe,
    is_decisive,
    least_that,
    most_depth,
    stays_safe,
)

__all__ = ["TukeyRegression", "TukeyRegressionPlan"]

Array = NDArray[np.float64]

# Half-width of the box of weights in the rule: it makes margins this many times the
# largest target, for rows that are even in all features
BOX_REACH = 16.0
# Cells from the middle of the box to its end
MOST_CELLS = 2**14
# Least ridge of a block, in units of the curvature of one row in one direction
LEAST_RIDGE = 0.02
# Rows of a block for each weight, at least, and most blocks
LEAST_ROWS, MOST_BLOCKS = 2, 4001
# Variance of a median, in units of that of the mean
MEDIAN_VARIANCE = 1.57
# Distance of a drawn point from the center of normal models, in units of their std, per
# fraction of the models by which its depth falls short
QUANTILE_DERIVATIVE = 2.5
# Levels that a plan looks at
LEVELS = 64
# Fraction of the budget for the test, and its probability of rejecting what was planned
# for
TEST_FRACTION, REJECTED = 0.5, 0.01


@dataclass(frozen=True)
class TukeyRegressionPlan(PlainNumbers):
    """Blocks, box, test and choice, fixed without data.

    ``level`` is the least depth of points that are drawn from; at zero there is no
    test, and ``failure`` is zero.
    """

    problem: Problem
    n_blocks: int
    equal_blocks: bool
    bound: float
    ridge: float
    choice: NestedExponential
    level: int = 0
    test: StableRelease | None = None
    failure: float = 0.0

    @property
    def event(self) -> Event:
        if self.test is None:
            return self.choice.event
        # [tukey:restricted]
        within = ApproxDP(self.choice.epsilon + self.failure, self.failure)
        return Composed((self.test.event, within))

    @property
    def cell(self) -> float:
        """Width of a cell of the grid of weights."""
        return self.bound / MOST_CELLS

    @property
    def assumptions(self) -> tuple[str, ...]:
        clipping = f"weights are clipped to [-{self.bound:.4g}, {self.bound:.4g}]"
        tested = "all weights are zero where the test of the blocks' weights fails"
        return (
            *plan_assumptions(self.problem, "grid", rounded=False),
            clipping,
            *(() if self.test is None else (tested,)),
        )


@dataclass(frozen=True)
class TukeyRegression(Solver[TukeyRegressionPlan]):
    """Tukey-depth regression: a random point deep among the weights of row blocks.

    No row is clipped for privacy's sake and no norm of rows enters the noise: only the
    spread of the weights of blocks does. It takes many rows for each feature.

    Parameters
    ----------
    n_blocks
        Number of blocks; None for the rule.
    bound
        Largest size of a released weight; None for the radius of the problem's
        set, or else for 16 times what makes the margin of an even row as large as the
        largest target.
    tested
        Whether to draw only from points deep among the models, after a test that these
        allow it, which takes half the budget and a delta; where it fails all weights
        are zero. False draws from the whole box, where a point is the more likely to be
        far from all models the fewer they are. None for the test where there are rows
        enough for it.
    noise
        ``"grid"`` or ``"float"``; draws are integers with either.

    Notes
    -----
    **Guarantee.** Without the test, bounded range with epsilon; with it, the
    composition of the test and of a draw that is (epsilon, delta)-private on all data
    that are safe (Amin et al. 2023 [1]_, Section 3). Both hold under both relations:
    neighbors differ in one block, hence in one model, and in the depth of any point by
    at most one. Depth is by coordinate, weights are on a public grid, and volumes are
    integers, so that the test and the draw are exact.

    References
    ----------
    .. [1] K. Amin, M. Joseph, M. Ribero, S. Vassilvitskii, "Easy differentially private
       linear regression", ICLR 2023.
    """

    saved = True
    name = "tukey"
    reads = "rows"
    brings_set = True

    n_blocks: int | None = None
    bound: float | None = None
    tested: bool | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        one_of((True, False, None), tested=self.tested)
        check_noise(self.noise)
        if_given(at_least, 2, n_blocks=self.n_blocks)
        if_given(moderate, bound=self.bound)

    def plan(self, problem: Problem, budget: Budget) -> TukeyRegressionPlan:
        """Choose blocks and level, from public facts."""
        _reject(problem)
        if self.tested and budget.delta == 0:
            raise PlanError(
                "TukeyRegression needs delta > 0 for its test; give a delta, or "
                "tested=False."
            )
        plan = None
        if self.tested is not False and budget.delta > 0:
            plan = self._tested(problem, budget)
        if plan is None and not self.tested:
            plan = self._untested(problem, budget)
        if plan is None:
            raise PlanError(
                "TukeyRegression has too few rows for this many features and this "
                "budget; raise epsilon, leave features out, or use AdaSSP."
            )
        return plan

    def _tested(self, problem: Problem, budget: Budget) -> TukeyRegressionPlan | None:
        """Return the plan of a test and a draw from what is deep, if one will do."""
        test, choice, failure = _split(budget)
        changed = 1 + test.distance_needed(REJECTED)

        def level(n_blocks: int) -> int:
            levels = range(2, most_depth(n_blocks), max(1, n_blocks // LEVELS))
            facts = n_blocks, problem.size, choice.log_factor
            safe = (i for i in levels if stays_safe(*facts, i, changed, failure))
            return next(safe, 0)

        found = self._blocks(problem, choice.log_factor, lambda m: level(m) > 0)
        if found is None:
            return None
        plan = self._plan(problem, budget, found, choice)
        return replace(plan, level=level(found), test=test, failure=failure)

    def _untested(self, problem: Problem, budget: Budget) -> TukeyRegressionPlan | None:
        """Return the plan of a draw from the whole box, if one will do."""
        choice = NestedExponential(budget.epsilon)

        def decisive(n_blocks: int) -> bool:
            return is_decisive(n_blocks, problem.size, choice.log_factor)

        found = self._blocks(problem, choice.log_factor, decisive)
        if found is None:
            return None
        return self._plan(problem, budget, found, choice)

    def _plan(
        self, problem: Problem, budget: Budget, n_blocks: int, choice: NestedExponential
    ) -> TukeyRegressionPlan:
        row = problem.bounds.x_norm**2 / (_evenness(problem) ** 2)
        return TukeyRegressionPlan(
            problem,
            n_blocks,
            budget.neighbors is Neighbors.REPLACE_ONE,
            self._bound(problem),
            problem.ridge / n_blocks + LEAST_RIDGE * row,
            choice,
        )

    def _bound(self, problem: Problem) -> float:
        if self.bound is not None:
            return self.bound
        rule = BOX_REACH * problem.largest_target * _evenness(problem)
        rule /= problem.bounds.x_norm
        return min(rule, problem.regularizer.radius)

    def _blocks(
        self, problem: Problem, derivative: float, fits: Callable[[int], bool]
    ) -> int | None:
        """Return the number of blocks, or None where NaN fits."""
        if self.n_blocks is not None:
            return self.n_blocks if fits(self.n_blocks) else None
        n, size = problem.n_rows, problem.size
        most = min(MOST_BLOCKS, n // (LEAST_ROWS * size))
        # the variance of a drawn point plus that of the middle of the models, which
        # grows as blocks have few rows
        drawn = QUANTILE_DERIVATIVE * size / derivative
        best = drawn / (drawn * size / n + sqrt(MEDIAN_VARIANCE * size / n))
        if most < 2:
            return None
        fewest = int(min(max(2.0, best), most))
        # what fits so many blocks fits more
        found = fewest + least_that(lambda k: fits(fewest + k), most - fewest + 1)
        return found if found <= most else None

    def run(self, plan: TukeyRegressionPlan, rows: Rows, rng: Generator) -> Result:
        """Fit every block, test, and draw a point deep among the weights."""
        problem = plan.problem
        X, y = arrays_of(rows, "TukeyRegression")
        blocks = block_members(rows.n_rows, plan.n_blocks, plan.equal_blocks, rng)
        models = np.zeros((plan.n_blocks, problem.size), dtype=np.int64)
        for block in steps(plan.n_blocks, "TukeyRegression"):
            members = blocks[block]
            models[block] = _model(plan, X[members], y[members])
        boxes = depth_boxes(models, MOST_CELLS)
        if plan.test is not None:
            distance = distance_to_unsafe(
                boxes.volumes(),
                plan.choice.steps(most_depth(plan.n_blocks) + 1 - plan.level),
                plan.level,
                plan.failure,
            )
            if isinstance(plan.test(True, distance, rng), NoAnswer):
                return Result(np.zeros(problem.shape))
        point = plan.choice(boxes.within(plan.level), rng)
        weights = (point.astype(np.float64) * plan.cell).reshape(problem.shape)
        return Result(problem.regularizer.prox(weights, 1.0))


def _reject(problem: Problem) -> None:
    if not isinstance(problem.loss, Squared):
        raise PlanError(
            f"TukeyRegression is for Squared(), got {problem.loss!r}; use NoisyGD."
        )
    if not (isinstance(problem.regularizer, Free) or is_set(problem.regularizer)):
        raise PlanError(
            f"TukeyRegression takes sets and a ridge, got {problem.regularizer!r}; "
            "use CoordinateDescent."
        )


def _evenness(problem: Problem) -> float:
    """Return the largest row over its entries, where these are all the same size."""
    return sqrt(problem.n_features) if problem.bounds.norm == "l2" else 1.0


def _split(budget: Budget) -> tuple[StableRelease, NestedExponential, float]:
    """Return the test, the choice and what makes models safe."""
    tested, drawn = budget.split(TEST_FRACTION, 1 - TEST_FRACTION)
    # [tukey:split] a fraction of delta stays of the choice's epsilon too
    left = nextafter(drawn.epsilon - drawn.delta, 0.0)
    if not left > 0:
        raise PlanError(
            "TukeyRegression needs a delta below epsilon for its test; give a smaller "
            "delta, or tested=False."
        )
    test = StableRelease(tested.epsilon, tested.delta)
    return test, NestedExponential(left), drawn.delta


def _model(plan: TukeyRegressionPlan, X: Any, y: NDArray[Any]) -> NDArray[np.int64]:
    """Return the weights of a block in whole cells, clipped to the box."""
    from tacit.solvers._gradients.kernels import (  # noqa: PLC0415 - numba loads on first use
        ridge_weights,
    )

    features = X.toarray() if sparse.issparse(X) else X
    weights = ridge_weights(
        np.ascontiguousarray(features, dtype=np.float64),
        np.ascontiguousarray(y, dtype=np.float64),
        plan.ridge,
    )
    # [tukey:model] a function of the block only, defined for all of them
    cells = np.nan_to_num(weights / plan.cell, nan=0.0)
    return np.rint(np.clip(cells, -MOST_CELLS, MOST_CELLS)).astype(np.int64)
