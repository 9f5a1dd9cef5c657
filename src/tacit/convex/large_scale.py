"""The composite minimizer for more weights than a dense Hessian allows."""

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.convex._protocols import Array, Certified
from tacit.convex.certificate import Certificate, Minimum, NotCertified
from tacit.convex.composite import Composite, Step, Verdict, accelerate, descend, power
from tacit.convex.objective import chunks
from tacit.convex.regularizers import makes_zeros
from tacit.data.rows import BlockFunction, Rows

__all__ = ["search_composite"]

# Accelerated steps on the rows: in the first burst, in any, and bursts in all
FIRST_BURST = 25
MOST_BURST = 800
BURSTS = 60
# Times that the features at work may grow before the next burst
GROWTHS = 10


@dataclass(frozen=True, eq=False)
class _GramProduct:
    """``X^T X v`` over a block."""

    v: Array

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        total = np.zeros(self.v.shape)
        for part, _ in chunks(X, y):
            total += part.T @ (part @ self.v)
        return (total,)


@dataclass(frozen=True)
class _OnColumns:
    """Applies a function to some columns of a block."""

    function: BlockFunction
    columns: NDArray[np.int64]

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Any, ...]:
        return self.function(X[:, self.columns], y)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Rows restricted to some of their columns."""

    rows: Rows
    columns: NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def n_features(self) -> int:
        return self.columns.size

    @property
    def block_rows(self) -> int:
        return self.rows.block_rows

    def sum(self, function: BlockFunction) -> tuple[Any, ...]:
        return self.rows.sum(_OnColumns(function, self.columns))


def search_composite(
    certify: Certificate,
    regularizer: Certified,
    W: Array,
    tolerance: float,
    most_dense: int,
) -> Minimum:
    """Return the certified minimum without a Hessian of all the weights.

    Bursts of accelerated proximal steps on the rows. Between them, where the
    regularizer has left at most ``most_dense`` nonzero weights, Newton's method on
    those features only, which a step on all of them then checks.
    """
    problem = Composite(certify, regularizer)
    objective, rows = certify.objective, certify.rows
    W = regularizer.prox(W, 1 / problem.most_curved())
    gram = power(lambda v: rows.sum(_GramProduct(v))[0], rows.n_features)
    curved = certify.ridge + 1.05 * objective.loss.max_curvature() * gram
    size = 1 / min(curved, problem.most_curved())
    burst, last = FIRST_BURST, inf
    nearest = Minimum(W, inf)

    def proximal_step(Y: Array) -> Step:
        return problem.step(Y, objective.gradient(rows, Y), size)

    for _ in range(BURSTS):
        step = accelerate(proximal_step, W, size, certify.ridge, burst, tolerance)
        verdict = problem.judge(step)
        if verdict.bound > tolerance:
            verdict = _on_support(problem, size, verdict, tolerance, most_dense)
        if verdict.bound <= tolerance:
            return Minimum(verdict.V, verdict.bound)
        nearest = nearest.better(Minimum(verdict.V, verdict.bound))
        if verdict.roundoff >= tolerance and verdict.norm <= verdict.roundoff:
            break
        if verdict.norm > last:  # the curvature was taken for less than it is
            size = max(size / 2, 1 / problem.most_curved())
        W, burst, last = verdict.V, min(2 * burst, MOST_BURST), verdict.norm
    raise NotCertified(nearest)


def _on_support(
    problem: Composite, size: float, verdict: Verdict, tolerance: float, most_dense: int
) -> Verdict:
    """Minimize over the features that are not zero, adding those that should not be.

    Returns the last verdict over all features; the given one where r leaves too many
    features or does not induce sparsity.
    """
    if not makes_zeros(problem.regularizer):
        return verdict
    certify = problem.smooth
    objective = certify.objective
    used = np.zeros(verdict.V.shape[0], dtype=np.bool_)
    for _ in range(GROWTHS):
        now = used | np.any(verdict.V != 0, axis=1)
        if np.array_equal(now, used) or now.sum() * verdict.V.shape[1] > most_dense:
            break
        used = now
        columns = np.flatnonzero(used)
        tilt = None if objective.tilt is None else objective.tilt[columns]
        part = replace(
            certify,
            objective=replace(objective, tilt=tilt),
            rows=_Columns(certify.rows, columns),
        )
        inner = Composite(part, problem.regularizer)
        W = np.zeros_like(verdict.V)
        W[columns] = descend(inner, verdict.V[columns], tolerance / 4, chords=8).W
        G = objective.gradient(certify.rows, W)
        verdict = problem.judge(problem.step(W, G, size))
        if verdict.bound <= tolerance:
            break
    return verdict
