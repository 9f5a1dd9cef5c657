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
    Catalogue,
    UserCodes,
    as_numbers,
    batches,
    distinct_cells,
    is_csv,
)
from tacit.recommend.ratings.table import RatingTable, checked_range, clipped, grouped

__all__ = ["GROUP_USERS", "RowStore", "Spool", "read_ratings"]


if sys.platform != "win32":
    from mmap import MAP_ANONYMOUS, MAP_PRIVATE

# Users of a group, whose ratings are in memory together; positions in it have 16 bits
GROUP_USERS = 2**14

Chunk = tuple[NDArray[np.uint16], NDArray[np.int32], NDArray[np.float32]]
KINDS: tuple[np.dtype[Any], ...] = tuple(
    np.dtype(kind) for kind in (np.uint16, np.int32, np.float32)
)
RATING_BYTES = sum(kind.itemsize for kind in KINDS)


class Spool:
    """Buffer of ratings in any order, which are read group by group of users.

    A rating takes 10 bytes, in memory or in an unnamed temporary file in the folder
    ``scratch``, of which nothing is left however the process ends.
    """

    def __init__(self, scratch: str | os.PathLike[str] | None) -> None:
        self._file = None if scratch is None else _unnamed_file(scratch)
        self._private_chunks: defaultdict[int, list[Any]] = defaultdict(list)
        self.n_ratings = 0

    def add(
        self,
        users: NDArray[np.int64],
        items: NDArray[np.int32],
        values: NDArray[np.float32],
    ) -> None:
        """Add a batch of ratings to their groups."""
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
        """Return all ratings of a group, and drop them from the buffer."""
        empty = tuple(np.empty(0, kind) for kind in KINDS)
        chunks = [empty, *map(self._got, self._private_chunks.pop(group, []))]
        users, items, values = map(np.concatenate, zip(*chunks, strict=True))
        return users, items, values

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _put(self, part: tuple[NDArray[Any], ...]) -> Any:
        n = len(part[0])
        if self._file is None:
            pages = _pages(n * RATING_BYTES)
            for column in part:
                pages.write(column.data)
            return pages, n
        with scratch_errors():
            position = self._file.seek(0, os.SEEK_END)
            for column in part:
                self._file.write(column.data)
        return position, n

    def _got(self, put: Any) -> Any:
        stored, n = put
        if self._file is not None:
            with scratch_errors():
                self._file.seek(stored)
                stored = self._file.read(n * RATING_BYTES)
        offsets = np.cumsum([0, *(n * kind.itemsize for kind in KINDS[:-1])])
        return tuple(
            np.frombuffer(stored, kind, n, int(offset))
            for kind, offset in zip(KINDS, offsets, strict=True)
        )


class RowStore:
    """Rows that are appended group by group: items and values, 8 bytes a rating.

    They are in memory, or in unnamed temporary files of ``scratch``; ``most`` is the
    maximum number of ratings.
    """

    def __init__(self, most: int, scratch: str | os.PathLike[str] | None) -> None:
        self._files: tuple[IO[bytes], ...] = ()
        self._filled = 0
        if scratch is None:
            # memory that is not written to is not allocated
            self._private_arrays = tuple(np.empty(most, kind) for kind in KINDS[1:])
        else:
            self._files = tuple(_unnamed_file(scratch) for _ in KINDS[1:])

    def add(self, items: NDArray[np.int32], values: NDArray[np.float32]) -> None:
        """Append the ratings of a group."""
        end = self._filled + len(items)
        for position, column in enumerate((items, values)):
            if self._files:
                with scratch_errors():
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
        """Close the files; memory maps of them stay valid."""
        for file in self._files:
            file.close()

    def _mapped(self, file: IO[bytes], kind: np.dtype[Any]) -> NDArray[Any]:
        if not self._filled:
            return np.empty(0, kind)  # an empty file cannot be mapped
        with scratch_errors():
            file.flush()
            # copy-on-write, so that code compiled for writable arrays runs on these
            return np.asarray(np.memmap(file, kind, mode="c", shape=(self._filled,)))


def _pages(size: int) -> mmap:
    """Return memory that returns to the system as soon as it is released.

    With small arrays, the heap would keep the gaps between those still in use.
    """
    if sys.platform == "win32":
        return mmap(-1, size)
    return mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)


def _unnamed_file(scratch: str | os.PathLike[str]) -> IO[bytes]:
    if not isinstance(scratch, str | os.PathLike) or not os.path.isdir(scratch):
        got = os.fspath(scratch) if isinstance(scratch, os.PathLike) else scratch
        raise ValueError(f"scratch must be an existing folder, got {shown(got)}.")
    with scratch_errors():
        return tempfile.TemporaryFile(dir=scratch)


@contextmanager
def scratch_errors() -> Iterator[None]:
    """Replace an error of the file system by one sentence."""
    try:
        yield
    except OSError:
        raise ValueError(
            "scratch must be a writable folder with room for the ratings, 20 bytes "
            "each; give another."
        ) from None


