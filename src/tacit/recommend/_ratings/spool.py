"""Ratings put apart by groups of users until all have come, in memory or on disk."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit._validate import shown

if sys.platform != "win32":
    from mmap import MAP_ANONYMOUS, MAP_PRIVATE

__all__ = ["GROUP_USERS", "Shelf", "Spool"]

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
