"""The rounds of adaptive moments: releases and their post-processing."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    NORM_WEIGHT,
    SECOND_FIRST,
    SECOND_LAST,
    AdaptiveMomentsPlan,
    split,
)
from tacit.solvers._least_squares.adaptive_views import (
    SPARSE,
    View,
    ViewMoments,
    ViewSpreads,
    ViewSums,
    believed,
)

__all__ = ["Center", "Found", "Frame", "Rounds", "final_weights"]

Array = NDArray[np.float64]

# A mean distance, in standard deviations of a normal number
STD = 1.25
# Where rows are clipped, in standard deviations, besides the norm that normal ones
# have; where residuals are, the first time and the last and for a direction; and where
# that is
BEYOND, FIRST_CLIP, LAST_CLIP, PULL_CLIP, LINE_CLIP = 1.0, 2.0, 1.5, 0.7, 2.5
# Prior variance of the mean of the targets, and prior mean and variance of their spread
# and of that of features, in units of the largest and of the longest over the root of
# their number
MEAN_VARIANCE = 0.1
TARGET_SPREAD, FEATURE_SPREAD = (0.2, 0.02), (0.4, 0.06)
# Least spread of a feature, in units of the usual
LEAST_SPREAD = 0.2
# Where residuals of steps are clipped, in standard deviations, and their momentum
STEP_CLIP, MOMENTUM = 0.4, 0.85
# Prior probability of no signal, in means and spreads and in weights
SURE, UNSURE = 0.01, 0.3
# Part of the targets' variance that no prediction takes off, and that all may
LEAST_LEFT, LEAST_SIGNAL = 0.1, 1e-6
# Curvature of features scaled by noisy spreads, and the least along a direction
USUAL_CURVATURE, LEAST_CURVATURE = 0.9, 0.3
# How far steps go, in lengths after which all is learned where rows are even: further
# up to this noise of predictions, and less far by this times its square
FURTHER, SOONER, LONGEST_STEP = 0.6, 3.0, 1.3
# Least length of a direction among rows of norm one in every direction
LEAST_LENGTH = 0.05


@dataclass(frozen=True, eq=False)
class Center:
    """Released number of rows, means of features and targets, and its variance."""

    count: float
    features: Array
    target: float
    variance: float


@dataclass(frozen=True, eq=False)
class Frame:
    """Units that rows are seen in, from releases before.

    ``stds`` are the spreads of the features and ``unit`` that of the targets, of whose
    square ``most`` is not noise. ``weights`` predict targets in that unit from features
    after ``stretch``, and residuals are then about ``left`` of it.
    """

    center: Center
    stds: Array
    stretch: Array
    unit: float
    most: float
    limit: float
    weights: Array | None = None
    left: float = 1.0


@dataclass(frozen=True, eq=False)
class Found:
    """Derivatives in the features, means of both, and curvature of the mean loss."""

    derivatives: Array
    features: Array
    mean: float
    curvature: Array


@dataclass(frozen=True, eq=False)
class Seen:
    """Noisy means of products in a frame, and the standard deviation of their noise."""

    pull: Array
    pull_scale: float
    mean: float
    mean_scale: float
    second: Array
    second_scale: float

    def axes(self) -> tuple[Array, Array]:
        """Return curvatures, lifted by about the norm of their noise, and axes."""
        values, axes = np.linalg.eigh(self.second)
        lift = self.second_scale * sqrt(len(values) / 2)
        return np.maximum(values, 0.0) + lift, axes


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
            return Center(count, nowhere, 0.0, 0.0)
        view = View(nowhere, np.full(size, 1 / longest), 0.0, largest)
        counted = COUNT_WEIGHT if private else 0.0
        mechanism = plan.sums()
        sums = self.rows.sum(ViewSums(view, plan.target_weight, counted))[0]
        noisy = mechanism(sums, self.rng)
        if private:
            count = max(float(noisy[-1]) / COUNT_WEIGHT, 1.0)
        if plan.target_weight == 0:  # without an intercept zero stays zero
            return Center(count, nowhere, 0.0, 0.0)
        scale = mechanism.scale(size + 2) / count
        means = believed(
            noisy[:-2] / count,
            np.full(size, scale**2),
            1.0,
            [np.ones(size)],
            doubt=SURE,
        )
        means *= longest / max(1.0, float(np.linalg.norm(means)))
        variance = (scale / plan.target_weight) ** 2
        trust = MEAN_VARIANCE / (MEAN_VARIANCE + variance)
        target = float(noisy[-2]) / count / plan.target_weight * trust
        target = float(np.clip(target, -1.0, 1.0)) * largest
        return Center(count, means, target, variance * trust * largest**2)

    def standard(self, center: Center) -> Frame:
        """Release mean distances from the center, and scale by them."""
        plan, size = self.plan, len(center.features)
        longest, largest = self.reach
        view = View(center.features, np.full(size, 1 / longest), center.target, largest)
        spreads, target = self.rows.sum(ViewSpreads(view, NORM_WEIGHT))
        mechanism = plan.spreads(plan.spread_fraction)
        released = mechanism(spreads, self.rng) / center.count
        noisy, norm = released[:-1], float(released[-1]) / NORM_WEIGHT
        scale = mechanism.scale(size + 1) / center.count
        usual, _ = _positive(float(noisy.mean()) * sqrt(size), scale, FEATURE_SPREAD)
        usual = min(usual, 1.0) / sqrt(size)
        other = believed(
            noisy - usual,
            np.full(size, scale**2),
            size * usual**2,
            [np.ones(size)],
            doubt=SURE,
        )
        stds = STD * np.maximum(usual + other, LEAST_SPREAD * usual)
        # rows with few nonzero entries have larger norms than their spreads suggest
        usual_norm = float(np.linalg.norm(stds))
        longer = max(norm / usual_norm - 1, 0.0)
        longer /= 1 + (scale / NORM_WEIGHT / usual_norm) ** 2
        seen = plan.target_spread()
        spread = float(seen(target, self.rng)[0]) / center.count
        doubt = seen.scale(1) / center.count
        spread, most = _positive(spread, doubt, TARGET_SPREAD)
        unit = STD * min(spread, 1.0) * largest
        limit = sqrt(size) * (1 + longer) + BEYOND * plan.growth
        stds = longest * stds
        return Frame(center, stds, 1 / stds, unit, most, limit)

    def whitened(self, frame: Frame) -> Frame:
        """Release moments; return a frame of even features and a first prediction."""
        clip, fraction = FIRST_CLIP * self.plan.growth, self.plan.first_fraction
        seen = self._moments(frame, fraction, SECOND_FIRST, clip)
        curvature, axes = seen.axes()
        root = np.sqrt(curvature)
        along = believed(
            axes.T @ seen.pull / root,
            seen.pull_scale**2 / curvature,
            frame.most,
            [np.ones(len(root)), curvature],
            doubt=UNSURE,
        )
        left = sqrt(max(LEAST_LEFT, 1 - float(along @ along)))
        return replace(
            frame,
            stretch=frame.stretch[:, None] * axes / root,
            weights=along,
            left=left,
        )

    def fitted(self, frame: Frame) -> Found:
        """Release moments; return weights that these and those before make likely."""
        clip = LAST_CLIP * self.plan.growth * frame.left
        seen = self._moments(frame, self.plan.last_fraction, SECOND_LAST, clip)
        curvature, axes = seen.axes()
        before = np.zeros(len(axes)) if frame.weights is None else frame.weights
        even = frame.stretch.ndim == 2
        back = frame.stretch @ axes if even else frame.stretch[:, None] * axes
        pull = axes.T @ seen.pull + curvature * (axes.T @ before)
        variance = seen.pull_scale**2
        variance += seen.second_scale**2 / 2 * float(before @ before)
        # as likely along any axis, or in any of the features in units of their spread
        plain = back * frame.stds[:, None]
        shapes = [np.ones(len(axes)), curvature / (plain * plain).sum(axis=0)]
        root = np.sqrt(curvature)
        along = believed(
            pull / root, variance / curvature, frame.most, shapes, doubt=UNSURE
        )
        forward: Array = np.asarray(np.linalg.pinv(back), dtype=np.float64)
        return Found(
            frame.unit * (back @ (along / root)),
            frame.center.features,
            self._mean(frame, seen),
            forward.T @ (curvature[:, None] * forward),
        )

    def stepped(self, frame: Frame) -> Found:
        """Release gradients, each where those before lead; go less far in noise."""
        plan, center, size = self.plan, frame.center, len(frame.stds)
        constant = 0.0 if plan.problem.constant is None else CONSTANT
        fractions = plan.step_fractions
        scale = (
            plan.pull(fractions[0]).scale(size + 1)
            / center.count
            / sqrt(len(fractions))
        )
        # curvature of rows that are even in all directions, by which noise moves
        # predictions so far, in standard deviations, once all is learned
        even = 1 / frame.limit**2
        off = sqrt(size / even) * scale * STEP_CLIP
        length = max(1.0, FURTHER / off) / even / (1 + SOONER * off**2)
        step = length * (1 - MOMENTUM) / len(fractions)
        step = min(step, LONGEST_STEP / (1 + CONSTANT**2))
        moved = ahead = np.zeros(size + 1)
        for fraction in fractions:
            middle = replace(center, target=center.target + float(ahead[-1]))
            here = replace(frame, center=middle, weights=ahead[:-1])
            seen = self._moments(here, fraction, 0.0, STEP_CLIP)
            pull = np.append(seen.pull * even, constant**2 * seen.mean)
            before, moved = moved, ahead + step * pull
            ahead = moved + MOMENTUM * (moved - before)
        return Found(
            frame.unit * frame.stretch * moved[:-1],
            center.features,
            center.target + float(moved[-1]),
            np.diag(USUAL_CURVATURE / frame.stretch**2),
        )

    def along(self, frame: Frame) -> Found:
        """Release products with targets, then take a step along what they point to."""
        plan = self.plan
        pulled, length, step = plan.line_fractions
        seen = self._moments(frame, pulled, 0.0, PULL_CLIP)
        size, root = len(seen.pull), sqrt(USUAL_CURVATURE)
        pointed = believed(
            seen.pull / root,
            np.full(size, seen.pull_scale**2 / USUAL_CURVATURE),
            frame.most,
            [np.ones(size)],
            doubt=UNSURE,
            densities=SPARSE,
        )
        norm = float(np.linalg.norm(pointed))
        direction = pointed / norm if norm > 0 else np.eye(size)[0]
        line = frame.stretch * direction
        longest = self._length(frame, line[:, None], length)
        narrow = replace(frame, stretch=line[:, None] / longest, limit=LINE_CLIP)
        met = self._moments(narrow, step, SECOND_LAST, FIRST_CLIP * plan.growth)
        curved = np.maximum(met.second[0], LEAST_CURVATURE)
        far = believed(
            met.pull / curved,
            (met.pull_scale / curved) ** 2,
            frame.most,
            [np.ones(1)],
            doubt=UNSURE,
        )
        derivatives = frame.unit * float(far[0]) * line / longest
        curvature = np.diag(USUAL_CURVATURE / frame.stretch**2)
        means = frame.center.features
        return Found(derivatives, means, self._mean(frame, seen), curvature)

    def _length(self, frame: Frame, line: Array, fraction: float) -> float:
        """Release the mean distance along a direction; return a standard deviation."""
        center, mechanism = frame.center, self.plan.spreads(fraction)
        view = View(center.features, line / frame.limit)
        spreads = self.rows.sum(ViewSpreads(view, NORM_WEIGHT))[0]
        scale = frame.limit * mechanism.scale(2) / center.count
        found = frame.limit * float(mechanism(spreads, self.rng)[0]) / center.count
        least = min(max(scale, LEAST_LENGTH), frame.limit)
        return STD * float(np.clip(found, least, frame.limit))

    def _moments(
        self, frame: Frame, fraction: float, second: float, clip: float
    ) -> Seen:
        """Release products of rows in a frame, with residuals clipped in its unit."""
        plan, center, limit = self.plan, frame.center, frame.limit
        constant = 0.0 if plan.problem.constant is None else CONSTANT
        weights = None if frame.weights is None else frame.weights * limit / clip
        view = View(
            center.features,
            frame.stretch / limit,
            center.target,
            frame.unit * clip,
            weights,
        )
        pulls, seconds = self.rows.sum(ViewMoments(view, constant, second > 0))
        pull_fraction, second_fraction = split(fraction, second)
        mechanism, size = plan.pull(pull_fraction), view.size
        pull = mechanism(pulls, self.rng) / center.count
        scale = mechanism.scale(size + 1) / center.count
        squares, squares_scale = np.zeros((0, 0)), 0.0
        if second > 0:
            symmetric = plan.second(second_fraction)
            squares = symmetric(seconds, self.rng) * limit**2 / center.count
            squares_scale = symmetric.scale(size) * limit**2 / center.count
        return Seen(
            pull[:-1] * limit * clip,
            scale * limit * clip,
            float(pull[-1]) * clip * frame.unit / CONSTANT,
            scale * clip * frame.unit / CONSTANT,
            squares,
            squares_scale,
        )

    def _mean(self, frame: Frame, seen: Seen) -> float:
        """Return the mean of the targets, from both times it was released."""
        variance = frame.center.variance
        if variance == 0:
            return frame.center.target
        trust = variance / (variance + seen.mean_scale**2)
        return frame.center.target + trust * seen.mean


def _positive(
    noisy: float, scale: float, prior: tuple[float, float]
) -> tuple[float, float]:
    """Return a spread given a noisy one, and the part of its square that is sure."""
    mean, variance = prior
    trust = variance / (variance + scale**2)
    found = max(trust * noisy + (1 - trust) * mean, scale * sqrt(trust) / 2)
    return found, max(max(noisy, 0.0) ** 2 / (noisy**2 + scale**2), LEAST_SIGNAL)


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
