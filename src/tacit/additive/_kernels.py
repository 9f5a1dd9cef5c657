"""Loops over rows of bins, in the order of the rows."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Cells = NDArray[np.int32]


@njit(cache=True, nogil=True)
def look_up(cells: Cells, values: Array, margins: Array) -> None:
    """Add the values of the bins of each row to its margins."""
    for i in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            for output in range(values.shape[1]):
                margins[i, output] += values[cells[i, j], output]


@njit(cache=True, nogil=True)
def add_up(cells: Cells, weights: Array, totals: Array) -> None:
    """Add the weights of each row to the totals of its bins."""
    for i in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            for output in range(weights.shape[1]):
                totals[cells[i, j], output] += weights[i, output]


@njit(cache=True, nogil=True)
def add_up_pairs(
    first: Cells, second: Cells, weights: Array, starts: tuple[int, int], totals: Array
) -> None:
    """Add the weight of each row to the total of its bins in two columns.

    ``starts`` has the first bin of either column.
    """
    for i in range(first.shape[0]):
        totals[first[i] - starts[0], second[i] - starts[1]] += weights[i]
