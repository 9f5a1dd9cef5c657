"""Terms of an additive model: the features of a row in one column or in two.

A column of numbers has cosines of the position of its bin, the slower with the larger
weight. So the noise of a fit is mostly in slow waves, and shapes with many bins are no
noisier than a straight line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from tacit.additive._bins import Bins

__all__ = ["Term", "main_term", "pair_factor", "term_features"]

Array = NDArray[np.float64]

# Cosines of a column, the k-th with weight 1 / k; by benchmarks/additive/fit_rule.py
WAVES = 12
# and of each column of a pair, and the most categories that one has there
PAIR_WAVES, PAIR_CATEGORIES = 3, 8
# Squared norm to which features of a column of numbers are clipped on average: half is
# the mean of a squared cosine, and one its largest value
NUMERIC_NORM = 0.56


@dataclass(frozen=True, eq=False)
class Term:
    """Features of one column, or products of features of two.

    Parameters
    ----------
    columns
        Positions of the columns.
    factors
        Features of each bin, one matrix a column.
    """

    columns: tuple[int, ...]
    factors: tuple[Array, ...]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(np.prod([factor.shape[1] for factor in self.factors]))

    def features(self, bins: NDArray[np.intp]) -> Array:
        """Return the features of rows, given the bins of all columns."""
        parts = (
            factor[bins[:, column]]
            for column, factor in zip(self.columns, self.factors, strict=True)
        )
        return reduce(_products, parts)

    def shape(self, weights: Array) -> Array:
        """Return what the term adds to each margin: an axis a column, one of margins.

        ``weights`` are those of its features, with a column for each margin.
        """
        sizes = [factor.shape[1] for factor in self.factors]
        values = weights.reshape(*sizes, weights.shape[1])
        for axis, factor in enumerate(self.factors):
            values = np.moveaxis(np.tensordot(factor, values, (1, axis)), 0, axis)
        return np.asarray(values, dtype=np.float64)


def _products(first: Array, second: Array) -> Array:
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def main_term(position: int, bins: Bins) -> Term:
    """Return the term of one column."""
    if not bins.column.is_numeric:
        return Term((position,), (np.eye(bins.n_bins),))
    factor = np.zeros((bins.n_bins, WAVES + 1))
    factor[:-1, :-1] = _waves(bins, 1.0 / np.arange(1, WAVES + 1))
    factor[-1, -1] = 1.0  # a missing cell
    return Term((position,), (factor,))


def pair_factor(bins: Bins) -> Array:
    """Return the few features that a column has in pairs."""
    if bins.column.is_numeric:
        factor = np.zeros((bins.n_bins, PAIR_WAVES))
        factor[:-1] = _waves(bins, 1.0 / np.arange(1, PAIR_WAVES + 1))
        return factor
    largest = np.argsort(-bins.mass, kind="stable")[:PAIR_CATEGORIES]
    return np.eye(bins.n_bins)[:, np.sort(largest)]


def _waves(bins: Bins, weights: Array) -> Array:
    """Return cosines at the bins, such that the squares of weights sum to one."""
    waves = np.cos(np.pi * np.outer(bins.position, np.arange(1, len(weights) + 1)))
    return waves * (weights / np.linalg.norm(weights))


def term_features(terms: Sequence[Term], bins: NDArray[np.intp]) -> Array:
    """Return the features of all terms."""
    ends = np.cumsum([0, *(term.n_features for term in terms)])
    found = np.empty((len(bins), int(ends[-1])))
    for term, start, end in zip(terms, ends[:-1], ends[1:], strict=True):
        found[:, start:end] = term.features(bins)
    return found
