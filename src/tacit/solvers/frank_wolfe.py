"""Private Frank-Wolfe: steps to privately chosen vertices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, TypeGuard

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from tacit._execution import steps
from tacit._validate import at_least, if_given, nonnegative, one_of, plain
from tacit.convex import L1Ball, Loss, OneVsRest, Simplex, Softmax
from tacit.convex.objective import MOST_ADDITIONS, chunks, gradient_roundoff
from tacit.data import Rows
from tacit.data.rows import InMemoryRows
from tacit.exceptions import PlanError
from tacit.mechanisms import Exponential, NoisyMax
from tacit.mechanisms.noise import check_noise
from tacit.mechanisms.weighted import WeightedSampler
from tacit.privacy import (
    BoundedRange,
    Budget,
    Event,
    Neighbors,
    PureDP,
    Repeated,
    calibrate,
)
from tacit.solvers._base import Problem, Result, Solver, SolverPlan
from tacit.solvers._gradients.descent import entries_clipped
from tacit.solvers._published import check_accounting, check_saveable, published_epsilon

__all__ = ["FrankWolfe", "FrankWolfePlan"]

Array = NDArray[np.float64]

SELECTIONS: dict[str, Callable[[float], Event]] = {
    "exponential": BoundedRange,
    "laplace": PureDP,
}
# Fraction of a step in the weights after it; the first step is always a full one
SCHEDULES: dict[str, Callable[[int], float]] = {
    "classic": lambda t: 2 / (t + 2),
    "average": lambda t: 1 / (t + 1),
}
MOST_STEPS = 2000
# Part of the largest possible score that makes a feature worth choosing
WORTH = 0.05
# Rows that sums of integers provide for, and the bits of a row's term in them
MOST_SPARSE_ROWS = 2**31
TERM_BITS = 44


@dataclass(frozen=True)
class FrankWolfePlan(SolverPlan):
    """Steps and the privacy of each, fixed without data."""

    clips_derivatives = True

    problem: Problem
    n_steps: int
    step_epsilon: float
    sensitivity: float
    selection: str = "exponential"
    schedule: str = "average"
    staleness: float = 0.0
    noise: str = "grid"

    @property
    def mechanism(self) -> Exponential | NoisyMax:
        """What chooses the vertex of one step."""
        kind = Exponential if self.selection == "exponential" else NoisyMax
        return kind(self.step_epsilon, self.sensitivity, self.noise)

    @property
    def event(self) -> Event:
        return Repeated(SELECTIONS[self.selection](self.step_epsilon), self.n_steps)

    @property
    def quantum(self) -> float:
        """What gradient entries of sparse rows are multiples of."""
        return gradient_quantum(self.problem)

    @property
    def largest_score(self) -> float:
        """Bound on the score of a vertex, for as many rows as are provided for."""
        problem = self.problem
        entry = problem.bounds.x_norm * entry_derivative(problem) + self.quantum
        return problem.most_rows * problem.regularizer.radius * entry

    def fractions(self) -> Array:
        """Return the fraction of each step's vertex in the last weights."""
        sizes = [SCHEDULES[self.schedule](t) for t in range(self.n_steps)]
        kept = np.cumprod([1.0, *(1 - size for size in sizes[:0:-1])])[::-1]
        return np.asarray(sizes * kept, dtype=np.float64)


