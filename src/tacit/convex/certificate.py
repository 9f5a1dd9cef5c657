"""The certificate of a minimizer, and the line search of both Newton methods."""

from dataclasses import dataclass
from math import ceil, log
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.convex._protocols import Array
from tacit.convex.objective import (
    Gradient,
    LineDerivatives,
    Objective,
    gradient_roundoff,
)
from tacit.data.rows import BlockFunction, Rows

__all__ = [
    "Certificate",
    "Minimum",
    "NotCertified",
    "Thinned",
    "line_search",
    "worth_reusing",
]

# Losses with kinks of width 1e-6 take up to about 200 steps, all others a few dozen
NEWTON_STEPS = 2000
# Trial steps of the line search, all tried in one pass, and those of the next pass
HALVINGS = tuple(0.5**i for i in range(1, 50))
REFINEMENTS = 32


@dataclass(frozen=True, eq=False)
class Minimum:
    """Weights of shape (p, k), and a bound on the norm of the exact gradient there.

    It is a Frobenius norm, round-off included; with a regularizer, that of some exact
    subgradient.
    """

    W: Array
    gradient_norm: float

    def better(self, other: Self) -> Self:
        """Return the one of two with the smaller bound; this one where they tie."""
        return other if other.gradient_norm < self.gradient_norm else self


class NotCertified(RuntimeError):
    """The tolerance was not reached; ``nearest`` is the best point that was found.

    The message contains nothing from the rows; the caller decides whether to raise.
    """

    def __init__(self, nearest: Minimum) -> None:
        super().__init__(
            "The gradient norm could not be certified to be within tolerance; raise "
            "the tolerance or the ridge."
        )
        self.nearest = nearest


@dataclass(frozen=True, eq=False)
class Certificate:
    """Computes gradients together with bounds on their exact norm."""

    objective: Objective
    rows: Rows
    x_norm: float
    y_range: tuple[float, float]

    @property
    def ridge(self) -> float:
        return self.objective.ridge

    def gradient(self, W: Array) -> tuple[Array, float, float]:
        """Return the gradient, its computed norm, and its round-off bound."""
        n = max(1, self.rows.n_rows)
        G, added, products, blocks = self.rows.sum(Gradient(self.objective.loss, W))
        G += self.objective.linear(W)
        norm = float(np.linalg.norm(G))
        # blocks are added in pairs, pairs in pairs, and so on
        additions = added / n + 2 * int(blocks).bit_length()
        tilt = self.objective.tilt
        return G, norm, self._roundoff(W, additions, products / n, tilt)

    def _roundoff(
        self, W: Array, additions: float, products: float, tilt: Array | None
    ) -> float:
        loss = self.objective.loss
        w_norm = float(np.linalg.norm(W))
        return gradient_roundoff(
            n_rows=self.rows.n_rows,
            shape=(W.shape[0], W.shape[1]),
            additions=additions,
            x_norm=self.x_norm,
            derivative=loss.max_derivative(self.x_norm * w_norm, self.y_range),
            curvature=loss.max_curvature(),
            w_norm=w_norm,
            ridge=self.objective.ridge,
            tilt_norm=0.0 if tilt is None else float(np.linalg.norm(tilt)),
            products=products,
        )

    def check_possible(self, tolerance: float) -> None:
        """Reject a tolerance below the round-off of one sum over the rows."""
        zero = np.zeros((self.rows.n_features, self.objective.loss.n_outputs))
        # no tilt: it is noise, and what is rejected must follow from public facts
        if self._roundoff(zero, 1.0, 1.0, None) >= tolerance:
            raise ValueError(
                "tolerance must be above the round-off of float64 sums of this many "
                f"rows, got {tolerance!r}."
            )


def worth_reusing(rate: float, norm: float, goal: float, chords: int) -> bool:
    """Return whether reusing the Hessian needs at most ``chords`` more steps."""
    if goal <= 0 or rate >= 0.5 or not norm > goal:
        return False
    return ceil(log(norm / goal) / -log(max(rate, 1e-16))) <= chords


def line_search(certify: Certificate, W: Array, D: Array, rise: float = 0.0) -> float:
    """Return nearly the longest step at whose end the function still falls.

    The derivative grows along the step, so its sign brackets the least value: first
    between a halving and its double, then in a small part of that. The second pass is
    worth it for losses with corners, where it halves the number of Newton steps.

    A regularizer r that rises by ``rise`` from W to ``W + D`` rises by at most
    ``t rise`` to ``W + t D``, so that ``F + r`` falls where the derivative of F plus
    ``rise`` is not positive.
    """
    low = _longest(certify, W, D, HALVINGS, rise)
    finer = np.linspace(2 * low, low, REFINEMENTS + 1)[1:]
    return _longest(certify, W, D, tuple(finer.tolist()), rise)


def _longest(
    certify: Certificate, W: Array, D: Array, steps: tuple[float, ...], rise: float
) -> float:
    """Return the first of these steps where the function falls, or else the last."""
    objective = certify.objective
    derivatives = certify.rows.sum(LineDerivatives(objective.loss, W, D, steps))[0]
    along = float(np.vdot(objective.linear(W), D)) + rise
    derivatives = (
        derivatives + along + np.array(steps) * objective.ridge * float(np.vdot(D, D))
    )
    falling = np.flatnonzero(derivatives <= 0)
    return steps[int(falling[0]) if falling.size else -1]


@dataclass(frozen=True)
class _EveryNth:
    """Applies a function to one row in ``stride`` of a block."""

    function: BlockFunction
    stride: int

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Any, ...]:
        return self.function(X[:: self.stride], y[:: self.stride])


@dataclass(frozen=True, eq=False)
class Thinned:
    """Rows of which each block shows one in ``stride``, always the same ones."""

    rows: Rows
    stride: int

    @property
    def n_rows(self) -> int:
        return -(-self.rows.n_rows // self.stride)

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    @property
    def block_rows(self) -> int:
        return -(-self.rows.block_rows // self.stride)

    def sum(self, function: BlockFunction) -> tuple[Any, ...]:
        return self.rows.sum(_EveryNth(function, self.stride))
