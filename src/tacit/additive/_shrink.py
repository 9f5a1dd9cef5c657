"""Shrinkage of released weights, by how much of them is noise; costs no budget.

Weights are taken in blocks: the waves of a column by octaves, the categories of a
column together. Those of a block are normal around zero with one variance, which all
released weights show together: a block that is about as large as its noise is shrunk to
nearly zero, and one that is far larger stays. So a fit can have waves that only some
tables need. Where columns are correlated, so is the noise of their weights, and what
one of them loses others take over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from tacit.additive._bins import Bins
from tacit.additive._terms import Term, ranges_of

__all__ = ["blocks_of", "shrunk", "unseen"]

Array = NDArray[np.float64]

# Rounds in which variances are found; more change predictions by next to nothing
ROUNDS = 8
# Least variance of a block, as a part of that of the noise: far more than round-off
LEAST_VARIANCE = 1e-6
# Stated noise keeps this power of what each weight keeps: less would be that of blocks
# whose variances do not depend on the noise. By benchmarks/additive/coverage.py
NOISE_LEFT = 0.25
# Counts below so many standard deviations of their noise may be of no rows
UNSEEN_COUNTS = 2.0


def shrunk(
    weights: Array, covariance: Array, blocks: Sequence[slice]
) -> tuple[Array, Array]:
    """Return the posterior means of weights, and about the covariance of their noise.

    ``covariance`` is that of the noise of the released weights. The variance of each
    block is that of largest likelihood, by the updates of Zhou, Hu, Zhou and Lange
    (2019), none of which makes the likelihood smaller.
    """
    least = LEAST_VARIANCE * float(np.diag(covariance).mean())
    prior = np.empty(len(weights))
    for block in blocks:
        prior[block] = max(float((weights[block] ** 2).mean()), least)
    for _ in range(ROUNDS):
        inverse = _inverse(covariance + np.diag(prior))
        pulled = inverse @ weights
        for block in blocks:
            fit = (pulled[block] ** 2).sum() / np.diag(inverse)[block].sum()
            prior[block] = np.maximum(prior[block] * np.sqrt(fit), least)
    inverse = _inverse(covariance + np.diag(prior))
    left = (prior * np.diag(inverse)) ** NOISE_LEFT
    return prior * (inverse @ weights), covariance * np.outer(left, left)


def _inverse(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix, by its Cholesky factor."""
    root, _ = lapack.dpotrf(matrix)
    upper, _ = lapack.dpotri(root)
    inverse: Array = np.triu(upper) + np.triu(upper, 1).T
    return inverse


def blocks_of(terms: Sequence[Term], bins: Sequence[Bins]) -> list[slice]:
    """Return the blocks of all weights, of which that of the constant is the last."""
    found = []
    for each, (start, end) in zip(bins, ranges_of(terms), strict=True):
        for block in _blocks(each, end - start):
            found.append(slice(start + block.start, start + block.stop))
    return [*found, slice(end, end + 1)]


def _blocks(bins: Bins, n_features: int) -> Iterator[slice]:
    """Yield all categories together, or octaves of waves, and missing cells."""
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
