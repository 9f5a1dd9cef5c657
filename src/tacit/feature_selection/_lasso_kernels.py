"""The inner loop of coordinate descent on a Gram matrix."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]


@njit(cache=True)
def descend(
    gram: Array,
    linear: Array,
    penalties: Array,
    w: Array,
    tolerance: float,
    n_sweeps: int,
) -> None:
    """Lower ``w' gram w / 2 - linear' w + penalties' |w|`` in ``w``, in place.

    Ends when no coordinate moves its own slope by more than the tolerance, or after so
    many sweeps.
    """
    slack = linear - gram @ w
    for _ in range(n_sweeps):
        largest = 0.0
        for j in range(len(w)):
            curvature = gram[j, j]
            if curvature <= 0.0:  # a column of zeros, whose gradient is zero
                continue
            wanted = slack[j] + curvature * w[j]
            size = abs(wanted) - penalties[j]
            new = np.sign(wanted) * size / curvature if size > 0.0 else 0.0
            step = new - w[j]
            if step != 0.0:
                w[j] = new
                for i in range(len(w)):
                    slack[i] -= gram[i, j] * step
                largest = max(largest, abs(step) * curvature)
        if largest <= tolerance:
            return
