"""One pass of implicit steps over rows in random order, then noise on an average."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from tacit._validate import if_given, one_of, plain, positive
from tacit.convex import L2Ball, Softmax
from tacit.convex._protocols import is_set
from tacit.convex.objective import UNIT
from tacit.data.rows import Rows, arrays_of
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise
from tacit.mechanisms.subsets import permutation, random_blocks
from tacit.privacy import Budget, Neighbors, calibrate
from tacit.solvers._base import Problem, Result, Solver
from tacit.solvers._gradients.row_pass import ROW_PASS_SETS, RowPass
from tacit.solvers._minimizers.noise_distributions import (
    PlannedNoise,
    choose_distribution,
)
from tacit.solvers._minimizers.ridge_rules import ridge_for_weights

__all__ = ["OnlineToBatch", "OnlineToBatchPlan"]

Array = NDArray[np.float64]

AVERAGES = ("weighted", "uniform", "last")
# Norm of the best weights that the strength is set for, in units of one over the row
# norm; as for output perturbation
USUAL_MARGIN = 10.0
# Leaves run at once, and entries of them in memory
MOST_LEAVES, MOST_ENTRIES = 2**12, 2**21
# Factors that are rounded once a leaf, for as many leaves as there can be
DRIFT = 1 + 1e-7


@dataclass(frozen=True)
class OnlineToBatchPlan(PlannedNoise):
    """Strength of the ridge, the average, and its noise, fixed without data.

    ``strength`` is the strong convexity of each row's part. There are as many leaves
    as rows were planned for; ``evenly`` states whether rows are dealt out to them in
    turn, which shows their number, or each by a draw of its own.
    """

    problem: Problem
    average: str
    strength: float
    multiplier: float
    sensitivity: float
    evenly: bool
    noise: str = "grid"
    law: str = "gaussian"

    @cached_property
    def row_pass(self) -> RowPass:
        """What makes the steps."""
        reach = self.problem.lipschitz / self.strength
        return RowPass(self.problem, True, reach)

    def fractions(self) -> Array:
        """Return what part of the average each iterate is, the first one included."""
        return averaging(self.average, self.problem.n_rows + 1)


def averaging(average: str, n_iterates: int) -> Array:
    """Return the weight of each of this many iterates, which sum to one."""
    if average == "last":
        return np.append(np.zeros(n_iterates - 1), 1.0)
    if average == "uniform":
        return np.full(n_iterates, 1 / n_iterates)
    positions = np.arange(1, n_iterates + 1, dtype=np.float64)
    # [batch:weights]
    return positions * (2 / (n_iterates * (n_iterates + 1.0)))


def average_sensitivity(plan: OnlineToBatchPlan, moved: float) -> float:
    """Return how far rows that move the gradient by ``moved`` bring the average."""
    row_pass, problem = plan.row_pass, plan.problem
    n_iterates, most_rows = problem.n_rows + 1, problem.most_rows
    positions = np.arange(1, n_iterates + 1, dtype=np.float64)
    # [batch:influence] the first iterate is public, later ones move by 1 over index
    influence = float((plan.fractions()[1:] / positions[1:]).sum()) / plan.strength
    gradients = moved + 2 * most_rows * row_pass.derivative_roundoff
    # [batch:roundoff] of the iterates, and of adding them up
    kept = most_rows * row_pass.row_roundoff + n_iterates * row_pass.leaf_roundoff
    additions = MOST_LEAVES + n_iterates / _block(plan) + 16
    kept += 1.01 * additions * UNIT * row_pass.radius
    return DRIFT * gradients * influence + 2 * kept


@dataclass(frozen=True)
class OnlineToBatch(Solver[OnlineToBatchPlan]):
    """Online-to-batch conversion: one implicit step a row, noise on their average.

    Parameters
    ----------
    average
        ``"weighted"`` counts iterate t in proportion to t, ``"uniform"`` all alike,
        and ``"last"`` takes the last one.
    strong_convexity
        Factor of half the squared weights that is added to each row's loss; None for
        the rule, which sees public facts only. The noise is proportional to one over
        it.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** That of one release, Gaussian, or Laplace for a budget with delta
    zero. With ``T - 1`` rows and T iterates, the replacement of a row moves iterate t
    by at most ``2 L / (strong_convexity * t)``, hence their average by
    ``4 L (T - 1) / (strong_convexity T (T + 1))`` if weighted, by ``2 L (H_T - 1) /
    (strong_convexity T)`` if uniform, and by ``2 L / (strong_convexity T)`` if last.
    Where a row is added or removed, each has a leaf of its own draw among as many as
    rows were planned for, so that the others stay where they are: half of that.

    The published algorithm [1]_, Algorithm 5.4, lacks ``1 / strong_convexity`` in its
    noise and is not private. Nothing is claimed for the random order.

    References
    ----------
    .. [1] A. Thakurta, PhD thesis, Pennsylvania State University, 2013, Section 5.8.
    """

    saved = True
    name = "online_to_batch"
    reads = "rows"
    ball = L2Ball

    average: str = "weighted"
    strong_convexity: float | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        one_of(AVERAGES, average=self.average)
        if_given(positive, strong_convexity=self.strong_convexity)

    def plan(self, problem: Problem, budget: Budget) -> OnlineToBatchPlan:
        """Choose the strength, then the least noise that fits."""
        moved = problem.sensitivity(budget.neighbors)
        check_problem(problem)
        distribution = choose_distribution(None, budget, problem.size, self.noise)
        multiplier = calibrate(distribution.event, budget)
        strength = self.strong_convexity
        if strength is None:
            std = distribution.std(multiplier)
            strength = usual_strength(problem, budget, self.average, std)
        strength = max(strength, problem.ridge / problem.n_rows)
        evenly = budget.neighbors is Neighbors.REPLACE_ONE

        def planned(sensitivity: float) -> OnlineToBatchPlan:
            return OnlineToBatchPlan(
                problem,
                self.average,
                strength,
                multiplier,
                sensitivity,
                evenly,
                self.noise,
                distribution.name,
            )

        # [batch:sensitivity]
        plan = planned(average_sensitivity(planned(1.0), moved))
        _ = plan.row_pass.kernel  # a loss that it does not know is rejected now
        # noise too large for the grid is rejected here, not after the charge
        plan.scale()
        return plan

    def run(self, plan: OnlineToBatchPlan, rows: Rows, rng: Generator) -> Result:
        """Deal out the rows, make the pass, add the noise, move back into the set."""
        X, y = arrays_of(rows, "OnlineToBatch")
        order, ends = dealt(plan, X.shape[0], rng)
        noisy = plan.mechanism(averaged_iterates(plan, X, y, order, ends), rng)
        regularizer = plan.problem.regularizer
        return Result(regularizer.prox(noisy, 1.0) if is_set(regularizer) else noisy)


def check_problem(problem: Problem) -> None:
    """Reject what the proof does not cover, naming what can do it."""
    problem.check_penalty("OnlineToBatch", "NoisySGD or NoisyGD", *ROW_PASS_SETS)
    problem.require_smooth("OnlineToBatch")
    if isinstance(problem.loss, Softmax):
        raise PlanError(
            "OnlineToBatch needs a loss of one margin, or of one for each class as "
            f"OneVsRest() has it, got {problem.loss!r}; use NoisyGD or AMP."
        )


def usual_strength(problem: Problem, budget: Budget, average: str, std: float) -> float:
    """Return the strength with the least bound on the expected risk.

    The bias is half of it times the squared norm of the weights worth finding. The
    noise, in units of that of output perturbation with the same ridge, is what the
    sensitivity of the average is in units of that of the minimum.
    """
    n_iterates = problem.n_rows + 1
    positions = np.arange(1, n_iterates + 1, dtype=np.float64)
    moves = (averaging(average, n_iterates)[1:] / positions[1:]).sum() * problem.n_rows
    norm = min(USUAL_MARGIN / problem.bounds.x_norm, problem.regularizer.radius)
    noise = float(moves) * std
    ridge = ridge_for_weights(problem, budget.neighbors, norm, noise)
    return ridge / problem.n_rows


def dealt(
    plan: OnlineToBatchPlan, n_rows: int, rng: Generator
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the order of the rows, and the end index of each leaf.

    In turn, a leaf has one row where there are as many as planned. By draws of their
    own, a row more leaves all others in their leaves.
    """
    n_leaves = plan.problem.n_rows
    if plan.evenly:
        ends = np.arange(1, n_leaves + 1, dtype=np.int64) * n_rows // n_leaves
        return permutation(n_rows, rng), ends
    # [batch:leaves]
    leaves = random_blocks(n_rows, n_leaves, rng)
    order = np.argsort(leaves, kind="stable")
    ends = np.searchsorted(leaves[order], np.arange(n_leaves), side="right")
    return order, ends.astype(np.int64)


def _block(plan: OnlineToBatchPlan) -> int:
    """Return how many leaves are processed at once."""
    return max(1, min(MOST_LEAVES, MOST_ENTRIES // plan.problem.size))


def averaged_iterates(
    plan: OnlineToBatchPlan,
    X: Any,
    y: NDArray[Any],
    order: NDArray[np.intp],
    ends: NDArray[np.int64],
) -> Array:
    """Return the average of the iterates of one pass, without noise."""
    row_pass, fractions, block = plan.row_pass, plan.fractions(), _block(plan)
    V = row_pass.start()
    total, low = fractions[0] * V, 0
    for first in range(0, len(ends), block):
        part = ends[first : first + block]
        t = np.arange(first + 1, first + 1 + len(part), dtype=np.float64)
        positions = order[low : part[-1]]
        rows = X[positions].toarray() if sparse.issparse(X) else X[positions]
        steps = 1 / (plan.strength * (t + 1))
        factors = (t / (t + 1), steps, np.ones_like(t))
        out = row_pass.leaves(V, rows, y[positions], part - low, *factors)
        total = total + np.tensordot(fractions[t.astype(np.intp)], out, axes=1)
        V, low = out[-1], int(part[-1])
    average: Array = total.T.copy()
    return average
