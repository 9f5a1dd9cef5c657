"""The Hessian and the covariance of gradients at released weights, with noise."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import PlainNumbers
from tacit.convex import Loss
from tacit.convex.foreign import is_foreign
from tacit.convex.objective import MOST_ADDITIONS, UNIT
from tacit.data import Rows
from tacit.data.row_margins import margins, pieces
from tacit.mechanisms.additive import SymmetricGaussian
from tacit.privacy import Budget, Composed, Event, GaussianNoise, calibrate
from tacit.solvers import Problem
from tacit.solvers._gradients.descent import norm_clipped

__all__ = ["CurvaturePlan", "plan_curvature"]

Array = NDArray[np.float64]

# Rows whose products are summed at once, as few as bounds on round-off are made for
PIECE_ROWS = 2048
# Part of the squared privacy parameter that the Hessian gets, whose inverse is what the
# noise makes wide
HESSIAN_FRACTION = 0.75
# Roundings of a row's term besides sums: derivative or curvature, its square, products
ROW_UNITS = 128


@dataclass(frozen=True, eq=False)
class CurvaturePlan(PlainNumbers):
    """Noise of both matrices, fixed by the weights that are released already."""

    problem: Problem
    W: Array
    multiplier: float
    hessian_sensitivity: float
    gradient_sensitivity: float
    with_hessian: bool

    @property
    def hessian(self) -> SymmetricGaussian:
        """What releases the sum of Hessians, the ridge left out."""
        return SymmetricGaussian(
            self.multiplier / sqrt(HESSIAN_FRACTION), self.hessian_sensitivity
        )

    @property
    def gradients(self) -> SymmetricGaussian:
        """What releases the sum of outer products of gradients."""
        share = 1 - HESSIAN_FRACTION if self.with_hessian else 1.0
        return SymmetricGaussian(
            self.multiplier / sqrt(share), self.gradient_sensitivity
        )

    @property
    def event(self) -> Event:
        if not self.with_hessian:
            return self.gradients.event
        return Composed((self.hessian.event, self.gradients.event))

    def run(self, rows: Rows, rng: Generator) -> tuple[Array | None, Array]:
        """Return the noisy Hessian, or None, and the noisy outer products."""
        loss = self.problem.loss
        # [intervals:foreign] what a loss of others states is enforced
        limit = steepest(self.problem, self.W) if is_foreign(loss) else inf
        second, outer = rows.sum(SecondOrder(loss, self.W, self.with_hessian, limit))
        noisy = self.hessian(second, rng) if self.with_hessian else None
        return noisy, self.gradients(outer, rng)


def plan_curvature(
    problem: Problem, W: Array, budget: Budget, *, with_hessian: bool
) -> CurvaturePlan:
    """Return the plan with the least noise that fits the budget.

    ``with_hessian`` is False where the fit has released what stands for it.
    """
    loss, x_norm = problem.loss, problem.bounds.x_norm
    derivative = steepest(problem, W)
    # the norm of the Hessian in the margins: its eigenvalues are none above the largest
    # and add up to the trace
    bend = sqrt(loss.max_curvature() * loss.max_trace())
    operations = MOST_ADDITIONS + ROW_UNITS + 4 * problem.size
    rounding = 1.01 * operations * UNIT * problem.most_rows
    # two positive semidefinite matrices are at most orthogonal
    apart = sqrt(budget.neighbors.rows_changed)
    plan = CurvaturePlan(
        problem,
        W,
        calibrate(GaussianNoise, budget),
        # [intervals:hessian] one row's Hessian, and the round-off of both sums
        bend * x_norm**2 * (apart + 2 * rounding),
        # [intervals:gradients] one row's squared gradient, and as much round-off
        (derivative * x_norm) ** 2 * (apart + 2 * rounding),
        with_hessian,
    )
    # noise too large for the grid is rejected here, not after the charge
    plan.hessian.scale(problem.size)
    plan.gradients.scale(problem.size)
    return plan


def steepest(problem: Problem, W: Array) -> float:
    """Return the largest norm of a derivative at released weights."""
    # |W| is released, so the reach of margins is public
    reach = problem.bounds.x_norm * float(np.linalg.norm(W)) * (1 + 1e-12)
    return problem.loss.max_derivative(reach, problem.bounds.y_range)


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """Sums over a block of the rows' Hessians and of their squared gradients.

    Both are in the order of ``W.ravel()``, and derivatives are clipped to ``limit``.
    """

    loss: Loss
    W: Array
    with_hessian: bool
    limit: float = inf

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array, Array]:
        p, k = self.W.shape
        H, G = np.zeros((p, k, p, k)), np.zeros((p * k, p * k))
        for position, part in pieces(X, PIECE_ROWS):
            targets, Z = y[position], margins(part, self.W)
            derivative = norm_clipped(self.loss.derivative(targets, Z), self.limit)
            gradients = (part[:, :, None] * derivative[:, None, :]).reshape(
                len(part), -1
            )
            G += gradients.T @ gradients
            for j in range(k if self.with_hessian else 0):
                unit = np.zeros(Z.shape)
                unit[:, j] = 1.0
                column = self.loss.curvature_product(targets, Z, unit)
                for i in range(k):
                    H[:, i, :, j] += (part * column[:, i : i + 1]).T @ part
        return H.reshape(p * k, p * k), G
