"""The huberized lasso: residuals beyond a threshold pull no harder than at it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._validate import at_least, plain, positive
from tacit.feature_selection._lasso_distance import safe_distance
from tacit.feature_selection._lasso_search import (
    VIOLATION,
    entering,
    solve_working_set,
    stationary_point,
)
from tacit.feature_selection._lasso_sums import ExactSums

__all__ = ["HuberFacts", "HuberLasso", "huber_lasso"]

Array = NDArray[np.float64]
Support = tuple[int, ...]

# Rounds of shifting residuals beyond the threshold, each with steps of Newton
ROUNDS, FEW_ROUNDS = 500, 5
LOWERED = 0.7
NEWTON_STEPS = 30
# Slopes of the support are met to this part of the threshold
SLOPE_ERROR = 1e-7
# Sets of rows are nested, and eigenvalues compared, with this part to spare
SPARE = 1e-3


@dataclass(frozen=True, eq=False)
class HuberLasso:
    """A point that meets the conditions of the huberized lasso. Private.

    Parameters
    ----------
    places
        Columns with weights, in order; the column of ones last, where there is one.
    signs
        Sign of each weight; zero for the column of ones.
    w
        Weights.
    X
        Those columns.
    residuals
        What the weights leave of the targets.
    """

    places: list[int]
    signs: Array
    w: Array
    X: Array
    residuals: Array

    @property
    def support(self) -> Support:
        """The selected columns in order, without the column of ones."""
        chosen = zip(self.places, self.signs, strict=True)
        return tuple(place for place, sign in chosen if sign != 0)

    def curvature(self, threshold: float) -> float:
        """Return the least eigenvalue over rows with residuals up to a threshold."""
        rows = self.X[np.abs(self.residuals) <= threshold]
        return float(np.linalg.eigvalsh(rows.T @ rows)[0])


def huber_lasso(sums: ExactSums, penalty: float, threshold: float) -> HuberLasso | None:
    """Return the huberized lasso, or None where its weights are not determined.

    It minimizes ``sum_i H(y_i - <x_i, w>) + penalty |w|_1``, where the slope of H is
    the residual cut to the threshold.
    """
    places = sums.free()
    n_free = len(places)
    X, y = sums.columns(places)
    w = np.zeros(n_free)
    while True:
        w, met = _on_working_set(X, y, penalty, threshold, w, n_free)
        left = sums.with_vector(np.clip(y - X @ w, -threshold, threshold))
        new = entering(left, places, penalty, int((w != 0).sum()))
        if not new:
            break
        places = [*places, *new]
        X = np.hstack([X, sums.columns(new)[0]])
        w = np.concatenate([w, np.zeros(len(new))])
    if not met:
        return None
    kept = [k for k in range(len(places)) if w[k] != 0 or k < n_free]
    kept.sort(key=lambda k: places[k])
    signs = np.array([np.sign(w[k]) * (k >= n_free) for k in kept])
    return HuberLasso(
        [places[k] for k in kept], signs, w[kept], X[:, kept], y - X[:, kept] @ w[kept]
    )


def _on_working_set(
    X: Array, y: Array, penalty: float, threshold: float, w: Array, n_free: int
) -> tuple[Array, bool]:
    """Return the minimizer on a working set, and whether its conditions are met.

    What residuals have beyond the threshold is taken off the targets, by turns with a
    lasso: the two are one convex problem (She and Owen 2011). Newton's method ends it.
    The threshold comes down from the largest residual of the lasso itself, so that
    rows within it are many all the way.
    """
    gram = X.T @ X
    w = solve_working_set(gram, X.T @ y, penalty, w, n_free)
    level = float(np.abs(y - X @ w).max(initial=threshold))
    while True:
        level = max(threshold, LOWERED * level)
        for _ in range(ROUNDS if level == threshold else FEW_ROUNDS):
            residuals = y - X @ w
            beyond = residuals - np.clip(residuals, -level, level)
            w = solve_working_set(gram, X.T @ (y - beyond), penalty, w, n_free)
            exact = _newton(X, y, penalty, level, w, n_free)
            if exact is not None:
                w = exact
                break
        if level == threshold:
            return w, exact is not None


def _newton(
    X: Array, y: Array, penalty: float, threshold: float, w: Array, n_free: int
) -> Array | None:
    """Return the point with the signs of ``w`` that meets all conditions, or None."""
    active = w != 0
    active[:n_free] = True
    signs = np.sign(w) * (np.arange(len(w)) >= n_free)
    columns, weights = X[:, active], w[active]
    for _ in range(NEWTON_STEPS):
        residuals = y - columns @ weights
        cut = np.clip(residuals, -threshold, threshold)
        slopes = columns.T @ cut - penalty * signs[active]
        if np.abs(slopes).max(initial=0.0) <= SLOPE_ERROR * threshold:
            exact = np.zeros(len(w))
            exact[active] = weights
            inside = np.abs(X.T @ cut)[~active] <= penalty * (1 + VIOLATION)
            return exact if (exact * signs >= 0).all() and inside.all() else None
        rows = columns[np.abs(residuals) <= threshold]
        step = stationary_point(rows.T @ rows, slopes)
        if step is None:
            return None
        weights = weights + step
    return None


@dataclass(frozen=True)
class HuberFacts:
    """Huberized loss: slacks grow with the threshold and not with the weights.

    Parameters
    ----------
    n_select
        Most columns that a support may have.
    penalty
        Weight of the absolute values, against the sum of losses.
    threshold
        Largest slope of a residual.
    floor
        Least eigenvalue that is tested for, of the Gram matrix of the support over
        rows whose residuals are within the threshold.
    most_squares
        Sum of squares of any column up to which there is an answer.
    rows_changed
        Rows in which neighbors differ: 1, or 2 where one is replaced.
    intercept
        Whether there is a constant column without penalty.

    Notes
    -----
    **Guarantee.** As `SquaredFacts`, without a bound on weights.
    """

    n_select: int
    penalty: float
    threshold: float
    floor: float
    most_squares: float
    rows_changed: int
    intercept: bool = True

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, n_select=self.n_select, rows_changed=self.rows_changed)
        positive(
            penalty=self.penalty,
            threshold=self.threshold,
            floor=self.floor,
            most_squares=self.most_squares,
        )

    @property
    def size(self) -> int:
        """Most weights that are not zero."""
        return self.n_select + self.intercept

    @property
    def slack(self) -> float:
        """How far neighbors can move the slope of a column outside the support."""
        # [lasso-huber:slopes]
        followed = sqrt(self.size * self.most_squares / (self.floor - self.size))
        return self.rows_changed * self.threshold * (1 + followed)

    @property
    def reach(self) -> float:
        """How far neighbors can move the weights, in L2."""
        # [lasso-huber:reach]
        pull = self.rows_changed * sqrt(self.size) * self.threshold
        return pull / (self.floor - self.size / 2)

    def distance(self, X: Any, y: Array) -> tuple[Support, float]:
        """Return the support and its distance; zero where it is not certain."""
        if self.floor <= 2 * self.size:
            return (), 0.0
        sums = ExactSums(X, y, intercept=self.intercept)
        lasso = huber_lasso(sums, self.penalty, self.threshold)
        if lasso is None or len(lasso.support) > self.n_select:
            return (), 0.0
        cut = np.clip(lasso.residuals, -self.threshold, self.threshold)
        left = np.abs(sums.with_vector(cut))
        left[lasso.places] = -inf
        changes = (self.penalty - float(left.max())) / self.slack
        if lasso.support:
            smallest = float((lasso.w * lasso.signs)[lasso.signs != 0].min())
            changes = min(changes, smallest / self.reach)
        # [lasso-huber:squares]
        changes = min(changes, self.most_squares - float(sums.squares().max()) + 1)
        if lasso.places and changes > 1:
            changes = min(changes, float(self._levels(lasso, ceil(changes))))
        return lasso.support, safe_distance(changes)

    def _levels(self, lasso: HuberLasso, most: int) -> int:
        """Return up to which number of changes enough rows stay within the threshold.

        Rows at level k keep within it for k changes, and each takes a row's part off
        the eigenvalue.
        """
        # [lasso-huber:levels]
        width = sqrt(self.size) * self.reach * (1 + SPARE)

        def holds(level: int) -> bool:
            wanted = self.floor + (level - 1) * self.size * (1 + SPARE)
            return lasso.curvature(self.threshold - level * width) >= wanted

        low, high = 0, most + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low
