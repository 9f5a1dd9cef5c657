"""An item side on which users make a linear fit of their own ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.recommend._sides.base import ItemSide
from tacit.recommend._sides.local import USUAL_PRIOR_COUNT, centered, plain_arrays

if TYPE_CHECKING:
    from tacit.recommend._ratings.table import Ratings

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

    def _at_home(self, ratings: Ratings) -> tuple[Array, Array]:
        from tacit.recommend._sides import linear_kernels  # noqa: PLC0415 - numba

        vectors = np.ascontiguousarray(self.vectors)
        coefficients = np.empty((ratings.n_users, vectors.shape[1]))
        if self.step == "projection":
            block, levels = centered(
                ratings, self.prior_level, self.prior_count, self.offsets
            )
            linear_kernels.project(*block, vectors, coefficients)
            return levels, coefficients
        indptr, items, values = plain_arrays(ratings)
        values -= self.offsets[items]
        values -= self.prior_level
        levels = np.empty(ratings.n_users)
        linear_kernels.ridge(
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
