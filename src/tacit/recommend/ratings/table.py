"""Ratings in rows of users, and the ratings of each user that a fit uses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from tacit._validate import at_least
from tacit.mechanisms.noise import uniform_below
from tacit.recommend.ratings.facts import Catalogue, integer_id

__all__ = [
    "RatingTable",
    "Ratings",
    "UsedRatings",
    "clipped",
    "kept",
    "public_key",
    "settled",
]


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
    from tacit.recommend.ratings import _kernels as kernels  # noqa: PLC0415 - numba

    indptr = np.empty(n_users + 1, dtype=np.int64)
    out_items, out_values = np.empty_like(items), np.empty_like(values)
    # zeros have one sign, so that equal ratings have equal bits
    bits = (values + np.float32(0)).view(np.uint32)
    kernels.settle_rows(users, items, bits, indptr, out_items, out_values)
    return indptr, out_items[: indptr[-1]], out_values[: indptr[-1]]


def kept(
    ratings: Ratings, most: int, key: bytes, weights: ArrayLike | None = None
) -> Ratings:
    """Return at most ``most`` ratings of each user.

    Parameters
    ----------
    ratings
        Rows of users, or a block of them.
    most
        Most ratings of a user.
    key
        Any bytes, the same for all users: what is chosen changes with them.
    weights
        A positive number for each item, which must be public: ratings are drawn one
        after the other without replacement, with odds in proportion. None draws all
        with the same odds.

    Notes
    -----
    **Guarantee.** What is kept of a row is a function of the key, the weights and that
    row alone. It depends neither on other users nor on the place of the row, so that
    neighbors differ in the kept ratings of one user. Items wait exponential times with
    their weights as rates, and the first are kept, which is weighted sampling without
    replacement [1]_; the times come from a hash of key, row and item, taken for random.

    Blocks of rows are answered as the whole table is, so that a table on disk can be
    gone through block by block.

    References
    ----------
    .. [1] P. Efraimidis and P. Spirakis, "Weighted random sampling with a reservoir",
       Information Processing Letters 97, 2006.

    Examples
    --------
    >>> from tacit.recommend.ratings.table import kept
    >>> from tacit.recommend.ratings.table import Ratings
    >>> row = Ratings.of_row([4, 1, 7], [3.0, 5.0, 1.0], n_items=9)
    >>> few = kept(row, 2, b"public")
    >>> few.n_ratings, set(few.items.tolist()) < {1, 4, 7}
    (2, True)
    """
    from tacit.recommend.ratings import _kernels as kernels  # noqa: PLC0415 - numba

    at_least(1, most=most)
    rates = _rates(weights, ratings.n_items)
    lengths = np.diff(ratings.indptr)
    if not (lengths > most).any():
        return ratings
    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.minimum(lengths, most), out=indptr[1:])
    items = np.empty(indptr[-1], dtype=np.int32)
    values = np.empty(indptr[-1], dtype=np.float32)
    kernels.keep_rows(
        ratings.indptr,
        ratings.items,
        ratings.values.view(np.uint32),
        ratings.values,
        np.frombuffer(blake2b(key, digest_size=16).digest(), dtype="<u8").copy(),
        rates,
        most,
        indptr,
        items,
        values,
    )
    return Ratings(indptr, items, values, ratings.n_items)


def _rates(weights: ArrayLike | None, n_items: int) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(n_items)
    rates = np.ascontiguousarray(weights, dtype=np.float64)
    if rates.shape != (n_items,):
        raise ValueError(f"weights must be one for each of {n_items} items.")
    if not (np.isfinite(rates) & (rates > 0)).all():
        raise ValueError("weights must be finite numbers > 0.")
    return rates


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
