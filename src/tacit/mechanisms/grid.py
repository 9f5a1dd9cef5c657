"""The public grid on which secure noise is added.

A value is rounded to a multiple of the cell, noise is an integer number of cells, and
their sum is an integer: no rounding of floating point depends on the value any more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.exceptions import PlanError
from tacit.mechanisms.noise import GRID

__all__ = ["check_noise", "enlarged", "on_grid", "to_cells"]

# Beyond this many cells an int64 sum could overflow, and Python integers take over
INT64_SAFE = 2.0**62


def check_noise(noise: str) -> None:
    """Refuse an unknown kind of noise."""
    if noise not in ("grid", "float"):
        raise ValueError(f"noise must be 'grid' or 'float', got {noise!r}.")


def enlarged(multiplier: float, sensitivity: float, cells: float) -> float:
    """Return the scale for a sensitivity that rounding makes ``cells`` larger.

    Solves ``scale = multiplier (sensitivity + cells scale / GRID)``.
    """
    share = multiplier * cells / GRID
    if share > 0.5:
        raise PlanError(
            f"A noise multiplier of {multiplier:.3g} is too large for the grid; raise "
            "epsilon or delta, or use noise='float'."
        )
    return multiplier * sensitivity / (1 - share)


def to_cells(value: NDArray[np.float64], scale: float) -> NDArray[np.int64]:
    """Return ``value`` in whole cells of ``scale / GRID``, as integers of any size."""
    cells = np.rint(value * (GRID / scale))
    if np.all(np.abs(cells) < INT64_SAFE):
        return cells.astype(np.int64)
    return np.array([int(c) for c in cells.ravel()], dtype=object).reshape(cells.shape)


def on_grid(
    value: NDArray[np.float64], scale: float, noise: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the rounded value plus integer noise, back in the units of the value."""
    total = to_cells(value, scale) + noise
    return np.asarray(total.astype(np.float64) * (scale / GRID), dtype=np.float64)
