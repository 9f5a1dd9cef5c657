"""Ratings in rows of users, their public facts, and the part that a fit uses."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from tacit._execution import in_order
from tacit._validate import at_least, plain, public_ends, shown
from tacit.mechanisms.noise import uniform_below
from tacit.recommend.ratings.columns import Catalogue, integer_id

__all__ = [
    "RatingFacts",
    "RatingTable",
    "Ratings",
    "UsedRatings",
    "checked_range",
    "clipped",
    "grouped",
    "kept",
    "public_key",
    "summed",
]


T = TypeVar("T")

# users in a block, whose ratings stay in the cache, which halves the time of a pass
BLOCK_USERS = 1024
# Steps of 32-bit numbers that a range of ratings has at least
LEAST_STEPS = 1000


@dataclass(frozen=True)
class RatingFacts:
    """Public facts about a table of ratings.

    Parameters
    ----------
    n_items
        Number of items in the public catalogue.
    low, high
        Ends of the range of ratings, into which all are clipped.
    n_users
        Number of users to plan for: the actual number when neighbors replace a user, a
        guess when they add or remove one. Only accuracy depends on it.
    max_ratings
        Maximum number of ratings of a user that are used for what is published.
    """

    n_items: int
    low: float
    high: float
    n_users: int
    max_ratings: int

    def __post_init__(self) -> None:
        plain(self)
        at_least(
            1, n_items=self.n_items, n_users=self.n_users, max_ratings=self.max_ratings
        )

    @property
    def middle(self) -> float:
        """Middle of the range, which stands for an unknown rating."""
        return self.low / 2 + self.high / 2

    @property
    def half_width(self) -> float:
        """Half the width of the range: no rating is further from the middle."""
        return self.high / 2 - self.low / 2

    @property
    def width(self) -> float:
        """Width of the range: no centered rating is larger."""
        return self.high - self.low


def checked_range(rating_range: Any) -> tuple[float, float]:
    """Return the two ends of the range, checked; they must be set without the data."""
    low, high = public_ends(rating_range, "rating_range", "rating")
    largest = max(abs(low), abs(high))
    step = float(np.spacing(np.float32(min(largest, 1e30))))
    if largest > 1e30 or high - low < max(LEAST_STEPS * step, 1e-30):
        raise ValueError(
            "rating_range must be within 1e30 and wide enough for 32-bit numbers, got "
            f"{shown(rating_range)}; take the lower end off all ratings, or scale them."
        )
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """Private ratings of users, one row each.

    A row has its items, as positions in the catalogue, in ascending order and without
    duplicates; it starts at its entry of ``indptr``. Nothing here is printed.
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    n_items: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_items={self.n_items})"

    @property
    def n_users(self) -> int:
        """Number of users, which is private where neighbors add or remove one."""
        return len(self.indptr) - 1

    @property
    def n_ratings(self) -> int:
        """Number of ratings, which is private."""
        return int(self.indptr[-1])

    def row(self, i: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return items and values of one user, by position."""
        begin, end = self.indptr[i], self.indptr[i + 1]
        return self.items[begin:end], self.values[begin:end]

    def blocks(self, users: int = BLOCK_USERS) -> Iterator[Ratings]:
        """Yield the rows of a block of users at a time, as views."""
        at_least(1, users=users)
        for first in range(0, self.n_users, users):
            yield self.users(first, min(first + users, self.n_users))

    def each(self, make: Callable[[Ratings], T]) -> Iterator[Callable[[], T]]:
        """Yield ``make`` of each block of rows as a function for threads to call."""
        return (partial(make, block) for block in self.blocks())

    def users(self, first: int, last: int) -> Ratings:
        """Return the rows of users from ``first`` to before ``last``, as views."""
        indptr = self.indptr[first : last + 1]
        begin, end = indptr[0], indptr[-1]
        return Ratings(
            indptr - begin, self.items[begin:end], self.values[begin:end], self.n_items
        )

    @classmethod
    def of_row(cls, items: ArrayLike, values: ArrayLike, n_items: int) -> Ratings:
        """Return the row of one user, given by positions of items and their ratings.

        Items come in any order. Ratings of an item that occurs twice are averaged.
        """
        positions = np.asarray(items, dtype=np.int64)
        found = np.asarray(values, dtype=np.float32)
        if positions.ndim != 1 or positions.shape != found.shape:
            raise ValueError(
                "items and values must be one-dimensional and of equal length."
            )
        if not ((positions >= 0) & (positions < n_items)).all():
            raise ValueError(
                f"items must be positions of items, from 0 to {n_items - 1}."
            )
        if not np.isfinite(found).all():
            raise ValueError("values must be finite numbers.")
        users = np.zeros(len(positions), dtype=np.uint16)
        return cls(*grouped(users, positions.astype(np.int32), found, 1), n_items)


@dataclass(frozen=True, eq=False, repr=False)
class RatingTable(Ratings):
    """Ratings with the labels of users and items.

    Without ``_private_positions`` labels of users are row numbers. ``as_written`` is
    whether all labels are strings, as those of a CSV file are.
    """

    catalogue: Catalogue = field(kw_only=True)
    _private_users: Sequence[Hashable] = field(kw_only=True)
    _private_positions: Mapping[Hashable, int] | None = field(
        kw_only=True, default=None
    )
    as_written: bool = field(kw_only=True, default=False)

    def position(self, user: Any) -> int:
        """Return the position of a user's row, or -1 if there is no such user.

        Where ratings come from a CSV file, an integer of any type is also looked up as
        a string. Elsewhere the string would be another user.
        """
        number = integer_id(user)
        if self._private_positions is None:
            return -1 if number is None or number not in self._private_users else number
        try:
            found = self._private_positions.get(user, -1)
            if found < 0 and number is not None and self.as_written:
                found = self._private_positions.get(str(number), -1)
        except (TypeError, ValueError):  # not hashable, or too long for a string
            return -1
        return found


def clipped(
    values: NDArray[np.float64], low: float, high: float
) -> NDArray[np.float32]:
    """Return ratings clipped to the range, as 32-bit floats within it."""
    first, last = np.float32(low), np.float32(high)
    # [ratings:range] rounding to 32 bits may end one step outside the range
    first = np.nextafter(first, last) if float(first) < low else first
    last = np.nextafter(last, first) if float(last) > high else last
    return np.clip(np.clip(values, low, high).astype(np.float32), first, last)


def grouped(
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
    kernels.group_rows(users, items, bits, indptr, out_items, out_values)
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
        Maximum number of ratings of a user.
    key
        Any bytes, the same for all users: the choice changes with them.
    weights
        A positive weight for each item, which must be public: ratings are drawn one
        after the other without replacement, with probabilities in proportion to the
        weights. None draws all with equal probability.

    Notes
    -----
    **Guarantee.** What is kept of a row is a function of the key, the weights and only
    that row. It depends neither on other users nor on the position of the row, so that
    neighbors differ in the kept ratings of one user. Items wait exponential times with
    their weights as rates, and the first are kept, which is weighted sampling without
    replacement [1]_; the times come from a hash of key, row and item, which is assumed
    to be random.

    A block of rows gives the same as those rows of the whole table, so that a table on
    disk can be read block by block.

    References
    ----------
    .. [1] P. Efraimidis and P. Spirakis, "Weighted random sampling with a reservoir",
       Information Processing Letters 97, 2006.

    Examples
    --------
    >>> from tacit.recommend.ratings.table import Ratings, kept
    >>> row = Ratings.of_row([4, 1, 7], [3.0, 5.0, 1.0], n_items=9)
    >>> used = kept(row, 2, b"public")
    >>> used.n_ratings, set(used.items.tolist()) < {1, 4, 7}
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
    """Return a random key for the selection of ratings, the same for all users."""
    return uniform_below(2**128, rng).to_bytes(16, "little")


@dataclass(frozen=True, eq=False, repr=False)
class UsedRatings:
    """Ratings of each user up to a maximum number, selected anew block by block.

    ``weights`` of the items in the selection must be public; None for equal weights.
    """

    ratings: Ratings
    most: int
    key: bytes
    weights: NDArray[np.float64] | None = None

    def each(self, make: Callable[[Ratings], T]) -> Iterator[Callable[[], T]]:
        """Yield ``make`` of each block of rows as a function for threads to call."""
        return self.ratings.each(
            lambda block: make(kept(block, self.most, self.key, self.weights))
        )


def summed(
    kernel: Callable[..., None],
    blocks: Iterable[tuple[Any, ...] | Callable[[], tuple[Any, ...]]],
    size: int,
    *public: Any,
) -> NDArray[np.int64]:
    """Return ``size`` sums over blocks of users, which a kernel adds to.

    The kernel is called with the arrays of a block, the public numbers, and sums that
    no other thread adds to meanwhile.
    """
    idle: deque[NDArray[np.int64]] = deque()

    def add(block: tuple[Any, ...] | Callable[[], tuple[Any, ...]]) -> None:
        arrays = block() if callable(block) else block
        try:
            sums = idle.pop()
        except IndexError:  # all are in use, so that there is one for each thread
            sums = np.zeros(size, dtype=np.int64)
        kernel(*arrays, *public, sums)
        idle.append(sums)

    for _ in in_order(add, blocks, side_by_side=True):
        pass
    return np.sum(idle, axis=0) if idle else np.zeros(size, dtype=np.int64)
