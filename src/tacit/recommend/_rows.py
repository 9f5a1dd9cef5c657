"""Completed rows, each for the user whose ratings it is computed from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit._validate import at_least
from tacit.recommend.items.side import ItemSide
from tacit.recommend.ratings.columns import Catalogue, given_numbers
from tacit.recommend.ratings.table import BLOCK_USERS, Ratings, RatingTable, clipped

__all__ = [
    "Top",
    "UserRow",
    "UserRows",
    "cells_of",
    "own_ratings",
    "paired",
    "rated_pairs",
]


NAMES = ("user", "item")


def paired(pairs: Any, catalogue: Catalogue) -> tuple[list[Any], NDArray[np.intp]]:
    """Return labels of users and positions of items, which must be in the catalogue.

    ``pairs`` are rows of two labels, or a data frame with columns called so.
    """
    users, items = _columns(pairs)
    positions = np.array([catalogue.position(label) for label in items], dtype=np.intp)
    if (positions < 0).any():
        raise ValueError("pairs must name items of the catalogue.")
    return users, positions


def _columns(pairs: Any) -> tuple[list[Any], list[Any]]:
    if hasattr(pairs, "columns"):
        names = getattr(pairs, "column_names", pairs.columns)
        if not set(NAMES) <= set(names):
            raise ValueError("pairs must have the columns 'user' and 'item'.")
        users, items = (cells_of(pairs[name]) for name in NAMES)
        return users, items
    if isinstance(pairs, np.ma.MaskedArray):
        raise ValueError(
            "pairs must not be a masked array; leave out the rows that are masked."
        )
    if isinstance(pairs, np.ndarray):
        pairs = np.asarray(pairs)  # a column of a matrix would be a matrix
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(
                "pairs must have two columns, users and items, got an array of shape "
                f"{pairs.shape}."
            )
        return pairs[:, 0].tolist(), pairs[:, 1].tolist()
    # row by row, as an array would make strings of numbers next to strings
    try:
        rows = [tuple(pair) for pair in pairs]
    except TypeError:
        rows = [()]
    if any(len(row) != 2 for row in rows):
        raise ValueError("pairs must be rows of a user's label and an item's.")
    return [user for user, _ in rows], [item for _, item in rows]


def cells_of(column: Any) -> list[Any]:
    """Return the labels of a frame's column as values of Python.

    An array would make floats of integers where another label is missing.
    """
    if hasattr(column, "iloc"):  # of pandas, whose categories would be such an array
        column = column.astype(object)
    to_list = getattr(column, "to_pylist", None) or column.to_list
    return list(to_list())


def rated_pairs(rated: Any) -> tuple[Any, Any]:
    """Return pairs, and the rating of each, of rows or a frame that have all three."""
    if hasattr(rated, "columns"):
        names = list(getattr(rated, "column_names", rated.columns))
        if names.count("rating") == 1:
            return rated, cells_of(rated["rating"])
    elif isinstance(rated, np.ndarray):
        if rated.ndim == 2 and rated.shape[1] == 3:
            return rated[:, :2], rated[:, 2].tolist()
    elif isinstance(rated, Sequence) and all(
        isinstance(row, Sequence) and len(row) == 3 for row in rated
    ):
        return [tuple(row[:2]) for row in rated], [row[2] for row in rated]
    raise ValueError(
        "ratings must be given, one for each of the pairs, or pairs be rows of user, "
        "item and rating or a data frame with these columns."
    )


# Columns of one user's ratings in a frame
OWN_COLUMNS = ("item", "rating")

Array = NDArray[np.float64]
Positions = NDArray[np.intp]


class Top(NamedTuple):
    """Items in the order of their predicted ratings, the best first.

    Where nothing about items was released, all predictions of a user are equal and the
    order is arbitrary; `ItemSide.released` reports it.

    Parameters
    ----------
    items
        Labels of the items.
    scores
        Their predicted ratings.
    """

    items: list[Any]
    scores: Array


class _NotCopied:
    """Object with ratings, which can be neither copied nor pickled."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} holds ratings and is not copied or pickled; keep "
            "the item side, and complete rows from ratings with complete_row."
        )


