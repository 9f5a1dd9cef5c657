"""Learners whose iterates one row moves less and less: what noise is added to.

Each is made for a problem by ``based``, and then takes the rows of one step after
another. None of them draws anything.
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
from tacit.solvers._minimum import (
    certified_minimum,
    gradient_tolerance,
    largest_weights,
)
from tacit.solvers._row_pass import ROW_PASS_SETS, RowPass
from tacit.streaming._terms import StreamTerms

__all__ = ["ImplicitGradient", "Leader", "LeaderBase", "PassBase", "ProjectedGradient"]

Array = NDArray[np.float64]

# Factors that are rounded once a step, for as many steps as there can be
DRIFT = 1 + 1e-7


@dataclass(frozen=True)
class Facts:
    """What a base is made from: all of it public."""

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
        """Norm that useful weights do not pass: the set's, or what a ridge leaves."""
        useful = LARGEST_MARGIN / self.problem.bounds.x_norm
        left = min(self.problem.lipschitz / self.strength, useful)
        radius = self.problem.regularizer.radius
        return radius if radius < inf else left


@dataclass(frozen=True)
class ImplicitGradient:
    """Implicit gradient steps: each ends where its own slope says.

    Parameters
    ----------
    strong_convexity
        Factor of half the squared weights that is added to the average loss of each
        step; None for the rule of `PerturbedIterates`.

    Notes
    -----
    **Guarantee.** After step t, a row in place of another has moved the weights by at
    most ``2 L / (strong_convexity * rows_per_step * (t + 1))``, L the Lipschitz
    constant of a row's loss, and by half of that if it was added or removed [1]_,
    Lemma 5.9, with the ridge left out, which is the same on both sides, and ``t + 1``
    for t. Straight losses attain it.

    References
    ----------
    .. [1] A. Thakurta, PhD thesis, Pennsylvania State University, 2013; P. Jain, P.
       Kothari, A. Thakurta, "Differentially private online learning", COLT 2012.
    """

    saved = True

    strong_convexity: float | None = None

    def __post_init__(self) -> None:
        _checked(self)

    def based(self, facts: Facts) -> PassBase:
        """Return the learner for a problem, or refuse it."""
        if isinstance(facts.problem.loss, Softmax):
            raise PlanError(
                "ImplicitGradient needs a loss of one margin, or of one for each class "
                f"as OneVsRest() has it, got {facts.problem.loss!r}; use "
                "ProjectedGradient."
            )
        return _walk(facts, "implicit", 1.0)


@dataclass(frozen=True)
class ProjectedGradient:
    """Gradient steps that fall as one over their number.

    Parameters
    ----------
    strong_convexity
        As in `ImplicitGradient`.

    Notes
    -----
    **Guarantee.** Step t has length ``1 / (strong_convexity * (t + kappa))`` with
    kappa the condition number, so that the first is within one over the smoothness and
    none is wasted. A row in place of another has then moved the weights by at most
    ``2 L / (strong_convexity * rows_per_step * (t + kappa))``. The published steps
    [1]_, Algorithm 5.3, are twice as long after a start without rows; a row then
    moves the weights by ``4 L / (strong_convexity * rows_per_step * t)``, twice what
    Lemma 5.12 states. They are used with ``accounting="paper"``.

    References
    ----------
    .. [1] A. Thakurta, PhD thesis, Pennsylvania State University, 2013.
    """

    saved = True

    strong_convexity: float | None = None

    def __post_init__(self) -> None:
        _checked(self)

    def based(self, facts: Facts) -> PassBase:
        """Return the learner for a problem, or refuse it."""
        facts.problem.require_smooth("ProjectedGradient")
        # [iterates:kappa] no row's step is longer than one over its smoothness
        kappa = 1.0 + facts.problem.smoothness / facts.unit
        if facts.published:
            whole = 1.0 + facts.problem.smoothness / facts.strength
            return _walk(facts, "published", float(ceil(2 * whole**2) + 1))
        return _walk(facts, "gradient", kappa)


@dataclass(frozen=True)
class Leader:
    """The best weights for all rows so far: a fit at each step.

    Parameters
    ----------
    strong_convexity
        As in `ImplicitGradient`. One more of it is there before the first row.

    Notes
    -----
    **Guarantee.** As that of `ImplicitGradient`, by the strong convexity of the whole
    objective at both minimizers. The computed minimum is certified to be near the
    exact one, and that distance is in the sensitivity. All rows are kept, and a step
    reads them all: a stream of n rows costs as much as n fits.
    """

    saved = True

    strong_convexity: float | None = None

    def __post_init__(self) -> None:
        _checked(self)

    def based(self, facts: Facts) -> LeaderBase:
        """Return the learner for a problem, or refuse it."""
        facts.problem.require_smooth("Leader")
        problem = replace(facts.problem, n_rows=facts.most_rows)
        first, last = 2 * facts.unit, (facts.terms.horizon + 1) * facts.unit
        moved = problem.sensitivity(facts.neighbors)
        # [iterates:leader] of all steps: one part grows with the ridge, one falls
        tolerance = sum(
            gradient_tolerance(problem, facts.neighbors, moved, ridge)
            for ridge in (first, last)
        )
        return LeaderBase(problem, facts.neighbors, facts.unit, tolerance)


