"""Second moments of rows, which may be projected, released after every step."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._random import public_generator
from tacit.convex import Squared
from tacit.convex.objective import DENSE_ROWS, UNIT, chunks
from tacit.data import RowBounds
from tacit.exceptions import PlanError
from tacit.mechanisms.continual._base import packed_size, to_matrix, to_vector
from tacit.mechanisms.continual._growing import SUMS
from tacit.mechanisms.noise import float_normal
from tacit.privacy import Budget, Neighbors
from tacit.solvers import Problem
from tacit.solvers._base import MOST_ROWS, require_delta
from tacit.streaming._model import StreamTerms

__all__ = [
    "FULL_WEIGHT",
    "MomentSums",
    "Moments",
    "Projection",
    "best_weight",
    "check_problem",
    "joint_sensitivity",
    "longest_step",
    "most_step_rows",
    "row_moments",
    "row_norm",
    "step_roundoff",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Projection:
    """Public random matrix, whose entries have variance one over its components.

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
        extended = np.zeros((shape[0] + 1, shape[1] + 1))
        extended[:-1, :-1] = matrix
        extended[-1, -1] = 1.0
        return extended

    def rows(self, X: Array, matrix: Array, bounds: RowBounds) -> Array:
        """Return rows times the matrix, each with the norm that it had before.

        The bound on rows is then true for every matrix and every row; zero remains
        zero.
        """
        from tacit.streaming.incremental._kernels import (  # noqa: PLC0415 - numba
            project_rows,
        )

        end = X.shape[1] - self.constant
        features, through = X[:, :end], matrix[: matrix.shape[0] - self.constant, :end]
        found = np.empty((len(X), len(through)))
        # [incremental:alone] each row by itself, whatever rows it comes with
        project_rows(
            np.ascontiguousarray(features), np.ascontiguousarray(through), found
        )
        # [incremental:projected] within the bound to the last digit
        clipped: Array = bounds.clip(np.column_stack([found, X[:, end:]]))
        return clipped


# Weight of products with targets for which a row's moments are those of (x, y)
FULL_WEIGHT = sqrt(2.0)
# Candidate weights
WEIGHTS = np.geomspace(0.02, FULL_WEIGHT, 200)


def row_norm(weight: float, squares: bool) -> float:
    """Return the largest norm of the moments of one row, in units of the bounds."""
    return sqrt(1 + weight**2 + squares)


def joint_sensitivity(weight: float, squares: bool, neighbors: Neighbors) -> float:
    """Return the L2 sensitivity of the moments of a step.

    Moments are ``x x^T``, ``weight x y`` and, with ``squares``, ``y^2``.
    """
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return row_norm(weight, squares)
    # [incremental:joint] rows with this cosine and opposite targets are furthest apart
    cosine = min(1.0, weight**2 / 2)
    return sqrt(2 - 2 * cosine**2 + weight**2 * (2 + 2 * cosine))


def best_weight(radius: float, neighbors: Neighbors) -> float:
    """Return the weight of products with targets for weights of norm ``radius``.

    Noise of standard deviation s on second moments and s / weight on products moves the
    risk of such weights in proportion to ``s (2 radius + 1 / weight)``.
    """
    costs = [
        joint_sensitivity(weight, False, neighbors) * (2 * radius + 1 / weight)
        for weight in WEIGHTS
    ]
    return float(WEIGHTS[int(np.argmin(costs))])


def step_roundoff(row: float, n_rows: int = MOST_ROWS) -> float:
    """Return a bound on the round-off of the moments of a step.

    ``row`` bounds the norm of the moments of one row.
    """
    # a term is scaled, multiplied and weighted, added in its chunk and with the others
    operations = DENSE_ROWS + n_rows // DENSE_ROWS + 16
    return 1.01 * operations * UNIT * row * n_rows


def most_step_rows(rows_per_step: int) -> int:
    """Return the largest number of rows in a step for bounds on round-off."""
    return max(MOST_ROWS, rows_per_step)


