"""The published item side, and what users compute from it and their own ratings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tacit._threads import in_order
from tacit.exceptions import PlanError
from tacit.recommend.ratings.facts import RatingFacts
from tacit.recommend.ratings.table import Ratings

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
    """Return the norm of a row of most ratings that are half a half-width off."""
    return facts.half_width / 2 * sqrt(facts.max_ratings)


def unit_rows(
    ratings: Ratings, prior_level: float, row_norm: float
) -> tuple[Block, Array, Array]:
    """Return rows less the users' levels, the levels, and what rows were scaled by.

    A row of norm ``row_norm`` or less is divided by it, and a longer one by its own
    norm.
    """
    from tacit.recommend.items import _kernels as kernels  # noqa: PLC0415 - numba

    block, levels = centered(ratings, prior_level)
    indptr, _, values = block
    scales = np.empty(len(levels))
    # [spectral:clip] to one, less than the margin of the sums off
    kernels.scale_rows(indptr, values, row_norm, scales)
    return block, levels, scales


# Part of the width of the range by which offsets must differ to tell items apart
LEAST_SPREAD = 0.005

# Numbers of a side that can be saved: two gigabytes with what is around them
MOST_NUMBERS = 2**28 - 2**13


@dataclass(frozen=True, eq=False, repr=False)
class UserSide:
    """What users made of the item side, each from ratings of her own: it is secret.

    Parameters
    ----------
    _private_means
        Level of each user.
    _private_coefficients
        Weights of the item vectors, a row for each user.
    """

    _private_means: Array
    _private_coefficients: Array

    def __repr__(self) -> str:
        return "UserSide()"


@dataclass(frozen=True, eq=False, repr=False)
class ItemSide(ABC):
    """What a private fit publishes about items.

    A rating is predicted by the level of the user, the offset of the item, and the
    product of the user's coefficients with the item's vector. Level and coefficients
    are a function of the item side and the user's own ratings.

    Parameters
    ----------
    vectors
        Vector of each item.
    offsets
        Offset of each item, zero where none was paid for.
    low, high
        Range of ratings.
    """

    vectors: Array
    offsets: Array
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
        """Whether released offsets tell items apart, the same for all users."""
        spread = float(np.max(self.offsets) - np.min(self.offsets))
        return spread >= LEAST_SPREAD * (self.high - self.low)

    @property
    def has_vectors(self) -> bool:
        """Whether released vectors tell items apart, differently for each user."""
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
                "item offsets alone were released: no direction of taste stood out "
                "from the noise, so that all users get the same order of items"
            )
        return (
            "NOTHING about items was released beyond the noise: predictions are each "
            "user's own mean, and items are recommended in an arbitrary order; raise "
            "epsilon, take more users or fewer items, or check that item labels in the "
            "ratings are of the kind of `items`"
        )

    def local(self, ratings: Ratings) -> UserSide:
        """Return level and coefficients of each user, from her own ratings alone."""
        found = list(in_order(self._at_home, ratings.blocks(), side_by_side=True))
        levels = [np.empty(0), *(levels for levels, _ in found)]
        coefficients = [
            np.empty((0, self.vectors.shape[1])),
            *(coefficients for _, coefficients in found),
        ]
        return UserSide(np.concatenate(levels), np.concatenate(coefficients))

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
        """Return predictions for pairs of a user's place in ``ratings`` and an item."""
        sides = self.local(ratings)
        rows = sides._private_means[users] + self.offsets[items]
        rows += np.einsum(
            "ik,ik->i",
            np.ascontiguousarray(sides._private_coefficients)[users],
            np.ascontiguousarray(self.vectors)[items],
        )
        return np.clip(rows, self.low, self.high)


def check_size(n_items: int, each: int, less: str) -> None:
    """Refuse a side that could not be saved once it is paid for.

    Parameters
    ----------
    n_items
        Number of items.
    each
        Most numbers that are published of each.
    less
        What would make them fewer.
    """
    if n_items * each > MOST_NUMBERS:
        raise PlanError(
            f"An item side of {n_items} items, with up to {each} numbers for each, is "
            f"too large to be saved; take fewer items, or {less}."
        )
