"""The lasso in whole numbers, where nothing is rounded.

Sums of products are whole, so normal equations can be solved exactly. A search without
rounding is for data on which floating point is not sure of the lasso: a trace of a
ridge makes the minimizer unique, and an active set finds it in finitely many steps.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, log2

import numpy as np
from numpy.typing import NDArray

from tacit.feature_selection._sums import UNIT, ExactSums

__all__ = ["ridged_derivatives", "solve_integer", "stationary_point"]

Array = NDArray[np.float64]
# Of Python's whole numbers, or of fractions
Numbers = NDArray[np.object_]

# Columns that enter the working set at once
BATCH = 8


def solve_integer(matrix: Numbers, right: Numbers) -> tuple[Numbers, int] | None:
    """Return numerators and the denominator of a solution, None where singular.

    The matrix is positive semidefinite. Elimination divides without a remainder
    (Bareiss 1968).
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
    """Return the weights whose slopes are the penalty with these signs.

    None where the columns do not determine them. Only the last step rounds.
    """
    weight = Fraction(penalty)
    scale = weight.denominator * int(UNIT)
    pull = np.array([int(sign) * int(weight * scale) for sign in signs], dtype=object)
    solved = solve_integer(_whole(gram, scale), _whole(linear, scale) - pull)
    if solved is None:
        return None
    return np.array([value / solved[1] for value in solved[0]], dtype=float)


def ridged_derivatives(
    sums: ExactSums,
    positions: list[int],
    start: Array,
    *,
    penalty: float,
    ridge: float,
) -> Array:
    """Return the slopes that the ridged lasso leaves to all columns.

    Parameters
    ----------
    sums
        Sums of products.
    positions
        Columns to begin with; those without a penalty come first.
    start
        Their weights to begin with.
    penalty
        Weight of the absolute values, against half the sum of squared residuals.
    ridge
        Most that half the squared weights may count.
    """
    weight, trace = Fraction(penalty), Fraction(2) ** floor(log2(ridge))
    scale = max(weight.denominator, trace.denominator) * int(UNIT)
    threshold, shrink = int(weight * scale), int(trace * scale)
    linear = _whole(sums.with_targets()[0], scale)
    positions, free = list(positions), sums.free()
    cross = _whole(sums.with_columns(positions), scale)
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
        cross = np.hstack([cross, _whole(sums.with_columns(new), scale)])


def _whole(values: Array, scale: int) -> Numbers:
    """Return exact sums as whole numbers, ``scale`` to the one."""
    more = scale // int(UNIT)
    whole = [int(value) * more for value in (values * UNIT).ravel()]
    return np.array(whole, dtype=object).reshape(values.shape)


def _minimizer(
    gram: Numbers, linear: Numbers, penalties: list[int], w: Numbers
) -> tuple[list[int], Numbers, int]:
    """Return where the minimizer is not zero, with numerators and denominator.

    It minimizes ``w' gram w / 2 - linear' w + penalties' |w|``, from a starting point.
    The value falls from one set of columns and signs to the next, so that none comes
    twice (the active set of Lawson and Hanson 1974, with signs).
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
        # go there, but no further than to where a weight would change its sign
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
        steepest = max(over, key=lambda j: over[j], default=None)
        if steepest is None or over[steepest] <= 0:
            return chosen, top, bottom
        active[steepest], signs[steepest] = True, 1 if left[steepest] > 0 else -1