@dataclass(frozen=True)
class FrankWolfe(Solver[FrankWolfePlan]):
    """Frank-Wolfe in the L1 ball or the simplex, one more nonzero a step at most.

    Parameters
    ----------
    n_steps
        Number of steps; None for the rule, which sees public facts only.
    selection
        ``"exponential"``, or ``"laplace"`` for noisy max as published.
    accounting
        ``"tight"``, or ``"paper"`` for the published noise of ``"laplace"``, rejected
        where it does not keep the budget.
    schedule
        ``"average"`` for weights 1/(t + 1), which averages the vertices and does better
        under noise; ``"classic"`` for 2/(t + 2), which is faster without.
    staleness
        On sparse rows, how far a margin may drift before its derivative is computed
        again; 0 for not at all, None for as far as the noise hides.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Each step is an exponential mechanism of bounded range over the
    vertices, whose scores move by at most ``rows_changed * derivative * x_norm *
    radius`` and what round-off adds; ``n_steps`` of them are composed by their Renyi
    curves [2]_, or purely where delta is zero. The algorithm is that of [1]_ with this
    selection for Laplace noise. On sparse rows a step visits only the rows and features
    that it changes [3]_, with the same scores up to ``staleness``, the same sensitivity
    and the same event.

    References
    ----------
    .. [1] Talwar, Thakurta and Zhang, "Nearly-optimal private LASSO", NeurIPS 2015.
    .. [2] Cesar and Rogers, "Bounding, concentrating, and truncating", ALT 2021.
    .. [3] Raff, Khanna and Lu, "Scaling up differentially private LASSO regularized
       logistic regression via faster Frank-Wolfe iterations", NeurIPS 2023.
    """

    saved = True
    name = "frank_wolfe"
    row_norm = "linf"
    ball = L1Ball
    makes_zeros = True

    n_steps: int | None = None
    selection: str = "exponential"
    accounting: str = "tight"
    schedule: str = "average"
    staleness: float | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        check_accounting(self.accounting)
        one_of(SELECTIONS, selection=self.selection)
        one_of(SCHEDULES, schedule=self.schedule)
        if_given(nonnegative, staleness=self.staleness)
        if_given(at_least, 1, n_steps=self.n_steps)
        if self.accounting == "paper" and self.selection != "laplace":
            raise ValueError(
                "accounting='paper' is about Laplace noise; use selection='laplace'."
            )

    def plan(self, problem: Problem, budget: Budget) -> FrankWolfePlan:
        """Choose the number of steps, then the least noise that fits."""
        _reject(problem)
        n_steps = self.n_steps or step_rule(problem, budget)
        kind = SELECTIONS[self.selection]
        if self.accounting == "paper":
            epsilon = published_epsilon(budget, n_steps)
            check_saveable(Repeated(kind(epsilon), n_steps), budget)
        else:
            epsilon = 1 / calibrate(
                lambda noise: Repeated(kind(1 / noise), n_steps), budget
            )
        if epsilon < 1e-8:
            raise PlanError(
                f"{n_steps} steps leave an epsilon of {epsilon:.3g} to each; take "
                "fewer steps or raise epsilon."
            )
        return FrankWolfePlan(
            problem,
            n_steps,
            epsilon,
            score_sensitivity(problem, n_steps, budget.neighbors),
            self.selection,
            self.schedule,
            staleness_rule(problem, epsilon, budget.neighbors)
            if self.staleness is None
            else self.staleness,
            self.noise,
        )

    def run(self, plan: FrankWolfePlan, rows: Rows, rng: Generator) -> Result:
        """Choose the planned number of vertices and average them."""
        if plan.selection == "exponential" and _is_sparse(rows):
            return Result(_combined(plan, _sparse_pass(plan, rows, rng)))
        return Result(_combined(plan, _iterate(plan, rows, rng)))


def _is_sparse(rows: Rows) -> TypeGuard[InMemoryRows]:
    return isinstance(rows, InMemoryRows) and sparse.issparse(rows.arrays()[0])


def _iterate(plan: FrankWolfePlan, rows: Rows, rng: Generator) -> list[int]:
    """Return the vertices chosen when every step reads all rows."""
    problem = plan.problem
    vertices: Any = problem.regularizer
    derivative = entry_derivative(problem)
    choices: list[int] = []
    W = np.zeros(problem.shape)
    for t in steps(plan.n_steps, "FrankWolfe"):
        total = rows.sum(BoundedGradient(problem.loss, W, derivative))[0]
        choices.append(plan.mechanism(vertices.vertex_scores(total), rng))
        size = SCHEDULES[plan.schedule](t)
        W = (1 - size) * W
        entry, weight = _vertex(plan, choices[-1])
        W.flat[entry] += size * weight
    return choices


