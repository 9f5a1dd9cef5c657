"""Scores by which a point of a public grid is chosen as a quantile."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import Neighbors

__all__ = ["PARTS", "rank_scores", "rank_sensitivity"]

# Levels are whole numbers of these parts of one, so that scores are exact
PARTS = 2**20


def rank_scores(counts: NDArray[np.int64], level: int) -> NDArray[np.float64]:
    """Return minus the rows that keep each grid point from being a quantile.

    Parameters
    ----------
    counts
        Rows at each grid point.
    level
        The quantile, in ``PARTS``.
    """
    # [quantiles:score] in whole parts of a row, which are exact as floats
    up_to = np.cumsum(counts)
    n = up_to[-1]
    too_high = PARTS * (up_to - counts) - level * n
    too_low = level * n - PARTS * up_to
    missed = np.maximum(np.maximum(too_high, too_low), 0)
    scores: NDArray[np.float64] = -missed.astype(np.float64) / PARTS
    return scores


def rank_sensitivity(level: int, neighbors: Neighbors) -> float:
    """Return how far neighbors can move the score of a grid point."""
    # [quantiles:sensitivity] a row moves from one side to the other, or to a side
    if neighbors is Neighbors.REPLACE_ONE:
        return 1.0
    return max(level, PARTS - level) / PARTS
