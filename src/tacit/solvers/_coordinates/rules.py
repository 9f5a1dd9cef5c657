"""Step sizes, clips and smoothness constants of coordinate descents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite, sqrt
from numbers import Real

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import fraction, one_of
from tacit.convex.losses import has_residuals
from tacit.convex.regularizers import coordinate_parts
from tacit.exceptions import PlanError
from tacit.mechanisms.integer_noise import MAX_INTEGER_ROWS, DiscreteGaussian
from tacit.privacy import Budget, Event, GaussianNoise, Neighbors, calibrate
from tacit.solvers._base import Problem
from tacit.solvers._coordinates.columns import Columns, check_loss

__all__ = [
    "CoordinateRule",
    "MeanSquares",
    "check_smoothness",
    "column_clips",
    "coordinate_rule",
    "mean_squares",
    "noise_fraction",
    "reject_coordinate_penalty",
]

Array = NDArray[np.float64]

SMOOTHNESS = ("auto", "private", "public")
# Standard deviations of noise added to a noisy mean square, and the least it may be
# then: only noise of six standard deviations halves the curvature of a column
ADDED, LEAST = 2.0, 4.0
# Noise on the mean of squares between 0 and 1 up to which they are worth its price
LOW_NOISE_SQUARES = 0.1


@dataclass(frozen=True)
class MeanSquares:
    """Mean squares of all columns: known, or to be released with noise.

    Those of the first ``n_private`` columns are private, with noise of ``multiplier``
    times the sensitivity, and those of the columns after them ``known``. Entries are at
    most ``x_norm``. ``counted`` says that there are as many rows as planned for: where
    their number is private, a mean over those planned for may be above the squared
    bound.

    Notes
    -----
    **Guarantee.** The sums of ``(x / x_norm)^2`` over rows are one Gaussian mechanism:
    entries are between 0 and 1, so neighbors move a vector of p sums by at most the
    root of p, whether a row is replaced, added or removed. What becomes of them is
    post-processing.
    """

    n_rows: int
    x_norm: float
    n_private: int
    known: tuple[float, ...] = ()
    multiplier: float | None = None
    noise: str = "grid"
    counted: bool = True

    @property
    def private(self) -> bool:
        """Whether anything is to be released."""
        return self.n_private > 0

    @property
    def mechanism(self) -> DiscreteGaussian:
        """What draws the noise of the sums of squares."""
        if self.multiplier is None:
            raise PlanError("All mean squares are public; nothing is to be drawn.")
        # [coordinate:squares] entries in [0, 1], under both relations
        return DiscreteGaussian(self.multiplier, sqrt(self.n_private), self.noise)

    @property
    def events(self) -> tuple[Event, ...]:
        """The event of the release, if any."""
        return () if self.multiplier is None else (GaussianNoise(self.multiplier),)

    @property
    def std(self) -> float:
        """Noise of a private mean square."""
        mechanism = self.mechanism
        return mechanism.scale / mechanism.units * self.x_norm**2 / self.n_rows

    def with_noise(self, multiplier: float) -> MeanSquares:
        """Return the same with this much noise, or as it is where all are public."""
        return replace(self, multiplier=multiplier) if self.private else self

    def __call__(self, columns: Columns, rng: Generator) -> Array:
        """Return a mean square for each column, from now on public."""
        known = np.array(self.known, dtype=np.float64)
        if not self.private:
            return known
        mechanism = self.mechanism
        sums = columns.square_sums(self.x_norm, mechanism.units)[: self.n_private]
        noisy = mechanism(sums, rng) / mechanism.units
        return np.append(self.safe(noisy * self.x_norm**2 / self.n_rows), known)

    def safe(self, noisy: Array) -> Array:
        """Return noisy mean squares as steps can use them: hardly ever too small.

        A mean square that is too large makes for short steps and a little more noise;
        one that is less than half of the true one makes for steps that overshoot.
        """
        off = self.std
        # no mean square is above that of the bound
        most = self.x_norm**2 + LEAST * off if self.counted else inf
        return np.clip(noisy + ADDED * off, LEAST * off, most)


def check_smoothness(smoothness: object, portion: float) -> tuple[float, ...] | str:
    """Return the choice as it is kept: a name, or public root mean squares."""
    fraction(smoothness_share=portion, closed=False)
    if isinstance(smoothness, str):
        one_of(SMOOTHNESS, smoothness=smoothness)
        return smoothness
    if isinstance(smoothness, Sequence | np.ndarray):
        return tuple(_positive_numbers(smoothness))
    raise ValueError(
        "smoothness must be 'auto', 'private', 'public' or a sequence of public root "
        f"mean squares, got {smoothness!r}."
    )


def _positive_numbers(
    values: Sequence[object] | NDArray[np.generic],
) -> Iterator[float]:
    for value in values:
        number = float(value) if isinstance(value, Real) else 0.0
        # squares of these, and what they are divided by, are ordinary numbers
        if not (isfinite(number) and 1e-100 <= number <= 1e100):
            raise ValueError(
                "smoothness must hold positive numbers, one root mean square a column, "
                f"got {value!r}."
            )
        yield number


def mean_squares(
    smoothness: tuple[float, ...] | str,
    portion: float,
    problem: Problem,
    budget: Budget,
    noise: str = "grid",
) -> MeanSquares:
    """Return which mean squares are public, and what they are, all without noise yet.

    ``portion`` is the part of the squared Gaussian parameter that the private ones are
    worth; the budget is what ``"auto"`` chooses by. The constant feature is public, but
    for the number of rows: where that is private, the squares of the constant reveal it
    as those of others do.
    """
    n_columns = problem.n_columns
    last = () if problem.constant is None else (max(problem.constant**2, 1e-200),)
    if isinstance(smoothness, tuple):
        if len(smoothness) not in (n_columns, problem.n_features):
            raise PlanError(
                f"smoothness has {len(smoothness)} numbers for {n_columns} columns; "
                "give one root mean square a column."
            )
        known = tuple(root**2 for root in smoothness[:n_columns])
    elif smoothness == "private" or (
        smoothness == "auto"
        and _relative_noise(problem, budget, portion) < LOW_NOISE_SQUARES
    ):
        known = ()
    else:
        known = (problem.bounds.x_norm**2,) * n_columns
    counted = budget.neighbors is Neighbors.REPLACE_ONE
    if counted or known:
        known += last
    return MeanSquares(
        problem.n_rows,
        problem.bounds.x_norm,
        problem.n_features - len(known),
        known,
        noise=noise,
        counted=counted,
    )


def _relative_noise(problem: Problem, budget: Budget, portion: float) -> float:
    """Return the noise of a mean square, in units of the squared bound."""
    once = calibrate(GaussianNoise, budget, rtol=1e-3)
    return once * sqrt(problem.n_features / portion) / problem.n_rows


def reject_coordinate_penalty(problem: Problem, solver: str) -> None:
    """Reject problems that integer coordinate updates do not support."""
    # the outputs first, since the other remedies would not help there
    if problem.loss.n_outputs > 1:
        raise PlanError(
            f"{solver} fits one output, {problem.loss!r} has "
            f"{problem.loss.n_outputs}; use FrankWolfe, or NoisyGD with rows bounded "
            "in norm='l2'."
        )
    problem.require_smooth(solver, "HuberizedHinge() or Huber()")
    check_loss(problem.loss, solver)
    if problem.bounds.norm != "linf":
        raise PlanError(
            f"{solver} needs rows bounded in the largest entry, got "
            f"{problem.bounds.norm!r}; pass bound_norm='linf'."
        )
    # steps, clips and penalties over this are then ordinary numbers
    if not 1e-150 <= problem.n_rows * problem.smoothness <= 1e150:
        raise PlanError(
            f"{solver} needs losses and features of ordinary size, got "
            f"{problem.loss!r} and entries up to {problem.bounds.x_norm:g}; rescale "
            "them."
        )
    if problem.n_rows > MAX_INTEGER_ROWS:
        raise PlanError(
            f"{solver} provides for up to {MAX_INTEGER_ROWS} rows in memory, got "
            f"n_rows={problem.n_rows}; use NoisyGD."
        )
    coordinate_parts(problem.regularizer, problem.ridge, problem.size)


# Duration of the descent in passes of full steps, times the fraction of noise
RESIDUAL_DURATION, LABEL_DURATION = 3.0, 1.2
MOST_PASSES = 100
# Updates that a report of the privacy spent can be read back with
MOST_UPDATES = 10**6
# Derivatives are clipped at this part of a typical one, divided by the root of the
# noise fraction: with the duration, noise then moves predictions by about as much
# whatever the budget is
RESIDUAL_CLIP, LABEL_CLIP = 0.03, 0.4
# but at no less than this part, below which weights would hardly move,
LEAST_RESIDUAL_CLIP, LEAST_LABEL_CLIP = 0.05, 1.0
# nor at more, where next to nothing is clipped
MOST_CLIP = 4.0
# Derivatives of the intercept are clipped at no less than this part of the largest
# target, and those of labels not at all: a rare label has large derivatives, and
# clipping them only would make it look rarer still
INTERCEPT_CLIP = 0.25


@dataclass(frozen=True)
class CoordinateRule:
    """Passes over the coordinates, their step in units of a full one, and the clip."""

    n_passes: int
    step: float
    clip: float


def coordinate_rule(problem: Problem, budget: Budget) -> CoordinateRule:
    """Return the settings at which noise and distance from the minimum balance.

    With a fraction s of noise, t passes of full steps with derivatives clipped at c
    move predictions by noise of about ``s c sqrt(t)``. Both the passes and the clip
    fall as s grows, so that this is the same for all budgets.
    """
    portion = noise_fraction(problem, budget)
    wanted = RESIDUAL_DURATION if has_residuals(problem.loss) else LABEL_DURATION
    duration = min(wanted / portion, MOST_PASSES)
    n_passes = max(1, min(ceil(duration), MOST_UPDATES // problem.n_features))
    step = min(1.0, duration / n_passes)
    return CoordinateRule(n_passes, step, _clip(problem, portion))


def column_clips(problem: Problem, clip: float, squares: Array) -> Array:
    """Return the clip of a row's derivative times its entry, for each column."""
    clips = clip * np.sqrt(squares)
    if problem.constant is not None:
        bound = problem.loss.max_derivative(inf, problem.bounds.y_range)
        if has_residuals(problem.loss):
            bound = min(bound, INTERCEPT_CLIP * _typical(problem))
        clips[-1] = max(clip, bound) * max(abs(problem.constant), 1e-100)
    return clips


