"""The rounds of adaptive moments: what each releases, and what it makes of that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit.data import Rows
from tacit.privacy import Neighbors
from tacit.solvers._adaptive_plan import (
    CONSTANT,
    COUNT_WEIGHT,
    SECOND_FIRST,
    SECOND_LAST,
    AdaptiveMomentsPlan,
    split,
    width,
)
from tacit.solvers._base import Problem
from tacit.solvers._shrinkage import SPARSE, believed
from tacit.solvers._views import View, ViewMoments, ViewSpreads, ViewSums

__all__ = ["Center", "Found", "Frame", "Rounds", "final_weights"]

Array = NDArray[np.float64]

# A mean distance, in deviations of a normal number
DEVIATION = 1.25
# Where rows are cut, in deviations, besides the norm that normal ones have; where
# residuals are, the first time and the last; and where a direction is
BEYOND, FIRST_CUT, LAST_CUT, LINE_CUT = 1.0, 2.0, 1.5, 2.5
# Prior variance of the mean of the targets, in units of the largest
MEAN_VARIANCE = 0.15
# Prior probability of no signal, in means and spreads and in weights
SURE, UNSURE = 0.01, 0.3
# Part of the targets' variance that no prediction takes off, and that all may
LEAST_LEFT, LEAST_SIGNAL = 0.1, 1e-6
# Curvature of features scaled by noisy spreads, and the least along a direction
USUAL_CURVATURE, LEAST_CURVATURE = 0.9, 0.3
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

    ``deviations`` are the spreads of the features and ``unit`` that of the targets, of
    whose square ``most`` is not noise. ``weights`` predict targets in that unit from
    features after ``stretch``, and residuals are then about ``left`` of it.
    """

    center: Center
    deviations: Array
    stretch: Array
    unit: float
    most: float
    limit: float
    weights: Array | None = None
    left: float = 1.0


@dataclass(frozen=True, eq=False)
class Found:
    """Slopes in the features, means of both, and curvature of the mean loss."""

    slopes: Array
    features: Array
    mean: float
    curvature: Array


