"""Ratings from files, frames and arrays, in rows of users."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from math import isfinite, nan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._validate import shown
from tacit.recommend._ratings.catalogue import Catalogue
from tacit.recommend._ratings.columns import UserCodes, as_numbers, listed
from tacit.recommend._ratings.sources import BATCH, batches, is_csv
from tacit.recommend._ratings.spool import GROUP_USERS, Chunk, Shelf, Spool
from tacit.recommend._ratings.table import RatingTable, clipped, settled

__all__ = ["checked_range", "read_ratings"]

# Formats of sparse matrices that do not tell a stored zero from none
PADDED = ("bsr", "dia")
# Steps of 32-bit numbers that a range of ratings has at least
LEAST_STEPS = 1000


def read_ratings(
    source: Any,
    *,
    items: Any,
    rating_range: tuple[float, float],
    columns: Sequence[str] = ("user", "item", "rating"),
    scratch: str | os.PathLike[str] | None = None,
) -> RatingTable:
    """Return ratings in rows of users, in 8 bytes each.

    Parameters
    ----------
    source
        A sparse matrix of users by items whose stored entries are ratings, zeros too;
        rows of user, item and rating, as an array or a list; a data frame of pandas,
        polars or pyarrow with these columns; or the path of a CSV, Parquet or Arrow
        file, or of a folder of Parquet files. Rows come in any order. In a CSV file,
        which has no types, labels are texts, and every line is a row by the rules of
        `tacit.tables.read_rows`. Where a column has no type, as in a list, each label
        is of its own.
    items
        The public catalogue: the number of items, which are then 0 to n - 1, or a list
        of their labels, whole numbers or texts. Ratings of other items are left out.
    rating_range
        Lowest and highest rating there can be, set without the data. Ratings beyond it
        are clipped. They are kept as 32-bit numbers.
    columns
        Names of the columns of user, item and rating.
    scratch
        Folder for files that have no name, in which ratings are kept instead of memory.
        It needs 20 bytes a rating.

    Notes
    -----
    **Guarantee.** What becomes of a user's ratings is a function of these ratings, the
    catalogue and the range alone: one that is there several times for an item counts
    by its mean, and a row is the same in whatever order its ratings come. A user all of
    whose items are unknown has a row without ratings. What is no finite number is
    refused, in words that quote none.

    The source is read once. Besides the table, whose 8 bytes a rating are in files
    where ``scratch`` is given, memory holds the label of each user and a block: a batch
    of half a million rows, and the ratings of 16,384 users. Without ``scratch``, it
    holds 10 bytes of each rating until all have come.

    Examples
    --------
    >>> from tacit.recommend._ratings.reading import read_ratings
    >>> rows = [("ann", "tea", 4), ("bob", "tea", 9), ("ann", "rum", 2)]
    >>> table = read_ratings(rows, items=["rum", "tea"], rating_range=(1, 5))
    >>> for part in table.row(table.place("ann")):
    ...     print(part)
    [0 1]
    [2. 4.]
    """
    catalogue = Catalogue.of(items)
    low, high = checked_range(rating_range)
    _refuse_names(columns)
    if sparse.issparse(source):
        return _read_matrix(source, catalogue, low, high, scratch)
    users = UserCodes()
    known = catalogue.of_texts() if is_csv(source) else catalogue
    spool = Spool(scratch)
    try:
        for owners, labels, ratings in batches(source, columns):
            codes, positions = users.of(owners), _positions(labels, known)
            values = clipped(as_numbers(ratings), low, high)
            there = positions >= 0
            spool.add(codes[there], positions[there], values[there])
        labels = list(users._private_positions)
        indptr, rated, values = _shelved(
            _groups(spool, len(labels)), len(labels), spool.n_ratings, scratch
        )
    finally:
        spool.close()
    return RatingTable(
        indptr,
        rated,
        values,
        len(catalogue),
        catalogue=catalogue,
        _private_users=labels,
        _private_positions=users._private_positions,
        as_written=is_csv(source),
    )


def checked_range(rating_range: Any) -> tuple[float, float]:
    """Return the two ends, which the user must know without the data."""
    if rating_range is None:
        raise ValueError(
            "rating_range must be given: the lowest and highest rating there can be, "
            "set without the data."
        )
    try:
        ends = tuple(rating_range)
    except TypeError:
        ends = ()
    real = all(isinstance(end, Real) and not isinstance(end, bool) for end in ends)
    try:
        low, high = map(float, ends) if real and len(ends) == 2 else (nan, nan)
    except OverflowError:
        raise ValueError(
            "rating_range must be within 1e30, got a whole number beyond all floats."
        ) from None
    if not (isfinite(low) and isfinite(high) and low < high):
        raise ValueError(
            "rating_range must be two finite numbers, the lower first, "
            f"got {shown(rating_range)}."
        )
    largest = max(abs(low), abs(high))
    step = float(np.spacing(np.float32(min(largest, 1e30))))
    if largest > 1e30 or high - low < max(LEAST_STEPS * step, 1e-30):
        raise ValueError(
            "rating_range must be within 1e30 and wide enough for 32-bit numbers, got "
            f"{shown(rating_range)}; take the lower end off all ratings, or scale them."
        )
    return low, high


def _refuse_names(columns: Any) -> None:
    named = (
        isinstance(columns, Sequence)
        and not isinstance(columns, str)
        and all(isinstance(name, str) for name in columns)
    )
    if not named or len(columns) != 3 or len(set(columns)) != 3:
        raise ValueError(
            "columns must be three names, of user, item and rating in this order, got "
            f"{shown(columns)}."
        )


def _positions(column: Any, catalogue: Catalogue) -> NDArray[np.int32]:
    """Return the place of the item of each cell, -1 for unknown ones."""
    labels, codes = listed(column)
    found = [catalogue.position(label) for label in labels]
    return np.array(found, dtype=np.int32)[codes]


def _groups(spool: Spool, n_users: int) -> Iterator[Chunk]:
    for first in range(0, n_users, GROUP_USERS):
        yield spool.take(first // GROUP_USERS)


def _shelved(
    groups: Iterator[Chunk],
    n_users: int,
    most: int,
    scratch: str | os.PathLike[str] | None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return the arrays of a table whose users come group by group."""
    indptr = np.zeros(n_users + 1, dtype=np.int64)
    shelf = Shelf(most, scratch)
    try:
        for first, chunk in zip(range(0, n_users, GROUP_USERS), groups, strict=True):
            n = min(GROUP_USERS, n_users - first)
            ends, rated, values = settled(*chunk, n)
            indptr[first + 1 : first + n + 1] = indptr[first] + ends[1:]
            shelf.add(rated, values)
        rated, values = shelf.finish()
    finally:
        shelf.close()
    return indptr, rated, values


