"""Sums over rows of an additive fit, by the bins of the rows instead of their features.

Rows in one bin of a column have the same features there. So a sum over rows is one over
bins: derivatives are added up in each bin, and multiplied by its features afterwards.
That is one addition a column and row, however many features a column has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.additive._terms import Term, ranges_of, shapes_of
from tacit.convex.objective import DENSE_ROWS, UNIT
from tacit.data.rows import ArrayRows
from tacit.solvers import Problem
from tacit.solvers._gradients.descent import (
    checked_reach,
    clip_needed,
    largest_margin,
    norm_clipped,
)

__all__ = ["BinSums", "binned_rows", "factor_roundoff"]

Array = NDArray[np.float64]

# Factors that bring rows within the norm are multiples of 1 / PARTS, so that sums of
# their squares are exact
PARTS = 2**12


def binned_rows(
    terms: Sequence[Term], of_rows: NDArray[np.intp], y: Array, norm: float
) -> ArrayRows:
    """Return rows of bins; targets stand beside what brings features within the norm.

    ``of_rows`` has the bin of each row in each column.
    """
    squares = np.zeros(len(of_rows))
    for k, term in enumerate(terms):
        squares += (term.factors[0] ** 2).sum(axis=1)[of_rows[:, k]]
    # [additive:norm] rounding the norm moves it by less than the part of 1e-9
    limit = norm * (1 - 1e-9)
    factors = np.floor(PARTS * limit / np.maximum(np.sqrt(squares), limit)) / PARTS
    return ArrayRows(of_rows, np.column_stack([y, factors]))


def factor_roundoff(problem: Problem) -> float:
    """Return how far one more rounding of each margin moves the sums of neighbors.

    A margin is multiplied by the factor of its row, which features of a row are not.
    """
    # [additive:factor]
    off = UNIT * sqrt(problem.loss.n_outputs) * largest_margin(problem)
    moved = problem.loss.max_curvature() * off * problem.bounds.x_norm
    return 2 * problem.most_rows * moved


@dataclass(frozen=True, eq=False)
class BinSums:
    """What a descent sums over rows of bins.

    Parameters
    ----------
    problem
        What the descent solves, with as many features as it was planned for.
    clip
        Bound on the norm of a derivative.
    terms
        Features of the bins of each column.
    """

    problem: Problem
    clip: float
    terms: Sequence[Term]

    @property
    def factors(self) -> list[Array]:
        """Features of each bin, one matrix a column."""
        return [term.factors[0] for term in self.terms]

    def moments(self, bins: Any, y: NDArray[Any]) -> tuple[Array]:
        """Return the sum of ``x x^T`` over a block, from how often bins meet."""
        factors, constant = self.factors, self._constant
        ranges = ranges_of(self.terms)
        size = ranges[-1][1] + 1
        total = np.zeros((size, size))
        weights = y[:, 1] ** 2
        for j, first in enumerate(factors):
            own = slice(*ranges[j])
            counts = np.bincount(bins[:, j], weights, len(first))
            total[own, own] = first.T @ (counts[:, None] * first)
            # the constant is not scaled, so its products have the factor once
            single = np.bincount(bins[:, j], y[:, 1], len(first))
            total[own, -1] = total[-1, own] = constant * (single @ first)
            for k in range(j + 1, len(factors)):
                other = slice(*ranges[k])
                second = factors[k]
                meet = bins[:, j] * len(second) + bins[:, k]
                both = np.bincount(meet, weights, len(first) * len(second))
                both = both.reshape(len(first), len(second))
                total[own, other] = first.T @ both @ second
                total[other, own] = total[own, other].T
        total[-1, -1] = len(bins) * constant**2
        return (total,)

    def gradient(self, W: Array) -> _BinnedGradient:
        """Return what sums gradients at these weights over a block."""
        checked_reach(self.problem, W)
        return _BinnedGradient(self, W)

    @property
    def _constant(self) -> float:
        return float(self.problem.constant or 0.0)


@dataclass(frozen=True, eq=False)
class _BinnedGradient:
    """Sum over a block of gradients, derivatives clipped and added up in each bin."""

    sums: BinSums
    W: Array

    def __call__(self, bins: Any, y: NDArray[Any]) -> tuple[Array]:
        sums, problem = self.sums, self.sums.problem
        clip = clip_needed(problem, sums.clip)
        values = shapes_of(sums.terms, self.W[:-1])
        found = [np.zeros(each.shape) for each in values]
        intercept = self.W[-1] * sums._constant
        last = np.zeros(problem.loss.n_outputs)
        for low in range(0, len(bins), DENSE_ROWS):
            part, targets = bins[low : low + DENSE_ROWS], y[low : low + DENSE_ROWS]
            margins = np.zeros((len(part), len(intercept)))
            for output, margin in enumerate(margins.T):
                for k, each in enumerate(values):
                    margin += each[:, output].take(part[:, k])
            margins *= targets[:, 1:]
            margins += intercept
            labels = targets[:, 0]
            if problem.loss.targets == "codes":
                labels = labels.astype(np.intp)
            derivative = norm_clipped(problem.loss.derivative(labels, margins), clip)
            last += derivative.sum(axis=0)
            derivative = derivative * targets[:, 1:]
            for k, each in enumerate(found):
                for output, weights in enumerate(derivative.T):
                    each[:, output] += np.bincount(part[:, k], weights, len(each))
        parts = [
            factor.T @ each for factor, each in zip(sums.factors, found, strict=True)
        ]
        return (np.concatenate([*parts, last[None] * sums._constant]),)
