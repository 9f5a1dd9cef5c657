"""Item sides from which users predict linearly in their own ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tacit.recommend.items.side import (
    USUAL_PRIOR_COUNT,
    ItemSide,
    centered,
    plain_arrays,
)
from tacit.recommend.ratings.table import Ratings

__all__ = ["LOCAL_STEPS", "LinearItems", "NeighborItems"]


Array = NDArray[np.float64]

# What users do at home: a ridge, or the published product with the item vectors
LOCAL_STEPS = ("ridge", "projection")
# Largest number of neighbors where there are fewer items
MOST_NEIGHBORS = 2**12


@dataclass(frozen=True, eq=False, repr=False)
class LinearItems(ItemSide):
    """Item vectors with the ridge of each direction.

    Parameters
    ----------
    penalties
        Ridge on the coefficient of each direction, where a rating weighs one.
    prior_level
        Level of a user of whom nothing is known.
    prior_count
        Ratings that this level is worth.
    step
        ``"ridge"`` for least squares on a constant and the vectors of items that the
        user rated; ``"projection"`` for products with the vectors, times the number of
        all items over that of the user's.

    Notes
    -----
    **Guarantee.** The fields are public, and level and coefficients of a user are a
    function of them and of their own ratings, computed by themselves: with the fields
    released privately, all users' rows together are jointly private (Kearns, Pai, Roth
    and Ullman 2014).
    """

    penalties: Annotated[Array, "rank"]
    prior_level: float
    prior_count: float = USUAL_PRIOR_COUNT
    step: Annotated[str, LOCAL_STEPS] = "ridge"

    def is_consistent(self) -> bool:
        return bool(self.prior_count >= 0)

    def _at_home(self, ratings: Ratings) -> tuple[Array, Array]:
        from tacit.recommend.items import _kernels as kernels  # noqa: PLC0415 - numba

        vectors = np.ascontiguousarray(self.vectors)
        coefficients = np.empty((ratings.n_users, vectors.shape[1]))
        if self.step == "projection":
            block, levels = centered(
                ratings, self.prior_level, self.prior_count, self.offsets
            )
            kernels.project(*block, vectors, coefficients)
            return levels, coefficients
        indptr, items, values = plain_arrays(ratings)
        values -= self.offsets[items]
        values -= self.prior_level
        levels = np.empty(ratings.n_users)
        kernels.ridge(
            indptr,
            items,
            values,
            vectors,
            self.penalties,
            self.prior_count,
            levels,
            coefficients,
        )
        return levels + self.prior_level, coefficients


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
    and of their own ratings, computed by themselves. Weights are those of R. Bell and
    Y. Koren, "Scalable collaborative filtering with jointly derived neighborhood
    interpolation weights", ICDM 2007.
    """

    covariance: Annotated[Array, "items", "items"]
    variance: float
    n_neighbors: int
    prior_level: float
    prior_count: float

    def is_consistent(self) -> bool:
        # users compute with a matrix of all neighbors
        most = max(self.n_items, MOST_NEIGHBORS)
        axes = self.vectors.shape[1] == self.n_items
        return self.n_neighbors <= most and axes and bool(self.prior_count >= 0)

    @property
    def has_vectors(self) -> bool:
        """Whether the covariance is not zero."""
        return bool(self.covariance.any())

    def _at_home(self, ratings: Ratings) -> tuple[Array, Array]:
        from tacit.recommend.items import _kernels as kernels  # noqa: PLC0415 - numba

        block, levels = centered(
            ratings, self.prior_level, self.prior_count, self.offsets
        )
        rows = np.empty((len(levels), self.n_items))
        kernels.interpolate(
            *block,
            np.ascontiguousarray(self.covariance),
            self.variance,
            self.n_neighbors,
            rows,
        )
        return levels, rows
