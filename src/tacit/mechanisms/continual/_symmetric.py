"""Symmetric matrices as vectors, so that sums of them need half the numbers."""

from __future__ import annotations

from math import isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["packed_size", "to_matrix", "to_vector"]

Array = NDArray[np.float64]


def packed_size(p: int) -> int:
    """Return how many numbers the vector of a symmetric p by p matrix has."""
    return p * (p + 1) // 2


def to_vector(matrix: Array) -> Array:
    """Return a symmetric matrix as a vector of the same norm.

    Parameters
    ----------
    matrix
        Array of shape ``(..., p, p)``; only the upper triangles are read.

    Returns
    -------
    Array of shape ``(..., p (p + 1) / 2)``: upper triangles by rows, with entries off
    the diagonal times the root of two.

    Notes
    -----
    **Bound.** An isometry from the Frobenius norm to L2, but for one rounding of each
    entry off the diagonal, of half a unit in its last place.
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    p = matrix.shape[-1]
    if matrix.ndim < 2 or matrix.shape[-2] != p:
        raise ValueError(
            f"matrix must be square, got an array of shape {matrix.shape}."
        )
    upper = np.triu_indices(p)
    return np.asarray(matrix[..., upper[0], upper[1]] * _weights(p))


def to_matrix(vector: Array) -> Array:
    """Return the symmetric matrix of a vector that `to_vector` made.

    Parameters
    ----------
    vector
        Array of shape ``(..., p (p + 1) / 2)``.
    """
    vector = np.asarray(vector, dtype=np.float64)
    size = vector.shape[-1] if vector.ndim else 0
    p = (isqrt(8 * size + 1) - 1) // 2
    if size == 0 or packed_size(p) != size:
        raise ValueError(
            f"vector must have p (p + 1) / 2 entries for a whole number p, got {size}."
        )
    rows, columns = np.triu_indices(p)
    matrix = np.empty((*vector.shape[:-1], p, p))
    matrix[..., rows, columns] = vector / _weights(p)
    matrix[..., columns, rows] = matrix[..., rows, columns]
    return matrix


def _weights(p: int) -> Array:
    rows, columns = np.triu_indices(p)
    return np.where(rows == columns, 1.0, sqrt(2.0))
