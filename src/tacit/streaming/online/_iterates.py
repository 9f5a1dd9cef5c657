"""Online learners whose iterates have a sensitivity that falls with the step.

``iterates`` makes each for a problem; then it takes the rows of one step after another.
They draw no noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._state import kept
from tacit._validate import plain, positive
from tacit.convex import Objective, Softmax
from tacit.data.rows import ArrayRows
from tacit.exceptions import PlanError
from tacit.privacy import Neighbors
from tacit.solvers import Problem
from tacit.solvers._base import LARGEST_MARGIN, MOST_ROWS
from tacit.solvers._gradients.row_pass import ROW_PASS_SETS, RowPass
from tacit.solvers._minimizers.minimum import (
    certified_minimum,
    gradient_tolerance,
    largest_weights,
)
from tacit.streaming._model import StreamTerms

__all__ = [
    "LEARNERS",
    "ImplicitGradient",
    "IterateFacts",
    "Leader",
    "LeaderIterates",
    "ProjectedGradient",
    "RowPassIterates",
]

Array = NDArray[np.float64]

# Rounding of the factors of all steps, once a step, for the longest possible stream
DRIFT = 1 + 1e-7


@dataclass(frozen=True)
class IterateFacts:
    """Public facts that iterates are made from."""

    problem: Problem
    terms: StreamTerms
    neighbors: Neighbors
    strength: float
    published: bool = False

    @property
    def unit(self) -> float:
        """Strong convexity of a step, in units of one row."""
        return self.strength * self.terms.rows_per_step

    @property
    def most_rows(self) -> int:
        """Rows up to which bounds on round-off hold."""
        return max(self.terms.n_rows, MOST_ROWS)

    @property
    def reach(self) -> float:
        """Largest norm of useful weights: that of the set, or what a ridge leaves."""
        useful = LARGEST_MARGIN / self.problem.bounds.x_norm
        left = min(self.problem.lipschitz / self.strength, useful)
        radius = self.problem.regularizer.radius
        return radius if radius < inf else left


@dataclass(frozen=True)
class ImplicitGradient:
    """Implicit gradient steps: each uses the gradient at its own end.

    Parameters
    ----------
    strong_convexity
        Factor of half the squared weights that is added to the average loss of each
        step; None for the rule of `PerturbedIterates`.

    Notes
    -----
    **Guarantee.** After step t, a row instead of another has moved the weights by at
    most ``2 L / (strong_convexity * rows_per_step * (t + 1))``, L the Lipschitz
    constant of a row's loss, and by half of that if it was added or removed [1]_,
    Lemma 5.9, with the ridge left out, which is the same on both sides, and ``t + 1``
    for t. Linear losses attain it.

    References
    ----------
    .. [1] A. Thakurta, PhD thesis, Pennsylvania State University, 2013; P. Jain, P.
       Kothari, A. Thakurta, "Differentially private online learning", COLT 2012.
    """

    saved = True
    name = "implicit"

    strong_convexity: float | None = None

    def __post_init__(self) -> None:
        _check(self)

    def iterates(self, facts: IterateFacts) -> RowPassIterates:
        """Return the learner of a problem, or reject it."""
        if isinstance(facts.problem.loss, Softmax):
            raise PlanError(
                "ImplicitGradient requires a loss of one margin, or of one margin per "
                f"class such as OneVsRest(), got {facts.problem.loss!r}; use "
                "ProjectedGradient."
            )
        return _row_pass_iterates(facts, "implicit", 1.0)


@dataclass(frozen=True)
class ProjectedGradient:
    """Gradient steps whose length falls as one over their number.

    Parameters
    ----------
    strong_convexity
        As in `ImplicitGradient`.

    Notes
    -----
    **Guarantee.** Step t has length ``1 / (strong_convexity * (t + kappa))`` with
    kappa the condition number, so that the first is within one over the smoothness and
    none is wasted. A row instead of another has then moved the weights by at most
    ``2 L / (strong_convexity * rows_per_step * (t + kappa))``. The published steps
    [1]_, Algorithm 5.3, are twice as long after a start without rows; a row then
    moves the weights by ``4 L / (strong_convexity * rows_per_step * t)``, twice what
    Lemma 5.12 states. They are used with ``accounting="paper"``.

    References
    ----------
    .. [1] A. Thakurta, PhD thesis, Pennsylvania State University, 2013.
    """

    saved = True
    name = "gradient"

    strong_convexity: float | None = None

    def __post_init__(self) -> None:
        _check(self)

    def iterates(self, facts: IterateFacts) -> RowPassIterates:
        """Return the learner of a problem, or reject it."""
        facts.problem.require_smooth("ProjectedGradient")
        # [iterates:kappa] no row's step is longer than one over its smoothness
        kappa = 1.0 + facts.problem.smoothness / facts.unit
        if facts.published:
            whole = 1.0 + facts.problem.smoothness / facts.strength
            return _row_pass_iterates(facts, "published", float(ceil(2 * whole**2) + 1))
        return _row_pass_iterates(facts, "gradient", kappa)


@dataclass(frozen=True)
class Leader:
    """Follow-the-leader: the best weights for all rows so far, fitted at each step.

    Parameters
    ----------
    strong_convexity
        As in `ImplicitGradient`, counted once more before the first row.

    Notes
    -----
    **Guarantee.** As that of `ImplicitGradient`, by the strong convexity of the whole
    objective at both minimizers. The computed minimum is certified to be near the
    exact one, and that distance is in the sensitivity. All rows are kept and each step
    reads them all: a stream of n rows takes the time of n fits.
    """

    saved = True
    name = "leader"

    strong_convexity: float | None = None

    def __post_init__(self) -> None:
        _check(self)

    def iterates(self, facts: IterateFacts) -> LeaderIterates:
        """Return the learner of a problem, or reject it."""
        facts.problem.require_smooth("Leader")
        problem = replace(facts.problem, n_rows=facts.most_rows)
        first, last = 2 * facts.unit, (facts.terms.horizon + 1) * facts.unit
        moved = problem.sensitivity(facts.neighbors)
        # [iterates:leader] at all steps: one part grows with the ridge, one falls
        tolerance = sum(
            gradient_tolerance(problem, facts.neighbors, moved, ridge)
            for ridge in (first, last)
        )
        return LeaderIterates(problem, facts.neighbors, facts.unit, tolerance)


# Learners of `PerturbedIterates`; each class declares its name
LEARNERS = (ImplicitGradient, ProjectedGradient, Leader)


@dataclass(frozen=True)
class RowPassIterates:
    """Iterates of one pass over rows, for implicit and projected gradient steps.

    Parameters
    ----------
    row_pass
        Steps along rows.
    kind
        ``"implicit"``, ``"gradient"`` or ``"published"``.
    unit
        Strong convexity in units of one row.
    offset
        Number that is added to that of a step; for published steps, the last step of
        the start without rows.
    most_rows
        Rows up to which bounds on round-off hold.
    """

    row_pass: RowPass
    kind: str
    unit: float
    offset: float
    most_rows: int

    @property
    def published_influence(self) -> float:
        """What `influence` is at most, times t."""
        return (2.0 if self.kind == "published" else 1.0) / self.unit

    def influence(self, t: Array) -> Array:
        """Return the largest part of a row's gradient in weights after t."""
        if self.kind == "published":
            return self.published_influence / t
        # [iterates:influence]
        return 1 / (self.unit * (t + self.offset))

    def sensitivity(self, t: Array, moved: float) -> Array:
        """Return the sensitivity after t to a change of gradients by ``moved``."""
        # [iterates:roundoff] errors in a gradient fade as rows do, others may not
        gradients = moved + 2 * self.most_rows * self.row_pass.derivative_roundoff
        others = (
            self.most_rows * self.row_pass.row_roundoff
            + t * self.row_pass.leaf_roundoff
        )
        return DRIFT * gradients * self.influence(t) + 2 * others

    def factors(self, t: Array) -> tuple[Array, Array, Array]:
        """Return factors before the rows of steps t, step sizes, factors after."""
        ones = np.ones_like(t)
        if self.kind == "implicit":
            # [iterates:implicit] a ridge first is the same as a ridge at the end
            return t / (t + 1), 1 / (self.unit * (t + 1)), ones
        if self.kind == "gradient":
            # [iterates:gradient] shrinkage at a step, and size of the step before it
            last = t + self.offset - 1
            return ones, 1 / (self.unit * last), last / (t + self.offset)
        # [iterates:published] no step before the last of the start
        going = t > self.offset
        left = np.where(going, t - 2, 1.0)
        steps = np.where(going, 2 / (self.unit * left), 0.0)
        return ones, steps, np.where(going, left / t, 1.0)

    def path(
        self, V: Array, first: int, X: Array, y: NDArray[Any], ends: NDArray[np.int64]
    ) -> Array:
        """Return the weights after steps from ``first``, which end at these rows.

        Shape (steps, outputs, features).
        """
        t = np.arange(first, first + len(ends), dtype=np.float64)
        return self.row_pass.leaves(V, X, y, ends, *self.factors(t))

    def init(self) -> Array:
        """Return the private state before the first step."""
        return self.row_pass.start()

    def start(self) -> Array:
        """Return the public weights before the first step, shape (p, k)."""
        return self.row_pass.start().T.copy()

    def advance(
        self, private: Array, t: int, X: Array, y: NDArray[Any]
    ) -> tuple[Array, Array]:
        """Return the private state and the exact weights after step t."""
        ends = np.array([X.shape[0]], dtype=np.int64)
        V = self.path(private, t, X, y, ends)[0]
        return V, V.T.copy()


