"""What a solver is asked, and what it promises."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite
from numbers import Real
from typing import Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import at_least
from tacit.convex import Free, Loss, Regularizer
from tacit.data import RowBounds, Rows
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Event, Neighbors

__all__ = ["Plan", "Problem", "Solver", "noise_assumptions"]

# Bounds on round-off hold up to this many rows, whatever number was planned for
MOST_ROWS = 2**24
# and up to weights of this many over the row norm, far beyond any useful model
LARGEST_MARGIN = 200.0


@dataclass(frozen=True)
class Problem:
    """Everything public about one empirical risk minimization.

    The objective is ``sum_i loss(y_i, x_i W) + ridge/2 |W|^2 + regularizer(W)``, in sum
    units, so that the number of rows does not enter it.

    Parameters
    ----------
    loss
        Convex function of the margins.
    bounds
        Bounds every row obeys, constant feature included.
    n_rows
        Number of rows to plan for. Public: the true number when neighbors replace a
        row, a guess when they add or remove one. Only accuracy depends on it.
    n_features
        Columns, constant feature included.
    ridge
        Least ridge penalty; solvers may need more.
    regularizer
        Any other convex penalty, or the set the weights must be in.
    """

    loss: Loss
    bounds: RowBounds
    n_rows: int
    n_features: int
    ridge: float = 0.0
    regularizer: Regularizer = field(default_factory=Free)

    def __post_init__(self) -> None:
        at_least(1, n_rows=self.n_rows, n_features=self.n_features)
        number = isinstance(self.ridge, Real) and not isinstance(self.ridge, bool)
        if not (number and isfinite(self.ridge) and self.ridge >= 0):
            raise ValueError(f"ridge must be a finite number >= 0, got {self.ridge!r}.")
        size = getattr(self.regularizer, "size", None)
        if size not in (None, self.size):
            # its radius would be another one, and with it the bound on slopes
            raise PlanError(
                f"{self.regularizer!r} is not for {self.size} weights; give "
                f"size={self.size}."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the weights."""
        return self.n_features, self.loss.n_outputs

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.n_features * self.loss.n_outputs

    @property
    def slope(self) -> float:
        """Largest norm of a row's slope, at any weights that are allowed."""
        if self.bounds.norm != "l2":
            return self.loss.max_slope(inf, self.bounds.y_range)
        # outside the set the loss may go on in a straight line: nothing changes inside
        reach = self.bounds.x_norm * self.regularizer.radius
        return self.loss.max_slope(reach, self.bounds.y_range)

    @property
    def lipschitz(self) -> float:
        """Largest norm of the gradient of one row's loss, at weights allowed."""
        return self.slope * self.bounds.x_norm

    @property
    def smoothness(self) -> float:
        """Largest eigenvalue of the Hessian of one row's loss."""
        return self.loss.max_curvature() * self.bounds.x_norm**2

    def sensitivity(self, neighbors: Neighbors) -> float:
        """How far neighbors can move the gradient of the sum, in L2."""
        if self.bounds.norm != "l2":
            raise PlanError("Gradient noise needs rows bounded in norm='l2'.")
        if not isfinite(self.lipschitz):
            raise PlanError(
                f"{self.loss!r} has no bounded slope; use a loss that has, such as "
                "Huber(), or keep the weights in a set, such as L2Ball()."
            )
        return neighbors.rows_changed * self.lipschitz

    def refuse_regularizer(self, solver: str, instead: str) -> None:
        """Refuse any penalty but the ridge, naming the solvers that take one."""
        if not isinstance(self.regularizer, Free):
            raise PlanError(
                f"{solver} takes no penalty but a ridge, got {self.regularizer!r}; use "
                f"{instead}."
            )

    @property
    def most_rows(self) -> int:
        """Number of rows up to which bounds on round-off hold."""
        return max(self.n_rows, MOST_ROWS)


class Plan(Protocol):
    """Noise levels and step counts, fixed without data.

    ``assumptions`` are what the guarantee rests on besides the bounds, in words for the
    report.
    """

    @property
    def event(self) -> Event: ...
    @property
    def assumptions(self) -> tuple[str, ...]: ...


def noise_assumptions(noise: str) -> tuple[str, ...]:
    """Return what noise of this kind makes the guarantee assume."""
    if noise == "grid":
        return ()
    return ("noise has no last digits: it was drawn in floating point, for research",)


P = TypeVar("P", bound=Plan)


class Solver(Protocol[P]):
    """One private algorithm: ``plan`` never sees a row, ``run`` never sees a budget."""

    def plan(self, problem: Problem, budget: Budget) -> P: ...
    def run(self, plan: P, rows: Rows, rng: Generator) -> NDArray[np.float64]: ...
