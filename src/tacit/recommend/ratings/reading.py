"""Ratings from files, frames and arrays, in rows of users."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from mmap import mmap
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._validate import shown
from tacit.recommend.ratings.columns import (
    BATCH,
    UserCodes,
    as_numbers,
    batches,
    is_csv,
    listed,
)
from tacit.recommend.ratings.facts import Catalogue, checked_range
from tacit.recommend.ratings.table import RatingTable, clipped, settled

__all__ = ["GROUP_USERS", "Shelf", "Spool", "read_ratings"]


if sys.platform != "win32":
    from mmap import MAP_ANONYMOUS, MAP_PRIVATE

# Users of a group, whose ratings are in memory together; a place in it has 16 bits
GROUP_USERS = 2**14

Chunk = tuple[NDArray[np.uint16], NDArray[np.int32], NDArray[np.float32]]
KINDS = (np.dtype(np.uint16), np.dtype(np.int32), np.dtype(np.float32))
RATING_BYTES = sum(kind.itemsize for kind in KINDS)


class Spool:
    """Ratings in the order they come, which can be taken group by group of users.

    A rating takes 10 bytes here, in memory or in a file that has no name, so that
    nothing is left of it however the process ends.

    Parameters
    ----------
    scratch
        Folder of that file; None keeps ratings in memory.
    """

    def __init__(self, scratch: str | os.PathLike[str] | None) -> None:
        self._file = None if scratch is None else _nameless(scratch)
        self._private_chunks: defaultdict[int, list[Any]] = defaultdict(list)
        self.n_ratings = 0

    def add(
        self,
        users: NDArray[np.int64],
        items: NDArray[np.int32],
        values: NDArray[np.float32],
    ) -> None:
        """Put a batch of ratings where their groups are."""
        groups = users // GROUP_USERS
        order = np.argsort(groups, kind="stable")
        groups = groups[order]
        chunk = (
            (users[order] % GROUP_USERS).astype(np.uint16),
            items[order],
            values[order],
        )
        ends = np.flatnonzero(np.diff(groups, append=-1)) + 1
        begin = 0
        for end in ends.tolist():
            part = tuple(column[begin:end] for column in chunk)
            self._private_chunks[int(groups[begin])].append(self._put(part))
            begin = end
        self.n_ratings += len(users)

    def take(self, group: int) -> Chunk:
        """Return all ratings of a group, which are no longer here."""
        none = tuple(np.empty(0, kind) for kind in KINDS)
        chunks = [none, *map(self._got, self._private_chunks.pop(group, []))]
        users, items, values = map(np.concatenate, zip(*chunks, strict=True))
        return users, items, values

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()

    def _put(self, part: tuple[NDArray[Any], ...]) -> Any:
        n = len(part[0])
        if self._file is None:
            held = _pages(n * RATING_BYTES)
            for column in part:
                held.write(column.data)
            return held, n
        with explained():
            position = self._file.seek(0, os.SEEK_END)
            for column in part:
                self._file.write(column.data)
        return position, n

    def _got(self, put: Any) -> Any:
        held, n = put
        if self._file is not None:
            with explained():
                self._file.seek(held)
                held = self._file.read(n * RATING_BYTES)
        offsets = np.cumsum([0, *(n * kind.itemsize for kind in KINDS[:-1])])
        return tuple(
            np.frombuffer(held, kind, n, int(offset))
            for kind, offset in zip(KINDS, offsets, strict=True)
        )


class Shelf:
    """Rows that are appended group by group: items and values, 8 bytes a rating.

    Parameters
    ----------
    most
        Most ratings that will come.
    scratch
        Folder of files without a name, or None for memory.
    """

    def __init__(self, most: int, scratch: str | os.PathLike[str] | None) -> None:
        self._files: tuple[IO[bytes], ...] = ()
        self._filled = 0
        if scratch is None:
            # memory that is not written to costs nothing
            self._private_arrays = tuple(np.empty(most, kind) for kind in KINDS[1:])
        else:
            self._files = tuple(_nameless(scratch) for _ in KINDS[1:])

    def add(self, items: NDArray[np.int32], values: NDArray[np.float32]) -> None:
        """Append the ratings of a group."""
        end = self._filled + len(items)
        for position, column in enumerate((items, values)):
            if self._files:
                with explained():
                    self._files[position].write(column.data)
            else:
                self._private_arrays[position][self._filled : end] = column
        self._filled = end

    def finish(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return all items and values: arrays, or maps of the files."""
        if not self._files:
            items, values = (a[: self._filled] for a in self._private_arrays)
            return items, values
        items, values = (
            self._mapped(file, kind)
            for file, kind in zip(self._files, KINDS[1:], strict=True)
        )
        return items, values

    def close(self) -> None:
        """Give the files back; maps of them stay."""
        for file in self._files:
            file.close()

    def _mapped(self, file: IO[bytes], kind: np.dtype[Any]) -> NDArray[Any]:
        if not self._filled:
            return np.empty(0, kind)  # nothing cannot be mapped
        with explained():
            file.flush()
            # what is written to is a copy of that page, so that code compiled for
            # arrays in memory runs on these
            return np.asarray(np.memmap(file, kind, mode="c", shape=(self._filled,)))


def _pages(size: int) -> mmap:
    """Return memory that goes back to the system as soon as it is let go.

    Of many small arrays the heap keeps what lies between those that are still needed.
    """
    if sys.platform == "win32":
        return mmap(-1, size)
    return mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)


def _nameless(scratch: str | os.PathLike[str]) -> IO[bytes]:
    if not isinstance(scratch, str | os.PathLike) or not os.path.isdir(scratch):
        got = os.fspath(scratch) if isinstance(scratch, os.PathLike) else scratch
        raise ValueError(f"scratch must be a folder that is there, got {shown(got)}.")
    with explained():
        return tempfile.TemporaryFile(dir=scratch)


@contextmanager
def explained() -> Iterator[None]:
    """Turn what goes wrong with a file into one sentence."""
    try:
        yield
    except OSError:
        raise ValueError(
            "scratch must be a folder with room for the ratings, 20 bytes each, that "
            "may be written to; give another."
        ) from None


# Formats of sparse matrices that do not tell a stored zero from none
PADDED = ("bsr", "dia")


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
    >>> from tacit.recommend.ratings.reading import read_ratings
    >>> rows = [("ann", "tea", 4), ("bob", "tea", 9), ("ann", "rum", 2)]
    >>> table = read_ratings(rows, items=["rum", "tea"], rating_range=(1, 5))
    >>> for part in table.row(table.position("ann")):
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
