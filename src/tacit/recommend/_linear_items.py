"""An item side on which users make a linear fit of their own ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit._threads import in_order
from tacit.recommend._local import USUAL_PRIOR_COUNT, plain_arrays
from tacit.recommend._side import ItemSide, UserSide

if TYPE_CHECKING:
    from tacit.recommend._ratings import Ratings

__all__ = ["LOCAL_STEPS", "LinearItems"]

Array = NDArray[np.float64]

# What users do at home: a ridge, or the published product with the item vectors
LOCAL_STEPS = ("ridge", "projection")


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
    function of them and of her own ratings, computed by herself: with the fields
    released privately, all users' rows together are jointly private (Kearns, Pai, Roth
    and Ullman 2014).
    """

    penalties: Array
    prior_level: float
    prior_count: float = USUAL_PRIOR_COUNT
    step: str = "ridge"

    def local(self, ratings: Ratings) -> UserSide:
        """Return level and coefficients of each user, from her own ratings alone."""
        found = list(in_order(self._block, ratings.blocks(), side_by_side=True))
        empty = np.empty((0, self.vectors.shape[1]))
        levels = [np.empty(0), *(levels for levels, _ in found)]
        coefficients = [empty, *(coefficients for _, coefficients in found)]
        return UserSide(np.concatenate(levels), np.concatenate(coefficients))

    def _block(self, ratings: Ratings) -> tuple[Array, Array]:
        from tacit.recommend import (  # noqa: PLC0415 - numba loads on use
            _linear_kernels,
            _local_kernels,
        )

        indptr, items, values = plain_arrays(ratings)
        values -= self.offsets[items]
        levels = np.empty(len(indptr) - 1)
        vectors = np.ascontiguousarray(self.vectors)
        coefficients = np.empty((len(levels), vectors.shape[1]))
        if self.step == "projection":
            _local_kernels.center(
                indptr, values, self.prior_level, self.prior_count, levels
            )
            _linear_kernels.project(indptr, items, values, vectors, coefficients)
            return levels, coefficients
        values -= self.prior_level
        _linear_kernels.ridge(
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