@dataclass(frozen=True, eq=False, repr=False)
class UserRow(_NotCopied):
    """Published item side and the ratings of one user.

    Whatever it returns is for them only.

    Parameters
    ----------
    side
        The item side, which is public.
    catalogue
        The public items.
    _private_ratings
        Their ratings, and nobody else's.

    Notes
    -----
    **Guarantee.** Nothing of other users reaches them but through the item side, so
    that the rows of all others together are private for them: joint differential
    privacy by the billboard lemma (J. Hsu, Z. Huang, A. Roth, T. Roughgarden and Z. S.
    Wu, "Private matchings and allocations", STOC 2014, Lemma 3).
    """

    side: ItemSide
    catalogue: Catalogue
    _private_ratings: Ratings

    def __repr__(self) -> str:
        return f"UserRow(n_items={self.side.n_items})"

    @property
    def ratings(self) -> dict[Any, float]:
        """Ratings of the user by labels of items."""
        items, values = self._private_ratings.row(0)
        labels = self.catalogue.labels
        return {
            labels[j]: float(v)
            for j, v in zip(items.tolist(), values.tolist(), strict=True)
        }

    def complete(self) -> Array:
        """Return a predicted rating for each item of the catalogue, rated or not."""
        row: Array = self.side.complete(self._private_ratings)[0]
        return row

    def top(self, k: int = 10) -> Top:
        """Return the best items that the user has not rated.

        Items are in the order of their predictions before these are clipped to the
        range of ratings. Items with equal predictions are in a fixed arbitrary order,
        which is the same for all users and does not follow the catalogue.

        Parameters
        ----------
        k
            Most items to return; fewer where they have rated nearly all.
        """
        at_least(1, k=k)
        scores = self.side.scores(self._private_ratings)[0]
        new = np.ones(len(scores), dtype=bool)
        new[self._private_ratings.row(0)[0]] = False
        positions = np.flatnonzero(new)
        best = positions[np.lexsort((_shuffled(positions), -scores[positions]))[:k]]
        labels = self.catalogue.labels
        found = np.clip(scores[best], self.side.low, self.side.high)
        return Top([labels[j] for j in best.tolist()], found)


@dataclass(frozen=True, eq=False, repr=False)
class UserRows(_NotCopied):
    """Rows of all users, which are handed out one by one to their owners.

    Parameters
    ----------
    side
        The item side, which is public.
    _private_table
        The ratings of all users.
    """

    side: ItemSide
    _private_table: RatingTable

    def __repr__(self) -> str:
        return f"UserRows(n_items={self.side.n_items})"

    # nobody is handed all rows, one after another
    __iter__ = None

    def __contains__(self, user: Any) -> bool:
        return self._private_table.position(user) >= 0

    def __getitem__(self, user: Any) -> UserRow:
        """Return the row of a user, by their label.

        A user who is not known, by ``in``, is treated as one who has rated nothing.
        """
        table = self._private_table
        position = table.position(user)
        # [recommend:own] copied out of the table, so that nothing leads back to it
        row = _rows_at(table, np.array([position]))
        return UserRow(self.side, table.catalogue, row)

    def at(self, users: Sequence[Any], items: Positions) -> Array:
        """Return predictions for pairs of a user's label and an item's position."""
        table = self._private_table
        positions = np.array([table.position(user) for user in users], dtype=np.intp)
        out = np.empty(len(positions))
        for block, chosen in _blocks_of(positions):
            local = np.searchsorted(block, positions[chosen])
            rows = _rows_at(table, block)
            out[chosen] = self.side.at(rows, local, items[chosen])
        return out


