"""Steps along one row after another: what they are, and how far rounding takes them.

A leaf is a set of rows that count as one step. Each of its rows makes a step of its
own, so that a row more in a leaf is one more map that brings no weights apart, however
many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.convex import Box, Free, L1Ball, L2Ball, Simplex
from tacit.convex.implicit import derivative_error, kernel_loss
from tacit.convex.objective import UNIT
from tacit.exceptions import PlanError
from tacit.solvers._base import LARGEST_MARGIN, Problem

__all__ = ["ROW_PASS_SETS", "RowPass"]

Array = NDArray[np.float64]

# Sets whose projection has a bound on its rounding that is known beforehand
ROW_PASS_SETS = (L2Ball, L1Ball, Box, Simplex)
# Units of round-off, by the radius: of subtracting a step and clipping the result,
# and of the two factors of a leaf with its last clipping
ROW_UNITS, LEAF_UNITS = 10, 16


@dataclass(frozen=True)
class RowPass:
    """Weights that go along rows, one after another, and stay in a ball or a set.

    With ``implicit`` the derivative of a step is that at its end, not at its start.
    ``reach`` is a norm that weights cannot or need not pass, for problems without a
    set.

    Notes
    -----
    **Bound.** Implicit steps are proximal maps, and gradient steps of at most two over
    the smoothness move no two weights apart either; nor do projections. A row moves the
    weights by at most the step times the Lipschitz constant. A computed step is an
    exact one plus an error within ``step * derivative_roundoff + row_roundoff``; a leaf
    has one of ``leaf_roundoff`` besides. Losses that are not capped by themselves go on
    in a straight line where they would be steeper than at any weights allowed.
    """

    problem: Problem
    implicit: bool
    reach: float = inf

    @cached_property
    def radius(self) -> float:
        """Norm to which weights are clipped after each row."""
        radius = self.problem.regularizer.radius
        if radius < inf:
            return radius
        return min(self.reach, LARGEST_MARGIN / self.problem.bounds.x_norm)

    @cached_property
    def kernel(self) -> tuple[bool, int, float]:
        """What the compiled loop knows the loss by; rejects other losses."""
        # derivatives are bounded at weights in the ball, and on its rim with rounding
        known = kernel_loss(self.problem.loss, self.problem.max_derivative)
        if known is None:
            raise PlanError(
                "Steps along rows need a loss of this library, got "
                f"{self.problem.loss!r}; use Leader on a stream, or NoisyGD."
            )
        return known

    @property
    def _in_a_ball(self) -> bool:
        return isinstance(self.problem.regularizer, Free | L2Ball)

    @property
    def _longest(self) -> float:
        """Norm that weights do not pass on their way through a leaf."""
        # [row-pass:longest] a factor after the rows is one half or more, and before it
        # they may be as much longer
        return self.radius if self.implicit else 2 * self.radius

    @property
    def derivative_roundoff(self) -> float:
        """What rounding moves the weights by at a row, in units of the step."""
        problem = self.problem
        off = derivative_error(
            n_features=problem.n_features,
            n_outputs=problem.loss.n_outputs,
            x_norm=problem.bounds.x_norm,
            w_norm=1.01 * self._longest,
            largest_target=problem.largest_target,
            derivative=problem.max_derivative,
            curvature=problem.loss.max_curvature(),
        )
        return problem.bounds.x_norm * (off + 8 * UNIT * problem.max_derivative)

    @property
    def row_roundoff(self) -> float:
        """What rounding moves the weights by at a row, besides."""
        return ROW_UNITS * UNIT * self._longest

    @property
    def leaf_roundoff(self) -> float:
        """What rounding moves the weights by at a leaf, besides its rows."""
        # [row-pass:sets] levels of the L1 ball and the simplex are sums over features
        size = self.problem.size
        exact = self._in_a_ball or isinstance(self.problem.regularizer, Box)
        units = LEAF_UNITS + (0 if exact else 4 * size**2 + 64)
        return units * UNIT * self._longest

    def start(self) -> Array:
        """Return the public weights to start from, shape (outputs, features)."""
        p, k = self.problem.shape
        zeros = np.zeros((p, k))
        if not self._in_a_ball:
            zeros = self.problem.regularizer.prox(zeros, 1.0)
        return np.ascontiguousarray(zeros.T)

    def leaves(
        self,
        V: Array,
        X: Array,
        y: NDArray[Any],
        ends: NDArray[np.int64],
        before: Array,
        steps: Array,
        after: Array,
    ) -> Array:
        """Return the weights after each leaf, shape (leaves, outputs, features).

        ``V`` are the weights before the first leaf, left as they are, and ``ends`` the
        index after the last row of each. Weights are multiplied by ``before`` a leaf,
        make a step along each of its rows, and are multiplied by ``after``: one for
        implicit steps, from 1/2 to 1 for others.
        """
        # long: both ways of taking the leaves share the compiled loop
        from tacit.convex import _implicit_kernels as kernels  # noqa: PLC0415 - numba

        V, y = V.copy(), np.ascontiguousarray(y, dtype=np.float64)
        X = np.ascontiguousarray(X, dtype=np.float64)
        out = np.empty((len(ends), *V.shape))
        several, kind, shape = self.kernel

        def visited(leaves: slice, low: int, V: Array) -> None:
            """Make the steps of some leaves, whose rows begin at ``low``."""
            until = ends[leaves]
            rows = slice(low, int(until[-1]))
            kernels.run_leaves(
                X[rows],
                y[rows],
                until - low,
                before[leaves],
                steps[leaves],
                after[leaves],
                self.implicit,
                several,
                kind,
                shape,
                self.radius,
                V,
                out[leaves],
            )

        if self._in_a_ball:
            visited(slice(None), 0, V)
            return out
        low = 0
        for t in range(len(ends)):
            visited(slice(t, t + 1), low, V)
            inside = self.problem.regularizer.prox(V.T, 1.0)
            V = np.ascontiguousarray(inside.T)
            out[t], low = V, int(ends[t])
        return out
