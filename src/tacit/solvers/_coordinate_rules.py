"""Passes, step and clip of coordinate descent from public facts alone.

The constants were fitted on synthetic problems by ``benchmarks/cd/fit_rule.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.convex.losses import has_residuals
from tacit.privacy import Budget, GaussianNoise, calibrate
from tacit.solvers._base import Problem

__all__ = ["CoordinateRule", "column_clips", "coordinate_rule", "noise_fraction"]

Array = NDArray[np.float64]

# Duration of the descent in passes of full steps, times the share of noise
RESIDUAL_DURATION, LABEL_DURATION = 3.0, 1.2
MOST_PASSES = 100
# Updates that a report of the privacy spent can be read back with
MOST_UPDATES = 10**6
# Slopes are cut at this part of a typical one, divided by the root of the share: with
# the duration, noise then moves predictions by about as much whatever the budget is
RESIDUAL_CLIP, LABEL_CLIP = 0.03, 0.4
# but at no less than this part, below which weights would hardly move,
LEAST_RESIDUAL_CLIP, LEAST_LABEL_CLIP = 0.05, 1.0
# nor at more, where next to nothing is cut
MOST_CLIP = 4.0
# Slopes of the intercept are cut at no less than this part of the largest target, and
# those of labels not at all: a rare label has large slopes, and cutting them alone
# would make it look rarer still
INTERCEPT_CLIP = 0.25


@dataclass(frozen=True)
class CoordinateRule:
    """Passes over the coordinates, their step in units of a full one, and the clip."""

    n_passes: int
    step: float
    clip: float


def coordinate_rule(problem: Problem, budget: Budget) -> CoordinateRule:
    """Return the settings at which noise and distance from the minimum balance.

    With a share s of noise, t passes of full steps with slopes cut at c move
    predictions by noise of about ``s c sqrt(t)``. Both the passes and the clip fall
    as s grows, so that this is the same for all budgets.
    """
    share = noise_fraction(problem, budget)
    wanted = RESIDUAL_DURATION if has_residuals(problem.loss) else LABEL_DURATION
    duration = min(wanted / share, MOST_PASSES)
    n_passes = max(1, min(ceil(duration), MOST_UPDATES // problem.n_features))
    step = min(1.0, duration / n_passes)
    return CoordinateRule(n_passes, step, _clip(problem, share))


def column_clips(problem: Problem, clip: float, squares: Array) -> Array:
    """Return where the slope of a row times its entry is cut, for each column."""
    clips = clip * np.sqrt(squares)
    if problem.constant is not None:
        bound = problem.loss.max_derivative(inf, problem.bounds.y_range)
        if has_residuals(problem.loss):
            bound = min(bound, INTERCEPT_CLIP * _typical(problem))
        clips[-1] = max(clip, bound) * max(abs(problem.constant), 1e-100)
    return clips


def noise_fraction(problem: Problem, budget: Budget) -> float:
    """Return the noise of a prediction after one pass, of slopes cut at a typical one.

    In units of a margin of one, or of the largest target.
    """
    once = calibrate(GaussianNoise, budget, rtol=1e-3)
    moved = budget.neighbors.rows_changed * once * problem.n_features / problem.n_rows
    if has_residuals(problem.loss):
        return moved
    return moved * _typical(problem) / problem.loss.max_curvature()


def _typical(problem: Problem) -> float:
    """Return the slope that rows have at zero weights, or could have."""
    if has_residuals(problem.loss):
        return problem.largest_target
    derivative = problem.loss.derivative(np.ones(1), np.zeros((1, 1)))
    return abs(float(derivative[0, 0]))


def _clip(problem: Problem, share: float) -> float:
    residuals = has_residuals(problem.loss)
    part = (RESIDUAL_CLIP if residuals else LABEL_CLIP) / sqrt(share)
    least = LEAST_RESIDUAL_CLIP if residuals else LEAST_LABEL_CLIP
    typical = _typical(problem)
    clip = typical * min(max(part, least), MOST_CLIP)
    # no slope is above the bound, and few entries are far above the mean square
    bound = problem.loss.max_derivative(inf, problem.bounds.y_range)
    return min(clip, MOST_CLIP * bound) if isfinite(bound) else clip
