"""The problem, the plan and the base class of solvers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._execution import attempt
from tacit._release import rows_note
from tacit._validate import at_least, nonnegative, plain
from tacit.convex import Box, Free, Loss
from tacit.convex._protocols import ConvexSet, Regularizer
from tacit.convex.foreign import (
    ForeignPenalty,
    given_loss,
    guarded,
    guarded_penalty,
    is_foreign,
    is_outside,
)
from tacit.convex.objective import MOST_ADDITIONS, moment_roundoff
from tacit.data import RowBounds, Rows
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import noise_assumptions
from tacit.privacy import Budget, Event, Neighbors

__all__ = [
    "INTERCEPT_FRACTION",
    "MinimumNoise",
    "Plan",
    "Problem",
    "Result",
    "Solver",
    "SolverPlan",
    "WeightNoise",
    "loss_assumptions",
    "penalty_assumptions",
    "plan_assumptions",
    "require_delta",
    "result_of",
    "row_limit",
    "solver_fact",
]

# Distributions of weights that noise may have
DISTRIBUTIONS = ("gaussian", "laplace", "gamma")
# Value of the constant feature, in units of the row norm
INTERCEPT_FRACTION = 0.25
# Bounds on round-off hold up to this many rows, whatever number was planned for
MOST_ROWS = 2**24
# and up to weights of this many over the row norm, far beyond any useful model
LARGEST_MARGIN = 200.0


@dataclass(frozen=True)
class Problem:
    """Public description of an empirical risk minimization problem.

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
        row, a guess when they add or remove one. Only accuracy depends on it, except
        where the plan says otherwise in its assumptions.
    n_features
        Columns, constant feature included.
    ridge
        Least ridge penalty; solvers may need more.
    regularizer
        Any other convex penalty, or the set the weights must be in.
    constant
        Value of the last feature where it is the same in every row, or None. It gives
        noisy second moments the mean of the other features; no plan depends on it.
    guessed_rows
        Whether there may be more rows than ``n_rows``, although neighbors replace one.
        Bounds on round-off then hold up to ``most_rows``.
    """

    loss: Loss
    bounds: RowBounds
    n_rows: int
    n_features: int
    ridge: float = 0.0
    regularizer: Regularizer = field(default_factory=Free)
    constant: float | None = None
    # not shown: durable folders know their plan by how it prints
    guessed_rows: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, n_rows=self.n_rows, n_features=self.n_features)
        nonnegative(ridge=self.ridge)
        # what a loss of others returns has one form from here on
        object.__setattr__(self, "loss", guarded(self.loss, self.bounds.y_range))
        # and the penalty keeps nothing
        object.__setattr__(self, "regularizer", guarded_penalty(self.regularizer))
        if isinstance(self.regularizer, Box):
            self._fit_box(self.regularizer)
        reach = self.regularizer.radius * self.bounds.x_norm
        if isfinite(self.regularizer.radius) and not reach <= 1e100:
            raise PlanError(
                f"{self.regularizer!r} reaches margins above 1e100; give a smaller set."
            )

    def _fit_box(self, box: Box) -> None:
        """Set the size of the box, which its radius and the derivative bound need."""
        if box.size is None:
            object.__setattr__(self, "regularizer", replace(box, size=self.size))
        elif box.size != self.size:
            raise PlanError(
                f"{box!r} does not fit {self.size} weights; give size={self.size}."
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
    def max_derivative(self) -> float:
        """Largest norm of a row's derivative, at any weights that are allowed."""
        if self.bounds.norm != "l2":
            return self.loss.max_derivative(inf, self.bounds.y_range)
        # outside the set the loss may continue linearly: nothing changes inside
        reach = self.bounds.x_norm * self.regularizer.radius
        return self.loss.max_derivative(reach, self.bounds.y_range)

    @property
    def lipschitz(self) -> float:
        """Largest norm of the gradient of one row's loss, at weights allowed."""
        return self.max_derivative * self.bounds.x_norm

    @property
    def smoothness(self) -> float:
        """Largest eigenvalue of the Hessian of one row's loss."""
        return self.loss.max_curvature() * self.bounds.x_norm**2

    @property
    def largest_target(self) -> float:
        """Largest absolute target."""
        return max(abs(end) for end in self.bounds.y_range)

    @property
    def n_columns(self) -> int:
        """Number of features besides the constant."""
        return self.n_features - (self.constant is not None)

    def sensitivity(self, neighbors: Neighbors) -> float:
        """How far neighbors can move the gradient of the sum, in L2."""
        self.require_l2_rows("Noise on gradients")
        self.require_bounded_derivative(
            "Noise on gradients",
            self.max_derivative,
            "use Huber(), or give a set such as L2Ball()",
        )
        return neighbors.rows_changed * self.lipschitz

    def check_penalty(self, solver: str, instead: str, *sets: type) -> None:
        """Reject any penalty but the ridge, and any set but those given."""
        if not isinstance(self.regularizer, (Free, *sets)):
            taken = " and ".join(("a ridge", *(f"{kind.__name__}()" for kind in sets)))
            raise PlanError(
                f"{solver} takes no penalty but {taken}, got {self.regularizer!r}; use "
                f"{instead}."
            )

    def require_l2_rows(self, solver: str) -> None:
        """Reject rows that are bounded entry by entry."""
        if self.bounds.norm != "l2":
            raise PlanError(
                f"{solver} needs rows bounded in L2 norm, got {self.bounds.norm!r}; "
                "pass bound_norm='l2', or use FrankWolfe()."
            )

    def require_smooth(self, solver: str, instead: str = "HuberizedHinge()") -> None:
        """Reject losses without a bound on their curvature."""
        if not isfinite(self.loss.max_curvature()):
            raise PlanError(
                f"{solver} needs a smooth loss, got {self.loss!r}; use "
                f"{instead}, or another loss that is smooth."
            )

    def require_bounded_derivative(
        self, solver: str, derivative: float, instead: str
    ) -> None:
        """Reject a loss whose derivative is unbounded."""
        if not isfinite(derivative):
            raise PlanError(
                f"{solver} needs bounded gradients, and the loss {self.loss!r} has no "
                f"gradient bound; {instead}."
            )

    @property
    def most_rows(self) -> int:
        """Number of rows up to which bounds on round-off hold."""
        return max(self.n_rows, MOST_ROWS)

    def moment_roundoff(self, row: float) -> float:
        """Bound on the error of computed second moments, in Frobenius norm.

        ``row`` bounds the norm of the matrix of absolute terms of one row.
        """
        return moment_roundoff(self.most_rows, MOST_ADDITIONS, row)


