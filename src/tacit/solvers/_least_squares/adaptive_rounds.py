"""The rounds of adaptive moments: releases and their post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit.data import Rows
from tacit.privacy import Neighbors
from tacit.solvers._base import Problem
from tacit.solvers._least_squares.adaptive_plan import (
    CONSTANT,
    COUNT_WEIGHT,
    FARTHEST,
    NORM_WEIGHT,
    AdaptiveMomentsPlan,
)
from tacit.solvers._least_squares.adaptive_views import (
    View,
    ViewSpreads,
    ViewSums,
    believed,
    standardized,
)
from tacit.solvers.preconditioned_gd import PreconditionedGD

__all__ = ["Center", "Found", "Frame", "Rounds", "final_weights"]

Array = NDArray[np.float64]

# A mean distance, in standard deviations of a normal number
STD = 1.25
# Where rows are clipped, in standard deviations, besides the norm that normal ones have
BEYOND = 1.0
# Prior variance of the mean of the targets, and prior mean and variance of their spread
# and of that of features, in units of the largest and of the longest over the root of
# their number
MEAN_VARIANCE = 0.1
TARGET_SPREAD, FEATURE_SPREAD = (0.2, 0.02), (0.4, 0.06)
# Least spread of a feature, in units of the usual: of indicators, rare ones would be
# stretched by far more than their standard deviation asks for
LEAST_SPREAD = 0.75
# Prior probability that all features have the usual mean and the usual spread
SURE = 0.01


@dataclass(frozen=True, eq=False)
class Center:
    """Released number of rows, and means of features and targets."""

    count: float
    features: Array
    target: float


@dataclass(frozen=True, eq=False)
class Frame:
    """Units that rows are seen in, from releases before.

    ``spreads`` are those of the features, of which rows are clipped to the norm
    ``limit``, and ``unit`` is that of the targets.
    """

    center: Center
    spreads: Array
    unit: float
    limit: float


@dataclass(frozen=True, eq=False)
class Found:
    """Derivatives in the features, means of both, and curvature of the mean loss."""

    derivatives: Array
    features: Array
    mean: float
    curvature: Array


@dataclass(frozen=True, eq=False)
class Rounds:
    """Releases of one run, in the order of its plan."""

    plan: AdaptiveMomentsPlan
    rows: Rows
    rng: Generator

    @property
    def reach(self) -> tuple[float, float]:
        """Largest norm of the features, constant left out, and largest target."""
        bounds = self.plan.problem.bounds
        constant = self.plan.problem.constant or 0.0
        longest = sqrt(max(bounds.x_norm**2 - constant**2, 1e-4 * bounds.x_norm**2))
        return longest, self.plan.problem.largest_target

    def center(self) -> Center:
        """Release the sums of features and targets, and the rows where private."""
        plan, size = self.plan, self.plan.problem.n_columns
        longest, largest = self.reach
        private = plan.neighbors is Neighbors.ADD_OR_REMOVE_ONE
        count, nowhere = 1.0, np.zeros(size)
        if not private:
            count = float(max(self.rows.n_rows, 1))  # public
        if plan.center_fraction == 0:
            return Center(count, nowhere, 0.0)
        view = View(nowhere, np.full(size, 1 / longest), 0.0, largest)
        counted = COUNT_WEIGHT if private else 0.0
        mechanism = plan.sums()
        sums = self.rows.sum(ViewSums(view, plan.target_weight, counted))[0]
        noisy = mechanism(sums, self.rng)
        if private:
            count = max(float(noisy[-1]) / COUNT_WEIGHT, 1.0)
        if plan.target_weight == 0:  # without an intercept zero stays zero
            return Center(count, nowhere, 0.0)
        scale = mechanism.scale(size + 2) / count
        means = believed(noisy[:-2] / count, scale**2, 1.0, doubt=SURE)
        means *= longest / max(1.0, float(np.linalg.norm(means)))
        variance = (scale / plan.target_weight) ** 2
        trust = MEAN_VARIANCE / (MEAN_VARIANCE + variance)
        target = float(noisy[-2]) / count / plan.target_weight * trust
        target = float(np.clip(target, -1.0, 1.0)) * largest
        return Center(count, means, target)

    def standard(self, center: Center) -> Frame:
        """Release mean distances from the center, and scale by them."""
        plan, size = self.plan, len(center.features)
        longest, largest = self.reach
        view = View(center.features, np.full(size, 1 / longest), center.target, largest)
        spreads, target = self.rows.sum(ViewSpreads(view, NORM_WEIGHT))
        mechanism = plan.spreads()
        released = mechanism(spreads, self.rng) / center.count
        noisy, norm = released[:-1], float(released[-1]) / NORM_WEIGHT
        scale = mechanism.scale(size + 1) / center.count
        usual = _positive(float(noisy.mean()) * sqrt(size), scale, FEATURE_SPREAD)
        usual = min(usual, 1.0) / sqrt(size)
        other = believed(noisy - usual, scale**2, size * usual**2, doubt=SURE)
        spreads = STD * np.maximum(usual + other, LEAST_SPREAD * usual)
        # rows with few nonzero entries have larger norms than their spreads suggest
        usual_norm = float(np.linalg.norm(spreads))
        longer = max(norm / usual_norm - 1, 0.0)
        longer /= 1 + (scale / NORM_WEIGHT / usual_norm) ** 2
        seen = plan.target_spread()
        spread = float(seen(target, self.rng)[0]) / center.count
        spread = _positive(spread, seen.scale(1) / center.count, TARGET_SPREAD)
        unit = STD * min(spread, 1.0) * largest
        limit = sqrt(size) * (1 + longer) + BEYOND
        return Frame(center, longest * spreads, unit, limit)

    def descended(self, frame: Frame) -> Found:
        """Descend on standardized rows, preconditioned by their noisy moments."""
        center, size = frame.center, len(frame.spreads)
        stretch = 1 / (frame.spreads * frame.limit)
        view = View(center.features, stretch, center.target, FARTHEST * frame.unit)
        constant = None if self.plan.problem.constant is None else CONSTANT
        rows = standardized(self.rows, view, FARTHEST, constant)
        landing = PreconditionedGD().landing(self.plan.descent, rows, self.rng)
        weights, mean = landing.W[:size, 0], center.target
        if constant is not None:
            mean += frame.unit * constant * float(landing.W[size, 0])
        curvature = np.zeros((0, 0))
        if self.plan.problem.ridge > 0:  # nothing else needs it
            damped: Array = np.asarray(np.linalg.inv(landing.direction))
            curvature = damped[:size, :size] / center.count
            curvature /= np.outer(stretch, stretch)
        return Found(frame.unit * stretch * weights, center.features, mean, curvature)


def _positive(noisy: float, scale: float, prior: tuple[float, float]) -> float:
    """Return a spread given a noisy one, and its prior mean and variance."""
    mean, variance = prior
    trust = variance / (variance + scale**2)
    return max(trust * noisy + (1 - trust) * mean, scale * sqrt(trust) / 2)


def final_weights(problem: Problem, found: Found, count: float) -> Array:
    """Return weights of all columns, with the ridge of the problem."""
    derivatives, constant = found.derivatives, problem.constant
    if problem.ridge == 0:
        if constant is None:
            return derivatives[:, None]
        level = (found.mean - float(found.features @ derivatives)) / constant
        return np.append(derivatives, level)[:, None]
    # a quadratic around what was found: as curved as the mean loss, times the rows
    curvature = found.curvature
    target = curvature @ derivatives
    if constant is not None:
        joined = np.append(found.features, constant)
        curvature = np.pad(curvature, (0, 1)) + np.outer(joined, joined)
        target = np.append(target, 0.0) + found.mean * joined
    penalty = problem.ridge / count * np.eye(len(target))
    weights: Array = np.asarray(np.linalg.solve(curvature + penalty, target))
    return weights[:, None]
