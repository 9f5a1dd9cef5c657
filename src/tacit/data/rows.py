"""Private rows: cells, each read by itself, and rows that are read as block sums."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from numbers import Complex
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._execution import in_order
from tacit.data.bounds import RowBounds
from tacit.data.features import FeatureBounds

__all__ = [
    "UNREADABLE",
    "ArrayRows",
    "BlockFunction",
    "DiskRows",
    "InMemoryRows",
    "Rows",
    "arrays_of",
    "bounded_rows",
    "cells_of",
    "column_cells",
    "cut",
    "in_columns",
    "is_on_disk",
    "is_untyped",
    "plain_category",
    "require_in_memory",
    "row_indexer",
]

# Stands for a cell that has no value in Python, as a date beyond all years
UNREADABLE = object()
# Iterables that have no rows
_NO_ROWS = (str, bytes, Mapping, Set)
# Units of pandas' dates, the finest first, which has the fewest years
UNITS = ("ns", "us", "ms", "s")

BlockFunction = Callable[[Any, NDArray[Any]], tuple[Any, ...]]
Stretch = tuple[RowBounds, float] | FeatureBounds

# Entries of a block: small enough to stay in cache between its two uses
BLOCK_ENTRIES = 2**20
# Most rows of a block, however few their entries
MOST_BLOCK_ROWS = 2**16
# From this many columns on, blocks are worth a thread each: the work on narrower rows
# is many short calls, between which threads wait for each other
WIDE = 256


def in_columns(values: Any) -> Any:
    """Return tables and columns of Arrow, and arrays of pandas, as pandas has columns.

    So each column keeps the type that it is declared with. NumPy would choose a type by
    all cells: one missing integer makes floats of the others. Anything else is returned
    as it is.
    """
    pandas = sys.modules.get("pandas")
    if isinstance(values, np.ndarray) or hasattr(values, "iloc"):
        return values
    if pandas is not None and isinstance(
        values, pandas.Index | pandas.api.extensions.ExtensionArray
    ):
        return pandas.Series(values)
    if not hasattr(values, "__arrow_c_stream__") and not hasattr(
        values, "__arrow_c_array__"
    ):
        return values
    return _of_arrow(values)


def _of_arrow(values: Any) -> Any:
    try:
        import pandas  # noqa: PLC0415 - an extra
    except ImportError:
        raise TypeError(
            "Tables and arrays of Arrow need pandas; install tacit[pandas], or convert "
            "each column to a NumPy array of a type that you choose."
        ) from None
    import pyarrow as pa  # noqa: PLC0415 - a tenth of a second

    if hasattr(values, "columns"):
        table = values if isinstance(values, pa.Table) else pa.table(values)
        return table.to_pandas(types_mapper=pandas.ArrowDtype, ignore_metadata=True)
    column = values if hasattr(values, "type") else pa.chunked_array(values)
    return pandas.Series(pandas.arrays.ArrowExtensionArray(column))


def is_untyped(values: Any) -> bool:
    """Whether a container has rows and no type of its cells, as a list.

    The order of a set depends on all its rows, so a set has no rows here.
    """
    typed = hasattr(values, "shape") or hasattr(values, "__array__")
    cells = isinstance(values, Iterable) and not isinstance(values, _NO_ROWS)
    return cells and not typed


def row_indexer(table: Any) -> Any:
    """Return what takes positions of rows in brackets, of an array or a data frame."""
    return table.iloc if hasattr(table, "iloc") else table


def cells_of(column: Any) -> list[Any]:
    """Return the cells of a column of Arrow, each read by itself where one fails."""
    try:
        found: list[Any] = column.to_pylist()
    except Exception:  # Arrow, dates and time zones have errors of their own
        found = [_read(scalar.as_py) for scalar in column]
    return found


def column_cells(column: Any) -> NDArray[Any]:
    """Return the cells of a column of pandas, each as it would be without the others.

    They are objects where NumPy does not have the type of the column, and None where
    they have no value in Python.
    """
    if isinstance(column.dtype, np.dtype):
        plain: NDArray[Any] = np.asarray(column)
        return plain
    if hasattr(column, "cat"):
        kinds = column_cells(column.cat.categories.to_series())
        table = _objects([*map(plain_category, kinds.tolist()), None])
        cells: NDArray[Any] = table[column.cat.codes.to_numpy()]
        return cells
    arrow = getattr(column.array, "__arrow_array__", None)
    if hasattr(column.dtype, "pyarrow_dtype"):
        # always, so that a cell that has no value changes nothing about the others
        return _objects(cells_of(arrow()))  # type: ignore[misc]
    try:
        return np.asarray(column, dtype=object)
    except Exception:  # such as text that is not UTF-8
        if arrow is not None:
            return _objects(cells_of(arrow()))
        read = column.iloc.__getitem__
        return _objects([_read(partial(read, k)) for k in range(len(column))])


def _objects(cells: list[Any]) -> NDArray[Any]:
    found = np.empty(len(cells), dtype=object)
    for position, cell in enumerate(cells):
        found[position] = None if cell is UNREADABLE else cell
    return found


def _read(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Exception:
        return UNREADABLE


def plain_category(category: Any) -> Any:
    """Return a category in the one form that all equal ones have.

    pandas stores one of several equal categories, such as 1 and True, and chooses one
    type for all of them, as a category of 2.5 makes floats of integers. Which other
    categories there are depends on all rows. So numbers are integers where they are
    integers as floats, and else floats, and dates are in the finest unit that has them.
    """
    if isinstance(category, datetime | timedelta | np.datetime64 | np.timedelta64):
        return _plain_time(category)
    if isinstance(category, np.generic):
        category = category.item()
    if isinstance(category, str):
        return str.__str__(category)
    if type(category) in (tuple, frozenset):
        return type(category)(map(plain_category, category))
    if isinstance(category, Complex | Decimal):
        return _plain_number(category)
    if hasattr(category, "closed") and hasattr(category, "left"):
        ends = map(plain_category, (category.left, category.right))
        with suppress(Exception):
            return type(category)(*ends, category.closed)
    return category


def _plain_number(number: Any) -> Any:
    if isinstance(number, Complex) and number.imag == 0:
        number = number.real
    try:
        rounded = float(number)
        return int(rounded) if rounded.is_integer() else rounded
    except (TypeError, ValueError, ArithmeticError):  # beyond all floats
        return number


def _plain_time(moment: Any) -> Any:
    import pandas  # noqa: PLC0415 - it made the category

    span = isinstance(moment, timedelta | np.timedelta64)
    found: Any = moment
    with suppress(Exception):  # units that pandas has not
        found = pandas.Timedelta(moment) if span else pandas.Timestamp(moment)
        if getattr(found, "tzinfo", None) is not None:
            found = found.tz_convert("UTC")
    for unit in UNITS:
        with suppress(Exception):  # too far away for this one
            return found.as_unit(unit)
    return found


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
    """Rows in memory, for solvers that visit them in an order of their own."""

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
    """Rows of an array or a CSR matrix in memory, already within their bounds."""

    def __init__(self, X: Any, y: NDArray[Any]) -> None:
        super().__init__(X, y, int(X.shape[1]))

    def arrays(self) -> tuple[Any, NDArray[Any]]:
        """Return features and targets, which must not be written to."""
        return self._private_X, self._private_y


class DiskRows(_BlockRows):
    """Rows of a file, brought within their bounds whenever a block is read.

    Sums are those of the same rows in memory, bit for bit. A row that is not finite
    any more, since somebody wrote to the file after it was checked, counts as zeros.
    ``intercept`` and ``stretch`` are as for `bounded_rows`.
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