@dataclass(frozen=True)
class PassBase:
    """Steps along rows, for `ImplicitGradient` and `ProjectedGradient`.

    Parameters
    ----------
    walk
        What makes the steps.
    kind
        ``"implicit"``, ``"gradient"`` or ``"published"``.
    unit
        Strong convexity in units of one row.
    offset
        What is added to the number of a step; for published steps, the last one of
        the start without rows.
    most_rows
        Rows up to which bounds on round-off hold.
    """

    walk: RowPass
    kind: str
    unit: float
    offset: float
    most_rows: int

    @property
    def published_influence(self) -> float:
        """What `influence` is at most, times t."""
        return (2.0 if self.kind == "published" else 1.0) / self.unit

    def influence(self, t: Array) -> Array:
        """Return how much of a row's gradient can be left in the weights after t."""
        if self.kind == "published":
            return self.published_influence / t
        # [iterates:influence]
        return 1 / (self.unit * (t + self.offset))

    def sensitivity(self, t: Array, moved: float) -> Array:
        """Return how far rows with gradients that differ by ``moved`` can bring it."""
        # [iterates:roundoff] errors in a gradient fade as rows do, others may not
        gradients = moved + 2 * self.most_rows * self.walk.derivative_roundoff
        others = self.most_rows * self.walk.row_roundoff + t * self.walk.leaf_roundoff
        return DRIFT * gradients * self.influence(t) + 2 * others

    def factors(self, t: Array) -> tuple[Array, Array, Array]:
        """Return the factor before the rows of steps t, their step, that after."""
        ones = np.ones_like(t)
        if self.kind == "implicit":
            # [iterates:implicit] a ridge first is the same as a ridge at the end
            return t / (t + 1), 1 / (self.unit * (t + 1)), ones
        if self.kind == "gradient":
            # [iterates:gradient] the shrinkage of a step, and the step before it
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
        """Return the weights after steps from ``first`` on, which end at these rows.

        Shape (steps, outputs, features).
        """
        t = np.arange(first, first + len(ends), dtype=np.float64)
        return self.walk.leaves(V, X, y, ends, *self.factors(t))

    def init(self) -> Array:
        """Return what is kept before the first step."""
        return self.walk.start()

    def start(self) -> Array:
        """Return the public weights before the first step, shape (p, k)."""
        return self.walk.start().T.copy()

    def advance(
        self, private: Array, t: int, X: Array, y: NDArray[Any]
    ) -> tuple[Array, Array]:
        """Return what is kept after step t, and the exact weights, shape (p, k)."""
        ends = np.array([X.shape[0]], dtype=np.int64)
        V = self.path(private, t, X, y, ends)[0]
        return V, V.T.copy()


@kept
@dataclass(frozen=True)
class KeptRows:
    """All rows of a stream so far. Private."""

    _private_X: Array = field(repr=False)
    _private_y: NDArray[Any] = field(repr=False)


@dataclass(frozen=True)
class LeaderBase:
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
        """Return how much of a row's gradient can be left in the weights after t."""
        return 1 / (self.unit * (t + 1))

    def sensitivity(self, t: Array, moved: float) -> Array:
        """Return how far rows with gradients that differ by ``moved`` can bring it."""
        return DRIFT * (moved + 2 * self.tolerance) * self.influence(t)

    def init(self) -> KeptRows:
        """Return what is kept before the first step."""
        return KeptRows(np.zeros((0, self.problem.n_features)), np.zeros(0))

    def start(self) -> Array:
        """Return the public weights before the first step, shape (p, k)."""
        return RowPass(self.problem, True).start().T.copy()

    def advance(
        self, private: KeptRows, t: int, X: Array, y: NDArray[Any]
    ) -> tuple[KeptRows, Array]:
        """Return what is kept after step t, and the exact weights, shape (p, k)."""
        both = np.vstack([private._private_X, X]), np.append(private._private_y, y)
        ridge = self.unit * (t + 1)
        W = certified_minimum(
            self.problem,
            Objective(self.problem.loss, ridge),
            ArrayRows(*both),
            self.tolerance,
            largest_weights(self.problem, self.neighbors, ridge),
        )
        return KeptRows(*both), W


def _checked(learner: Any) -> None:
    plain(learner)
    if learner.strong_convexity is not None:
        positive(strong_convexity=learner.strong_convexity)


def _walk(facts: Facts, kind: str, offset: float) -> PassBase:
    walk = RowPass(facts.problem, kind == "implicit", facts.reach)
    _ = walk.kernel  # a loss that it does not know is refused now
    return PassBase(walk, kind, facts.unit, offset, facts.most_rows)


def check_set(problem: Problem) -> None:
    """Refuse penalties, and sets whose projection rounds in an unknown way."""
    problem.check_penalty("PerturbedIterates", "GradientSums", *ROW_PASS_SETS)
