"""Least squares on one block of rows, as a function of that block and nothing else.

Sums run in one fixed order, in one thread: equal blocks give equal weights, to the last
digit, wherever their rows lie in memory and whatever the other blocks hold.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@njit(cache=True)
def ridge_weights(X: Floats, y: Floats, ridge: float) -> Floats:
    """Return the least squares weights with a ridge, by Cholesky's decomposition."""
    n, p = X.shape
    second, weights = np.zeros((p, p)), np.zeros(p)
    for i in range(n):
        for j in range(p):
            x = X[i, j]
            weights[j] += x * y[i]
            for k in range(j + 1):
                second[j, k] += x * X[i, k]
    for j in range(p):
        second[j, j] += ridge
        for k in range(j + 1):
            left = second[j, k]
            for m in range(k):
                left -= second[j, m] * second[k, m]
            second[j, k] = np.sqrt(left) if j == k else left / second[k, k]
    for j in range(p):
        for k in range(j):
            weights[j] -= second[j, k] * weights[k]
        weights[j] /= second[j, j]
    for j in range(p - 1, -1, -1):
        for k in range(j + 1, p):
            weights[j] -= second[k, j] * weights[k]
        weights[j] /= second[j, j]
    return weights
