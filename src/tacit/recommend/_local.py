"""What a user works out at home, from her own ratings and public numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tacit.recommend._facts import RatingFacts
    from tacit.recommend._ratings import Ratings

__all__ = ["USUAL_PRIOR_COUNT", "centered", "plain_arrays"]

Array = NDArray[np.float64]

# Ratings that the prior mean is worth: levels of users differ about a third as much as
# ratings of one user do
USUAL_PRIOR_COUNT = 3.0


def centered(
    ratings: Ratings,
    facts: RatingFacts,
    prior_mean: float | None = None,
    prior_count: float = USUAL_PRIOR_COUNT,
    offsets: Array | None = None,
) -> tuple[Array, Array]:
    """Return the level of each user, and her ratings less that level.

    It is local and free: a level is a function of one user's ratings and of public
    numbers, and its bits do not depend on the other users of the block.

    Parameters
    ----------
    ratings
        Ratings of some users.
    facts
        What is public about ratings.
    prior_mean
        Public level of a user of whom nothing is known; None for the middle of the
        range.
    prior_count
        Ratings that the prior level is worth.
    offsets
        Public offset of each item, which is taken off ratings first; None for none.

    Returns
    -------
    tuple
        Levels, one a user, and what is left of ratings, in their order.
    """
    from tacit.recommend import _local_kernels  # noqa: PLC0415 - numba loads on use

    indptr, items, values = plain_arrays(ratings)
    if offsets is not None:
        values -= np.asarray(offsets, dtype=np.float64)[items]
    means = np.empty(len(indptr) - 1)
    prior = facts.middle if prior_mean is None else float(prior_mean)
    _local_kernels.center(indptr, values, prior, float(prior_count), means)
    return means, values


def plain_arrays(
    ratings: Ratings,
) -> tuple[NDArray[np.int64], NDArray[np.int32], Array]:
    """Return row ends from zero, items and values, as arrays that kernels share.

    They are copies in memory, of one kind for maps of files and for views, so that a
    kernel is compiled once.
    """
    indptr = np.array(ratings.indptr, dtype=np.int64)
    indptr -= indptr[0]
    items = np.array(ratings.items, dtype=np.int32)
    return indptr, items, np.array(ratings.values, dtype=np.float64)
