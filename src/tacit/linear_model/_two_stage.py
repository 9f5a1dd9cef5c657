"""Private selection of columns, then private least squares on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from tacit._validate import PlainNumbers
from tacit.convex import Free, L2Ball
from tacit.data import RowBounds, Rows, bounded_rows
from tacit.data.features import FeatureBounds
from tacit.data.rows import arrays_of
from tacit.mechanisms import NoAnswer
from tacit.privacy import Budget, Composed, Event, calibrate
from tacit.solvers import Problem, Result
from tacit.solvers._auto import chosen_solver, named_fact, solvers_by_name
from tacit.solvers._base import INTERCEPT_FRACTION, Plan, result_of

__all__ = ["TwoStage", "TwoStagePlan", "Units", "second_stage_names"]

Array = NDArray[np.float64]
Selection = tuple[int, ...] | NoAnswer

# In a ball of this size one column can move the prediction through the range of targets
RADIUS = 1.0

# Fraction of epsilon for the selection: where all columns are selected, increase for
# every e-fold of the columns, and maximum. By benchmarks/regression/fit_share.py
SELECTION_FRACTION = (0.4, 0.03, 0.65)


@dataclass(frozen=True, eq=False)
class TwoStagePlan(PlainNumbers):
    """Plan of both stages and what they spend together, made without data.

    Parameters
    ----------
    problem
        Least squares on all columns, each from -1 to 1.
    block
        Least squares on as many columns as are selected.
    selection
        Plan of the selector; None where all columns are kept.
    solver, regression
        Algorithm of the second stage and its plan, for ``block``.
    share
        Part of epsilon that the selection gets.
    first
        Budget of the selection; None where all columns are kept.
    """

    problem: Problem
    block: Problem
    selection: Any | None
    solver: Any
    regression: Plan
    share: float
    first: Budget | None = None

    @property
    def event(self) -> Event:
        # [two-stage:compose] both stages, fixed before the first is run
        if self.selection is None:
            return self.regression.event
        return Composed((self.selection.event, self.regression.event))

    @property
    def n_selected(self) -> int:
        """Number of columns that the second stage is planned for."""
        return self.block.n_columns

    @property
    def assumptions(self) -> tuple[str, ...]:
        if self.selection is None:
            first = [
                f"all {self.n_selected} columns are kept: no smaller number was given"
            ]
        else:
            first = [*self.selection.assumptions]
        return tuple(dict.fromkeys([*first, *self.regression.assumptions]))


@dataclass(frozen=True)
class Units:
    """Public maps of features and targets to [-1, 1].

    Parameters
    ----------
    features
        Ranges of the features.
    center, scale
        The target that is mapped to zero, and the unit.
    """

    features: FeatureBounds
    center: float
    scale: float

    def own(self, X: Any, y: Array) -> tuple[Any, Array]:
        """Return copies of features and targets in their own units."""
        return self.features.from_unit(X), self.center + self.scale * y


@dataclass(frozen=True, eq=False)
class TwoStage(PlainNumbers):
    """Selection of columns, then least squares on these columns.

    Parameters
    ----------
    selector
        Private selector, of which ``plan_selection`` and ``select`` are used.
    solver
        Name or object of the solver of the second stage.
    n_selected
        Most columns that are selected.
    share
        Part of epsilon for the selection; None for the rule.
    noise
        ``"grid"`` or ``"float"``, for a solver that is given by name.
    units
        Units in which the selector gets the rows; None for rows mapped to [-1, 1].

    Notes
    -----
    **Guarantee.** Both stages together are (epsilon, delta)-private by adaptive
    composition of two events that are fixed in advance: the second is private for every
    selection that the first can release (A. Thakurta, PhD thesis, Penn State 2013,
    Algorithm 6.2). See the page on two stages among the guarantees.
    """

    selector: Any
    solver: Any
    n_selected: int
    share: float | None = None
    noise: str = "grid"
    units: Units | None = None

    def plan(self, problem: Problem, budget: Budget) -> TwoStagePlan:
        """Divide the budget so that both stages together spend all of it."""
        n_columns = problem.n_columns
        kept = min(self.n_selected, n_columns)
        block = _block(problem, kept, self._wants_ball(budget))
        if kept == n_columns:
            # that all columns are kept is public, and costs no budget
            solver = self._chosen(block, budget)
            return TwoStagePlan(
                problem, block, None, solver, solver.plan(block, budget), 0.0
            )
        share = self.share
        if share is None:
            share = planned_selection_fraction(n_columns, kept)
        solver = self._chosen(block, _parts(budget, share, 1.0)[1])

        def planned(noise: float) -> TwoStagePlan:
            first, second = _parts(budget, share, noise)
            return TwoStagePlan(
                problem,
                block,
                self.selector.plan_selection(first, problem.n_rows, n_columns),
                solver,
                solver.plan(block, second),
                share,
                first,
            )

        # [two-stage:calibrate] one number near 1 scales the noise of both until their
        # sum fits; its fourth power keeps the search short
        level = calibrate(lambda power: planned(power**0.25).event, budget, rtol=4e-3)
        return planned(level**0.25)

    def _wants_ball(self, budget: Budget) -> bool:
        if named_fact(self.solver, "brings_set"):
            return False
        # most solvers need a set without a delta
        return budget.delta == 0 or named_fact(self.solver, "ball") is L2Ball

    def _chosen(self, block: Problem, budget: Budget) -> Any:
        return chosen_solver(self.solver, self.noise, block, budget)

    def run(self, plan: TwoStagePlan, rows: Rows, rng: Generator) -> Result:
        """Select, then fit; the path of the result is the selection."""
        problem, constant = plan.problem, plan.block.constant
        X, y = arrays_of(rows, type(self.selector).__name__)
        if problem.constant is not None:
            X = X[:, :-1]
        selection: Selection = tuple(range(X.shape[1]))
        if plan.selection is not None:
            # copies, as selectors may write over the rows they get
            own = (X.copy(), y.copy()) if self.units is None else self.units.own(X, y)
            selection = self.selector.select(plan.selection, *own, rng)
        chosen: list[int] = []
        if not isinstance(selection, NoAnswer):
            # the second stage was planned for no more
            selection = tuple(map(int, selection[: plan.n_selected]))
            chosen = list(selection)
        block = self._block_rows(plan, X, y, chosen)
        shape = plan.block.shape
        w = result_of(plan.solver, plan.regression, block, rng, shape).coefficients
        W = np.zeros(problem.shape)
        # weights of the columns of zeros are dropped
        W[chosen] = w[: len(chosen)]
        if problem.constant is not None:
            W[-1] = w[-1] * constant / problem.constant
        return Result(W, path=selection)

    def _block_rows(
        self, plan: TwoStagePlan, X: Any, y: Array, chosen: list[int]
    ) -> Rows:
        """Return rows of the second stage, which are all that it sees."""
        n_selected = plan.n_selected
        # [two-stage:pad] columns of zeros replace those that are missing
        columns = np.zeros((X.shape[0], n_selected))
        columns[:, : len(chosen)] = _dense(X[:, chosen])
        # [two-stage:clip] by a bound that depends on the number of columns alone
        bounds = RowBounds(_reach(n_selected), "l2", plan.problem.bounds.y_range)
        return bounded_rows(columns, y, bounds, plan.block.constant)


def second_stage_names() -> tuple[str, ...]:
    """Return the names of solvers that take least squares on rows bounded in L2."""
    found = solvers_by_name().items()
    return ("auto", *(name for name, kind in found if kind.row_norm == "l2"))


def planned_selection_fraction(n_columns: int, n_selected: int) -> float:
    """Return the part of epsilon for the selection, from public facts."""
    least, increase, most = SELECTION_FRACTION
    return min(most, least + increase * log(n_columns / n_selected))


def _parts(budget: Budget, share: float, noise: float) -> tuple[Budget, Budget]:
    """Return the budget of each stage, at this common noise."""
    epsilon, delta = budget.epsilon / noise, budget.delta / 2
    return (
        replace(budget, epsilon=share * epsilon, delta=delta),
        replace(budget, epsilon=(1 - share) * epsilon, delta=delta),
    )


def _block(problem: Problem, n_selected: int, in_ball: bool) -> Problem:
    """Return least squares on so many columns from -1 to 1, bounded in L2."""
    bounds = RowBounds(_reach(n_selected), "l2", problem.bounds.y_range)
    constant = None
    if problem.constant is not None:
        constant = INTERCEPT_FRACTION * bounds.x_norm
        bounds = bounds.with_intercept(constant)
    return replace(
        problem,
        bounds=bounds,
        n_features=n_selected + (constant is not None),
        constant=constant,
        regularizer=L2Ball(RADIUS) if in_ball else Free(),
    )


def _reach(n_columns: int) -> float:
    """Return the largest norm of a row of columns from -1 to 1, rounded up."""
    return nextafter(sqrt(n_columns), inf)


def _dense(X: Any) -> Array:
    dense: Array = X.toarray() if sparse.issparse(X) else X
    return dense
