"""What a user works out at home, from her own ratings and public numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tacit.recommend._ratings.table import Ratings

__all__ = ["USUAL_PRIOR_COUNT", "Block", "centered", "plain_arrays"]

Array = NDArray[np.float64]
# Places where each user's ratings begin, her items in ascending order, and her numbers
Block = tuple[NDArray[np.int64], NDArray[np.int32], Array]

# Ratings that the prior mean is worth: levels of users differ about a third as much as
# ratings of one user do
USUAL_PRIOR_COUNT = 3.0


def centered(
    ratings: Ratings,
    prior_level: float,
    prior_count: float = USUAL_PRIOR_COUNT,
    offsets: Array | None = None,
) -> tuple[Block, Array]:
    """Return users' ratings less their levels, and the levels.

    It is local and free: a level is a function of one user's ratings and of public
    numbers, and its bits do not depend on the other users of the block.

    Parameters
    ----------
    ratings
        Ratings of some users.
    prior_level
        Public level of a user of whom nothing is known.
    prior_count
        Ratings that the prior level is worth.
    offsets
        Public offset of each item, which is taken off ratings first; None for none.
    """
    from tacit.recommend._sides import local_kernels  # noqa: PLC0415 - numba

    indptr, items, values = plain_arrays(ratings)
    if offsets is not None:
        values -= offsets[items]
    levels = np.empty(len(indptr) - 1)
    local_kernels.center(indptr, values, prior_level, prior_count, levels)
    return (indptr, items, values), levels


def plain_arrays(ratings: Ratings) -> Block:
    """Return row ends from zero, items and values, as arrays that kernels share.

    They are copies in memory, of one kind for maps of files and for views, so that a
    kernel is compiled once.
    """
    indptr = np.array(ratings.indptr, dtype=np.int64)
    indptr -= indptr[0]
    items = np.array(ratings.items, dtype=np.int32)
    return indptr, items, np.array(ratings.values, dtype=np.float64)
