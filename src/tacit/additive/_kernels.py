"""Loops over rows of bin numbers, in the order of the rows."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]


@njit(cache=True, nogil=True)
def look_up(bin_ids: NDArray[np.int32], values: Array, margins: Array) -> None:
    """Add the values of the bins of each row to its margins."""
    for i in range(bin_ids.shape[0]):
        for j in range(bin_ids.shape[1]):
            for output in range(values.shape[1]):
                margins[i, output] += values[bin_ids[i, j], output]


@njit(cache=True, nogil=True)
def add_up(bin_ids: NDArray[np.int32], weights: Array, totals: Array) -> None:
    """Add the weights of each row to the totals of its bins."""
    for i in range(bin_ids.shape[0]):
        for j in range(bin_ids.shape[1]):
            for output in range(weights.shape[1]):
                totals[bin_ids[i, j], output] += weights[i, output]


@njit(cache=True, nogil=True)
def add_up_pairs(
    first: NDArray[np.intp], second: NDArray[np.intp], weights: Array, totals: Array
) -> None:
    """Add the weight of each row to the total of its bins in two columns."""
    for i in range(len(first)):
        totals[first[i], second[i]] += weights[i]