def _shuffled(positions: Positions) -> NDArray[np.uint64]:
    """Return a hash of each position, by which equal predictions are ordered.

    It is the finalizer of SplitMix64 (Steele, Lea and Flood 2014), a bijection, so that
    no two positions are equal.
    """
    mixed = positions.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _blocks_of(positions: Positions) -> Iterator[tuple[Positions, Positions]]:
    """Yield some users at a time, and the pairs that are of them."""
    order = np.argsort(positions, kind="stable")
    users, first = np.unique(positions[order], return_index=True)
    ends = np.append(first, len(order))
    for begin in range(0, len(users), BLOCK_USERS):
        end = min(begin + BLOCK_USERS, len(users))
        yield users[begin:end], order[ends[begin] : ends[end]]


def _rows_at(table: Ratings, positions: Positions) -> Ratings:
    """Return the rows at these positions, and empty rows for negative positions."""
    nothing = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32))
    rows = [table.row(i) if i >= 0 else nothing for i in positions.tolist()]
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(items) for items, _ in rows], out=indptr[1:])
    return Ratings(
        indptr,
        np.concatenate([items for items, _ in rows]),
        np.concatenate([values for _, values in rows]),
        table.n_items,
    )


def own_ratings(given: Any, catalogue: Catalogue, side: ItemSide) -> Ratings:
    """Return one user's ratings as a row, clipped into the range of the item side.

    ``given`` is a mapping or pandas Series from labels of items to ratings, where NaN
    in a Series is no rating; a list of pairs of a label and a rating; a data frame with
    columns ``item`` and ``rating``; a tuple of labels and ratings; or a whole row, with
    NaN where there is no rating. Ratings of items outside the catalogue are dropped.
    """
    labels, values = _labelled(given, catalogue)
    if not np.isfinite(values).all():
        raise ValueError(
            "ratings must be finite numbers; leave out items that were not rated."
        )
    positions = np.array(
        [catalogue.position(label) for label in labels], dtype=np.int64
    )
    known = positions >= 0
    # [recommend:home] by the function that clipped the ratings of the fit
    own = clipped(values[known], side.low, side.high)
    return Ratings.of_row(positions[known], own, side.n_items)


def _labelled(given: Any, catalogue: Catalogue) -> tuple[list[Any], Array]:
    """Return labels of items and ratings, from any of the forms."""
    if isinstance(given, Mapping):
        labels, values = list(given), _numbers(list(given.values()))
    elif hasattr(given, "iloc") and getattr(given, "ndim", 0) == 1:
        # a Series of pandas, which knows its items by the index
        rated = given.dropna()
        labels, values = rated.index.tolist(), _numbers(rated.tolist())
    elif hasattr(given, "columns"):
        names = list(getattr(given, "column_names", given.columns))
        if any(names.count(name) != 1 for name in OWN_COLUMNS):
            raise ValueError("ratings must have the columns 'item' and 'rating'.")
        labels, values = cells_of(given["item"]), _numbers(cells_of(given["rating"]))
    elif isinstance(given, list) and all(map(_is_pair, given)):
        labels = [label for label, _ in given]
        values = _numbers([value for _, value in given])
    elif isinstance(given, tuple) and len(given) == 2 and _is_list(given[0]):
        labels, values = list(given[0]), _numbers(given[1])
        if len(labels) != len(values):
            raise ValueError(
                "ratings must be two lists of equal length, items and values."
            )
    else:
        whole = _numbers(given)
        if len(whole) != len(catalogue):
            raise ValueError(
                f"ratings must be one for each of {len(catalogue)} items, with NaN for "
                "those that were not rated, or a mapping from items to ratings."
            )
        rated = np.flatnonzero(~np.isnan(whole))
        labels = [catalogue.labels[j] for j in rated.tolist()]
        values = whole[rated]
    return labels, values


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple | list) and len(given) == 2


def _is_list(given: Any) -> bool:
    return (
        hasattr(given, "__len__")
        and not isinstance(given, str | bytes)
        and getattr(given, "ndim", 1) == 1
    )


def _numbers(values: Any) -> Array:
    """Return a list of numbers as floats; an error shows none of them."""
    found = given_numbers(values)
    if found is None:
        raise ValueError(
            "ratings must be numbers: a mapping or Series from items to ratings, a "
            "list of pairs of an item and a rating, or a whole row with NaN for what "
            "was not rated."
        )
    return found
