"""Rows of users within the unit ball, each by her own ratings alone."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.recommend._sides.local import Block, centered

if TYPE_CHECKING:
    from tacit.recommend._facts import RatingFacts
    from tacit.recommend._ratings.table import Ratings

__all__ = ["unit_rows", "usual_row_norm"]

Array = NDArray[np.float64]


def usual_row_norm(facts: RatingFacts) -> float:
    """Return the norm of a row of most ratings that are half a half-width off."""
    return facts.half_width / 2 * sqrt(facts.max_ratings)


def unit_rows(
    ratings: Ratings, prior_level: float, row_norm: float
) -> tuple[Block, Array, Array]:
    """Return rows less the users' levels, the levels, and what rows were scaled by.

    A row of norm ``row_norm`` or less is divided by it, and a longer one by its own
    norm.
    """
    from tacit.recommend._sides import local_kernels  # noqa: PLC0415 - numba

    block, levels = centered(ratings, prior_level)
    indptr, _, values = block
    scales = np.empty(len(levels))
    # [spectral:clip] to one, less than the margin of the sums off
    local_kernels.scale_rows(indptr, values, row_norm, scales)
    return block, levels, scales
