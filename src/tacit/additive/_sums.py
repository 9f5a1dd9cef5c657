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

__all__ = ["BinSums", "binned_rows", "margin_roundoff"]

Array = NDArray[np.float64]

# Factors that bring rows within the norm are multiples of 1 / PARTS, so that sums of
# their squares are exact
PARTS = 2**12
# Margins are those of features up to so many norms: predictions are for whole rows, and
# a row that is a little too long had better count less than have another margin. Far
# longer ones would be steeper than the moments of clipped rows say, and a descent could
# diverge. By benchmarks/additive/fit_rule.py
LONGEST = 1.25


def binned_rows(
    terms: Sequence[Term], of_rows: NDArray[np.intp], y: Array, norm: float
) -> ArrayRows:
    """Return rows of bins, with two factors of each row beside its target.

    The first brings its features within the norm, the second within ``LONGEST`` norms.
    ``of_rows`` has the bin of each row in each column; in the result bins of different
    columns have different numbers.
    """
    squares = np.zeros(len(of_rows))
    cells = np.empty(of_rows.shape, dtype=np.int32)
    for k, (term, start) in enumerate(zip(terms, _starts(terms), strict=True)):
        squares += (term.factors[0] ** 2).sum(axis=1)[of_rows[:, k]]
        cells[:, k] = of_rows[:, k] + start
    # [additive:norm] rounding the norm moves it by less than the part of 1e-9
    limit, lengths = norm * (1 - 1e-9), np.sqrt(squares)
    within, near = (
        np.floor(PARTS * most / np.maximum(lengths, most)) / PARTS
        for most in (limit, LONGEST * limit)
    )
    return ArrayRows(cells, np.column_stack([y, within, near]))


def _starts(terms: Sequence[Term]) -> list[int]:
    """Return the number of the first bin of each column."""
    sizes = [len(term.factors[0]) for term in terms]
    return [sum(sizes[:k]) for k in range(len(sizes))]


def margin_roundoff(problem: Problem) -> float:
    """Return how much further round-off of margins moves the sums of neighbors.

    Further than for rows of features: margins are those of rows of ``LONGEST`` norms,
    and each is multiplied by a factor, which rounds it once more.
    """
    # [additive:factor]
    products = (problem.n_features + 1) * UNIT / (1 - (problem.n_features + 1) * UNIT)
    off = LONGEST * products * sqrt(problem.loss.n_outputs) * largest_margin(problem)
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

    def moments(self, cells: Any, y: NDArray[Any]) -> tuple[Array]:
        """Return the sum of ``x x^T`` over a block, from how often bins meet."""
        import tacit.additive._kernels as _kernels  # noqa: PLC0415 - numba

        factors, constant = self.factors, self._constant
        ranges, starts = ranges_of(self.terms), _starts(self.terms)
        size = ranges[-1][1] + 1
        total = np.zeros((size, size))
        columns = [np.ascontiguousarray(column) for column in cells.T]
        within = y[:, 1]
        weights = within**2
        for j, first in enumerate(factors):
            own, bins = slice(*ranges[j]), columns[j] - starts[j]
            counts = np.bincount(bins, weights, len(first))
            total[own, own] = first.T @ (counts[:, None] * first)
            # the constant is not scaled, so its products have the factor once
            single = np.bincount(bins, within, len(first))
            total[own, -1] = total[-1, own] = constant * (single @ first)
            for k in range(j + 1, len(factors)):
                other, second = slice(*ranges[k]), factors[k]
                both = np.zeros((len(first), len(second)))
                ends = starts[j], starts[k]
                _kernels.add_up_pairs(columns[j], columns[k], weights, ends, both)
                total[own, other] = first.T @ both @ second
                total[other, own] = total[own, other].T
        total[-1, -1] = len(cells) * constant**2
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

    def __call__(self, cells: Any, y: NDArray[Any]) -> tuple[Array]:
        import tacit.additive._kernels as _kernels  # noqa: PLC0415 - numba

        sums, problem = self.sums, self.sums.problem
        clip = clip_needed(problem, sums.clip)
        values = np.concatenate(shapes_of(sums.terms, self.W[:-1]))
        found = np.zeros(values.shape)
        intercept = self.W[-1] * sums._constant
        last = np.zeros(problem.loss.n_outputs)
        for low in range(0, len(cells), DENSE_ROWS):
            part = np.ascontiguousarray(cells[low : low + DENSE_ROWS])
            labels, within, near = y[low : low + DENSE_ROWS].T
            margins = np.zeros((len(part), len(intercept)))
            _kernels.look_up(part, values, margins)
            margins *= near[:, None]
            margins += intercept
            if problem.loss.targets == "codes":
                labels = labels.astype(np.intp)
            derivative = norm_clipped(problem.loss.derivative(labels, margins), clip)
            last += derivative.sum(axis=0)
            totals = np.zeros(values.shape)
            _kernels.add_up(part, derivative * within[:, None], totals)
            found += totals
        ends = _starts(sums.terms)[1:]
        parts = [
            factor.T @ each
            for factor, each in zip(sums.factors, np.split(found, ends), strict=True)
        ]
        return (np.concatenate([*parts, last[None] * sums._constant]),)