def check_problem(problem: Problem, budget: Budget, method: str) -> None:
    """Reject problems that are not least squares with Gaussian noise."""
    if not isinstance(problem.loss, Squared):
        raise PlanError(
            f"{method} solves least squares only, got {problem.loss!r}; use "
            "IncrementalERM."
        )
    problem.require_l2_rows(method)
    require_delta(budget, method, "IncrementalERM with a solver of pure privacy")


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of ``x x^T``, ``x y`` and, on request, ``y^2``."""

    second: Array
    first: Array
    total: float | None


def row_moments(X: Array, y: Array, x_norm: float, y_max: float) -> Moments:
    """Return the moments of the rows of a step, in units of their bounds."""
    p = X.shape[1]
    second, first, total = np.zeros((p, p)), np.zeros(p), 0.0
    for part, targets in chunks(X, y):
        unit = part / x_norm
        # targets beyond the public bound would void the guarantee
        target = np.clip(targets / y_max, -1.0, 1.0)
        second += unit.T @ unit
        first += unit.T @ target
        total += float(target @ target)
    return Moments(second, first, total)


@dataclass(frozen=True)
class MomentSums:
    """Noisy sums of the moments of all rows so far, as one vector a step.

    Rows and targets are in units of their bounds.
    """

    mechanism: Any
    x_norm: float
    y_max: float
    n_features: int
    weight: float
    squares: bool = False

    @classmethod
    def planned(
        cls,
        kind: str,
        *,
        multiplier: float,
        problem: Problem,
        terms: StreamTerms,
        n_features: int,
        weight: float,
        squares: bool,
        neighbors: Neighbors,
        noise: str,
    ) -> MomentSums:
        """Return sums with the noise that protects the rows of one person."""
        row = row_norm(weight, squares)
        # [incremental:leaf] each row of a person moves its step by this, round-off of
        # both sums included
        roundoff = step_roundoff(row, most_step_rows(terms.rows_per_step))
        moved = joint_sensitivity(weight, squares, neighbors) + 2 * roundoff
        mechanism = SUMS[kind](
            terms.horizon,
            multiplier,
            terms.rows_per_person * moved,
            noise=noise,
            largest=row * longest_step(terms.rows_per_step),
        )
        x_norm, y_max = problem.bounds.x_norm, problem.largest_target
        sums = cls(mechanism, x_norm, y_max, n_features, weight, squares)
        # rejects noise too large for the grid now, not after the charge
        mechanism.std_at(1, sums.size)
        return sums

    @property
    def size(self) -> int:
        """Numbers in the vector of a step."""
        return packed_size(self.n_features) + self.n_features + self.squares

    def init(self) -> Any:
        return self.mechanism.init((self.size,))

    def step(self, state: Any, X: Array, y: Array, rng: Generator) -> tuple[Any, Array]:
        """Add the rows of a step; return the state and the noisy sums so far."""
        after, released = self.mechanism.step(state, self.leaf(X, y), rng)
        return after, released

    def leaf(self, X: Array, y: Array) -> Array:
        """Return the moments of the rows of one step."""
        sums = row_moments(X, y, self.x_norm, self.y_max)
        parts = [to_vector(sums.second), self.weight * sums.first]
        if self.squares:
            parts.append(np.array([sums.total]))
        return np.concatenate(parts)

    def moments(self, released: Array) -> Moments:
        """Return released sums by their kind."""
        p = self.n_features
        end = packed_size(p)
        total = float(released[-1]) if self.squares else None
        first = released[end : end + p] / self.weight
        return Moments(to_matrix(released[:end]), first, total)

    def stds(self, step: int) -> tuple[float, float]:
        """Return standard errors of a diagonal second moment and of a product."""
        std = float(self.mechanism.std_at(step, self.size))
        return std, std / self.weight


def longest_step(rows_per_step: int) -> int:
    """Return the largest number of rows in a step that are not scaled down."""
    return max(2**16, 64 * rows_per_step)
