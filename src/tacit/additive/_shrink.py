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

__all__ = ["shrinkage", "unseen"]

Array = NDArray[np.float64]

# Counts below so many standard deviations of their noise may be of no rows
UNSEEN_COUNTS = 2.0


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


def unseen(bins: Bins, count_noise: float) -> NDArray[np.bool_]:
    """Return which bins are of missing or unlisted cells that no row may have.

    Without rows a released value is all noise, and a cell like that may come later;
    listed categories are there for their rows. ``count_noise`` is the standard
    deviation of a count, as a fraction of the rows.
    """
    few = bins.mass < UNSEEN_COUNTS * count_noise
    few[: -1 if bins.column.is_numeric else -2] = False
    return few


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
