"""Second moments of rows: their sums, and how far neighbors can move them."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.convex.objective import MOST_ADDITIONS, chunks
from tacit.convex.roundoff import UNIT
from tacit.privacy import Neighbors
from tacit.solvers._base import Problem

__all__ = [
    "JointMoments",
    "Moments",
    "joint_sensitivity",
    "moment_roundoff",
    "moment_sensitivity",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Sum over a block of ``x x^T``."""

    n_features: int

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        total = np.zeros((self.n_features, self.n_features))
        for part, _ in chunks(X, y):
            total += _gram(part)
        return (total,)


@dataclass(frozen=True)
class JointMoments:
    """Sum over a block of the second moments of ``(x, y)``, with a corner of zero.

    Rows and targets are in units of their bounds. The matrix holds ``x x^T`` and,
    twice, ``x y / sqrt(2)``.
    """

    x_norm: float
    y_max: float
    n_features: int

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        p = self.n_features
        total = np.zeros((p + 1, p + 1))
        for part, targets in chunks(X, y):
            unit = part / self.x_norm
            # targets beyond the public bound would break the guarantee
            target = np.clip(targets / self.y_max, -1.0, 1.0) / sqrt(2.0)
            total[:p, :p] += _gram(unit)
            total[:p, p] += unit.T @ target
        total[p, :p] = total[:p, p]
        return (total,)


def _gram(part: Any) -> Array:
    gram = part.T @ part
    dense: Array = gram.toarray() if sparse.issparse(gram) else gram
    return dense


def moment_sensitivity(neighbors: Neighbors) -> float:
    """Return how far neighbors can move `Moments` of rows of norm one, in Frobenius."""
    # [preconditioned:moments] two matrices x x^T are at most orthogonal
    return sqrt(neighbors.rows_changed)


def joint_sensitivity(neighbors: Neighbors) -> float:
    """Return how far neighbors can move `JointMoments`, in Frobenius norm."""
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return sqrt(2.0)
    # [ada-ssp:joint] (2 + c^2) / sqrt(2) at c = 1, where the rows are 60 degrees apart
    return 3 / sqrt(2.0)


def moment_roundoff(problem: Problem, row: float) -> float:
    """Return a bound on the error of computed moments, in Frobenius norm.

    ``row`` bounds the norm of the matrix of absolute terms of one row.
    """
    # each entry goes through two scalings, a product, the target's division by the
    # root of two and the additions
    operations = MOST_ADDITIONS + 16
    return 1.01 * operations * UNIT * row * problem.most_rows
