"""Offsets of items from noisy counts and sums: empirical Bayes with known noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["RARE", "shrunk"]

Array = NDArray[np.float64]

# Spreads of offsets to choose from, where no offset is beyond one
_SPREADS = 2.0 ** -np.arange(0.0, 12.0, 0.25)
# Items below this part of the mean count are as good as equally rare
RARE = 0.3
# Log-likelihood by which offsets must be likelier than none to be told from the noise:
# what is less sure than that would gain next to nothing
_CLEAR = 3.0
# Usual mean of offsets, and usual slope, which noise is held against
_USUAL_LINE = 0.07


def shrunk(
    counts: Array, sums: Array, count_scale: float, sum_scale: float, variance: float
) -> Array:
    """Return the offset of each item, shrunk to the trend by the known noise.

    Offsets are taken as normal around a line in the logarithm of the count, as those
    who rate much choose what is good; sums as count times offset plus noise, and the
    noise of the counts as part of that of the sums. Line and spread are those of the
    largest likelihood, offsets the expected ones, and zero where noise alone explains
    the sums about as well. All of it is from released numbers and known noise.

    Parameters
    ----------
    counts, sums
        As released, an entry for each item, where no offset is beyond one.
    count_scale, sum_scale
        Deviation of their noise.
    variance
        Variance of a sum, noise apart, that one of its count is worth.
    """
    counts = np.maximum(counts, 0.0)
    popularity = np.log(counts + count_scale + RARE * counts.mean())
    popularity -= np.average(popularity, weights=counts + count_scale)
    terms = np.stack([np.ones_like(counts), popularity], axis=1)
    design = terms * counts[:, None]
    known = sum_scale**2 + variance * counts

    # what any line and spread must beat: sums that are noise and nothing else
    best = _CLEAR - 0.5 * float(np.sum(sums**2 / known + np.log(known)))
    offsets = np.zeros_like(counts)
    for spread in _SPREADS:
        # offsets are small against one, and their mean is left out of this noise
        noise = known + (spread * count_scale) ** 2
        marginal = noise + (spread * counts) ** 2
        weighted = design.T / marginal
        precision = weighted @ design + _USUAL_LINE**-2 * np.eye(2)
        line = np.linalg.solve(precision, weighted @ sums)
        errors = sums - design @ line
        likelihood = -0.5 * float(np.sum(errors**2 / marginal + np.log(marginal)))
        if likelihood > best:
            best = likelihood
            offsets = terms @ line + spread**2 * counts * errors / marginal
    return np.clip(offsets, -1.0, 1.0)
