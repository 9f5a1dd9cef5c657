"""Private greedy coordinate descent: choose a coordinate privately, then move it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._execution import steps
from tacit._validate import (
    at_least,
    fraction,
    if_given,
    moderate,
    nonnegative,
    one_of,
    plain,
)
from tacit.data import Rows
from tacit.data.rows import arrays_of
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, calibrate
from tacit.solvers._base import Problem, Result, Solver
from tacit.solvers._coordinates.columns import Columns
from tacit.solvers._coordinates.greedy_descent import GreedyDescent
from tacit.solvers._coordinates.greedy_plan import (
    POLISH,
    RULES,
    SELECTORS,
    STEP,
    GreedyCoordinateDescentPlan,
    greedy_rule,
    settling,
    split_noise,
)
from tacit.solvers._coordinates.rules import (
    MeanSquares,
    check_smoothness,
    mean_squares,
    reject_coordinate_penalty,
)
from tacit.solvers._published import check_accounting, check_saveable, greedy_epsilon

__all__ = ["GreedyCoordinateDescent", "GreedyCoordinateDescentPlan"]

Array = NDArray[np.float64]

NAME = "GreedyCoordinateDescent"
# Updates that a report of the privacy spent can be read back with
MOST_UPDATES = 10**5


# wide: one parameter for each choice that the algorithm leaves open
@dataclass(frozen=True)
class GreedyCoordinateDescent(Solver[GreedyCoordinateDescentPlan]):
    """Greedy coordinate descent, with each coordinate chosen privately.

    A choice costs little even among very many features, so that a few weights are found
    where noise on all of them would hide every one. Weights start at zero and at most
    ``n_steps`` of them, besides the intercept, become something else.

    Parameters
    ----------
    n_steps
        Number of choices; None for the rule, which sees public facts only.
    step
        Step of every coordinate, in units of one over its smoothness; None for the
        rule. With ``n_polish`` a coordinate takes a half of it at its second visit, a
        third at the next, which averages the noise.
    clip
        Bound on a row's derivative where its entry is as large as the root mean square
        of the column, in updates; None for the rule.
    rule
        What is compared: ``"gs-s"`` for the derivative, ``"gs-r"`` for the length of
        the proximal step, ``"gs-q"`` for the decrease of the objective that it
        guarantees.
    mechanism
        ``"gumbel"`` for the exponential mechanism and Gaussian updates, ``"pure"`` for
        permute-and-flip and Laplace updates, ``"laplace"`` for noisy max and Laplace
        updates as published; ``"auto"`` for the less noisy of the first two.
    selection_share
        Part of the privacy parameter, squared with ``"gumbel"``, that choices get.
        ``"laplace"`` has a fixed one.
    selection_clip
        The clip of choices; None for the rule: a tenth of ``clip`` for targets, which
        makes sums all but votes of rows, and ``clip`` itself for labels, whose
        derivatives keep their sign whatever is fitted.
    n_polish
        Number of updates besides one a choice, spread between the choices over the
        coordinates chosen so far, which then no longer compete. 0 for none, when all
        compete in each choice as published; None for the rule.
    smoothness, smoothness_share
        As in `CoordinateDescent`.
    accounting
        ``"tight"``, or ``"paper"`` for the published noise of ``"laplace"``, rejected
        where it does not keep the budget.
    noise
        ``"grid"`` or ``"float"``.
    staleness
        How far from its true derivative a row may be that choices see, where rows are
        sparse: it saves time and costs no privacy. Updates see true derivatives. 0 for
        none; None for the rule, a part of the largest derivative or of the clip of
        choices.

    Notes
    -----
    **Guarantee.** Every score moves by no more than the coordinate sum it is made of,
    and sums by ``rows_changed``, in parts between -1 and 1. So a choice is an
    exponential mechanism of bounded range [3]_, an update a Gaussian one, and their
    Renyi curves add; or all are pure and their epsilons add. The algorithm is that of
    [1]_ and [2]_ with noise on scores instead of noise inside them, which is not
    private as published.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon and M. Tommasi, "High-dimensional private
       empirical risk minimization by greedy coordinate descent", AISTATS 2023.
    .. [2] P. Mangold, thesis, University of Lille, 2023, Chapter 5.
    .. [3] Cesar and Rogers, "Bounding, concentrating, and truncating", ALT 2021.
    """

    saved = True
    name = "gcd"
    reads = "columns"
    row_norm = "linf"
    makes_zeros = True

    n_steps: int | None = None
    step: float | None = None
    clip: float | None = None
    rule: str = "gs-s"
    mechanism: str = "auto"
    selection_share: float = 0.5
    selection_clip: float | None = None
    n_polish: int | None = None
    smoothness: str | Sequence[float] = "auto"
    smoothness_share: float = 0.1
    accounting: str = "tight"
    noise: str = "grid"
    staleness: float | None = None

    def __post_init__(self) -> None:
        plain(self)
        kept = check_smoothness(self.smoothness, self.smoothness_share)
        object.__setattr__(self, "smoothness", kept)
        check_noise(self.noise)
        one_of(RULES, rule=self.rule)
        check_accounting(self.accounting)
        one_of(("auto", *SELECTORS), mechanism=self.mechanism)
        fraction(selection_share=self.selection_share, closed=False)
        steps = {"step": self.step, "clip": self.clip}
        if_given(moderate, **steps, selection_clip=self.selection_clip)
        if_given(nonnegative, staleness=self.staleness)
        if_given(at_least, 1, n_steps=self.n_steps)
        if_given(at_least, 0, n_polish=self.n_polish)
        if self.accounting == "paper" and self.mechanism != "laplace":
            raise ValueError(
                "accounting='paper' is about Laplace noise; use mechanism='laplace'."
            )

    def plan(self, problem: Problem, budget: Budget) -> GreedyCoordinateDescentPlan:
        """Choose the steps, then the mechanism and the least noise that fits."""
        reject_coordinate_penalty(problem, NAME)
        kinds = self._kinds(budget)
        plans = [self._fitted(kind, problem, budget) for kind in kinds]
        plan = min(plans, key=lambda p: p.relative_std / p.selection_epsilon)
        if not len(plan.candidates):
            raise PlanError(
                f"{NAME} has no weight to choose but the intercept; give features."
            )
        _ = plan.selector  # rejected here, not after the charge
        return plan

    def _kinds(self, budget: Budget) -> list[str]:
        """Return the mechanisms to choose from."""
        private = self.smoothness == "private"
        pure = budget.delta == 0
        if pure and (private or self.mechanism == "gumbel"):
            raise PlanError(
                "mechanism='gumbel' and smoothness='private' need delta > 0; give a "
                "delta, or use mechanism='pure' and public root mean squares."
            )
        if self.mechanism != "auto":
            if private and self.mechanism != "gumbel":
                raise PlanError(
                    f"mechanism={self.mechanism!r} has no Gaussian noise for "
                    "smoothness='private'; use mechanism='gumbel', or public root mean "
                    "squares."
                )
            return [self.mechanism]
        if pure:
            return ["pure"]
        return ["gumbel"] if private else ["gumbel", "pure"]

    def _fitted(
        self, kind: str, problem: Problem, budget: Budget
    ) -> GreedyCoordinateDescentPlan:
        """Return the plan of one mechanism."""
        # long: one field of the plan after another, with noise found for all at once
        rule = greedy_rule(problem, budget, self.clip)
        n_steps = self.n_steps or rule.n_steps
        n_polish = POLISH * n_steps if self.n_polish is None else self.n_polish
        narrow = self.selection_clip or rule.selection_clip
        if kind == "laplace":  # as published by default
            n_polish, narrow = self.n_polish or 0, self.selection_clip or rule.clip
        n_updates = n_steps + n_polish + settling(problem)
        if n_updates > MOST_UPDATES:
            raise PlanError(
                f"{NAME} makes up to {MOST_UPDATES} updates, got {n_updates}; take "
                "fewer steps, or use CoordinateDescent."
            )
        squares = self._squares(kind, problem, budget)
        small = self.smoothness_share if squares.private else 0.0

        def planned(noise: float) -> GreedyCoordinateDescentPlan:
            counts, selection_fraction = (n_steps, n_updates), self.selection_share
            epsilon, multiplier = split_noise(
                kind, noise, selection_fraction, counts, 1 - small
            )
            # noise of a score, as a part of all rows
            spread = 2 * budget.neighbors.rows_changed / epsilon / problem.n_rows
            stale = rule.staleness(spread, narrow)
            return GreedyCoordinateDescentPlan(
                problem,
                n_steps,
                n_polish,
                self.step or STEP,
                rule.clip,
                narrow,
                squares.with_noise(noise / sqrt(small or 1.0)),
                epsilon,
                multiplier,
                float(budget.neighbors.rows_changed),
                kind,
                self.rule,
                self.noise,
                stale if self.staleness is None else self.staleness,
            )

        if self.accounting == "paper":
            plan = planned(1 / greedy_epsilon(budget, n_steps + n_updates))
            check_saveable(plan.event, budget)
        else:
            plan = planned(calibrate(lambda noise: planned(noise).event, budget))
        if self.clip is None:
            plan = replace(plan, clip=min(plan.clip, rule.loudest / plan.unrest))
        if plan.selection_epsilon < 1e-8:
            raise PlanError(
                f"{n_steps} steps leave an epsilon of {plan.selection_epsilon:.3g} to "
                "each choice; take fewer steps or raise epsilon."
            )
        # noise too large for integers is rejected here, not after the charge
        _ = plan.updater, plan.squares.private and plan.squares.mechanism
        return plan

    def _squares(self, kind: str, problem: Problem, budget: Budget) -> MeanSquares:
        kept = check_smoothness(self.smoothness, self.smoothness_share)
        if kind != "gumbel" and kept == "auto":
            kept = "public"
        return mean_squares(kept, self.smoothness_share, problem, budget, self.noise)

    def run(
        self, plan: GreedyCoordinateDescentPlan, rows: Rows, rng: Generator
    ) -> Result:
        """Choose and move the planned number of coordinates."""
        columns = Columns(*arrays_of(rows, NAME), plan.problem.loss)
        descent = GreedyDescent(plan, columns, plan.squares(columns, rng), rng)
        descent.settle()
        for t in steps(plan.n_steps, NAME):
            descent.step(t)
        return Result(descent.w[:, None], path=tuple(descent.path))
