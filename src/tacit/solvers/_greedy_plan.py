"""What greedy coordinate descent will do, fixed without data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit._validate import PlainNumbers, fraction
from tacit.convex.regularizers import coordinate_parts
from tacit.mechanisms import Exponential, NoisyMax, PermuteAndFlip
from tacit.mechanisms.integer_noise import (
    ROW_LIMIT_ASSUMPTION,
    DiscreteGaussian,
    DiscreteLaplace,
)
from tacit.privacy import (
    BoundedRange,
    Composed,
    Event,
    GaussianNoise,
    LaplaceNoise,
    PureDP,
    Repeated,
)
from tacit.solvers._base import Problem, plan_assumptions
from tacit.solvers._columns import Updates
from tacit.solvers._coordinate_rules import column_clips
from tacit.solvers._greedy_rules import settling
from tacit.solvers._greedy_scores import MARGIN, Scores
from tacit.solvers._smoothness import MeanSquares

__all__ = ["SELECTORS", "GreedyCoordinateDescentPlan"]

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
        """Standard deviation of the noise of an update, in whole numbers."""
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
        their clip is smaller, and say little about how large a slope is.
        """
        at = self.updates(squares, self.clip)
        smooth = self._smooth(squares)
        ends = at.l1, at.l2, at.low, at.high
        return Scores(self.rule, self.updater.units, at.back, smooth, *ends)
