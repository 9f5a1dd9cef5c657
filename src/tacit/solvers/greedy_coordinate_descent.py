"""Private greedy coordinate descent: choose a coordinate privately, then move it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._progress import steps
from tacit._validate import at_least, fraction, one_of, plain, positive
from tacit.convex import coordinate_parts
from tacit.data import Rows
from tacit.data.rows import held
from tacit.exceptions import PlanError
from tacit.mechanisms import Exponential, NoisyMax, PermuteAndFlip
from tacit.mechanisms.grid import check_noise
from tacit.mechanisms.whole import WholeGaussian, WholeLaplace
from tacit.privacy import (
    BoundedRange,
    Budget,
    Composed,
    Event,
    GaussianNoise,
    LaplaceNoise,
    PureDP,
    Repeated,
    calibrate,
)
from tacit.solvers._base import Problem, plan_assumptions
from tacit.solvers._columns import Columns, Updates
from tacit.solvers._greedy_rules import greedy_rule, settling, split_noise
from tacit.solvers._greedy_scores import MARGIN, Scores, check_rule
from tacit.solvers._greedy_walk import Visit, Walk
from tacit.solvers._published import check_accounting, greedy_epsilon, refuse_unkept
from tacit.solvers._smoothness import (
    MeanSquares,
    check_smoothness,
    mean_squares,
    refuse_coordinates,
)

__all__ = ["GreedyCoordinateDescent", "GreedyCoordinateDescentPlan"]

Array = NDArray[np.float64]
Selector = Exponential | PermuteAndFlip | NoisyMax

NAME = "GreedyCoordinateDescent"
SELECTORS: dict[str, type[Selector]] = {
    "gumbel": Exponential,
    "pure": PermuteAndFlip,
    "laplace": NoisyMax,
}
CHOICES: dict[str, Callable[[float], Event]] = {
    "gumbel": BoundedRange,
    "pure": PureDP,
    "laplace": PureDP,
}
MOVES: dict[str, Callable[[float], Event]] = {
    "gumbel": GaussianNoise,
    "pure": LaplaceNoise,
    "laplace": LaplaceNoise,
}
# Updates that a report of the privacy spent can be read back with
MOST_UPDATES = 10**5
# Noise of predictions, over the slopes that are usual, up to which clips stay
QUIET = 0.5


@dataclass(frozen=True)
class GreedyCoordinateDescentPlan:
    """Choices, updates and the noise of both, fixed without data."""

    problem: Problem
    n_steps: int
    n_polish: int
    step: float
    clip: float
    selection_clip: float
    squares: MeanSquares
    selection_epsilon: float
    multiplier: float
    sensitivity: float
    mechanism: str = "gumbel"
    rule: str = "gs-s"
    noise: str = "grid"

    @property
    def n_updates(self) -> int:
        """Number of partial derivatives that are released."""
        return self.n_steps + self.n_polish + self.n_settling

    @property
    def n_settling(self) -> int:
        """Number of updates of the intercept before the first choice."""
        return settling(self.problem)

    @property
    def updater(self) -> WholeGaussian | WholeLaplace:
        """What draws the noise of one update."""
        kind = WholeGaussian if self.mechanism == "gumbel" else WholeLaplace
        return kind(self.multiplier, self.sensitivity, self.noise)

    @property
    def selector(self) -> Selector:
        """What chooses a coordinate."""
        # [greedy:sensitivity] the rows changed, and the round-off of two scores
        moved = self.updater.units * (self.sensitivity + MARGIN)
        return SELECTORS[self.mechanism](self.selection_epsilon, moved, self.noise)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of an update, in whole numbers."""
        scale = self.updater.scale
        return scale if self.mechanism == "gumbel" else sqrt(2) * scale

    @property
    def relative_deviation(self) -> float:
        """The same in full parts of a row."""
        return self.deviation / self.updater.units

    @property
    def unrest(self) -> float:
        """Noise of predictions that updates add up to, over the usual slope."""
        # each coordinate keeps about the mean of its visits
        visits = self.n_updates / (self.n_steps + 1)
        moved = self.step * self.sensitivity * self.multiplier / self.problem.n_rows
        return moved * sqrt((self.n_steps + 1) / visits)

    @property
    def candidates(self) -> NDArray[np.int64]:
        """Coordinates that compete: all that can move, but for the constant one."""
        _, _, low, high = self._parts
        free = low < high
        if self.problem.constant is not None:
            free[-1] = False
        return np.flatnonzero(free)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return plan_assumptions(self.problem, self.noise)

    @property
    def event(self) -> Event:
        choices = Repeated(
            CHOICES[self.mechanism](self.selection_epsilon), self.n_steps
        )
        moves = Repeated(MOVES[self.mechanism](self.multiplier), self.n_updates)
        return Composed((*self.squares.events, choices, moves))

    def within(self, confidence: float = 0.95) -> float:
        """Return how far from the best the scores of all chosen coordinates may be.

        In rows: with probability ``confidence`` no other coordinate would have had a
        sum larger than that of the chosen one by the full parts of more rows than this.

        Notes
        -----
        **Bound.** McSherry and Talwar (2007), Theorem 6, for each choice, and a union
        over all of them. Permute-and-flip is never further off; Laplace noise is up to
        twice as far.
        """
        fraction(confidence=confidence, closed=False)
        worst = log(len(self.candidates) * self.n_steps / (1 - confidence))
        off = 2 * (self.sensitivity + MARGIN) / self.selection_epsilon * worst
        return 2 * off if self.mechanism == "laplace" else off

    @property
    def _parts(self) -> tuple[Array, Array, Array, Array]:
        problem = self.problem
        return coordinate_parts(problem.regularizer, problem.ridge, problem.size)

    def _smooth(self, squares: Array) -> Array:
        return self.problem.loss.max_curvature() * self.problem.n_rows * squares

    def updates(self, squares: Array, clip: float) -> Updates:
        """Return the steps, clips and penalties of all coordinates."""
        steps = np.full(len(squares), self.step)
        if self.problem.constant is not None:
            # its mean square is known, and a longer step would overshoot
            steps[-1] = min(self.step, 1.0)
        return Updates.of(
            # [greedy:clip] scaled sensitivities are the same for all coordinates
            clip * np.sqrt(squares),
            self.updater.units,
            steps / self._smooth(squares),
            self._parts,
            self.problem.bounds.x_norm,
        )

    def scores(self, squares: Array) -> Scores:
        """Return what makes scores of sums."""
        at = self.updates(squares, self.clip)
        smooth = self._smooth(squares)
        ends = at.l1, at.l2, at.low, at.high
        return Scores(self.rule, self.updater.units, at.back, smooth, *ends)