@dataclass(frozen=True, eq=False)
class Seen:
    """Noisy means of products in a frame, and the deviation of their noise."""

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
        return longest, max(abs(end) for end in bounds.y_range)

    def center(self) -> Center:
        """Release the sums of features and targets, and the rows where private."""
        plan, size = self.plan, width(self.plan.problem)
        longest, largest = self.reach
        private = plan.neighbors is Neighbors.ADD_OR_REMOVE_ONE
        count, nowhere = 1.0, np.zeros(size)
        if not private:
            count = float(max(self.rows.n_rows, 1))  # public
        if plan.center_share == 0:
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
        spreads, target = self.rows.sum(ViewSpreads(view))
        mechanism = plan.spreads(plan.spread_share)
        noisy = mechanism(spreads, self.rng) / center.count
        scale = mechanism.scale(size) / center.count
        usual = float(np.clip(noisy.mean(), scale / sqrt(size), 1 / sqrt(size)))
        other = believed(
            noisy - usual,
            np.full(size, scale**2),
            size * usual**2,
            [np.ones(size)],
            doubt=SURE,
        )
        deviations = DEVIATION * np.maximum(usual + other, min(scale, usual))
        seen = plan.target_spread()
        spread = float(seen(target, self.rng)[0]) / center.count
        doubt = seen.scale(1) / center.count
        unit = DEVIATION * max(spread, doubt) * largest
        most = max(spread, 0.0) ** 2 / (spread**2 + doubt**2)
        most = max(most, LEAST_SIGNAL)
        limit = sqrt(size) + BEYOND * plan.growth
        deviations = longest * deviations
        return Frame(center, deviations, 1 / deviations, unit, most, limit)

    def whitened(self, frame: Frame) -> Frame:
        """Release moments; return a frame of even features and a first prediction."""
        cut, share = FIRST_CUT * self.plan.growth, self.plan.first_share
        seen = self._moments(frame, share, SECOND_FIRST, cut)
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
        cut = LAST_CUT * self.plan.growth * frame.left
        seen = self._moments(frame, self.plan.last_share, SECOND_LAST, cut)
        curvature, axes = seen.axes()
        before = np.zeros(len(axes)) if frame.weights is None else frame.weights
        even = frame.stretch.ndim == 2
        back = frame.stretch @ axes if even else frame.stretch[:, None] * axes
        pull = axes.T @ seen.pull + curvature * (axes.T @ before)
        variance = seen.pull_scale**2
        variance += seen.second_scale**2 / 2 * float(before @ before)
        # as likely along any axis, or in any of the features in units of their spread
        plain = back * frame.deviations[:, None]
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

    def along(self, frame: Frame) -> Found:
        """Release products with targets, then take a step along what they point to."""
        plan = self.plan
        pulled, length, step = plan.along_shares
        seen = self._moments(frame, pulled, 0.0, LAST_CUT * plan.growth)
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
        narrow = replace(frame, stretch=line[:, None] / longest, limit=LINE_CUT)
        met = self._moments(narrow, step, SECOND_LAST, FIRST_CUT * plan.growth)
        curved = np.maximum(met.second[0], LEAST_CURVATURE)
        far = believed(
            met.pull / curved,
            (met.pull_scale / curved) ** 2,
            frame.most,
            [np.ones(1)],
            doubt=UNSURE,
        )
        slopes = frame.unit * float(far[0]) * line / longest
        curvature = np.diag(USUAL_CURVATURE / frame.stretch**2)
        means = frame.center.features
        return Found(slopes, means, self._mean(frame, seen), curvature)

    def _length(self, frame: Frame, line: Array, share: float) -> float:
        """Release the mean distance along a direction; return a deviation."""
        center, mechanism = frame.center, self.plan.spreads(share)
        view = View(center.features, line / frame.limit)
        spreads = self.rows.sum(ViewSpreads(view))[0]
        scale = frame.limit * mechanism.scale(1) / center.count
        found = frame.limit * float(mechanism(spreads, self.rng)[0]) / center.count
        least = min(max(scale, LEAST_LENGTH), frame.limit)
        return DEVIATION * float(np.clip(found, least, frame.limit))

    def _moments(self, frame: Frame, share: float, second: float, cut: float) -> Seen:
        """Release products of rows in a frame, with residuals cut in its unit."""
        plan, center, limit = self.plan, frame.center, frame.limit
        constant = 0.0 if plan.problem.constant is None else CONSTANT
        weights = None if frame.weights is None else frame.weights * limit / cut
        view = View(
            center.features,
            frame.stretch / limit,
            center.target,
            frame.unit * cut,
            weights,
        )
        pulls, seconds = self.rows.sum(ViewMoments(view, constant, second > 0))
        pull_share, second_share = split(share, second)
        mechanism, size = plan.pull(pull_share), view.size
        pull = mechanism(pulls, self.rng) / center.count
        scale = mechanism.scale(size + 1) / center.count
        squares, squares_scale = np.zeros((0, 0)), 0.0
        if second > 0:
            symmetric = plan.second(second_share)
            squares = symmetric(seconds, self.rng) * limit**2 / center.count
            squares_scale = symmetric.scale(size) * limit**2 / center.count
        return Seen(
            pull[:-1] * limit * cut,
            scale * limit * cut,
            float(pull[-1]) * cut * frame.unit / CONSTANT,
            scale * cut * frame.unit / CONSTANT,
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


def final_weights(problem: Problem, found: Found, count: float) -> Array:
    """Return weights of all columns, with the ridge that the problem asks for."""
    slopes, constant = found.slopes, problem.constant
    if problem.ridge == 0:
        if constant is None:
            return slopes[:, None]
        level = (found.mean - float(found.features @ slopes)) / constant
        return np.append(slopes, level)[:, None]
    # a quadratic around what was found: as curved as the mean loss, times the rows
    curvature = found.curvature
    target = curvature @ slopes
    if constant is not None:
        joined = np.append(found.features, constant)
        curvature = np.pad(curvature, (0, 1)) + np.outer(joined, joined)
        target = np.append(target, 0.0) + found.mean * joined
    penalty = problem.ridge / count * np.eye(len(target))
    weights: Array = np.asarray(np.linalg.solve(curvature + penalty, target))
    return weights[:, None]
