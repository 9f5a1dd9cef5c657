"""An item side from which users predict by the most similar items they rated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.recommend._sides.base import ItemSide
from tacit.recommend._sides.local import centered

if TYPE_CHECKING:
    from tacit.recommend._ratings.table import Ratings

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

    @property
    def has_vectors(self) -> bool:
        """Whether the covariance says anything of one item by another."""
        return bool(self.covariance.any())

    def _at_home(self, ratings: Ratings) -> tuple[Array, Array]:
        from tacit.recommend._sides import neighbor_kernels  # noqa: PLC0415 - numba

        block, levels = centered(
            ratings, self.prior_level, self.prior_count, self.offsets
        )
        rows = np.empty((len(levels), self.n_items))
        neighbor_kernels.interpolate(
            *block,
            np.ascontiguousarray(self.covariance),
            self.variance,
            self.n_neighbors,
            rows,
        )
        return levels, rows
