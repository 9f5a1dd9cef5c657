"""A public random matrix that rows are seen through, made anew from its key."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tacit._random import public_generator
from tacit.data import RowBounds
from tacit.mechanisms.noise import float_normal

__all__ = ["Projection"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Projection:
    """Normal entries of variance one over the number of components, from a public key.

    A constant last feature is left as it is.
    """

    key: int
    n_components: int
    n_columns: int
    constant: bool
    row_width: float

    def matrix(self) -> Array:
        """Return the matrix, the same for the same key."""
        shape = self.n_components, self.n_columns
        rng = public_generator(self.key, "projection", *shape)
        matrix = float_normal(shape, rng) / sqrt(self.n_components)
        if not self.constant:
            return matrix
        whole = np.zeros((shape[0] + 1, shape[1] + 1))
        whole[:-1, :-1] = matrix
        whole[-1, -1] = 1.0
        return whole

    def rows(self, X: Array, matrix: Array, bounds: RowBounds) -> Array:
        """Return rows times the matrix, each as long as it was before.

        The bound on rows then holds for every matrix and every row; zero stays zero.
        """
        from tacit.streaming.incremental._kernels import seen_rows  # noqa: PLC0415 - numba

        end = X.shape[1] - self.constant
        features, through = X[:, :end], matrix[: matrix.shape[0] - self.constant, :end]
        seen = np.empty((len(X), len(through)))
        # [incremental:alone] each row by itself, whatever rows it comes with
        seen_rows(np.ascontiguousarray(features), np.ascontiguousarray(through), seen)
        # [incremental:projected] within the bound to the last digit
        clipped: Array = bounds.clip(np.column_stack([seen, X[:, end:]]))
        return clipped
