"""Which columns the lasso keeps, exactly, and with what signs.

A working set of columns grows by those that violate the optimality conditions.
On it coordinate descent finds signs, and the normal equations the point. Only columns
of the Gram matrix that enter the working set are ever summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from tacit.feature_selection._lasso_sums import ExactSums

__all__ = [
    "ExactLasso",
    "entering",
    "exact_lasso",
    "solve_working_set",
    "stationary_point",
]

Array = NDArray[np.float64]

# Columns that enter the working set at once, at least
BATCH = 8
# Slopes may be off by this part of the penalty while signs are looked for
FIRST_TOLERANCE, LAST_TOLERANCE, TIGHTER = 1e-3, 1e-13, 1e-2
SWEEPS = 20_000
# A column violates the conditions where its slope passes the penalty by this part
VIOLATION = 1e-10
# Solutions are refined until slopes are met to this part of the right side, or of 1000
SLOPE_ERROR = 1e-12
REFINEMENTS = 3


@dataclass(frozen=True, eq=False)
class ExactLasso:
    """The point with certain signs at which slopes meet the penalty. Private.

    Whether it is the lasso is for its reader to tell: the signs must be those of the
    weights, and slopes outside below the penalty.

    Parameters
    ----------
    places
        Columns with weights, in order; the column of ones last, where there is one.
    signs
        Sign of each weight that was looked for; zero for the column of ones.
    w
        Weights.
    gram
        Sums of products of those columns with each other.
    cross
        Sums of products of all other columns with those.
    left
        Slopes that the weights leave to all other columns.
    """

    places: list[int]
    signs: Array
    w: Array
    gram: Array
    cross: Array
    left: Array

    @property
    def support(self) -> tuple[int, ...]:
        """The selected columns in order, without the column of ones."""
        return tuple(
            place
            for place, sign in zip(self.places, self.signs, strict=True)
            if sign != 0
        )

    @property
    def steepest(self) -> float:
        """Largest absolute slope of a column outside."""
        return float(np.abs(self.left).max(initial=-inf))

    @property
    def smallest(self) -> float:
        """Smallest weight of a selected column, negative where a sign is wrong."""
        return float((self.w * self.signs)[self.signs != 0].min(initial=inf))


def stationary_point(gram: Array, linear: Array) -> Array | None:
    """Return the solution of the normal equations, or None where there is none.

    Residuals are computed in more digits than the sums have, so that the solution is
    good to the last digits of the slopes it leaves.
    """
    with np.errstate(all="ignore"):  # a warning would tell of the rows
        try:
            factor = np.linalg.inv(gram)
        except np.linalg.LinAlgError:
            return None
        wide = gram.astype(np.longdouble)
        w = (factor @ linear).astype(np.longdouble)
        for _ in range(REFINEMENTS):
            w = w + factor @ (linear - wide @ w).astype(np.float64)
        left = np.abs(linear - wide @ w).max(initial=0.0)
    size = np.abs(linear).max(initial=0.0)
    sound = bool(np.isfinite(w).all()) and left <= SLOPE_ERROR * (size + 1e3)
    return w.astype(np.float64) if sound else None


def exact_lasso(
    sums: ExactSums, penalty: float, *, most: int, margin: float
) -> ExactLasso | None:
    """Return the lasso, or None where it is not to be had.

    That is where its columns do not determine its weights, or where it is sure to have
    more than ``most`` columns, or one outside that is within ``margin`` of entering.
    """
    slopes, squares = sums.with_targets()
    free = sums.free()
    places, w = list(free), np.zeros(len(free))
    cross = sums.with_columns(places)
    while True:
        w = solve_working_set(cross[places], slopes[places], penalty, w, len(free))
        left = slopes - cross @ w
        new = entering(left, places, penalty, int((w != 0).sum()))
        if not new:
            break
        gap = _duality_gap(squares, slopes[places], left, w, places, penalty, len(free))
        if int((np.abs(w[len(free) :]) * margin > 1.01 * gap).sum()) > most:
            return None
        places = [*places, *new]
        cross = np.hstack([cross, sums.with_columns(new)])
        w = np.concatenate([w, np.zeros(len(new))])
    kept = [k for k in range(len(places)) if w[k] != 0 or k < len(free)]
    kept.sort(key=lambda k: places[k])
    signs = np.array([np.sign(w[k]) * (k >= len(free)) for k in kept])
    found, cross = [places[k] for k in kept], cross[:, kept]
    if int((signs != 0).sum()) > most:
        return None
    exact = stationary_point(cross[found], slopes[found] - penalty * signs)
    if exact is None:
        return None
    outside = np.ones(sums.n_columns, dtype=bool)
    outside[found] = False
    left = (slopes - cross @ exact)[outside]
    return ExactLasso(found, signs, exact, cross[found], cross[outside], left)


def entering(left: Array, places: list[int], penalty: float, size: int) -> list[int]:
    """Return the columns outside that violate the conditions most, a batch of them."""
    excess = np.abs(left) - penalty
    excess[places] = -inf
    violating = np.flatnonzero(excess > VIOLATION * penalty)
    worst = np.argsort(-excess[violating], kind="stable")[: max(BATCH, 2 * size)]
    return [int(place) for place in np.sort(violating[worst])]


def solve_working_set(
    gram: Array, linear: Array, penalty: float, w: Array, n_free: int
) -> Array:
    """Return the minimizer on a working set, exact once its signs are found.

    The first ``n_free`` columns have no penalty.
    """
    from tacit.feature_selection._lasso_kernels import descend  # noqa: PLC0415 - numba

    penalties = np.full(len(w), penalty)
    penalties[:n_free] = 0.0
    gram, w = np.ascontiguousarray(gram), w.copy()
    tolerance = FIRST_TOLERANCE
    while tolerance >= LAST_TOLERANCE:
        descend(gram, linear, penalties, w, tolerance * penalty, SWEEPS)
        exact = _polished(gram, linear, penalties, w)
        if exact is not None:
            return exact
        tolerance *= TIGHTER
    return w


def _polished(gram: Array, linear: Array, penalties: Array, w: Array) -> Array | None:
    """Return the point with the signs of ``w`` that meets all conditions, or None."""
    active = (w != 0) | (penalties == 0)
    signs = np.sign(w) * (penalties > 0)
    weights = stationary_point(
        gram[np.ix_(active, active)], (linear - penalties * signs)[active]
    )
    if weights is None:
        return None
    exact = np.zeros(len(w))
    exact[active] = weights
    slopes = np.abs(linear - gram @ exact)
    inside = slopes <= penalties * (1 + VIOLATION)
    if not ((exact * signs >= 0).all() and inside[~active].all()):
        return None
    return exact


def _duality_gap(
    squares: float,
    slopes: Array,
    left: Array,
    w: Array,
    places: list[int],
    penalty: float,
    n_free: int,
) -> float:
    """Return a bound on how far the value at ``w`` is above the least.

    Where every column outside the lasso has a margin, weights outside cost so much
    each: no more than this gap in all.
    """
    residual = max(0.0, squares - float((slopes + left[places]) @ w))
    value = residual / 2 + penalty * float(np.abs(w[n_free:]).sum())
    # the residuals, shrunk until no slope passes the penalty, are dual feasible
    shrunk = min(1.0, penalty / float(np.abs(left).max()))
    return value - shrunk * (squares - float(slopes @ w)) + shrunk**2 * residual / 2