@kept
@dataclass(frozen=True)
class StoredRows:
    """All rows of a stream so far. Private."""

    _private_X: Array = field(repr=False)
    _private_y: NDArray[Any] = field(repr=False)


@dataclass(frozen=True)
class LeaderIterates:
    """Minima over all rows so far, for `Leader`."""

    problem: Problem
    neighbors: Neighbors
    unit: float
    tolerance: float

    @property
    def published_influence(self) -> float:
        """What `influence` is at most, times t."""
        return 1 / self.unit

    def influence(self, t: Array) -> Array:
        """Return the largest part of a row's gradient in weights after t."""
        return 1 / (self.unit * (t + 1))

    def sensitivity(self, t: Array, moved: float) -> Array:
        """Return the sensitivity after t to a change of gradients by ``moved``."""
        return DRIFT * (moved + 2 * self.tolerance) * self.influence(t)

    def init(self) -> StoredRows:
        """Return the private state before the first step."""
        return StoredRows(np.zeros((0, self.problem.n_features)), np.zeros(0))

    def start(self) -> Array:
        """Return the public weights before the first step, shape (p, k)."""
        return RowPass(self.problem, True).start().T.copy()

    def advance(
        self, private: StoredRows, t: int, X: Array, y: NDArray[Any]
    ) -> tuple[StoredRows, Array]:
        """Return the private state and the exact weights after step t."""
        both = np.vstack([private._private_X, X]), np.append(private._private_y, y)
        ridge = self.unit * (t + 1)
        W = certified_minimum(
            self.problem,
            Objective(self.problem.loss, ridge),
            ArrayRows(*both),
            self.tolerance,
            largest_weights(self.problem, self.neighbors, ridge),
        )
        return StoredRows(*both), W


def _check(learner: Any) -> None:
    plain(learner)
    if learner.strong_convexity is not None:
        positive(strong_convexity=learner.strong_convexity)


def _row_pass_iterates(
    facts: IterateFacts, kind: str, offset: float
) -> RowPassIterates:
    row_pass = RowPass(facts.problem, kind == "implicit", facts.reach)
    _ = row_pass.kernel  # rejects an unknown loss now
    return RowPassIterates(row_pass, kind, facts.unit, offset, facts.most_rows)


def check_set(problem: Problem) -> None:
    """Reject penalties, and sets whose projection rounds in an unknown way."""
    problem.check_penalty("PerturbedIterates", "GradientSums", *ROW_PASS_SETS)
