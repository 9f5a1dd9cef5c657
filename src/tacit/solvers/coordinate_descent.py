"""Private proximal coordinate descent: one noisy partial derivative an update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._execution import steps
from tacit._random import spawn
from tacit._release import release
from tacit._validate import PlainNumbers, at_least, if_given, moderate, one_of, plain
from tacit.convex.regularizers import coordinate_parts
from tacit.data import Rows
from tacit.data.rows import arrays_of
from tacit.exceptions import PlanError
from tacit.mechanisms.integer_noise import DiscreteGaussian
from tacit.mechanisms.noise import check_noise
from tacit.mechanisms.subsets import permutation, random_blocks
from tacit.privacy import Budget, Composed, Event, GaussianNoise, Repeated, calibrate
from tacit.solvers._base import Problem, Result, Solver, plan_assumptions, require_delta
from tacit.solvers._coordinates.columns import Columns, Updates, weights_after
from tacit.solvers._coordinates.rules import (
    MOST_UPDATES,
    MeanSquares,
    check_smoothness,
    column_clips,
    coordinate_rule,
    mean_squares,
    reject_coordinate_penalty,
)
from tacit.solvers._published import (
    check_accounting,
    check_saveable,
    coordinate_multiplier,
)

__all__ = ["CoordinateDescent", "CoordinateDescentPlan"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

ORDERS = ("permuted", "uniform", "cyclic")


@dataclass(frozen=True)
class CoordinateDescentPlan(PlainNumbers):
    """Updates, steps and both noises, fixed without data."""

    problem: Problem
    n_passes: int
    step: float
    clip: float
    squares: MeanSquares
    multiplier: float
    sensitivity: float
    n_restarts: int = 1
    average: bool = False
    order: str = "permuted"
    noise: str = "grid"

    @property
    def n_updates(self) -> int:
        """Number of partial derivatives that are released."""
        return self.n_passes * self.problem.n_features

    @property
    def mechanism(self) -> DiscreteGaussian:
        """What draws the noise of one update."""
        return DiscreteGaussian(self.multiplier, self.sensitivity, self.noise)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return plan_assumptions(self.problem, self.noise, rounded=False)

    @property
    def event(self) -> Event:
        updates = Repeated(GaussianNoise(self.multiplier), self.n_updates)
        if not self.squares.events:
            return updates
        return Composed((*self.squares.events, updates))

    def coordinates(self, rng: Generator) -> Integers:
        """Return which coordinate each update moves: public randomness."""
        p = self.problem.n_features
        if self.order == "uniform":
            return random_blocks(self.n_updates, p, rng).astype(np.int64)
        if self.order == "cyclic":
            return np.tile(np.arange(p, dtype=np.int64), self.n_passes)
        passes = [permutation(p, rng) for _ in range(self.n_passes)]
        return np.concatenate(passes).astype(np.int64)

    def updates(self, squares: Array) -> Updates:
        """Return the steps, clips and penalties of all coordinates."""
        problem = self.problem
        smooth = problem.loss.max_curvature() * problem.n_rows * squares
        return Updates.of(
            # [coordinate:clip] in proportion to the root mean square of the column
            column_clips(problem, self.clip, squares),
            self.mechanism.units,
            self.step / smooth,
            coordinate_parts(problem.regularizer, problem.ridge, problem.size),
            problem.bounds.x_norm,
        )


@dataclass(frozen=True)
class CoordinateDescent(Solver[CoordinateDescentPlan]):
    """Coordinate descent: one weight at a time, along its noisy derivative.

    Every coordinate has a step and a clip of its own, in proportion to how large its
    column is, so that columns of unequal spread cost no accuracy. How large they are is
    public, or released with a tenth of the budget.

    Parameters
    ----------
    n_passes
        Updates, in units of the number of columns; None for the rule.
    step
        Step of every coordinate, in units of one over its smoothness; None for the
        rule, at most 1.
    clip
        Bound on a row's derivative where its entry is as large as the root mean square
        of the column; derivatives of larger entries are clipped further. None for the
        rule.
    smoothness
        ``"private"`` for mean squares of columns that are released with noise,
        ``"public"`` for those of entries at the bound, or a public root mean square for
        each column but the constant one; ``"auto"`` takes the private ones where their
        noise is little.
    smoothness_share
        Part of the squared Gaussian parameter that private mean squares are worth.
    n_restarts
        Number of equal stretches that the passes are divided into.
    average
        Whether a stretch ends in the mean of its iterates, as in the utility theorem,
        and not in the last.
    order
        ``"permuted"`` for passes in random order, ``"uniform"`` for coordinates drawn
        with replacement as in the utility theorem, or ``"cyclic"``.
    accounting
        ``"tight"``, or ``"paper"`` for the published noise, rejected where it does not
        keep the budget; smoothness is then public by default.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy, exactly, under both relations: each
    update is one Gaussian mechanism on a sum of parts that lie between -1 and 1 [1]_,
    and composition of Gaussian mechanisms is Gaussian (Dong, Roth and Su 2022,
    Corollary 3.3). Parts are rounded to integers, whose sums have no round-off.
    The algorithm is that of [1]_ and [2]_ with exact accounting.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon and M. Tommasi, "Differentially private
       coordinate descent for composite empirical risk minimization", ICML 2022.
    .. [2] P. Mangold, thesis, Université de Lille, 2023, Chapter 4.
    """

    saved = True
    name = "cd"
    reads = "columns"
    row_norm = "linf"
    makes_zeros = True

    n_passes: int | None = None
    step: float | None = None
    clip: float | None = None
    smoothness: str | Sequence[float] = "auto"
    smoothness_share: float = 0.1
    n_restarts: int = 1
    average: bool = False
    order: str = "permuted"
    accounting: str = "tight"
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        kept = check_smoothness(self.smoothness, self.smoothness_share)
        object.__setattr__(self, "smoothness", kept)
        check_noise(self.noise)
        check_accounting(self.accounting)
        one_of(ORDERS, order=self.order)
        one_of((True, False), average=self.average)
        at_least(1, n_restarts=self.n_restarts)
        if_given(moderate, step=self.step, clip=self.clip)
        if self.n_passes is not None:
            at_least(1, n_passes=self.n_passes)
            if self.n_passes % self.n_restarts:
                raise ValueError(
                    f"n_passes must be a multiple of n_restarts={self.n_restarts}, got "
                    f"{self.n_passes}."
                )

    def plan(self, problem: Problem, budget: Budget) -> CoordinateDescentPlan:
        """Choose the updates, then the least noise that fits."""
        # long: one field of the plan after another, with noise found for all at once
        reject_coordinate_penalty(problem, "CoordinateDescent")
        require_delta(budget, "CoordinateDescent", "GreedyCoordinateDescent")
        rule = coordinate_rule(problem, budget)
        # as many as the rule says, and whole stretches
        n_passes = self.n_passes or ceil(rule.n_passes / self.n_restarts) * (
            self.n_restarts
        )
        n_updates = n_passes * problem.n_features
        if n_updates > MOST_UPDATES:
            raise PlanError(
                f"CoordinateDescent makes up to {MOST_UPDATES} updates, got "
                f"{n_updates}; make fewer passes, or use FrankWolfe."
            )
        squares = mean_squares(
            self._smoothness, self.smoothness_share, problem, budget, self.noise
        )
        portion = self.smoothness_share if squares.private else 0.0

        def planned(for_squares: float, for_updates: float) -> CoordinateDescentPlan:
            return CoordinateDescentPlan(
                problem,
                n_passes,
                rule.step if self.step is None else self.step,
                rule.clip if self.clip is None else self.clip,
                squares.with_noise(for_squares),
                for_updates,
                float(budget.neighbors.rows_changed),
                self.n_restarts,
                self.average,
                self.order,
                self.noise,
            )

        def split(multiplier: float) -> CoordinateDescentPlan:
            # one Gaussian mechanism of this multiplier, split into a small and a large
            # part
            small = multiplier / sqrt(portion) if portion else multiplier
            return planned(small, multiplier * sqrt(n_updates / (1 - portion)))

        if self.accounting == "paper":
            plan = planned(
                coordinate_multiplier(budget, 1, portion or 1.0),
                coordinate_multiplier(budget, n_updates, 1 - portion),
            )
            check_saveable(plan.event, budget)
        else:
            plan = split(calibrate(lambda noise: split(noise).event, budget))
        # noise too large for integers is rejected here, not after the charge
        _ = plan.mechanism, plan.squares.private and plan.squares.mechanism
        return plan

    @property
    def _smoothness(self) -> str | tuple[float, ...]:
        """The choice as it was checked; published noise has public squares."""
        kept = check_smoothness(self.smoothness, self.smoothness_share)
        return "public" if (kept, self.accounting) == ("auto", "paper") else kept

    def run(self, plan: CoordinateDescentPlan, rows: Rows, rng: Generator) -> Result:
        """Release the squares, then all partial derivatives, and follow them."""
        public, private = spawn(rng, 2)
        order = plan.coordinates(public)
        columns = Columns(*arrays_of(rows, "CoordinateDescent"), plan.problem.loss)
        passes = CoordinatePasses(
            plan, columns, order, plan.updates(plan.squares(columns, private))
        )
        released = release(
            "CoordinateSums",
            value=passes.sums,
            sensitivity=plan.sensitivity * plan.mechanism.units,
            norm="linf",
            draw=lambda: passes.draw(private),
        )
        return Result(passes.weights(released)[:, None])


@dataclass(frozen=True, eq=False)
class CoordinatePasses:
    """All updates of a plan, whose sums are private and whose weights are not."""

    plan: CoordinateDescentPlan
    _private_columns: Columns
    order: Integers
    updates: Updates

    @property
    def stretches(self) -> list[slice]:
        """The updates of each restart."""
        length = len(self.order) // self.plan.n_restarts
        return [slice(k, k + length) for k in range(0, len(self.order), length)]

    def draw(self, rng: Generator) -> Integers:
        """Return the sums with noise, each at the weights that those before led to."""
        noise = self.plan.mechanism.draws(len(self.order), rng)
        return self._along(lambda part: {"noise": noise[part]})[0]

    def sums(self, released: Integers) -> Integers:
        """Return the sums without noise along a path that was released."""
        return self._along(lambda part: {"released": released[part]})[1]

    def weights(self, released: Integers) -> Array:
        """Return where the released sums lead to; no row is read."""
        w = np.zeros(self.plan.problem.n_features)
        for part in self.stretches:
            w = self._after(w, part, released[part])
        return w

    def _after(self, w: Array, part: slice, released: Integers) -> Array:
        order = self.order[part]
        return weights_after(w, order, released, self.updates, self.plan.average)

    def _along(self, given: Any) -> tuple[Integers, Integers]:
        """Return the noisy and the private sums, of all restarts in one."""
        columns, w = self._private_columns, np.zeros(self.plan.problem.n_features)
        noisy, sums = [], []
        for k in steps(self.plan.n_restarts, "CoordinateDescent"):
            part = self.stretches[k]
            # from the weights anew, so that no round-off is carried along
            t = columns.state(w)
            pair = columns.update_all(
                w, t, self.order[part], self.updates, **given(part)
            )
            noisy.append(pair[0])
            sums.append(pair[1])
            w = self._after(w, part, pair[0])
        return np.concatenate(noisy), np.concatenate(sums)
