"""How much of a noisy number to believe, when the noise is known and the rest is not.

Everything here is post-processing: it sees noisy numbers and the deviation of their
noise, and returns the mean of what they may have been without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["SPARSE", "believed"]

Array = NDArray[np.float64]

# How much of the most that there can be there may be
ENERGIES = np.geomspace(1e-3, 1.0, 25)
# Parts of the numbers that may be other than zero
SPARSE = tuple(float(part) for part in np.geomspace(1e-3, 1.0, 12))


def believed(
    noisy: Array,
    variance: Array,
    most: float,
    shapes: Sequence[Array],
    *,
    doubt: float,
    densities: Sequence[float] = (1.0,),
) -> Array:
    """Return the mean of numbers given noisy ones, averaged over normal priors.

    Parameters
    ----------
    noisy
        Numbers with noise.
    variance
        Variance of the noise of each.
    most
        Largest sum of squares that there can be without noise.
    shapes
        Variances of the numbers up to a factor, one vector for each prior.
    doubt
        Prior probability that all numbers are zero.
    densities
        Parts of the numbers that are other than zero.

    Notes
    -----
    A prior has the shape times a part of ``most``, and a number other than zero with
    the probability of its density. Priors are weighted by how likely they make what is
    seen, so that numbers like noise are believed little and numbers unlike it a lot.
    """
    if not most > 0:
        return np.zeros_like(noisy)
    null = -0.5 * (np.log(variance) + noisy**2 / variance)
    likely, means = [float(null.sum()) + np.log(doubt)], [np.zeros_like(noisy)]
    each = np.log((1 - doubt) / (len(shapes) * len(densities) * len(ENERGIES)))
    for shape in shapes:
        for density in densities:
            for energy in ENERGIES:
                prior = energy * most / density * shape / shape.sum()
                total = prior + variance
                seen = -0.5 * (np.log(total) + noisy**2 / total)
                mean = noisy * prior / total
                if density < 1:
                    there = np.log(density) + seen
                    seen = np.logaddexp(there, np.log1p(-density) + null)
                    mean *= np.exp(there - seen)
                likely.append(float(seen.sum()) + each)
                means.append(mean)
    weights = np.exp(np.array(likely) - max(likely))
    found: Array = weights @ np.array(means) / weights.sum()
    return found