@dataclass(frozen=True)
class GreedyCoordinateDescent:
    """Move the coordinate that promises most, one chosen privately at a time.

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
        Bound on a row's slope where its entry is as large as the root mean square of
        the column, in updates; None for the rule.
    rule
        What is compared: ``"gs-s"`` for the slope, ``"gs-r"`` for the length of the
        proximal step, ``"gs-q"`` for the decrease of the objective that it promises.
    mechanism
        ``"gumbel"`` for the exponential mechanism and Gaussian updates, ``"pure"`` for
        permute-and-flip and Laplace updates, ``"laplace"`` for noisy max and Laplace
        updates as published; ``"auto"`` for the less noisy of the first two.
    selection_share
        Part of the privacy parameter, squared with ``"gumbel"``, that choices get.
        ``"laplace"`` has a fixed one.
    selection_clip
        The clip of choices; None for the rule, a fifth of ``clip``, which makes sums
        all but votes of rows: those stand out from the noise best.
    n_polish
        Number of updates besides one a choice, spread between the choices over the
        coordinates chosen so far, which then no longer compete. 0 for none, when all
        compete in each choice as published; None for the rule.
    smoothness, smoothness_share
        As in `CoordinateDescent`.
    accounting
        ``"tight"``, or ``"paper"`` for the published noise of ``"laplace"``, refused
        where it does not keep the budget.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Every score moves by no more than the coordinate sum it is made of,
    and sums by ``rows_changed``, in parts between -1 and 1. So a choice is an
    exponential mechanism of bounded range [3]_, an update a Gaussian one, and their
    Renyi curves add; or all are pure and their epsilons add. The algorithm is that of
    [1]_ and [2]_ with noise on scores in place of noise inside of them, which is not
    private as published.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon and M. Tommasi, "High-dimensional private
       empirical risk minimization by greedy coordinate descent", AISTATS 2023.
    .. [2] P. Mangold, thesis, University of Lille, 2023, Chapter 5.
    .. [3] Cesar and Rogers, "Bounding, concentrating, and truncating", ALT 2021.
    """

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

    def __post_init__(self) -> None:
        plain(self)
        kept = check_smoothness(self.smoothness, self.smoothness_share)
        object.__setattr__(self, "smoothness", kept)
        check_noise(self.noise)
        check_rule(self.rule)
        check_accounting(self.accounting)
        one_of(("auto", *SELECTORS), mechanism=self.mechanism)
        fraction(selection_share=self.selection_share, closed=False)
        for name in ("step", "clip", "selection_clip"):
            value = getattr(self, name)
            if value is None:
                continue
            positive(**{name: value})
            if not 1e-100 <= value <= 1e100:
                raise ValueError(f"{name} must be from 1e-100 to 1e100, got {value!r}.")
        if self.n_steps is not None:
            at_least(1, n_steps=self.n_steps)
        if self.n_polish is not None:
            at_least(0, n_polish=self.n_polish)
        if self.accounting == "paper" and self.mechanism != "laplace":
            raise ValueError(
                "accounting='paper' is about Laplace noise; use mechanism='laplace'."
            )

    def plan(self, problem: Problem, budget: Budget) -> GreedyCoordinateDescentPlan:
        """Choose the steps, then the mechanism and the least noise that fits."""
        refuse_coordinates(problem, NAME)
        kinds = self._kinds(budget)
        plans = [self._fitted(kind, problem, budget) for kind in kinds]
        plan = min(
            plans, key=lambda p: p.deviation / p.updater.units / p.selection_epsilon
        )
        if not len(plan.candidates):
            raise PlanError(
                f"{NAME} has no weight to choose: all are fixed at zero; widen the set."
            )
        _ = plan.selector  # refused here, not after the charge
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
        rule = greedy_rule(problem, budget, self.clip)
        n_steps = self.n_steps or rule.n_steps
        n_polish = rule.polish(n_steps) if self.n_polish is None else self.n_polish
        narrow = self.selection_clip or rule.selection_clip
        if kind == "laplace":  # as published where nothing else is asked for
            n_polish, narrow = self.n_polish or 0, self.selection_clip or rule.clip
        n_updates = n_steps + n_polish + settling(problem)
        if n_updates > MOST_UPDATES:
            raise PlanError(
                f"{NAME} makes up to {MOST_UPDATES} updates, got {n_updates}; take "
                "fewer steps, or use CoordinateDescent."
            )
        squares = self._squares(kind, problem, budget)
        small = self.smoothness_share if squares.private else 0.0
        known = bool(squares.private) or isinstance(self.smoothness, tuple)

        def planned(noise: float) -> GreedyCoordinateDescentPlan:
            counts, share = (n_steps, n_updates), self.selection_share
            epsilon, multiplier = split_noise(kind, noise, share, counts, 1 - small)
            return GreedyCoordinateDescentPlan(
                problem,
                n_steps,
                n_polish,
                self.step or rule.step(known),
                rule.clip,
                narrow,
                squares.with_noise(noise / sqrt(small or 1.0)),
                epsilon,
                multiplier,
                float(budget.neighbors.rows_changed),
                kind,
                self.rule,
                self.noise,
            )

        if self.accounting == "paper":
            plan = planned(1 / greedy_epsilon(budget, n_steps + n_updates))
            refuse_unkept(plan.event, budget)
        else:
            plan = planned(calibrate(lambda noise: planned(noise).event, budget))
        if self.clip is None:
            plan = replace(plan, clip=min(plan.clip, QUIET * plan.clip / plan.unrest))
        if plan.selection_epsilon < 1e-8:
            raise PlanError(
                f"{n_steps} steps leave an epsilon of {plan.selection_epsilon:.3g} to "
                "each choice; take fewer steps or raise epsilon."
            )
        # noise too large for whole numbers is refused here, not after the charge
        _ = plan.updater, plan.squares.private and plan.squares.mechanism
        return plan

    def _squares(self, kind: str, problem: Problem, budget: Budget) -> MeanSquares:
        kept = check_smoothness(self.smoothness, self.smoothness_share)
        if kind != "gumbel" and kept == "auto":
            kept = "public"
        return mean_squares(kept, self.smoothness_share, problem, budget, self.noise)

    def run(
        self, plan: GreedyCoordinateDescentPlan, rows: Rows, rng: Generator
    ) -> Array:
        """Choose and move the planned number of coordinates."""
        return self.run_path(plan, rows, rng)[0]

    def run_path(
        self, plan: GreedyCoordinateDescentPlan, rows: Rows, rng: Generator
    ) -> tuple[Array, tuple[Visit, ...]]:
        """Return the weights, and what each update on the way released."""
        columns: Any = Columns(*held(rows, NAME), plan.problem.loss)
        walk = Walk(plan, columns, plan.squares(columns, rng), rng)
        polished = 0
        walk.settle()
        for t in steps(plan.n_steps, NAME):
            walk.join(walk.choose())
            due = plan.n_polish * (t + 1) // plan.n_steps
            for k in range(polished, due):
                walk.visit(walk.joined[k % len(walk.joined)])
            polished = due
        return walk.w[:, None], tuple(walk.path)
