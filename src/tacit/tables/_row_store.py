"""Storage of encoded rows: in memory, or on disk if they do not fit."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from os import PathLike
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from tacit.data._files import TableError

__all__ = ["RowStore", "available", "memory_limit"]

Floats = NDArray[np.float64]

# Initial capacity in rows, and the fraction by which it grows
FIRST = 2**14
GROWTH = 1 / 8
# Fraction of the available memory for rows: a fit makes a second copy, clipped to its
# bounds, and the rest is for everything else
PART = 1 / 3
UNLIMITED = 2**60  # some systems report numbers this large for no limit


class RowStore:
    """Rows that are appended block by block; their number is None if it is unknown.

    Rows that take more bytes of memory than the limit go to an unnamed file in the
    folder ``scratch``, so that nothing is left of it however the process ends.
    """

    def __init__(
        self,
        n_features: int,
        n_rows: int | None,
        limit: int,
        scratch: str | PathLike[str] | None = None,
    ) -> None:
        self._wide = n_features
        self._limit = limit
        self._scratch = tempfile.gettempdir() if scratch is None else scratch
        self._filled = 0
        self._file: IO[bytes] | None = None
        self._buffer: Floats = np.empty((0, n_features))
        if n_rows is not None and self._bytes(n_rows) > limit:
            self._open(self._bytes(n_rows))
        else:
            self._resize(n_rows if n_rows is not None else 0)

    def __len__(self) -> int:
        return self._filled

    def _bytes(self, rows: int) -> int:
        return rows * self._wide * 8

    def block(self, rows: int) -> Floats:
        """Return an array for the next rows, to be filled before `add`."""
        needed = self._filled + rows
        if self._file is None:
            self._reserve(needed)
        if self._file is None:
            return self._buffer[self._filled : needed]
        if len(self._buffer) < rows:
            self._buffer = np.empty((rows, self._wide))
        return self._buffer[:rows]

    def _reserve(self, needed: int) -> None:
        """Reserve memory for so many rows, or move them to disk."""
        if self._bytes(needed) > self._limit:
            self._spill()
        elif needed > len(self._buffer):
            most = self._limit // max(1, self._bytes(1))
            grown = max(FIRST, needed + int(GROWTH * needed))
            self._resize(max(needed, min(grown, most)))

    def add(self, rows: int) -> None:
        """Append the rows that were written to the last block."""
        if self._file is not None:
            self._write(self._buffer[:rows])
        self._filled += rows

    def finish(self) -> Floats:
        """Return all rows: an array, or a read-only map of the file."""
        if self._file is None:
            self._resize(self._filled)
            return self._buffer
        with self._file as file, self._explained():
            file.flush()
            return np.memmap(
                file, dtype=np.float64, mode="r", shape=(self._filled, self._wide)
            )

    def close(self) -> None:
        """Delete the file, if reading was interrupted."""
        if self._file is not None:
            self._file.close()

    def _resize(self, rows: int) -> None:
        try:
            if not self._filled:
                self._buffer = np.empty((rows, self._wide))
                return
            # in place: a block this large is moved in the page table, so there are
            # never two copies. No view of it is alive by now
            self._buffer.resize((rows, self._wide), refcheck=False)
        except MemoryError:
            if self._file is None:
                self._spill()

    def _spill(self) -> None:
        rows, self._buffer = self._buffer, np.empty((0, self._wide))
        self._open(self._bytes(self._filled))
        self._write(rows[: self._filled])

    def _open(self, needed: int) -> None:
        with self._explained():
            free = shutil.disk_usage(self._scratch).free
            if free < needed:
                raise OSError(errno.ENOSPC, "")
            self._file = tempfile.TemporaryFile(dir=self._scratch)  # noqa: SIM115

    def _write(self, rows: Floats) -> None:
        assert self._file is not None
        if not len(rows):
            return
        with self._explained():
            self._file.write(rows.data.cast("B"))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn an error of the file into one sentence."""
        try:
            yield
        except OSError as error:
            raise TableError(
                f"The scratch folder {self._scratch} {_problem(error)}; give another "
                "one as scratch, or leave columns out of the schema."
            ) from None


def _problem(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "has no room for the encoded rows, which do not fit in memory"
    if error.errno == errno.ENOMEM:
        return (
            "has the encoded rows, but they cannot be mapped into memory; raise the "
            "limit on addresses (ulimit -v)"
        )
    return "cannot take the encoded rows, which do not fit in memory"


def memory_limit() -> int:
    """Return the bytes of memory that rows may use."""
    return int(min(available(), UNLIMITED) * PART)


def available() -> float:
    """Return the bytes left to this process, by its tightest limit."""
    free = _kilobytes("/proc/meminfo", "MemAvailable")  # of the machine
    return max(0.0, min(free, _resource_limits(), _cgroups()))


def _resource_limits() -> float:
    """Return the memory left by the resource limits of this process."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return inf
    left = inf
    for limit, used in (("RLIMIT_DATA", "VmData"), ("RLIMIT_AS", "VmSize")):
        soft, _ = resource.getrlimit(getattr(resource, limit))
        if soft != resource.RLIM_INFINITY:
            taken = _kilobytes("/proc/self/status", used)
            left = min(left, soft - (taken if taken < inf else 0))
    return left


def _kilobytes(file: str, key: str) -> float:
    for line in _lines(file):
        if line.startswith(f"{key}:"):
            return float(line.split()[1]) * 1024
    return inf


def _cgroups() -> float:
    """Return the memory left by the control groups of this process."""
    left = inf
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            left = min(left, _group("/sys/fs/cgroup", path, "max", "current"))
        elif "memory" in controllers.split(","):
            names = ("limit_in_bytes", "usage_in_bytes")
            left = min(left, _group("/sys/fs/cgroup/memory", path, *names))
    return left


def _group(root: str, path: str, limit: str, usage: str) -> float:
    """Return the memory left by a group and its parents; cached files count as free."""
    left = inf
    folder = Path(root) / path.strip().lstrip("/")
    for group in (folder, *folder.parents):
        most = _number(group / f"memory.{limit}")
        if most < UNLIMITED:
            cache = 0.0
            for line in _lines(group / "memory.stat"):
                if line.startswith(("inactive_file ", "total_inactive_file ")):
                    cache = max(cache, float(line.split()[1]))
            left = min(left, most - _number(group / f"memory.{usage}", 0.0) + cache)
        if group == Path(root):
            break
    return left


def _number(file: Path, default: float = inf) -> float:
    for line in _lines(file):
        return float(line) if line.strip().isdigit() else default
    return default


def _lines(file: str | Path) -> list[str]:
    try:
        return Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
