"""Ratings in rows of users, in few bytes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit._validate import at_least
from tacit.recommend._ratings.catalogue import Catalogue, integer_id

__all__ = ["RatingTable", "Ratings", "clipped", "settled"]

T = TypeVar("T")

# users in a block: their numbers stay in the cache, which halves the time of a walk
BLOCK_USERS = 1024


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """The ratings of users, one row each, which are secret.

    A row has its items in ascending order, and no item twice. Nothing here is printed.

    Parameters
    ----------
    indptr
        Where each row begins, and where the last one ends.
    items
        Places of the rated items in the catalogue.
    values
        The ratings, within their range.
    n_items
        Number of items in the catalogue.
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    n_items: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_items={self.n_items})"

    @property
    def n_users(self) -> int:
        """Number of users, which is secret where neighbors add or remove one."""
        return len(self.indptr) - 1

    @property
    def n_ratings(self) -> int:
        """Number of ratings, which is secret."""
        return int(self.indptr[-1])

    def row(self, i: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return items and values of one user, by place."""
        begin, end = self.indptr[i], self.indptr[i + 1]
        return self.items[begin:end], self.values[begin:end]

    def blocks(self, users: int = BLOCK_USERS) -> Iterator[Ratings]:
        """Yield the rows of a few users at a time, as views."""
        at_least(1, users=users)
        for first in range(0, self.n_users, users):
            yield self.users(first, min(first + users, self.n_users))

    def each(self, make: Callable[[Ratings], T]) -> Iterator[Callable[[], T]]:
        """Yield what makes something of a few users' rows, for threads to call."""
        return (partial(make, block) for block in self.blocks())

    def users(self, first: int, last: int) -> Ratings:
        """Return the rows of users from one place to before another, as views."""
        indptr = self.indptr[first : last + 1]
        begin, end = indptr[0], indptr[-1]
        return Ratings(
            indptr - begin, self.items[begin:end], self.values[begin:end], self.n_items
        )

    @classmethod
    def of_row(cls, items: ArrayLike, values: ArrayLike, n_items: int) -> Ratings:
        """Return the row of one user, given by places of items and their ratings.

        Items come in any order, and of one that is there twice the mean is taken.
        """
        positions = np.asarray(items, dtype=np.int64)
        found = np.asarray(values, dtype=np.float32)
        if positions.ndim != 1 or positions.shape != found.shape:
            raise ValueError("items and values must be as many as each other.")
        if not ((positions >= 0) & (positions < n_items)).all():
            raise ValueError(f"items must be places of items, from 0 to {n_items - 1}.")
        if not np.isfinite(found).all():
            raise ValueError("values must be finite numbers.")
        users = np.zeros(len(positions), dtype=np.uint16)
        return cls(*settled(users, positions.astype(np.int32), found, 1), n_items)


@dataclass(frozen=True, eq=False, repr=False)
class RatingTable(Ratings):
    """Ratings with the labels of users and items.

    Parameters
    ----------
    catalogue
        The public items.
    _private_users
        Label of each row. A range where rows are known by their numbers.
    _private_positions
        Place of each label, or None for a range.
    as_written
        Whether all labels are texts, as those of a CSV file are.
    """

    catalogue: Catalogue = field(kw_only=True)
    _private_users: Sequence[Hashable] = field(kw_only=True)
    _private_positions: Mapping[Hashable, int] | None = field(
        kw_only=True, default=None
    )
    as_written: bool = field(kw_only=True, default=False)

    def position(self, user: Any) -> int:
        """Return the place of a user's row, or -1 where there is none.

        Where ratings come from a CSV file, a whole number, of whatever type, is also
        looked for as it is written. Elsewhere the text would be another user.
        """
        number = integer_id(user)
        if self._private_positions is None:
            return -1 if number is None or number not in self._private_users else number
        try:
            found = self._private_positions.get(user, -1)
            if found < 0 and number is not None and self.as_written:
                found = self._private_positions.get(str(number), -1)
        except (TypeError, ValueError):  # cannot be hashed, or written in digits
            return -1
        return found


def clipped(
    values: NDArray[np.float64], low: float, high: float
) -> NDArray[np.float32]:
    """Return ratings as 32-bit numbers none of which is beyond the range."""
    first, last = np.float32(low), np.float32(high)
    # [ratings:range] rounding may end a step outside, which 32 bits do not tell
    first = np.nextafter(first, last) if float(first) < low else first
    last = np.nextafter(last, first) if float(last) > high else last
    return np.clip(np.clip(values, low, high).astype(np.float32), first, last)


def settled(
    users: NDArray[np.uint16],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    n_users: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return ``indptr``, ``items`` and ``values`` of rows from ratings in any order."""
    from tacit.recommend._ratings import row_kernels  # noqa: PLC0415 - numba

    indptr = np.empty(n_users + 1, dtype=np.int64)
    out_items, out_values = np.empty_like(items), np.empty_like(values)
    # zeros have one sign, so that equal ratings have equal bits
    bits = (values + np.float32(0)).view(np.uint32)
    row_kernels.settle_rows(users, items, bits, indptr, out_items, out_values)
    return indptr, out_items[: indptr[-1]], out_values[: indptr[-1]]
