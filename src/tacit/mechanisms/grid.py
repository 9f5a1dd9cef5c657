"""The public grid on which secure noise is added.

A value is rounded to a multiple of the cell, noise is an integer number of cells, and
their sum is an integer: no rounding of floating point depends on the value any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._validate import one_of
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import GRID

__all__ = [
    "check_noise",
    "enlarged",
    "finite_scores",
    "noise_assumptions",
    "on_grid",
    "to_cells",
]

# Below this many cells a division in floating point is off by a quarter of a cell at
# most; above, rational numbers take over
FLOAT_SAFE = 2.0**51
# Hence a value is rounded by three quarters of a cell at most, and two of them move
# apart by at most this many cells a coordinate
ROUNDING = 1.5
# Largest score that counts; the difference of two is still a float
MOST_SCORE = 1e300


def check_noise(noise: str) -> None:
    """Check that ``noise`` is ``"grid"`` or ``"float"``."""
    one_of(("grid", "float"), noise=noise)


def noise_assumptions(noise: str) -> tuple[str, ...]:
    """Return the assumptions that this kind of noise adds to the guarantee."""
    if noise == "grid":
        return ()
    return ("floating-point noise: its low-order bits may leak information",)


def enlarged(multiplier: float, sensitivity: float, norm_of_ones: float) -> float:
    """Return the scale for a sensitivity that includes rounding to the grid.

    Solves ``scale = multiplier (sensitivity + ROUNDING norm_of_ones scale / GRID)``,
    where ``norm_of_ones`` is the norm, in that of the sensitivity, of a vector of ones.
    """
    # [grid:rounding]
    rounding = multiplier * ROUNDING * norm_of_ones / GRID
    if rounding > 0.5:
        raise PlanError(
            f"A noise multiplier of {multiplier:.3g} is too large for the grid; raise "
            "epsilon or delta, or use noise='float'."
        )
    scale = multiplier * sensitivity / (1 - rounding)
    if not 1e-250 < scale < 1e250:
        raise PlanError(
            f"Noise of scale {scale:.3g} is out of the range of the grid; rescale the "
            "values."
        )
    return scale


def finite_scores(scores: Any) -> NDArray[np.float64]:
    """Return scores from -1e300 to 1e300; NaN counts as the lowest score.

    Scores are private, so that an exception would leak information, as would a choice
    by a number that compares with no other. Each score is read by itself, and clipping
    moves no two of them further apart.
    """
    # [selection:finite]
    values = np.asarray(scores, dtype=np.float64)
    return np.clip(
        np.where(np.isnan(values), -MOST_SCORE, values), -MOST_SCORE, MOST_SCORE
    )


def to_cells(
    value: NDArray[np.float64], scale: float | NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return ``value`` in whole cells of ``scale / GRID``, as integers of any size."""
    cell = scale / GRID
    with np.errstate(over="ignore"):  # infinity takes the second path
        cells = np.rint(value / cell)
    if np.all(np.abs(cells) < FLOAT_SAFE):
        return cells.astype(np.int64)
    exact = [round(Fraction(v) / Fraction(c)) for v, c in _pairs(value, cell)]
    return np.array(exact, dtype=object).reshape(value.shape)


def _pairs(
    values: NDArray[Any], cell: float | NDArray[np.float64]
) -> Iterator[tuple[Any, float]]:
    """Pair each value with the cell it is measured in."""
    cells = np.broadcast_to(np.asarray(cell), values.shape)
    return zip(values.ravel().tolist(), cells.ravel().tolist(), strict=True)


def on_grid(
    value: NDArray[np.float64],
    scale: float | NDArray[np.float64],
    noise: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the rounded value plus integer noise, back in the units of the value.

    ``scale`` is that of the noise, one for all numbers or one for each.
    """
    # an array again, as numpy turns the sum of two scalars into a plain integer
    total = np.asarray(to_cells(value, scale) + noise)
    cell = scale / GRID
    if total.dtype == object:
        exact = [float(t * Fraction(c)) for t, c in _pairs(total, cell)]
        return np.array(exact).reshape(total.shape)
    return np.asarray(total * cell, dtype=np.float64)
