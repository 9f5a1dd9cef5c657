"""Shrinkage of released shapes, by how much of them is noise; costs no budget.

Waves of a column are taken in blocks of an octave, and the categories of a column in
one block. A block that is about as large as its noise is shrunk to nearly zero, and one
that is far larger stays: the positive part of the estimate of James and Stein (1961),
in the metric of what the block adds to the margins of rows. So a fit can have waves
that only some tables need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.additive._bins import Bins
from tacit.additive._terms import Term, ranges_of

__all__ = ["shrinkage"]

Array = NDArray[np.float64]


def shrinkage(
    terms: Sequence[Term], bins: Sequence[Bins], weights: Array, covariance: Array
) -> Array:
    """Return the factor of each weight, from released weights and their noise."""
    factors = np.ones(len(weights))
    for term, each, (start, end) in zip(terms, bins, ranges_of(terms), strict=True):
        (features,) = term.factors
        moments = features.T @ (features * each.fractions[:, None])
        for block in _blocks(each, end - start):
            own = slice(start + block.start, start + block.stop)
            metric = moments[block, block]
            size = float(weights[own] @ metric @ weights[own])
            noise = float((metric * covariance[own, own]).sum())
            factors[own] = max(0.0, 1.0 - noise / max(size, 1e-300))
    return factors


def _blocks(bins: Bins, n_features: int) -> Iterator[slice]:
    """Yield all categories together, or octaves of waves but the slowest wave."""
    if not bins.column.is_numeric:
        yield slice(0, n_features)
        return
    n_waves, start = n_features - 1, 1  # the last feature is that of missing cells
    while start < n_waves:
        end = min(2 * start + 1, n_waves)
        yield slice(start, end)
        start = end