def noise_fraction(problem: Problem, budget: Budget) -> float:
    """Return the noise of a prediction after one pass, with typical clips.

    In units of a margin of one, or of the largest target.
    """
    once = calibrate(GaussianNoise, budget, rtol=1e-3)
    moved = budget.neighbors.rows_changed * once * problem.n_features / problem.n_rows
    if has_residuals(problem.loss):
        return moved
    return moved * _typical(problem) / problem.loss.max_curvature()


def _typical(problem: Problem) -> float:
    """Return the derivative that rows have at zero weights, or could have."""
    if has_residuals(problem.loss):
        return problem.largest_target
    derivative = problem.loss.derivative(np.ones(1), np.zeros((1, 1)))
    return abs(float(derivative[0, 0]))


def _clip(problem: Problem, portion: float) -> float:
    residuals = has_residuals(problem.loss)
    part = (RESIDUAL_CLIP if residuals else LABEL_CLIP) / sqrt(portion)
    least = LEAST_RESIDUAL_CLIP if residuals else LEAST_LABEL_CLIP
    typical = _typical(problem)
    clip = typical * min(max(part, least), MOST_CLIP)
    # no derivative is above the bound, and few entries are far above the mean square
    bound = problem.loss.max_derivative(inf, problem.bounds.y_range)
    return min(clip, MOST_CLIP * bound) if isfinite(bound) else clip
