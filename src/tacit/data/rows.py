"""The one door to private data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._threads import in_order
from tacit.data.bounds import RowBounds
from tacit.data.features import FeatureBounds

__all__ = [
    "ArrayRows",
    "BlockFunction",
    "DiskRows",
    "InMemoryRows",
    "Rows",
    "arrays_of",
    "bounded_rows",
    "cut",
    "is_on_disk",
    "require_in_memory",
]

BlockFunction = Callable[[Any, NDArray[Any]], tuple[Any, ...]]
Stretch = tuple[RowBounds, float] | FeatureBounds

# Entries of a block: small enough to stay in cache between its two uses
BLOCK_ENTRIES = 2**20
# Most rows of a block, however few their entries
MOST_BLOCK_ROWS = 2**16
# From this many columns on, blocks are worth a thread each: the work on narrower rows
# is many short calls, between which threads wait for each other
WIDE = 256


class Rows(Protocol):
    """Rows that are only ever read as sums over blocks."""

    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def block_rows(self) -> int: ...
    def sum(self, function: BlockFunction) -> tuple[Any, ...]: ...


@runtime_checkable
class InMemoryRows(Rows, Protocol):
    """Rows in memory, for solvers that walk through them in an order of their own."""

    def arrays(self) -> tuple[Any, NDArray[Any]]: ...


def arrays_of(rows: Rows, solver: str) -> tuple[Any, NDArray[Any]]:
    """Return features and targets of rows in memory, or say which solver needs them."""
    if not isinstance(rows, InMemoryRows):
        require_in_memory(solver)
    in_memory_rows: InMemoryRows = rows
    return in_memory_rows.arrays()


def require_in_memory(solver: str) -> NoReturn:
    """Say which solver needs rows in memory."""
    raise ValueError(f"{solver} needs rows in memory; NoisyGD reads them in blocks.")


def is_on_disk(X: Any) -> bool:
    """Whether features are a map of a file, to be read block by block."""
    return isinstance(X, np.memmap) and X.ndim == 2 and X.dtype == np.float64


class _BlockRows:
    """Rows that are summed block by block, whatever a block is cut from."""

    def __init__(self, X: Any, y: NDArray[Any], wide: int) -> None:
        self._private_X = X
        self._private_y = y
        self._wide = wide
        per_row = max(1, wide)
        if sparse.issparse(X):
            per_row = max(1, X.nnz // max(1, X.shape[0]))
        self._block_rows = int(np.clip(BLOCK_ENTRIES // per_row, 64, MOST_BLOCK_ROWS))

    def _cut(self, start: int, stop: int) -> Any:
        return cut(self._private_X, start, stop)

    @property
    def n_rows(self) -> int:
        return int(self._private_X.shape[0])

    @property
    def n_features(self) -> int:
        return self._wide

    @property
    def block_rows(self) -> int:
        """Most rows in one block; sums are over blocks first."""
        return self._block_rows

    def _blocks(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        X, y = self._private_X, self._private_y
        for start in range(0, X.shape[0], self._block_rows):
            stop = min(start + self._block_rows, X.shape[0])
            yield self._cut(start, stop), y[start:stop]

    def sum(self, function: BlockFunction) -> tuple[Any, ...]:
        """Return the sum over blocks of the arrays that ``function`` returns.

        Blocks are added in pairs, pairs in pairs and so on, so that a term goes through
        as many additions as the number of blocks has binary digits.
        """
        waiting: list[tuple[Any, ...]] = []  # sums of 2^j blocks, the longest first
        parts = in_order(
            lambda block: function(*block),
            self._blocks(),
            side_by_side=self.n_features >= WIDE,
        )
        for count, part in enumerate(parts, start=1):
            while count % 2 == 0:
                part = _add(waiting.pop(), part)
                count //= 2
            waiting.append(part)
        if not waiting:  # no rows sum to nothing, and that there are none must not show
            return function(self._cut(0, 0), self._private_y[:0])
        total = waiting.pop()
        while waiting:
            total = _add(waiting.pop(), total)
        return total

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"{kind}({self.n_rows} rows, {self.n_features} features)"


class ArrayRows(_BlockRows):
    """Rows of an array or a CSR matrix in memory.

    Parameters
    ----------
    X
        Features, one row a person, already within their bounds.
    y
        Targets.
    """

    def __init__(self, X: Any, y: NDArray[Any]) -> None:
        super().__init__(X, y, int(X.shape[1]))

    def arrays(self) -> tuple[Any, NDArray[Any]]:
        """Return features and targets, which must not be written to."""
        return self._private_X, self._private_y


class DiskRows(_BlockRows):
    """Rows of a file, brought within their bounds whenever a block is read.

    Sums are those of the same rows in memory, bit for bit. A row that is not finite
    any more, since somebody wrote to the file after it was checked, counts as zeros.

    Parameters
    ----------
    X
        Map of a file with features, one row a person.
    y
        Targets, in memory.
    bounds
        Bounds to cut each row to.
    intercept
        Value of the constant feature, or None.
    stretch
        Bounds to cut rows to before that, and what to multiply them by then; or ranges
        of the features, each to be mapped to [-1, 1].
    """

    def __init__(
        self,
        X: Any,
        y: NDArray[Any],
        bounds: RowBounds,
        intercept: float | None = None,
        stretch: Stretch | None = None,
    ) -> None:
        # a plain view: each slice of a map drags its file along
        features = np.asarray(X)
        super().__init__(features, y, X.shape[1] + (intercept is not None))
        self._bounds, self._intercept, self._stretch = bounds, intercept, stretch

    def _cut(self, start: int, stop: int) -> Any:
        block = self._private_X[start:stop]
        finite = np.isfinite(block)
        if not finite.all():
            block = np.where(finite.all(axis=1)[:, None], block, 0.0)
        return _bounded(block, self._bounds, self._intercept, self._stretch)


def _add(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def cut(X: Any, start: int, stop: int) -> Any:
    """Return some rows of an array or a CSR matrix, without copying them."""
    if not sparse.issparse(X):
        return X[start:stop]
    # views of the stored arrays; scipy's slicing and its constructor copy them
    low, high = X.indptr[start], X.indptr[stop]
    block = sparse.csr_array((stop - start, X.shape[1]), dtype=X.dtype)
    block.data, block.indices = X.data[low:high], X.indices[low:high]
    block.indptr = X.indptr[start : stop + 1] - low
    return block


def bounded_rows(
    X: Any,
    y: NDArray[Any],
    bounds: RowBounds,
    intercept: float | None = None,
    stretch: Stretch | None = None,
) -> ArrayRows | DiskRows:
    """Clip to the bounds, append the constant feature, and close the door.

    Rows of a file stay there. ``stretch`` is a pair of bounds to clip to before, and
    of what to multiply by then, or the ranges of features, each mapped to [-1, 1].
    """
    if is_on_disk(X):
        return DiskRows(X, y, bounds, intercept, stretch)
    return ArrayRows(_bounded(X, bounds, intercept, stretch), y)


def _bounded(
    X: Any, bounds: RowBounds, intercept: float | None, stretch: Stretch | None
) -> Any:
    if isinstance(stretch, FeatureBounds):
        if not sparse.issparse(X) and intercept is not None:
            joined = np.empty((X.shape[0], X.shape[1] + 1))
            stretch.to_unit(X, out=joined[:, :-1])
            np.clip(joined, -bounds.x_norm, bounds.x_norm, out=joined)
            joined[:, -1] = intercept
            return joined
        X = stretch.to_unit(X)
    elif stretch is not None:
        before, factor = stretch
        X = before.clip(X) * factor
    if intercept is None:
        return bounds.clip(X)
    if sparse.issparse(X):
        constant = sparse.csr_array(np.full((X.shape[0], 1), intercept))
        joined = sparse.hstack([bounds.clip(X), constant], format="csr")
        return sparse.csr_array(joined)
    joined = np.empty((X.shape[0], X.shape[1] + 1))  # float64 whatever X is
    joined[:, -1] = intercept
    if bounds.norm == "linf":
        joined[:, :-1] = X  # first, as float32 would round the bound
        np.clip(joined[:, :-1], -bounds.x_norm, bounds.x_norm, out=joined[:, :-1])
    else:
        np.multiply(X, bounds.factors(X)[:, None], out=joined[:, :-1])
    return joined