# Formats of sparse matrices that also store zeros where there is no entry
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
        which has no types, labels are strings, and every line is a row by the rules of
        `tacit.tables.read_rows`. Where a column has no type, as in a list, each label
        has its own type.
    items
        The public catalogue: the number of items, which are then 0 to n - 1, or a list
        of their labels, integers or strings. Ratings of other items are left out.
    rating_range
        Lowest and highest rating there can be, set without the data. Ratings beyond it
        are clipped. They are stored as 32-bit floats.
    columns
        Names of the columns of user, item and rating.
    scratch
        Folder for unnamed temporary files that store the ratings instead of memory. It
        needs 20 bytes a rating.

    Notes
    -----
    **Guarantee.** The row of a user is a function of only their ratings, the catalogue
    and the range: repeated ratings of an item are averaged, and the order of ratings
    does not matter. A user all of whose items are unknown has a row without ratings.
    Ratings must be finite numbers; the error quotes none of them.

    The source is read once. Besides the table, whose 8 bytes a rating are in files
    where ``scratch`` is given, memory is needed for the label of each user, a batch of
    half a million rows, and the ratings of 16,384 users. Without ``scratch``, each
    rating takes another 10 bytes until all have been read.

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
    _check_names(columns)
    if sparse.issparse(source):
        return _read_matrix(source, catalogue, low, high, scratch)
    users = UserCodes()
    known = catalogue.as_strings() if is_csv(source) else catalogue
    spool = Spool(scratch)
    try:
        for owners, labels, ratings in batches(source, columns):
            codes, positions = users.of(owners), _positions(labels, known)
            values = clipped(as_numbers(ratings), low, high)
            there = positions >= 0
            spool.add(codes[there], positions[there], values[there])
        labels = list(users._private_positions)
        indptr, rated, values = _stored_rows(
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


def _check_names(columns: Any) -> None:
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
    """Return the position of the item of each cell, -1 for unknown items."""
    labels, codes = distinct_cells(column)
    found = [catalogue.position(label) for label in labels]
    return np.array(found, dtype=np.int32)[codes]


def _groups(spool: Spool, n_users: int) -> Iterator[Chunk]:
    for first in range(0, n_users, GROUP_USERS):
        yield spool.take(first // GROUP_USERS)


def _stored_rows(
    groups: Iterator[Chunk],
    n_users: int,
    most: int,
    scratch: str | os.PathLike[str] | None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return the arrays of a table whose users come group by group."""
    indptr = np.zeros(n_users + 1, dtype=np.int64)
    store = RowStore(most, scratch)
    try:
        for first, chunk in zip(range(0, n_users, GROUP_USERS), groups, strict=True):
            n = min(GROUP_USERS, n_users - first)
            ends, rated, values = grouped(*chunk, n)
            indptr[first + 1 : first + n + 1] = indptr[first] + ends[1:]
            store.add(rated, values)
        rated, values = store.finish()
    finally:
        store.close()
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
            "which also stores zeros where nothing was rated; convert it to a "
            "coo_array."
        )
    _check_entries(matrix)
    n_users = matrix.shape[0]
    spool = Spool(scratch)
    try:
        if matrix.format == "csr":
            groups, most = _csr_groups(matrix, low, high), int(matrix.indptr[-1])
        else:
            # most other conversions add up entries that are stored twice
            _spool_entries(spool, matrix.tocoo(copy=False), low, high)
            groups, most = _groups(spool, n_users), spool.n_ratings
        indptr, rated, values = _stored_rows(groups, n_users, most, scratch)
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


def _check_entries(matrix: Any) -> None:
    """Check that all stored entries are within the shape of the matrix."""
    try:
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        elif matrix.format != "coo":
            matrix.tocoo()  # which rejects others, in words that quote an index
        outside = matrix.format == "coo" and any(
            len(positions) and (positions.min() < 0 or positions.max() >= size)
            for positions, size in zip(matrix.coords, matrix.shape, strict=True)
        )
    except ValueError:
        outside = True
    if outside:
        raise ValueError(
            "ratings must be a sparse matrix whose entries are within its shape."
        ) from None


def _csr_groups(matrix: Any, low: float, high: float) -> Iterator[Chunk]:
    for first in range(0, matrix.shape[0], GROUP_USERS):
        indptr = matrix.indptr[first : first + GROUP_USERS + 1]
        entries = slice(indptr[0], indptr[-1])
        users = np.arange(len(indptr) - 1, dtype=np.uint16)
        yield (
            np.repeat(users, np.diff(indptr)),
            matrix.indices[entries].astype(np.int32),
            clipped(as_numbers(matrix.data[entries]), low, high),
        )


def _spool_entries(spool: Spool, entries: Any, low: float, high: float) -> None:
    for first in range(0, len(entries.data), BATCH):
        some = slice(first, first + BATCH)
        spool.add(
            entries.row[some].astype(np.int64),
            entries.col[some].astype(np.int32),
            clipped(as_numbers(entries.data[some]), low, high),
        )
