"""The published item side, and what users compute from it and their own ratings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tacit._execution import in_order
from tacit.exceptions import PlanError
from tacit.recommend.ratings.table import RatingFacts, Ratings

__all__ = [
    "MOST_NUMBERS",
    "USUAL_PRIOR_COUNT",
    "Block",
    "ItemSide",
    "UserSide",
    "centered",
    "check_size",
    "plain_arrays",
    "unit_rows",
    "usual_row_norm",
]


Array = NDArray[np.float64]
# Start of each user's ratings, their items in ascending order, and their values
Block = tuple[NDArray[np.int64], NDArray[np.int32], Array]

# Weight of the prior level, in ratings: levels of users vary about a third as much as
# ratings of one user
USUAL_PRIOR_COUNT = 3.0


def centered(
    ratings: Ratings,
    prior_level: float,
    prior_count: float = USUAL_PRIOR_COUNT,
    offsets: Array | None = None,
) -> tuple[Block, Array]:
    """Return users' ratings less public offsets and their levels, and the levels.

    It costs no budget: a level is a function of one user's ratings and of public
    numbers, and its bits do not depend on the other users of the block. The prior
    level, of a user of whom nothing is known, weighs ``prior_count`` ratings.
    """
    from tacit.recommend.items import _kernels as kernels  # noqa: PLC0415 - numba

    indptr, items, values = plain_arrays(ratings)
    if offsets is not None:
        values -= offsets[items]
    levels = np.empty(len(indptr) - 1)
    kernels.center(indptr, values, prior_level, prior_count, levels)
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


def usual_row_norm(facts: RatingFacts) -> float:
    """Return the norm of a row of ``max_ratings`` half a half-width off the middle."""
    return facts.half_width / 2 * sqrt(facts.max_ratings)


def unit_rows(
    ratings: Ratings, prior_level: float, row_norm: float
) -> tuple[Block, Array, Array]:
    """Return rows less the users' levels, the levels, and the factors of rows.

    A row of norm ``row_norm`` or less is divided by it, and a longer one by its own
    norm.
    """
    from tacit.recommend.items import _kernels as kernels  # noqa: PLC0415 - numba

    block, levels = centered(ratings, prior_level)
    indptr, _, values = block
    scales = np.empty(len(levels))
    # [spectral:clip] to one, up to less than the margin of the sums
    kernels.scale_rows(indptr, values, row_norm, scales)
    return block, levels, scales


# Least spread of offsets that orders items, as a fraction of the range of ratings
LEAST_SPREAD = 0.005

# Maximum of numbers of a side that can be saved: two gigabytes with the headers
MOST_NUMBERS = 2**28 - 2**13


@dataclass(frozen=True, eq=False, repr=False)
class UserSide:
    """Private levels and coefficients of users, each from their own ratings."""

    _private_means: Array
    _private_coefficients: Array

    def __repr__(self) -> str:
        return "UserSide()"


@dataclass(frozen=True, eq=False, repr=False)
class ItemSide(ABC):
    """Published item side of a private completion.

    A rating is predicted by the level of the user, the offset of the item, and the
    product of the user's coefficients with the item's vector. Level and coefficients
    are a function of the item side and the user's own ratings. Fields are
    saved by their annotations: arrays of floats with names of their lengths, of which
    those of one name are equal; short arrays of integers with their maximum; strings
    with their options; and numbers, of which integers are counts.

    Parameters
    ----------
    vectors
        Vector of each item.
    offsets
        Offset of each item, zero where no offset was released.
    low, high
        Range of ratings.
    """

    vectors: Annotated[Array, "items", "rank"]
    offsets: Annotated[Array, "items"]
    low: float
    high: float

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_items={self.n_items}, "
            f"rank={self.vectors.shape[1]}, low={self.low:g}, high={self.high:g})"
        )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.offsets)

    @property
    def has_offsets(self) -> bool:
        """Whether released offsets order items, the same for all users."""
        spread = float(np.max(self.offsets) - np.min(self.offsets))
        return spread >= LEAST_SPREAD * (self.high - self.low)

    @property
    def has_vectors(self) -> bool:
        """Whether released vectors order items, differently for each user."""
        return bool(self.vectors.any())

    @property
    def released(self) -> str:
        """What was released about items, as one sentence.

        It follows from the item side, which is public.
        """
        if self.has_vectors and self.has_offsets:
            return "item offsets and item vectors were released"
        if self.has_vectors:
            return "item vectors were released, and no item offsets"
        if self.has_offsets:
            return (
                "only item offsets were released: no direction of taste exceeded the "
                "noise, so that all users get the same order of items"
            )
        return (
            "NOTHING about items was released beyond the noise: predictions are each "
            "user's own mean, and items are recommended in an arbitrary order; raise "
            "epsilon, take more users or fewer items, or check that item labels in the "
            "ratings are of the kind of `items`"
        )

    def local(self, ratings: Ratings) -> UserSide:
        """Return level and coefficients of each user, from their own ratings only."""
        found = list(in_order(self._at_home, ratings.blocks(), side_by_side=True))
        levels = [np.empty(0), *(levels for levels, _ in found)]
        coefficients = [
            np.empty((0, self.vectors.shape[1])),
            *(coefficients for _, coefficients in found),
        ]
        return UserSide(np.concatenate(levels), np.concatenate(coefficients))

    def is_consistent(self) -> bool:
        """Return whether fields with lengths that agree may come from a fit.

        Compiled code that does not check bounds relies on it.
        """
        return True

    @abstractmethod
    def _at_home(self, ratings: Ratings) -> tuple[Array, Array]:
        """Return levels and coefficients of some users."""

    def complete(self, ratings: Ratings) -> Array:
        """Return the predicted row of each user, which belongs to that user."""
        return np.clip(self.scores(ratings), self.low, self.high)

    def scores(self, ratings: Ratings) -> Array:
        """Return predicted rows before they are clipped to the range of ratings."""
        users = self.local(ratings)
        rows = users._private_means[:, None] + self.offsets
        # [recommend:row] not by BLAS, whose last bits change with the number of users
        rows += np.einsum(
            "ik,jk->ij",
            np.ascontiguousarray(users._private_coefficients),
            np.ascontiguousarray(self.vectors),
        )
        return rows

    def at(
        self, ratings: Ratings, users: NDArray[np.intp], items: NDArray[np.intp]
    ) -> Array:
        """Return predictions for pairs of a user and an item, by position."""
        sides = self.local(ratings)
        rows = sides._private_means[users] + self.offsets[items]
        rows += np.einsum(
            "ik,ik->i",
            np.ascontiguousarray(sides._private_coefficients)[users],
            np.ascontiguousarray(self.vectors)[items],
        )
        return np.clip(rows, self.low, self.high)


def check_size(n_items: int, each: int, less: str) -> None:
    """Reject, before the charge, a side too large to be saved; ``less`` is a remedy."""
    if n_items * each > MOST_NUMBERS:
        raise PlanError(
            f"An item side of {n_items} items, with up to {each} numbers for each, is "
            f"too large to be saved; take fewer items, or {less}."
        )