def _sparse_pass(plan: FrankWolfePlan, rows: InMemoryRows, rng: Generator) -> list[int]:
    """Return the vertices chosen when a step visits what it changes."""
    from tacit.solvers._sparse_frank_wolfe import (  # noqa: PLC0415 - numba
        SparseGradient,
    )

    problem = plan.problem
    vertices: Any = problem.regularizer
    sizes = [SCHEDULES[plan.schedule](t) for t in range(plan.n_steps)]
    X, y = rows.arrays()
    gradient = SparseGradient(
        X,
        y,
        loss=problem.loss,
        derivative=entry_derivative(problem),
        quantum=plan.quantum,
        # before the first step, a full one, there is nothing to shrink
        scales=np.cumprod(np.array([1.0, *(1 - size for size in sizes[1:])])),
        staleness=plan.staleness,
    )
    radius = problem.regularizer.radius
    sampler = WeightedSampler(
        plan.step_epsilon,
        plan.sensitivity,
        plan.largest_score,
        -radius * gradient.entries(),
        both_signs=isinstance(vertices, L1Ball),
    )
    choices: list[int] = []
    for t in steps(plan.n_steps, "FrankWolfe"):
        choices.append(sampler(rng, lambda: vertices.vertex_scores(gradient.entries())))
        if t + 1 < plan.n_steps:
            entry, weight = _vertex(plan, choices[-1])
            changed = gradient.move(t, entry, sizes[t] * weight)
            sampler.update(changed, -radius * gradient.entries(changed))
    return choices


def _vertex(plan: FrankWolfePlan, index: int) -> tuple[int, float]:
    """Return the one nonzero entry of a vertex, and its value."""
    negative, entry = divmod(index, plan.problem.size)
    radius = plan.problem.regularizer.radius
    return entry, -radius if negative else radius


def _combined(plan: FrankWolfePlan, choices: list[int]) -> Array:
    """Return the weights that the steps lead to, inside the set."""
    W = np.zeros(plan.problem.shape)
    for fraction, index in zip(plan.fractions(), choices, strict=True):
        entry, weight = _vertex(plan, index)
        W.flat[entry] += fraction * weight
    # the fractions, products and sums round by a few units a step
    return W * (1 - 2.0**-50 * (plan.n_steps + 4))


@dataclass(frozen=True, eq=False)
class BoundedGradient:
    """Sum over a block of gradients with derivatives clipped at ``derivative``."""

    loss: Loss
    W: Array
    derivative: float

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        total = np.zeros(self.W.shape)
        for part, targets in chunks(X, y):
            derivative = self.loss.derivative(targets, part @ self.W)
            total += part.T @ entries_clipped(derivative, self.derivative)
        return (total,)


def entry_derivative(problem: Problem) -> float:
    """Return the largest absolute derivative in one margin, at weights in the set."""
    if isinstance(problem.loss, Softmax):
        return 1.0  # a probability, or one less
    reach = problem.bounds.x_norm * problem.regularizer.radius * (1 + 1e-9)
    # of several classes each has a margin of its own
    loss = problem.loss.loss if isinstance(problem.loss, OneVsRest) else problem.loss
    return loss.max_derivative(reach, problem.bounds.y_range)


def gradient_quantum(problem: Problem) -> float:
    """Return a quantum of which the term of a row has at most 2**44.

    It does not depend on the number of rows, whose sums are kept in two parts.
    """
    return problem.bounds.x_norm * entry_derivative(problem) * 2.0**-TERM_BITS