def _read_matrix(
    matrix: Any,
    catalogue: Catalogue,
    low: float,
    high: float,
    scratch: str | os.PathLike[str] | None,
) -> RatingTable:
    if matrix.ndim != 2 or matrix.shape[1] != len(catalogue):
        raise ValueError(
            f"ratings must have a column for each of {len(catalogue)} items where they "
            "are a sparse matrix."
        )
    if matrix.format in PADDED:
        raise ValueError(
            f"ratings must not be a sparse matrix in the format {matrix.format!r}, "
            "which also stores zeros where nothing was rated; make it of entries, as "
            "a coo_array."
        )
    _reject_extra(matrix)
    n_users = matrix.shape[0]
    spool = Spool(scratch)
    try:
        if matrix.format == "csr":
            groups, most = _csr_groups(matrix, low, high), int(matrix.indptr[-1])
        else:
            # entries that are stored twice are added by most other conversions
            _spool_entries(spool, matrix.tocoo(copy=False), low, high)
            groups, most = _groups(spool, n_users), spool.n_ratings
        indptr, rated, values = _shelved(groups, n_users, most, scratch)
    finally:
        spool.close()
    return RatingTable(
        indptr,
        rated,
        values,
        len(catalogue),
        catalogue=catalogue,
        _private_users=range(n_users),
    )


def _reject_extra(matrix: Any) -> None:
    """Refuse entries that are stored at places the matrix does not have."""
    try:
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        elif matrix.format != "coo":
            matrix.tocoo()  # which refuses them, in words that quote a place
        strays = matrix.format == "coo" and any(
            len(positions) and (positions.min() < 0 or positions.max() >= size)
            for positions, size in zip(matrix.coords, matrix.shape, strict=True)
        )
    except ValueError:
        strays = True
    if strays:
        raise ValueError(
            "ratings must be a sparse matrix whose entries are within its shape."
        ) from None


def _csr_groups(matrix: Any, low: float, high: float) -> Iterator[Chunk]:
    for first in range(0, matrix.shape[0], GROUP_USERS):
        indptr = matrix.indptr[first : first + GROUP_USERS + 1]
        held = slice(indptr[0], indptr[-1])
        users = np.arange(len(indptr) - 1, dtype=np.uint16)
        yield (
            np.repeat(users, np.diff(indptr)),
            matrix.indices[held].astype(np.int32),
            clipped(as_numbers(matrix.data[held]), low, high),
        )


def _spool_entries(spool: Spool, entries: Any, low: float, high: float) -> None:
    for first in range(0, len(entries.data), BATCH):
        some = slice(first, first + BATCH)
        spool.add(
            entries.row[some].astype(np.int64),
            entries.col[some].astype(np.int32),
            clipped(as_numbers(entries.data[some]), low, high),
        )
