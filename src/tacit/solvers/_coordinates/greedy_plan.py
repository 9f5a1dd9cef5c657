"""Plan and scores of greedy coordinate descent, from public facts only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, log, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit._validate import PlainNumbers, fraction
from tacit.convex.losses import has_residuals
from tacit.convex.regularizers import coordinate_parts
from tacit.mechanisms import Exponential, NoisyMax, PermuteAndFlip
from tacit.mechanisms.integer_noise import (
    ROW_LIMIT_ASSUMPTION,
    DiscreteGaussian,
    DiscreteLaplace,
)
from tacit.privacy import (
    BoundedRange,
    Budget,
    Composed,
    Event,
    GaussianNoise,
    LaplaceNoise,
    PureDP,
    Repeated,
)
from tacit.solvers._base import Problem, plan_assumptions
from tacit.solvers._coordinates.columns import Updates
from tacit.solvers._coordinates.rules import MeanSquares, column_clips
from tacit.solvers.frank_wolfe import root_spread

__all__ = [
    "MARGIN",
    "RULES",
    "SELECTORS",
    "TOP",
    "GreedyCoordinateDescentPlan",
    "GreedyRule",
    "Scores",
    "greedy_rule",
    "settling",
    "split_noise",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RULES = ("gs-s", "gs-r", "gs-q")
# Public offsets are clipped at the parts of this many rows: with sums of 2^26 rows all
# integers here stay below 2^63
REACH = 2**25
# and no score is above the parts of this many
TOP = 2.0**30
# Two computed scores are apart by at most this part of a row more than the exact ones
MARGIN = 2.0**-16
# Ridges far above all smoothness are all the same
LARGEST_RATIO = 2.0**60


@dataclass(frozen=True, eq=False)
class Scores:
    """Public numbers by which coordinate sums become scores.

    A row adds at most ``units`` integers to a sum, each of which stands for ``back`` in
    units of the gradient; ``smooth`` is the smoothness of each coordinate, and the rest
    are penalties and ends of each weight.

    Notes
    -----
    **Bound.** A score moves by at most as much as its sum and ``MARGIN * units``: the
    distance to an interval and the proximal map are 1-Lipschitz, and the decrease is
    at least half the squared step, which is minus its own derivative.
    """

    rule: str
    units: int
    back: Floats
    smooth: Floats
    l1: Floats
    l2: Floats
    low: Floats
    high: Floats

    def __call__(
        self,
        sums: Integers,
        w: Floats,
        at: Integers,
        out_of: NDArray[np.bool_] | None = None,
    ) -> Floats:
        """Return the scores of the coordinates ``at``, given all sums and weights.

        Those that are ``out_of`` the choice have the lowest score there is.
        """
        from tacit.solvers._coordinates import greedy_kernels as kernels  # noqa: PLC0415

        out_of = np.zeros(len(w), dtype=np.bool_) if out_of is None else out_of
        found = np.empty(len(at))
        # [greedy:score] nothing in it but the sums is private
        kernels.scores(
            RULES.index(self.rule),
            self.table,
            sums,
            w,
            at,
            out_of,
            float(REACH * self.units),
            TOP * self.units,
            found,
        )
        return found

    @cached_property
    def table(self) -> Floats:
        """A line of public numbers for each coordinate, in integers of the sums.

        What an integer stands for, the penalties, that beside zero as it is
        rounded, smoothness, ridge over smoothness, and the ends of the weights.
        """
        most = float(REACH * self.units)
        with np.errstate(over="ignore"):  # infinity is clipped
            scale = np.clip(self.smooth / self.back, 1e-250, 1e250)
            columns = (
                self.back,
                self.l1,
                self.l2,
                np.rint(np.clip(self.l1 / self.back, -most, most)),
                scale,
                np.minimum(self.l2 / self.smooth, LARGEST_RATIO),
                self.low * scale,
                self.high * scale,
            )
        return np.column_stack(columns)


# Derivatives are clipped here, in units of the largest target or of the bound on
# derivatives
RESIDUAL_CLIP, DERIVATIVE_CLIP = 0.35, 1.2
# and here for choices, in units of the above
NARROW = 0.1
# Length of steps: mean squares are rather too large, and derivatives are clipped
STEP = 2.0
# How far from the truth choices may see derivatives of sparse rows, in units of the
# bound on derivatives or of the clip of choices: at least, at most, and in units of the
# noise of a choice in between
STALE, MOST_STALE, HIDDEN = 0.02, 0.2, 20.0
# Part of all rows that makes a feature worth choosing
WORTH = 0.2
# Updates besides that of a choice, for each choice
POLISH = 2
MOST_STEPS = 12
# Noise of predictions up to which clips stay, in units of the largest target or of a
# margin
LOUDEST_TARGET, LOUDEST_MARGIN = 0.175, 0.3
# Updates of the intercept before the first choice: votes and derivatives of an
# intercept that is far off say little about features
SETTLING = 4


@dataclass(frozen=True)
class GreedyRule:
    """Number of choices, and how to move."""

    n_steps: int
    clip: float
    narrow: float
    bound: float
    loudest: float

    @property
    def selection_clip(self) -> float:
        """The clip of choices."""
        return self.narrow * self.clip

    def staleness(self, noise: float, clip: float) -> float:
        """Return the tolerated staleness of derivatives, for this noise and clip."""
        unit = self.bound if isfinite(self.bound) else clip
        return unit * min(max(STALE, HIDDEN * noise), MOST_STALE)


def greedy_rule(
    problem: Problem, budget: Budget, clip: float | None = None
) -> GreedyRule:
    """Return the rule, with another clip where one is given."""
    bound = problem.loss.max_derivative(inf, problem.bounds.y_range)
    largest = problem.largest_target
    usual = DERIVATIVE_CLIP * bound if isfinite(bound) else RESIDUAL_CLIP * largest
    # derivatives of a label keep their sign: votes would count labels, whatever is
    # fitted
    narrow, loudest = 1.0, LOUDEST_MARGIN
    if has_residuals(problem.loss):
        narrow, loudest = NARROW, LOUDEST_TARGET * largest
    n_steps = seen_steps(problem, budget)
    return GreedyRule(n_steps, clip or usual, narrow, bound, loudest)


def settling(problem: Problem) -> int:
    """Return how many updates the intercept has before the first choice."""
    return 0 if problem.constant is None else SETTLING


def seen_steps(problem: Problem, budget: Budget) -> int:
    """Return for how many choices a feature worth choosing stands out from the noise.

    Worth choosing is one for which `WORTH` of all rows more vote than against it, which
    must be more than chance gives to the best of all.
    """
    least = 2 * budget.neighbors.rows_changed * log(2 * problem.n_features)
    least /= WORTH * problem.n_rows
    # half of the budget is for choices; epsilons add, or their squares do
    wanted = 0.5 * budget.epsilon / least
    if budget.delta > 0:
        spread = budget.epsilon / root_spread(budget)
        wanted = max(wanted, 0.5 * 8 * (spread / least) ** 2)
    return int(min(max(1.0, wanted), MOST_STEPS, problem.n_features))


def split_noise(
    kind: str,
    noise: float,
    selection_fraction: float,
    counts: tuple[int, int],
    rest: float,
) -> tuple[float, float]:
    """Return the epsilon of a choice and the multiplier of an update.

    ``noise`` is that of the one Gaussian mechanism that all releases together amount
    to, or one over their total epsilon. Choices and updates get the part ``rest`` of
    it, choices ``selection_fraction`` of that part, and ``counts`` says how many there
    are of both.
    """
    n_steps, n_updates = counts
    choices, moves = selection_fraction * rest, (1 - selection_fraction) * rest
    if kind == "gumbel":
        # [greedy:split] epsilon^2 / 8 of a choice against 1 / (2 multiplier^2)
        return 2 * sqrt(choices / n_steps) / noise, noise * sqrt(n_updates / moves)
    if kind == "pure":
        return choices / n_steps / noise, noise * n_updates / moves
    # [greedy:published] the same scale for both: a choice costs twice an update
    return 2 / noise, noise


Array = NDArray[np.float64]
Selector = Exponential | PermuteAndFlip | NoisyMax

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


# wide: one field for each number that a run needs
@dataclass(frozen=True)
class GreedyCoordinateDescentPlan(PlainNumbers):
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
    staleness: float = 0.0

    @property
    def n_updates(self) -> int:
        """Number of partial derivatives that are released."""
        return self.n_steps + self.n_polish + self.n_settling

    @property
    def n_settling(self) -> int:
        """Number of updates of the intercept before the first choice."""
        return settling(self.problem)

    @property
    def updater(self) -> DiscreteGaussian | DiscreteLaplace:
        """What draws the noise of one update."""
        kind = DiscreteGaussian if self.mechanism == "gumbel" else DiscreteLaplace
        return kind(self.multiplier, self.sensitivity, self.noise)

    @property
    def selector(self) -> Selector:
        """What chooses a coordinate."""
        # [greedy:sensitivity] the rows changed, and the round-off of two scores
        moved = self.updater.units * (self.sensitivity + MARGIN)
        return SELECTORS[self.mechanism](self.selection_epsilon, moved, self.noise)

    @property
    def std(self) -> float:
        """Standard deviation of the noise of an update, in integers."""
        scale = self.updater.scale
        return scale if self.mechanism == "gumbel" else sqrt(2) * scale

    @property
    def relative_std(self) -> float:
        """The same in full parts of a row."""
        return self.std / self.updater.units

    @property
    def unrest(self) -> float:
        """Noise of predictions that updates add up to, over the clip."""
        # each coordinate keeps about the mean of its visits
        visits = self.n_updates / (self.n_steps + 1)
        moved = self.step * self.sensitivity * self.multiplier / self.problem.n_rows
        moved /= self.problem.loss.max_curvature()
        return moved * sqrt((self.n_steps + 1) / visits)

    @property
    def candidates(self) -> NDArray[np.int64]:
        """Coordinates that compete: all but the constant one."""
        return np.arange(self.problem.n_columns)

    @property
    def assumptions(self) -> tuple[str, ...]:
        stated = plan_assumptions(self.problem, self.noise, rounded=False)
        return (*stated, ROW_LIMIT_ASSUMPTION)

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
            column_clips(self.problem, clip, squares),
            self.updater.units,
            steps / self._smooth(squares),
            self._parts,
            self.problem.bounds.x_norm,
        )

    def scores(self, squares: Array) -> Scores:
        """Return what makes scores of sums.

        Penalties count by the clip of updates: sums of choices are all but votes where
        their clip is smaller, and say little about how large a derivative is.
        """
        at = self.updates(squares, self.clip)
        smooth = self._smooth(squares)
        ends = at.l1, at.l2, at.low, at.high
        return Scores(self.rule, self.updater.units, at.back, smooth, *ends)
