"""The item side of a walk: public steps, which every user takes with her own row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.recommend._sides.base import ItemSide
from tacit.recommend._sides.local import Block, centered

if TYPE_CHECKING:
    from tacit.recommend._ratings.table import Ratings

__all__ = ["Visited", "WalkItems"]

Array = NDArray[np.float64]


class Visited(NamedTuple):
    """Where the steps took some users; it is secret.

    ``values`` are ratings less the level and the offsets, ``predicted`` what the steps
    make of them, and ``others`` what they make of each from the user's other ratings,
    or nothing.
    """

    levels: Array
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: Array
    predicted: Array
    others: Array
    coefficients: Array


@dataclass(frozen=True, eq=False, repr=False)
class WalkItems(ItemSide):
    """Vectors and lengths of all steps, from which any user replays her own row.

    In each step a user multiplies the residuals of her ratings with the vector of the
    step, keeps a part of her row, and moves against the product along the vector.

    Parameters
    ----------
    keeps
        What is kept of a row in each step.
    lengths
        What the product is multiplied by in each step.
    strengths
        Eigenvalue of each step, less its noise, in units of the squared bound on rows.
    prior_level
        Level of a user of whom nothing is known.
    max_ratings
        Ratings of a user that the lengths are for. The product of one with more is
        that of as many, on average.
    row_norm
        Norm to which ratings and predictions of a user are clipped; None where neither
        is, and predictions are no longer than the user's ratings.

    Notes
    -----
    **Guarantee.** The fields are public, and a user's row is a function of them and of
    her own ratings, computed by herself: with the fields released privately, all users'
    rows together are jointly private (Kearns, Pai, Roth and Ullman 2014). The fit takes
    these very steps, so a row replayed from the ratings that the fit used is the same
    to the last bit.
    """

    keeps: Array
    lengths: Array
    strengths: Array
    prior_level: float
    max_ratings: int
    row_norm: float | None = None

    @classmethod
    def start(
        cls,
        offsets: Array,
        low: float,
        high: float,
        prior_level: float,
        max_ratings: int,
        row_norm: float | None = None,
    ) -> WalkItems:
        """Return the side before the first step."""
        none = np.empty(0)
        return cls(
            np.empty((len(offsets), 0)),
            offsets,
            low,
            high,
            none,
            none,
            none,
            prior_level,
            max_ratings,
            row_norm,
        )

    def moved(
        self, vector: Array, keep: float, length: float, strength: float
    ) -> WalkItems:
        """Return the side after one more step."""
        return replace(
            self,
            vectors=np.column_stack([self.vectors, vector]),
            keeps=np.append(self.keeps, keep),
            lengths=np.append(self.lengths, length),
            strengths=np.append(self.strengths, strength),
        )

    def _at_home(self, ratings: Ratings) -> tuple[Array, Array]:
        at = self.visited(ratings, with_others=False)
        return at.levels, at.coefficients

    def visited(self, ratings: Ratings, *, with_others: bool = True) -> Visited:
        """Return where all steps take some users."""
        from tacit.recommend._sides import pass_kernels  # noqa: PLC0415 - Numba

        block, levels = centered(ratings, self.prior_level, offsets=self.offsets)
        indptr, items, values = block
        predicted = np.empty_like(values)
        others = np.empty(len(values) if with_others else 0)
        coefficients = np.zeros((len(levels), len(self.keeps)))
        pass_kernels.walk(
            indptr,
            items,
            values,
            np.ascontiguousarray(self.vectors.T),
            self.keeps,
            self.lengths,
            inf if self.row_norm is None else self.row_norm,
            float(self.max_ratings),
            predicted,
            others,
            coefficients,
        )
        return Visited(levels, indptr, items, values, predicted, others, coefficients)

    def unit_residuals(self, ratings: Ratings, bound: float) -> Block:
        """Return the residuals of some users over ``bound``, within the unit ball."""
        from tacit.recommend._sides import pass_kernels  # noqa: PLC0415 - Numba

        at = self.visited(ratings, with_others=False)
        pass_kernels.unit_residuals(at.indptr, at.values, at.predicted, bound)
        return at.indptr, at.items, at.predicted
