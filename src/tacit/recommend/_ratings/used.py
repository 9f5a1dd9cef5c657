"""The ratings of each user that are used for what is published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit.mechanisms.noise import uniform_below
from tacit.recommend._ratings.rating_limits import kept

if TYPE_CHECKING:
    from tacit.recommend._ratings.table import Ratings

__all__ = ["UsedRatings", "public_key"]

T = TypeVar("T")


def public_key(rng: Generator) -> bytes:
    """Return what decides on the ratings that are used, the same for all users."""
    return uniform_below(2**128, rng).to_bytes(16, "little")


@dataclass(frozen=True, eq=False, repr=False)
class UsedRatings:
    """At most so many ratings of each user, found anew block by block.

    Parameters
    ----------
    ratings
        All ratings.
    most
        Most ratings of a user.
    key
        What decides on them.
    weights
        Odds of each item's ratings to be used, which must be public; None for even
        ones.
    """

    ratings: Ratings
    most: int
    key: bytes
    weights: NDArray[np.float64] | None = None

    def of(self, block: Ratings) -> Ratings:
        """Return what is used of a block of all ratings."""
        return kept(block, self.most, self.key, self.weights)

    def each(self, make: Callable[[Ratings], T]) -> Iterator[Callable[[], T]]:
        """Yield what makes something of a few users' rows, for threads to call."""
        return self.ratings.each(lambda block: make(self.of(block)))