def score_sensitivity(problem: Problem, n_steps: int, neighbors: Neighbors) -> float:
    """Return how far neighbors can move the computed score of a vertex."""
    x_norm, radius = problem.bounds.x_norm, problem.regularizer.radius
    derivative = entry_derivative(problem)
    roundoff = gradient_roundoff(
        n_rows=problem.most_rows,
        shape=problem.shape,
        additions=MOST_ADDITIONS,
        x_norm=x_norm,  # of entries, and so is all below: Hoelder for Cauchy-Schwarz
        derivative=derivative,
        curvature=problem.loss.max_curvature(),
        w_norm=radius,
        products=min(problem.n_features, n_steps),  # no more weights are nonzero
    )
    # sparse rows: each term is rounded to an integer of quanta
    roundoff += problem.most_rows * gradient_quantum(problem)
    # [frank-wolfe:sensitivity] the rows changed, and the round-off of both sums
    moved = neighbors.rows_changed * derivative * x_norm + 2 * roundoff
    return moved * radius * (1 + 1e-12)


def step_rule(problem: Problem, budget: Budget) -> int:
    """Return the number of steps that balances distance from the minimum and noise.

    The constants were fitted on synthetic problems only.
    """
    radius, x_norm = problem.regularizer.radius, problem.bounds.x_norm
    derivative = entry_derivative(problem)
    # what is left to gain after t steps is about this over t
    curved = problem.n_rows * problem.loss.max_curvature() * (x_norm * radius) ** 2
    # and a single choice is off by about this
    score = budget.neighbors.rows_changed * derivative * x_norm * radius
    off = score * log(2 * problem.size) / budget.epsilon
    if budget.delta == 0:  # t choices are t times worse
        wanted = (curved / off) ** (1 / 2)
    else:  # t choices are sqrt(t) times worse
        wanted = (curved / (off * root_spread(budget) / sqrt(8))) ** (2 / 3)
    # vertices chosen at random average out, to margins of about radius / sqrt(t)
    low_noise = min((x_norm * radius) ** 2, 500)
    steps = max(0.5 * wanted, low_noise, 4)
    return int(min(max(1, min(steps, seen_steps(problem, budget))), MOST_STEPS))


def seen_steps(problem: Problem, budget: Budget) -> float:
    """Return for how many steps a feature worth choosing stands out from the noise.

    Worth choosing is one that moves its score by `WORTH` of what all rows together
    could, which must be more than chance gives to the best of all vertices.
    """
    least = 2 * budget.neighbors.rows_changed * log(2 * problem.size)
    least /= WORTH * problem.n_rows
    if budget.delta == 0:
        return budget.epsilon / least
    squares = 8 * (budget.epsilon / root_spread(budget) / least) ** 2
    # epsilons add, or their squares do: whichever allows more
    return max(budget.epsilon / least, squares)


def root_spread(budget: Budget) -> float:
    """Return epsilon over the root of the zero-concentrated parameter it allows."""
    bits = log(1 / budget.delta)
    return sqrt(bits + budget.epsilon) + sqrt(bits)


def staleness_rule(problem: Problem, epsilon: float, neighbors: Neighbors) -> float:
    """Return how far margins may drift before it shows beside the noise of a choice.

    Derivatives of all rows together are then off by no more than the scale of that
    noise.
    """
    noise = 2 * neighbors.rows_changed * entry_derivative(problem) / epsilon
    return min(max(noise / (problem.loss.max_curvature() * problem.n_rows), 0.01), 0.2)


def _reject(problem: Problem) -> None:
    if not isinstance(problem.regularizer, L1Ball | Simplex):
        raise PlanError(
            "FrankWolfe keeps the weights in L1Ball(radius) or Simplex(), got "
            f"{problem.regularizer!r}; give one of them, or use NoisyGD or AMP with "
            "a ridge."
        )
    if problem.bounds.norm != "linf":
        raise PlanError(
            "FrankWolfe needs rows bounded in the largest entry, got "
            f"{problem.bounds.norm!r}; pass bound_norm='linf'."
        )
    if problem.ridge > 0:
        raise PlanError(
            "FrankWolfe takes no ridge, as the set keeps the weights small; set "
            "ridge=0, or use NoisyGD."
        )
    if problem.n_rows > MOST_SPARSE_ROWS:
        raise PlanError(
            f"FrankWolfe provides for up to 2**31 rows, got {problem.n_rows}; plan for "
            "fewer."
        )
    problem.require_smooth("FrankWolfe", "HuberizedHinge() or Huber()")
