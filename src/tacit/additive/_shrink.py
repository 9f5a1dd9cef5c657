"""Shrinkage of released weights, by how much of them is noise; costs no budget.

Empirical Bayes: the weights of a block have a normal prior with mean zero and a
variance of their own, which is estimated from all released weights. A block that is
about as large as its noise is shrunk strongly, and one that is far larger stays. So a
fit can have waves that only some tables need. Where columns are correlated, so is the
noise of their weights, and what one of them loses others take over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from tacit.additive._bins import Bins
from tacit.additive._terms import Term, ranges_of

__all__ = ["blocks_of", "shrink", "unseen"]

Array = NDArray[np.float64]

# Updates of the variances. More fit them better and predict no better, by
# benchmarks/additive/fit_rule.py
UPDATES = 8
# Least variance of a block, as a part of that of the noise: far more than round-off
LEAST_VARIANCE = 1e-6
# Bands are narrower by this power of the shrinkage: by all of it they would be too
# narrow, as estimated variances are noisy too. By benchmarks/additive/coverage.py
NOISE_LEFT = 0.25
# Counts below so many standard deviations of their noise may be of no rows
UNSEEN_COUNTS = 2.0


def shrink(
    weights: Array, covariance: Array, blocks: Sequence[slice]
) -> tuple[Array, Array]:
    """Return posterior means of the weights, and a covariance for bands around them.

    ``covariance`` is that of the noise of the released weights. Variances start from
    these weights and take a few steps towards the largest likelihood, each of which
    increases it (Zhou, Hu, Zhou and Lange 2019).
    """
    least = LEAST_VARIANCE * float(np.diag(covariance).mean())
    variances = np.empty(len(weights))
    for block in blocks:
        variances[block] = max(float((weights[block] ** 2).mean()), least)
    for _ in range(UPDATES):
        inverse = _inverse(covariance + np.diag(variances))
        pulled = inverse @ weights
        for block in blocks:
            fit = (pulled[block] ** 2).sum() / np.diag(inverse)[block].sum()
            variances[block] = np.maximum(variances[block] * np.sqrt(fit), least)
    inverse = _inverse(covariance + np.diag(variances))
    narrower = (variances * np.diag(inverse)) ** NOISE_LEFT
    shrunk = variances * (inverse @ weights)
    return shrunk, covariance * np.outer(narrower, narrower)


def _inverse(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix, by its Cholesky factor."""
    root, failed = lapack.dpotrf(matrix)
    # the least variance is far above what round-off takes from a covariance
    assert not failed
    upper, _ = lapack.dpotri(root)
    inverse: Array = np.triu(upper) + np.triu(upper, 1).T
    return inverse


def blocks_of(terms: Sequence[Term], bins: Sequence[Bins]) -> list[slice]:
    """Return the blocks: those of each column, and the intercept as the last."""
    found = []
    for each, (start, end) in zip(bins, ranges_of(terms), strict=True):
        for block in _blocks(each, end - start):
            found.append(slice(start + block.start, start + block.stop))
    return [*found, slice(end, end + 1)]


def _blocks(bins: Bins, n_features: int) -> Iterator[slice]:
    """Yield all categories as one block, or octaves of waves and the missing cells."""
    if not bins.column.is_numeric:
        yield slice(0, n_features)
        return
    start, n_waves = 0, n_features - 1
    while start < n_waves:
        end = min(2 * start + 1, n_waves)
        yield slice(start, end)
        start = end
    yield slice(n_waves, n_features)


def unseen(bins: Bins, count_noise: float) -> NDArray[np.bool_]:
    """Return which bins are of missing or unlisted cells that no row may have.

    Without rows a released value is all noise, and a cell like that may come later;
    listed categories are there for their rows. ``count_noise`` is the standard
    deviation of a count, as a fraction of the rows.
    """
    few = bins.mass < UNSEEN_COUNTS * count_noise
    few[: -1 if bins.column.is_numeric else -2] = False
    return few