class Plan(Protocol):
    """Noise levels and step counts, fixed without data.

    ``assumptions`` are what the guarantee rests on besides the bounds, and what it
    makes of the number of rows, as strings for the report.
    """

    @property
    def event(self) -> Event: ...
    @property
    def assumptions(self) -> tuple[str, ...]: ...


def require_delta(budget: Budget, solver: str, instead: str) -> None:
    """Reject a budget without delta, and name solvers that need no delta."""
    if budget.delta == 0:
        raise PlanError(f"{solver} needs delta > 0; give a delta, or use {instead}.")


def loss_assumptions(problem: Problem, *, clipped: bool = False) -> tuple[str, ...]:
    """Return what a guarantee takes from a loss of a class outside of this library.

    Where every derivative is ``clipped`` to what the loss states, only round-off rests
    on its other bounds.
    """
    if not is_foreign(problem.loss):
        return ()
    loss, name = problem.loss, type(given_loss(problem.loss)).__name__
    curved, trace, rank = loss.max_curvature(), loss.max_trace(), loss.derivative_rank()
    convex, bounds = "", [f"a curvature of at most {curved:.4g}"]
    if not clipped:
        convex = "is convex and "
        steep = problem.max_derivative
        bounds.insert(0, f"a derivative of at most {steep:.4g} in size")
        if (trace, rank) != (curved, 1):
            bounds.append(f"a Hessian of trace at most {trace:.4g} and rank {rank}")
    return (
        f"the loss {name} {convex}computes each row by itself, with "
        f"{' and '.join(bounds)}, as it states",
    )


