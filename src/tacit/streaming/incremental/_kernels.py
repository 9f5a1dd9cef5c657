"""Products of single rows with a public matrix."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]


@njit(cache=True, error_model="numpy")
def project_rows(X: Array, matrix: Array, out: Array) -> None:
    """Fill ``out`` with rows times the matrix, each with the norm that it had before.

    All sums run in one order, so that the bits of a row do not depend on other rows or
    their number. Products of arrays would round otherwise, and a row in the kernel of
    the matrix becomes rounding error, which is scaled to the norm of the row.
    """
    unit = np.empty(X.shape[1])
    for i in range(X.shape[0]):
        # divided by its largest entry first, so that no square underflows
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
