"""Rows times a public matrix, each by itself."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]


@njit(cache=True, error_model="numpy")
def seen_rows(X: Array, matrix: Array, out: Array) -> None:
    """Fill ``out`` with rows times the matrix, each as long as it was before.

    All sums run in one order, so that a row's bits do not depend on other rows, nor on
    how many there are. Products of whole arrays would round otherwise, and a row that
    the matrix takes to zero is nothing but that rounding, made long again.
    """
    unit = np.empty(X.shape[1])
    for i in range(X.shape[0]):
        # by its largest entry first, so that no square vanishes
        largest, before, after = 0.0, 0.0, 0.0
        for j in range(X.shape[1]):
            largest = max(largest, abs(X[i, j]))
        for j in range(X.shape[1]):
            unit[j] = X[i, j] / largest if largest > 0.0 else 0.0
            before += unit[j] * unit[j]
        for c in range(matrix.shape[0]):
            total = 0.0
            for j in range(X.shape[1]):
                total += unit[j] * matrix[c, j]
            out[i, c] = total
            after += total * total
        factor = largest * np.sqrt(before / after) if after > 0.0 else 0.0
        for c in range(matrix.shape[0]):
            out[i, c] *= factor