def penalty_assumptions(problem: Problem) -> tuple[str, ...]:
    """Return what the minimum of an objective takes from a penalty of others."""
    if not isinstance(problem.regularizer, ForeignPenalty):
        return ()
    name = type(problem.regularizer.given).__name__
    return (
        f"the penalty {name} is convex and raises no error, with the radius, the "
        "proximal map and the bound on its rounding that it states",
    )


def row_limit(problem: Problem) -> tuple[str, ...]:
    """Return up to how many rows what round-off adds to a sensitivity holds."""
    most = problem.most_rows
    shown = most if most > MOST_ROWS else f"2^{MOST_ROWS.bit_length() - 1}"
    return (f"there are at most {shown} rows",)


def plan_assumptions(
    problem: Problem, noise: str, *, rounded: bool = True, clipped: bool = False
) -> tuple[str, ...]:
    """Return the assumptions of a plan, whatever number of rows it was made for.

    Where sums are ``rounded``, what round-off adds to a sensitivity holds up to so many
    rows. ``clipped`` is as in `loss_assumptions`.
    """
    limited = row_limit(problem) if rounded else ()
    stated = loss_assumptions(problem, clipped=clipped)
    if not clipped:  # noisy sums of clipped gradients are public before any penalty
        stated += penalty_assumptions(problem)
    note = rows_note(problem.n_rows)
    return (note, *limited, *stated, *noise_assumptions(noise))


