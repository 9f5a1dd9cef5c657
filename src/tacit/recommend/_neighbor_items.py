"""An item side from which users predict by the most similar items they rated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit._threads import in_order
from tacit.recommend._local import plain_arrays
from tacit.recommend._side import ItemSide, UserSide

if TYPE_CHECKING:
    from tacit.recommend._ratings import Ratings

__all__ = ["NeighborItems"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class NeighborItems(ItemSide):
    """Covariance of items, whose vectors are axes: each is a direction of its own.

    Parameters
    ----------
    covariance
        Covariance of users' ratings, less level and offset, between items.
    variance
        Variance of a rating besides.
    n_neighbors
        Most items that a prediction is interpolated from.
    prior_level
        Level of a user of whom nothing is known.
    prior_count
        Ratings that this level is worth.

    Notes
    -----
    **Guarantee.** Fields are public, and predictions for a user are a function of them
    and of her own ratings, computed by herself. Weights are those of R. Bell and Y.
    Koren, "Scalable collaborative filtering with jointly derived neighborhood
    interpolation weights", ICDM 2007.
    """

    covariance: Array
    variance: float
    n_neighbors: int
    prior_level: float
    prior_count: float

    def local(self, ratings: Ratings) -> UserSide:
        """Return level and predicted differences of each user."""
        found = list(in_order(self._block, ratings.blocks(), side_by_side=True))
        levels = [np.empty(0), *(levels for levels, _ in found)]
        rows = [np.empty((0, self.n_items)), *(rows for _, rows in found)]
        return UserSide(np.concatenate(levels), np.concatenate(rows))

    def _block(self, ratings: Ratings) -> tuple[Array, Array]:
        from tacit.recommend import (  # noqa: PLC0415 - numba loads on use
            _local_kernels,
            _neighbor_kernels,
        )

        indptr, items, values = plain_arrays(ratings)
        values -= self.offsets[items]
        levels = np.empty(len(indptr) - 1)
        _local_kernels.center(
            indptr, values, self.prior_level, self.prior_count, levels
        )
        rows = np.empty((len(levels), self.n_items))
        _neighbor_kernels.interpolate(
            indptr,
            items,
            values,
            np.ascontiguousarray(self.covariance),
            self.variance,
            self.n_neighbors,
            rows,
        )
        return levels, rows
