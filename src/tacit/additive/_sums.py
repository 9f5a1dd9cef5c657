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
from tacit.convex.objective import DENSE_ROWS, gamma
from tacit.data.rows import ArrayRows
from tacit.solvers import Problem
from tacit.solvers._gradients.descent import (
    checked_reach,
    clip_needed,
    largest_margin,
    norm_clipped,
)

__all__ = ["BinSums", "binned_rows", "compile_loops", "margin_roundoff"]

Array = NDArray[np.float64]

# Scales of rows are multiples of 1 / PARTS, so that sums of their squares are exact
PARTS = 2**12
# Gradients and moments are of features clipped to the norm, and margins of features
# clipped to this many times the norm: predictions are made for whole rows, and margins
# clipped as tightly would bias the fit. Without a limit, rows could be more curved than
# the moments of clipped rows show, and the descent diverge. By
# benchmarks/additive/fit_rule.py
MARGIN_NORM = 1.25


def binned_rows(
    terms: Sequence[Term], row_bins: NDArray[np.intp], y: Array, norm: float
) -> ArrayRows:
    """Return rows of bin numbers, with two scales of each row beside its target.

    The first clips its features to the norm, the second to ``MARGIN_NORM`` times that.
    ``row_bins`` has the bin of each row in each column; in the result bins are numbered
    through all columns.
    """
    squares = np.zeros(len(row_bins))
    bin_ids = np.empty(row_bins.shape, dtype=np.int32)
    for k, (term, first) in enumerate(zip(terms, _first_bins(terms), strict=True)):
        squares += (term.factors[0] ** 2).sum(axis=1)[row_bins[:, k]]
        bin_ids[:, k] = row_bins[:, k] + first
    # [additive:norm] rounding the norm moves it by less than the part of 1e-9
    limit, lengths = norm * (1 - 1e-9), np.sqrt(squares)
    scales = [
        np.floor(PARTS * most / np.maximum(lengths, most)) / PARTS
        for most in (limit, MARGIN_NORM * limit)
    ]
    return ArrayRows(bin_ids, np.column_stack([y, *scales]))


def _first_bins(terms: Sequence[Term]) -> NDArray[np.intp]:
    """Return the number of the first bin of each column."""
    sizes = [len(term.factors[0]) for term in terms]
    return np.cumsum([0, *sizes[:-1]])


def margin_roundoff(problem: Problem) -> float:
    """Return a bound on the sensitivity that round-off of margins adds.

    Margins are up to ``MARGIN_NORM`` times as large as those of clipped features, and
    are multiplied by a scale, which rounds once more.
    """
    # [additive:margins]
    off = gamma(problem.n_features + 1) * MARGIN_NORM * largest_margin(problem)
    off *= sqrt(problem.loss.n_outputs)
    moved = problem.loss.max_curvature() * off * problem.bounds.x_norm
    return 2 * problem.most_rows * moved


def compile_loops() -> None:
    """Run every loop once, on no rows."""
    import tacit.additive._kernels as _kernels  # noqa: PLC0415 - numba

    none, bin_ids = np.zeros((0, 1)), np.zeros((0, 1), dtype=np.int32)
    _kernels.look_up(bin_ids, none, none)
    _kernels.add_up(bin_ids, none, none)
    column = np.zeros(0, dtype=np.intp)
    _kernels.add_up_pairs(column, column, np.zeros(0), none)


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
        """Features of each bin, one matrix per column."""
        return [term.factors[0] for term in self.terms]

    def moments(self, bin_ids: Any, y: NDArray[Any]) -> tuple[Array]:
        """Return the sum of ``x x^T`` over a block, from how often bins meet."""
        import tacit.additive._kernels as _kernels  # noqa: PLC0415 - numba

        factors, constant = self.factors, self._constant
        ranges, first_bins = ranges_of(self.terms), _first_bins(self.terms)
        size = ranges[-1][1] + 1
        total = np.zeros((size, size))
        columns = [
            np.ascontiguousarray(column) - first
            for column, first in zip(bin_ids.T, first_bins, strict=True)
        ]
        scale = y[:, 1]
        weights = scale**2
        for j, factor in enumerate(factors):
            own = slice(*ranges[j])
            counts = np.bincount(columns[j], weights, len(factor))
            total[own, own] = factor.T @ (counts[:, None] * factor)
            # the constant is not scaled, so its products have the scale once
            single = np.bincount(columns[j], scale, len(factor))
            total[own, -1] = total[-1, own] = constant * (single @ factor)
            for k in range(j + 1, len(factors)):
                other = slice(*ranges[k])
                both = np.zeros((len(factor), len(factors[k])))
                _kernels.add_up_pairs(columns[j], columns[k], weights, both)
                total[own, other] = factor.T @ both @ factors[k]
                total[other, own] = total[own, other].T
        total[-1, -1] = len(bin_ids) * constant**2
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

    def __call__(self, bin_ids: Any, y: NDArray[Any]) -> tuple[Array]:
        import tacit.additive._kernels as _kernels  # noqa: PLC0415 - numba

        sums, problem = self.sums, self.sums.problem
        clip = clip_needed(problem, sums.clip)
        values = np.concatenate(shapes_of(sums.terms, self.W[:-1]))
        total = np.zeros(values.shape)
        intercept = self.W[-1] * sums._constant
        last = np.zeros(problem.loss.n_outputs)
        for low in range(0, len(bin_ids), DENSE_ROWS):
            part = np.ascontiguousarray(bin_ids[low : low + DENSE_ROWS])
            targets, scale, margin_scale = y[low : low + DENSE_ROWS].T
            margins = np.zeros((len(part), len(intercept)))
            _kernels.look_up(part, values, margins)
            margins *= margin_scale[:, None]
            margins += intercept
            if problem.loss.targets == "codes":
                targets = targets.astype(np.intp)
            derivative = norm_clipped(problem.loss.derivative(targets, margins), clip)
            last += derivative.sum(axis=0)
            of_part = np.zeros(values.shape)
            _kernels.add_up(part, derivative * scale[:, None], of_part)
            total += of_part
        of_columns = np.split(total, _first_bins(sums.terms)[1:])
        parts = [
            factor.T @ own for factor, own in zip(sums.factors, of_columns, strict=True)
        ]
        return (np.concatenate([*parts, last[None] * sums._constant]),)
