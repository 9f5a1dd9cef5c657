"""Gradients clipped in norm row by row, as in DP-SGD, or by their derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._validate import if_given, positive
from tacit.convex import Loss
from tacit.convex.objective import DERIVATIVE_UNITS, MOST_ADDITIONS, UNIT, norm_roundoff
from tacit.privacy import Budget, Neighbors
from tacit.solvers._base import LARGEST_MARGIN, Problem, require_delta
from tacit.solvers._gradients.descent import (
    ClippedGradient,
    derivative_clipped,
    finite_norms,
    gradient_sensitivity,
)

__all__ = [
    "REACH",
    "RowClippedGradient",
    "clipped_gradient",
    "reach_of",
    "sum_sensitivity",
    "wanted_clip",
]

Array = NDArray[np.float64]

# Margins up to which gradients are taken. No bound on round-off depends on it, as the
# margins of a row are the same bits whoever its neighbors are; only overflow does.
REACH = 1e60
# Gradients below count as zero next to margins and targets that large
LEAST_NORM = 1e-60
# Rows whose gradients are summed before anything else is added to the sum
CHUNK = 4096


def check_clip_norm(
    clip_norm: float | None, clip: float | None, y_range: tuple[float, float]
) -> None:
    """Check the bound on gradients, that it is the only one, and the targets."""
    if clip_norm is None:
        return
    if max(map(abs, y_range)) > REACH:
        raise ValueError(
            f"clip_norm is for targets up to {REACH:g}, whose squares are numbers; "
            "rescale the targets."
        )
    positive(clip_norm=clip_norm)
    if not clip_norm >= LEAST_NORM:
        raise ValueError(f"clip_norm must be at least {LEAST_NORM:g}.")
    if clip is not None:
        raise ValueError("clip and clip_norm exclude each other; give one of them.")


def wanted_clip(
    solver: str,
    problem: Problem,
    budget: Budget,
    clip: float | None,
    clip_norm: float | None,
) -> float | None:
    """Return the clip of derivatives or None, where noise on gradients can be planned.

    A clip that is not given is the derivative that a set allows: looking ahead may
    leave the set. A bound on gradients stands for the derivative of the longest rows.
    """
    require_delta(budget, solver, "AMP")
    problem.require_l2_rows(solver)
    problem.require_smooth(solver)
    if_given(positive, clip=clip)
    check_clip_norm(clip_norm, clip, problem.bounds.y_range)
    if clip_norm is not None:
        return clip_norm / problem.bounds.x_norm
    anywhere = problem.loss.max_derivative(inf, problem.bounds.y_range)
    in_set = problem.max_derivative
    return in_set if clip is None and in_set < anywhere else clip


@dataclass(frozen=True, eq=False)
class RowClippedGradient:
    """Sum over a block of the rows' gradients, each clipped to ``clip_norm``.

    Margins and norms are computed one row at a time in a fixed order, so that they do
    not depend on the other rows, not even in their last bits.
    """

    loss: Loss
    W: Array
    clip_norm: float

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        return (self.at(X, y, np.arange(X.shape[0])),)

    def at(self, X: Any, y: NDArray[Any], positions: NDArray[np.intp]) -> Array:
        """Return the sum over some rows."""
        from tacit.solvers._gradients import kernels  # noqa: PLC0415 - numba is slow to load

        thin = sparse.issparse(X)
        margins: Any = kernels.gathered_margins if thin else kernels.row_margins
        lengths: Any = kernels.gathered_norms if thin else kernels.row_norms
        add: Any = kernels.gathered_sum if thin else kernels.row_sum
        stored = (X.data, X.indices, X.indptr) if thin else (_plain(X),)
        total = np.zeros(self.W.shape)
        for low in range(0, len(positions), CHUNK):
            some = positions[low : low + CHUNK]
            rows = (*stored, some)
            derivatives = self.loss.derivative(y[some], margins(*rows, self.W))
            derivatives = self._clip_norm(derivatives, lengths(*rows))
            part = np.zeros(self.W.shape)
            add(*rows, derivatives, part)
            total += part
        return total

    def _clip_norm(self, derivatives: Array, norms: Array) -> Array:
        """Clip derivatives such that ``|x| |derivative| <= bound``."""
        derivatives, steepness = finite_norms(derivatives)
        sizes = norms * steepness
        # [noisy-sgd:clip-norm] below the bound by more than the norms are rounded
        limit = self.clip_norm / norm_roundoff(1.0, sum(self.W.shape) + 16)
        derivatives *= (limit / np.maximum(sizes, limit))[:, None]
        return derivatives


def _plain(X: Any) -> Array:
    return np.ascontiguousarray(X, dtype=np.float64)


def row_clip_sensitivity(
    problem: Problem,
    clip_norm: float,
    neighbors: Neighbors,
    n_rows: int,
    additions: float,
) -> float:
    """Return how far neighbors can move a computed sum of clipped gradients.

    Notes
    -----
    **Bound.** Each row's computed gradient has norm at most ``clip_norm``. Given the
    weights, the gradient of a row that both data sets have may differ by the last
    bits of its derivative only, relative to the derivative or to the largest there
    is, and clipping moves no two vectors apart. The sums round as in
    `gradient_roundoff`.
    """
    units = 1.01 * UNIT * (DERIVATIVE_UNITS + 4 * problem.loss.n_outputs)
    steepest = problem.loss.max_derivative(inf, problem.bounds.y_range)
    derivative = clip_norm
    if isfinite(steepest):
        derivative += steepest * problem.bounds.x_norm
    summed = 1.01 * UNIT * (additions + 5) * clip_norm
    roundoff = n_rows * (units * derivative + summed)
    # [noisy-gd:clip-norm] the rows changed, and the round-off of both sums
    return neighbors.rows_changed * clip_norm + 2.02 * roundoff


def reach_of(clip_norm: float | None) -> float:
    """Return that margin: far where no round-off depends on it."""
    return LARGEST_MARGIN if clip_norm is None else REACH


def clipped_gradient(
    problem: Problem, W: Array, clip: float, clip_norm: float | None
) -> ClippedGradient | RowClippedGradient:
    """Return the sum of gradients, clipped by derivative or by norm.

    Clipped by derivative, weights are as in `derivative_clipped`.
    """
    if clip_norm is not None:
        return RowClippedGradient(problem.loss, W, clip_norm)
    return derivative_clipped(problem, W, clip)


def sum_sensitivity(
    problem: Problem,
    clip: float,
    clip_norm: float | None,
    neighbors: Neighbors,
    n_rows: int | None = None,
    additions: int = MOST_ADDITIONS,
) -> float:
    """Return how far neighbors can move a computed sum of either kind.

    For sums clipped by derivative, at weights within ``largest_margin(problem) /
    x_norm`` only: a solver of several steps projects them on that ball before each
    gradient, as `descend` does.
    """
    if clip_norm is None:
        return gradient_sensitivity(problem, clip, neighbors, n_rows, additions)
    rows = problem.most_rows if n_rows is None else n_rows
    return row_clip_sensitivity(problem, clip_norm, neighbors, rows, additions)
