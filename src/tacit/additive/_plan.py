"""Plan of an additive fit: bins, units of the targets and a descent, in one budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

from tacit._validate import PlainNumbers
from tacit.additive._bins import ROUNDS, BinsPlan
from tacit.additive._columns import Column
from tacit.additive._pairs import PairsPlan, pairs_planner
from tacit.additive._sums import compile_loops, margin_roundoff
from tacit.additive._targets import TargetsPlan
from tacit.additive._terms import ROW_NORM, Waves, usual_waves
from tacit.convex import Huber, Loss
from tacit.data import RowBounds
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Composed, Event, GaussianNoise, calibrate
from tacit.solvers import PreconditionedGD, Problem
from tacit.solvers._base import INTERCEPT_FRACTION
from tacit.solvers._drowned import noise_notes
from tacit.solvers._gradients.descent import capped_where_noisy, usual_clip
from tacit.solvers.preconditioned_gd import (
    MOST_FEATURES,
    STEPS_SEVERAL,
    PreconditionedGDPlan,
    damping_rule,
)

__all__ = ["FARTHEST", "AdditivePlan", "Facts", "planned_fit", "regression_loss"]

# Fractions of the squared privacy parameter for counts, units of targets and pairs, by
# benchmarks/additive/fit_rule.py
BINS_FRACTION, TARGETS_FRACTION, PAIRS_FRACTION = 0.10, 0.07, 0.20
# Residuals are clipped at the first, and targets at the second, in units of the spread
# of the targets
RESIDUAL_CLIP, FARTHEST = 0.35, 8.0
# Steps of the descent for one output, and coefficient of the noise on its moments in
# the damping; by benchmarks/additive/fit_rule.py
STEPS, BY_MOMENTS = 24, 0.8


@dataclass(frozen=True)
class Facts:
    """Public facts that a plan is made from.

    Parameters
    ----------
    columns
        Facts about the columns.
    n_rows
        Number of rows to plan for.
    loss
        Loss of the margins, with residuals in units of the spread of the targets.
    y_range
        Range of the targets of a regression, or None.
    interactions
        Number of pairs to choose, or the positions of given ones.
    assumptions
        Assumptions about rows and labels, in words.
    """

    columns: tuple[Column, ...]
    n_rows: int
    loss: Loss
    y_range: tuple[float, float] | None = None
    interactions: int | tuple[tuple[int, int], ...] = 0
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class AdditivePlan(PlainNumbers):
    """Everything that an additive fit releases, fixed without data.

    Notes
    -----
    **Guarantee.** Counts, units of the targets and the descent are Gaussian mechanisms,
    each of which may depend on what was released before, so that their squared
    parameters add up (Dong, Roth and Su 2022, Corollary 3.3). Features of a row depend
    on that row and on released bins alone.
    """

    bins: BinsPlan
    targets: TargetsPlan | None
    descent: PreconditionedGDPlan
    pairs: PairsPlan | None
    waves: Waves
    budget: Budget
    stated: tuple[str, ...] = ()

    @property
    def solver(self) -> PreconditionedGD:
        """Algorithm that fits the shapes."""
        return PreconditionedGD()

    @property
    def x_norm(self) -> float:
        """Norm that the features of a row are clipped to."""
        return ROW_NORM

    @property
    def event(self) -> Event:
        parts = (self.bins, self.targets, self.descent, self.pairs)
        return Composed(tuple(part.event for part in parts if part is not None))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (*self.stated, *self.descent.assumptions)

    def check_noise(self) -> None:
        """Reject what would make a run fail, before the charge: too large noise."""
        compile_loops()  # which fails where they cannot be stored
        self.bins.mechanism.scale(1)
        self.descent.check_noise()
        if self.pairs is not None:
            self.pairs.check_noise()


def regression_loss() -> Loss:
    """Return the loss of residuals in units of the spread of the targets."""
    return Huber(RESIDUAL_CLIP)


def planned_fit(facts: Facts, budget: Budget, noise: str) -> AdditivePlan:
    """Return the plan with the least noise that fits the budget."""
    waves = _waves(facts, budget)
    problem = _problem(facts, waves)
    if facts.y_range is None:
        problem = replace(problem, loss=capped_where_noisy(problem, budget))

    def descent(problem: Problem) -> Callable[[float], PreconditionedGDPlan]:
        return _solver(problem, facts, budget, noise).planner(problem, budget)

    shapes, pairs = descent(problem), None
    if facts.interactions:
        pairs = pairs_planner(
            facts.columns, facts.interactions, problem, budget, descent
        )
    notes = noise_notes(problem, budget, n_columns=len(facts.columns))
    for_targets = TARGETS_FRACTION if facts.y_range else 0.0
    for_pairs = PAIRS_FRACTION if pairs else 0.0
    rest = 1 - BINS_FRACTION - for_targets - for_pairs

    def planned(multiplier: float) -> AdditivePlan:
        counts = multiplier * sqrt(len(ROUNDS) / BINS_FRACTION)
        units = None
        if facts.y_range is not None:
            sums = multiplier * sqrt(2 / for_targets)
            units = TargetsPlan(*facts.y_range, budget.neighbors, sums, noise)
        return AdditivePlan(
            BinsPlan(len(facts.columns), budget.neighbors, counts, noise),
            units,
            _with_margin_roundoff(shapes(multiplier / sqrt(rest))),
            pairs(multiplier / sqrt(for_pairs)) if pairs else None,
            waves,
            budget,
            (*facts.assumptions, *notes),
        )

    plan = planned(calibrate(lambda noise: planned(noise).event, budget))
    plan.check_noise()
    return plan


def _with_margin_roundoff(plan: PreconditionedGDPlan) -> PreconditionedGDPlan:
    """Return the plan for rows of bins, whose margins are larger and rounded more."""
    sensitivity = plan.sensitivity + margin_roundoff(plan.problem)
    return replace(plan, sensitivity=sensitivity)


def _solver(
    problem: Problem, facts: Facts, budget: Budget, noise: str
) -> PreconditionedGD:
    """Return the descent, with residuals compared to one spread of the targets."""
    n_steps = STEPS_SEVERAL if problem.loss.n_outputs > 1 else STEPS
    # of a typical row, for the damping alone
    if facts.y_range is None:
        typical_clip = usual_clip(problem, budget)
    else:
        typical_clip = RESIDUAL_CLIP
        problem = replace(problem, bounds=replace(problem.bounds, y_range=(-1.0, 1.0)))
    damping = damping_rule(problem, budget, n_steps, typical_clip, BY_MOMENTS)
    return PreconditionedGD(n_steps=n_steps, damping=damping, noise=noise)


def _waves(facts: Facts, budget: Budget) -> Waves:
    """Return the cosines of each column of numbers, as few as a descent can take."""
    once = calibrate(GaussianNoise, budget, rtol=1e-3) * budget.neighbors.rows_changed
    regression = facts.y_range is not None
    usual = usual_waves(once / facts.n_rows, len(facts.columns), regression=regression)
    numeric = sum(each.is_numeric for each in facts.columns)
    listed = sum(each.n_codes for each in facts.columns if not each.is_numeric)
    if listed + 2 * numeric > MOST_FEATURES:
        raise PlanError(
            f"an additive model takes up to {MOST_FEATURES} categories, two more in "
            "each column for cells that are unlisted or missing, and twice the columns "
            f"of numbers, all together, got {listed + 2 * numeric}; merge rare "
            "categories, or leave columns out."
        )
    most = (MOST_FEATURES - listed) // max(numeric, 1) - 1
    return replace(usual, count=max(1, min(usual.count, most)))


def _problem(facts: Facts, waves: Waves) -> Problem:
    """Return what the descent solves; its size is public, as bins are not counted."""
    sizes = [
        waves.count + 1 if each.is_numeric else each.n_codes for each in facts.columns
    ]
    constant = INTERCEPT_FRACTION * ROW_NORM
    ends = (-1.0, 1.0) if facts.y_range is None else (-FARTHEST, FARTHEST)
    bounds = RowBounds(ROW_NORM, y_range=ends)
    return Problem(
        loss=facts.loss,
        bounds=bounds.with_intercept(constant),
        n_rows=facts.n_rows,
        n_features=sum(sizes) + 1,
        constant=constant,
    )