class SolverPlan:
    """Base class of plans: frozen dataclasses of plain numbers.

    Attributes
    ----------
    clips_derivatives
        Whether each row's derivative is clipped to what the sensitivity counts on, so
        that a wrong ``max_derivative`` of a loss costs accuracy only.
    """

    clips_derivatives: ClassVar[bool] = False
    problem: Problem
    noise: str

    def __post_init__(self) -> None:
        plain(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return plan_assumptions(
            self.problem, self.noise, clipped=self.clips_derivatives
        )


@dataclass(frozen=True)
class MinimumNoise:
    """Gaussian noise around the minimum of a loss with a ridge, which intervals need.

    Parameters
    ----------
    ridge
        Ridge of the objective.
    gradient
        Standard deviation of the tilt, which is noise on the gradient there.
    weights
        Standard deviation of what is added to the weights.
    """

    ridge: float
    gradient: float
    weights: float


@dataclass(frozen=True, eq=False)
class WeightNoise:
    """Noise in the released weights, from what is released anyway.

    Parameters
    ----------
    std
        Standard deviation of each weight, of the shape of the weights.
    how
        Where the number comes from, and how good it is.
    law
        Distribution of each weight: ``"gaussian"``, ``"laplace"`` or ``"gamma"``.
    response
        Released matrix whose inverse turns a pull on the gradient into a move of the
        weights, where the solver has one.
    pull
        Covariance of the noise that pulls on the gradient, with ``response``.
    """

    std: NDArray[np.float64]
    how: str
    law: str = "gaussian"
    response: NDArray[np.float64] | None = None
    pull: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Result:
    """Released coefficients, and what else a solver released or knows with them.

    Parameters
    ----------
    coefficients
        Coefficients of shape ``(n_features, n_outputs)``.
    noise
        How far noise moves them, where the solver knows.
    path
        What each update released, where the solver keeps it.
    """

    coefficients: NDArray[np.float64]
    noise: WeightNoise | None = None
    path: Any = None


P = TypeVar("P", bound=Plan)


class Solver(Generic[P]):
    """Private algorithm: ``plan`` never sees a row, ``run`` never sees a budget.

    Any object with these two methods is a solver. A subclass declares what estimators
    need to know of it; an object of another class has the values below.

    Attributes
    ----------
    name
        What ``solver=`` and the command line call it; None for a class without a name.
    reads
        What ``run`` needs of the rows: ``"blocks"``, which may be on disk; ``"rows"``,
        in memory, in an order of its own; or ``"columns"``, copied into memory, with a
        clip for each, so that the loss is left as it is.
    row_norm
        Norm in which ``bound_norm="auto"`` bounds its rows: ``"l2"`` or ``"linf"``.
    ball
        Set that the coefficients need where nothing else bounds them, or None.
    brings_set
        Whether it sets such a ball itself.
    clips
        Whether it takes ``clip``, and needs one where the loss has no bound.
    makes_zeros
        Whether it leaves features out, as the sparse models need.
    rows_are_bounded
        Whether its guarantee needs ``expected_rows`` to be at least the number of rows.
    has_risk_formula
        Whether its plans have ``expected_risk``.
    """

    name: ClassVar[str | None] = None
    reads: ClassVar[str] = "blocks"
    row_norm: ClassVar[str] = "l2"
    ball: ClassVar[type[ConvexSet] | None] = None
    brings_set: ClassVar[bool] = False
    clips: ClassVar[bool] = False
    makes_zeros: ClassVar[bool] = False
    rows_are_bounded: ClassVar[bool] = False
    has_risk_formula: ClassVar[bool] = False

    def plan(self, problem: Problem, budget: Budget) -> P:
        """Return noise levels and steps, from public facts only."""
        raise NotImplementedError

    def run(self, plan: P, rows: Rows, rng: Generator) -> Result:
        """Return the released coefficients; all noise is the plan's."""
        raise NotImplementedError


def solver_fact(solver: Any, fact: str) -> Any:
    """Return what the class of a solver declares, or what holds for other objects."""
    return getattr(solver, fact, getattr(Solver, fact))


def result_of(
    solver: Any, plan: Any, rows: Rows, rng: Generator, shape: tuple[int, int]
) -> Result:
    """Return what a solver releases, or reject a result of another form."""
    found = solver.run(plan, rows, rng)
    if not isinstance(found, Result):
        raise TypeError(
            f"run of {type(solver).__name__} must return a tacit.solvers.Result, got "
            f"{type(found).__name__}; return Result(coefficients)."
        )
    return _of_shape(found, solver, shape) if is_outside(solver) else found


def _of_shape(found: Result, solver: Any, shape: tuple[int, int]) -> Result:
    """Return a result of a solver of others in floats, or reject another form."""
    size = shape[0] * shape[1]

    def checked() -> Result:
        W = _finite(found.coefficients, shape)
        noise = found.noise
        if noise is None:
            return replace(found, coefficients=W)
        if type(noise) is not WeightNoise or noise.law not in DISTRIBUTIONS:
            raise ValueError
        std = _finite(noise.std, shape)
        if (std < 0).any() or not isinstance(noise.how, str):
            raise ValueError
        response, pull = (
            None if matrix is None else _finite(matrix, (size, size))
            for matrix in (noise.response, noise.pull)
        )
        kept = WeightNoise(std, str(noise.how), str(noise.law), response, pull)
        return replace(found, coefficients=W, noise=kept)

    kept: Result | None = attempt(checked)
    if kept is None:
        # [solvers:result] the same words whatever was returned
        raise ValueError(
            f"run of {type(solver).__name__} must return a Result with finite numbers "
            f"of shape {shape}; return Result(coefficients) of that shape."
        )
    return kept


def _finite(values: Any, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return numbers as floats, or fail where they are complex, or others in form."""
    found = np.array(values, subok=False)
    if found.dtype.kind not in "biufO" or found.shape != shape:
        raise ValueError
    floats = found.astype(np.float64)
    if not np.isfinite(floats).all():
        raise ValueError
    return floats
