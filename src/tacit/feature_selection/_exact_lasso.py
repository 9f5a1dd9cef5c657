"""Exact support of the Lasso, wherever it is stable."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, log2

import numpy as np
from numpy.typing import NDArray

from tacit.feature_selection._sums import UNIT, ExactSums

__all__ = [
    "ExactLasso",
    "exact_lasso",
    "ridged_derivatives",
    "solve_integer",
    "stationary_point",
]

Array = NDArray[np.float64]
# Python integers or fractions
Numbers = NDArray[np.object_]

# Columns that enter the working set at once
BATCH = 8


def solve_integer(matrix: Numbers, right: Numbers) -> tuple[Numbers, int] | None:
    """Return numerators and the denominator of a solution; None where singular.

    For positive semidefinite matrices, by fraction-free elimination (Bareiss 1968).
    """
    table = np.column_stack([matrix, right])
    denominator = 1
    for k in range(len(right)):
        row = table[k].copy()
        if row[k] == 0:
            return None
        table = (table * row[k] - np.outer(table[:, k], row)) // denominator
        table[k], denominator = row, row[k]
    return table[:, -1], denominator


def stationary_point(
    gram: Array, linear: Array, penalty: float, signs: Array
) -> Array | None:
    """Return the weights at which the gradient is the penalty with these signs.

    None where the columns do not determine them. Only the last step rounds.
    """
    weight = Fraction(penalty)
    scale = weight.denominator * int(UNIT)
    pull = np.array([int(sign) * int(weight * scale) for sign in signs], dtype=object)
    solved = solve_integer(
        _as_integers(gram, scale), _as_integers(linear, scale) - pull
    )
    if solved is None:
        return None
    return np.array([value / solved[1] for value in solved[0]], dtype=float)


def ridged_derivatives(
    sums: ExactSums, positions: list[int], start: Array, *, penalty: float, ridge: float
) -> Array:
    """Return the negative gradient of the squared loss at the solution with a ridge.

    ``positions`` are the first working set, columns without a penalty first, and
    ``start`` their weights. ``ridge`` is an upper bound on that of half the squared
    weights.
    """
    weight, trace = Fraction(penalty), Fraction(2) ** floor(log2(ridge))
    scale = max(weight.denominator, trace.denominator) * int(UNIT)
    threshold, shrink = int(weight * scale), int(trace * scale)
    linear = _as_integers(sums.with_targets()[0], scale)
    positions, free = list(positions), sums.unpenalized()
    cross = _as_integers(sums.with_columns(positions), scale)
    w = np.array([Fraction(float(v)) for v in start], dtype=object)
    while True:
        penalties = [0 if position in free else threshold for position in positions]
        gram = cross[positions] + shrink * np.eye(len(positions), dtype=object)
        chosen, top, bottom = _minimizer(gram, linear[positions], penalties, w)
        left = linear * bottom - cross[:, chosen] @ top
        over = np.abs(left) - threshold * bottom
        entering = [j for j in range(len(left)) if over[j] > 0 and j not in positions]
        if not entering:
            return np.array([value / (bottom * scale) for value in left])
        new = sorted(entering, key=lambda j: -over[j])[:BATCH]
        w = np.array([Fraction(0)] * (len(positions) + len(new)), dtype=object)
        w[chosen] = [Fraction(value, bottom) for value in top]
        positions = [*positions, *new]
        cross = np.hstack([cross, _as_integers(sums.with_columns(new), scale)])


def _as_integers(values: Array, scale: int) -> Numbers:
    """Return exact sums as integers, where ``scale`` stands for one."""
    factor = scale // int(UNIT)
    integers = [int(value) * factor for value in (values * UNIT).ravel()]
    return np.array(integers, dtype=object).reshape(values.shape)


def _minimizer(
    gram: Numbers, linear: Numbers, penalties: list[int], w: Numbers
) -> tuple[list[int], Numbers, int]:
    """Return the support of a minimizer, with numerators and denominator.

    It minimizes ``w' gram w / 2 - linear' w + penalties' |w|``, from a starting point.
    The value falls from one set of columns and signs to the next, so that no set is
    visited twice (the active set method of Lawson and Hanson 1974, with signs).
    """
    signs = [((v > 0) - (v < 0)) * (c > 0) for v, c in zip(w, penalties, strict=True)]
    active = [
        sign != 0 or cost == 0 for sign, cost in zip(signs, penalties, strict=True)
    ]
    while True:
        chosen = [j for j, kept in enumerate(active) if kept]
        pull = np.array([penalties[j] * signs[j] for j in chosen], dtype=object)
        solved = solve_integer(gram[np.ix_(chosen, chosen)], linear[chosen] - pull)
        assert solved is not None  # a ridge is in the matrix
        top, bottom = solved
        target = np.array([Fraction(0)] * len(w), dtype=object)
        target[chosen] = [Fraction(value, bottom) for value in top]
        # move there, but stop where a weight would change its sign
        crossing = {
            j: w[j] / (w[j] - target[j])
            for j in chosen
            if penalties[j] and target[j] * signs[j] <= 0
        }
        if crossing:
            step = min(crossing.values())
            w = w + step * (target - w)
            for j in (j for j, at in crossing.items() if at == step):
                w[j], signs[j], active[j] = Fraction(0), 0, False
            continue
        w = target
        left = linear * bottom - gram[:, chosen] @ top
        over = {
            j: abs(left[j]) - penalties[j] * bottom
            for j, kept in enumerate(active)
            if not kept
        }
        entering = max(over, key=lambda j: over[j], default=None)
        if entering is None or over[entering] <= 0:
            return chosen, top, bottom
        active[entering], signs[entering] = True, 1 if left[entering] > 0 else -1


# Tolerances of coordinate descent, as a fraction of the penalty. Sweeps are limited;
# integer arithmetic takes over where they are too few
FIRST_TOLERANCE, LAST_TOLERANCE, TIGHTER = 1e-3, 1e-13, 1e-2
SWEEPS = 20_000
# Fraction of the penalty by which round-off may let the gradient exceed it
VIOLATION = 1e-10
# Precision of the arithmetic that bounds the duality gap
WIDE_EPSILON = float(np.finfo(np.longdouble).eps)


@dataclass(frozen=True, eq=False)
class ExactLasso:
    """Candidate for the lasso solution, with given columns and signs. Private.

    It is the lasso if the weights ``w`` have these signs, and the gradient in all other
    columns is below the penalty; callers check both. ``positions`` are the columns with
    weights, the column of ones last, whose sign is zero. ``gram`` has the products of
    those columns with each other, ``cross`` those of all others with them, and ``left``
    the negative gradient of the squared loss in all others.
    """

    positions: list[int]
    signs: Array
    w: Array
    gram: Array
    cross: Array
    left: Array

    @property
    def support(self) -> tuple[int, ...]:
        """The selected columns in order, without the column of ones."""
        return tuple(
            position
            for position, sign in zip(self.positions, self.signs, strict=True)
            if sign != 0
        )

    @property
    def largest_gradient(self) -> float:
        """Largest absolute gradient in a column outside the support."""
        return float(np.abs(self.left).max(initial=-inf))

    @property
    def smallest(self) -> float:
        """Smallest weight of a selected column, negative where a sign is wrong."""
        return float((self.w * self.signs)[self.signs != 0].min(initial=inf))


def exact_lasso(
    sums: ExactSums, penalty: float, *, most: int, margin: float, bound: float
) -> ExactLasso | None:
    """Return the lasso wherever it is stable, and otherwise any candidate or None.

    It is stable if it has at most ``most`` columns, the gradient in all others is below
    the penalty by ``margin``, and the sum of absolute weights, with that of the column
    of ones, is within ``bound``. The penalty is against half the squared residuals.

    Notes
    -----
    **Guarantee.** Where the lasso is stable and its columns determine its weights, it
    is returned; the page on the stability of the lasso proves it.
    """
    derivatives, _ = sums.with_targets()
    free = sums.unpenalized()
    # [lasso:near] within this gap, gradients are within three eighths of a margin
    near = margin**2 / (16 * max(1, sums.n_rows))
    positions, w = list(free), np.zeros(len(free))
    cross = sums.with_columns(positions)
    while True:
        w = _approach(cross[positions], derivatives[positions], penalty, w, len(free))
        wide = derivatives - cross.astype(np.longdouble) @ w
        gap = _gap(wide, w, positions, penalty, len(free), bound, sums.n_rows)
        left = wide.astype(float)
        if gap <= near:
            break
        # [lasso:many] each weight outside costs a margin, all of them at most the gap
        if int((np.abs(w[len(free) :]) * margin > 1.01 * gap).sum()) > most:
            return None
        new = _entering(left, positions, penalty, int((w != 0).sum()))
        if not new:
            # [lasso:ridge] at the lasso a ridge of this size adds at most `near`
            ridge = 2 * near / bound**2
            left = ridged_derivatives(sums, positions, w, penalty=penalty, ridge=ridge)
            break
        positions = [*positions, *new]
        cross = np.hstack([cross, sums.with_columns(new)])
        w = np.concatenate([w, np.zeros(len(new))])
    return _on_support(sums, derivatives, left, penalty, most, margin)


def _on_support(
    sums: ExactSums,
    derivatives: Array,
    left: Array,
    penalty: float,
    most: int,
    margin: float,
) -> ExactLasso | None:
    """Return the candidate whose columns and signs are those of large gradients."""
    # [lasso:signs] halfway between gradients in the support and in other columns
    signs = np.sign(left) * (np.abs(left) > penalty - margin / 2)
    signs[sums.unpenalized()] = 0.0
    if int((signs != 0).sum()) > most:
        return None
    inside = signs != 0
    inside[sums.unpenalized()] = True
    found = [int(position) for position in np.flatnonzero(inside)]
    cross = sums.with_columns(found)
    w = stationary_point(cross[found], derivatives[found], penalty, signs[found])
    if w is None:
        return None
    rest = (derivatives - cross @ w)[~inside]
    return ExactLasso(found, signs[found], w, cross[found], cross[~inside], rest)


def _gap(
    left: NDArray[np.longdouble],
    w: Array,
    positions: list[int],
    penalty: float,
    n_free: int,
    bound: float,
    n_rows: int,
) -> float:
    """Return a bound on how far the value at ``w`` is above the minimum.

    The minimum is that within a bound on the sum of absolute weights. A convex function
    is above its tangent, which is least at zero or at one column. The error of the sum
    is added.
    """
    # [lasso:gap]
    excess = np.abs(left) - penalty
    excess[positions[:n_free]] += penalty
    over = max(0.0, float(excess.max(initial=0.0)))
    sizes = np.abs(w).astype(np.longdouble)
    gap = penalty * sizes[n_free:].sum() - left[positions] @ w + bound * over
    total = float(sizes.sum())
    size = (n_rows * (1 + total) + penalty) * (total + bound)
    return float(gap) + 8 * (len(w) + 4) * WIDE_EPSILON * size


def _entering(
    left: Array, positions: list[int], penalty: float, size: int
) -> list[int]:
    """Return the columns outside that violate the conditions most, a batch of them."""
    excess = np.abs(left) - penalty
    excess[positions] = -inf
    violating = np.flatnonzero(excess > 0)
    worst = np.argsort(-excess[violating], kind="stable")[: max(BATCH, 2 * size)]
    return [int(position) for position in np.sort(violating[worst])]


def _approach(
    gram: Array, linear: Array, penalty: float, w: Array, n_free: int
) -> Array:
    """Return an approximate minimizer on a working set, polished once signs are found.

    The first ``n_free`` columns have no penalty.
    """
    from tacit.feature_selection._kernels import descend  # noqa: PLC0415 - numba

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
    """Return the minimizer with the signs of ``w``, or None if it has other signs."""
    active = (w != 0) | (penalties == 0)
    signs = np.sign(w) * (penalties > 0)
    inner = gram[np.ix_(active, active)]
    wanted = (linear - penalties * signs)[active]
    try:
        weights = np.linalg.solve(inner, wanted)
        weights += np.linalg.solve(inner, wanted - inner @ weights)
    except np.linalg.LinAlgError:
        return None
    exact = np.zeros(len(w))
    exact[active] = weights
    derivatives = np.abs(linear - gram @ exact)
    met = np.where(
        active, (exact * signs >= 0), derivatives <= penalties * (1 + VIOLATION)
    )
    return exact if met.all() and np.isfinite(exact).all() else None
