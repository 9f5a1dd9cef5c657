"""Labels and ratings as columns in batches, and the public catalogue of items."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute
from pyarrow.compute import run_end_decode

from tacit._validate import at_least
from tacit.data._files.table_files import CSV, open_table

__all__ = [
    "BATCH",
    "Catalogue",
    "UserCodes",
    "as_numbers",
    "batches",
    "distinct_cells",
    "given_numbers",
    "integer_id",
    "is_csv",
]


# Rows of a batch, some hundred bytes each while labels are encoded
BATCH = 2**19
# positions of items are stored in 32 bits
MOST_ITEMS = 2**31 - 1

NO_RATINGS = (
    "ratings must be a sparse matrix of users by items, rows of user, item and rating, "
    "a data frame with these columns, or the path of a CSV, Parquet or Arrow file or "
    "of a folder of Parquet files; convert a dense matrix to a sparse one, such as "
    "scipy.sparse.coo_array, that stores only what was rated."
)

Batch = tuple[Any, Any, Any]


def is_csv(source: Any) -> bool:
    """Return whether this is the path of a CSV file, whose labels are strings."""
    if not isinstance(source, str | os.PathLike):
        return False
    # a folder may have any name
    return Path(source).suffix.lower() in CSV and not Path(source).is_dir()


def batches(source: Any, columns: Sequence[str]) -> Iterator[Batch]:
    """Yield users, items and ratings of some rows at a time, as columns."""
    if isinstance(source, str | os.PathLike):
        return _of_path(Path(source), columns)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return _of_pandas(source, columns)
    if hasattr(source, "__arrow_c_stream__"):
        try:
            stream = pa.RecordBatchReader.from_stream(source)
        except (pa.ArrowException, TypeError):  # one column, without a name
            raise ValueError(NO_RATINGS) from None
        _require_columns(stream.schema.names, columns)
        return _of_arrow(stream, columns)
    return _of_triples(source)


def _of_triples(source: Any) -> Iterator[Batch]:
    if isinstance(source, np.ma.MaskedArray):
        raise ValueError(
            "ratings must not be a masked array; leave out the rows that are masked."
        )
    if isinstance(source, np.ndarray):
        source = np.asarray(source)  # a column of a matrix would be a matrix
        three = source.ndim == 2 and source.shape[1] == 3
    else:
        three = isinstance(source, Sequence) and all(
            isinstance(row, Sequence | np.ndarray)
            and not isinstance(row, str | bytes | bytearray)
            and len(row) == 3
            for row in source
        )
    if not three:
        raise ValueError(NO_RATINGS)
    for first in range(0, len(source), BATCH):
        rows = source[first : first + BATCH]
        if isinstance(rows, np.ndarray):
            yield rows[:, 0], rows[:, 1], rows[:, 2]
        else:
            # [ratings:cells] NumPy would make strings of all numbers for one string
            users, items, ratings = map(list, zip(*rows, strict=True))
            yield users, items, ratings


def _of_pandas(frame: Any, columns: Sequence[str]) -> Iterator[Batch]:
    _require_columns(list(frame.columns), columns)
    for first in range(0, len(frame), BATCH):
        rows = frame.iloc[first : first + BATCH]
        users, items, ratings = (_series(rows[name]) for name in columns)
        yield users, items, ratings


def _series(series: Any) -> Any:
    """Return a column with a type of its own as Arrow has it, else a list of cells."""
    # [ratings:cells] objects and categories may be of several kinds, and for those
    # Arrow would guess one, by which a cell of one user changed those of all
    if series.dtype != object and not hasattr(series.dtype, "categories"):
        try:
            column = pa.Array.from_pandas(series)
        except (pa.ArrowException, TypeError, ValueError):
            pass  # a type that Arrow lacks
        else:
            if not isinstance(column.type, pa.BaseExtensionType):
                return column
    return series.astype(object).tolist()


def _of_arrow(stream: Any, columns: Sequence[str]) -> Iterator[Batch]:
    for whole in stream:
        for first in range(0, len(whole), BATCH):
            batch = whole.slice(first, BATCH)
            users, items, ratings = (batch.column(name) for name in columns)
            yield users, items, ratings


def _of_path(path: Path, columns: Sequence[str]) -> Iterator[Batch]:
    # [ratings:lines] the reader of all tables, by which every line is a row: with
    # quoted line breaks, the quotes of one user could swallow the lines of others
    table = open_table(path)
    _require_columns(table.names, columns)
    user, item, rating = columns
    for batch in table.read({user: "raw", item: "raw", rating: "number"}, BATCH):
        users, items = batch.column(user), batch.column(item)
        if is_csv(path):
            users, items = _empty_as_missing(users), _empty_as_missing(items)
        yield users, items, batch.column(rating)


def _empty_as_missing(strings: Any) -> Any:
    missing = pa.scalar(None, strings.type)
    return compute.if_else(compute.equal(strings, ""), missing, strings)


def _require_columns(names: Sequence[Any], columns: Sequence[str]) -> None:
    for name in columns:
        if list(names).count(name) != 1:
            raise ValueError(
                f"ratings must have one column {name!r}; name the columns of user, "
                "item and rating with columns, and melt a table that has a column for "
                "each item into such rows."
            )


class UserCodes:
    """Positions of users in the order in which they first occur.

    It keeps each label, so that memory grows with the number of users.
    """

    def __init__(self) -> None:
        self._private_positions: dict[Hashable, int] = {}

    def of(self, column: Any) -> NDArray[np.int64]:
        """Return the position of the user of each cell, new users after the others."""
        positions = self._private_positions
        labels, codes = distinct_cells(column)
        found = list(map(positions.get, labels))
        for k in [k for k, position in enumerate(found) if position is None]:
            if _is_missing(labels[k]):
                raise ValueError(
                    "ratings must have a user in each row, an integer or a string; "
                    "leave out rows without one."
                ) from None
            found[k] = positions.setdefault(labels[k], len(positions))
        return np.array(found, dtype=np.int64)[codes]


def distinct_cells(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the distinct cells in order of occurrence, and the index of each cell.

    A value that cannot be a label, such as a list, is None. A cell does not depend on
    other cells: it has its own type, or the declared type of its column.
    """
    cells = _plain(column)
    if not isinstance(cells, list):
        try:
            encoded = cells.dictionary_encode(null_encoding="encode")
        except pa.ArrowException:  # a type whose cells Arrow does not compare
            cells = _values(cells)
        else:
            codes = encoded.indices.to_numpy().astype(np.int64)
            return _values(encoded.dictionary), codes
    try:
        return _distinct(cells)
    except (TypeError, ValueError):
        return _distinct([_label(cell) for cell in cells])


def _distinct(cells: list[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    positions: dict[Hashable, int] = {}
    codes = [positions.setdefault(cell, len(positions)) for cell in cells]
    return list(positions), np.array(codes, dtype=np.int64)


def as_numbers(column: Any) -> NDArray[np.float64]:
    """Return ratings as finite numbers, which they must be."""
    cells = _plain(column)
    found = given_numbers(cells) if isinstance(cells, list) else _arrow_numbers(cells)
    if found is None or not np.isfinite(found).all():
        raise ValueError(
            "ratings must be finite numbers, and none may be missing; leave out items "
            "that a user did not rate."
        ) from None
    return found


def given_numbers(values: Any) -> NDArray[np.float64] | None:
    """Return the numbers of a list or a column, or None for anything else."""
    if isinstance(values, str | bytes | Mapping) or getattr(values, "ndim", 1) != 1:
        return None
    try:
        cells = list(values)
        if all(map(_is_number, cells)):
            return np.array([float(cell) for cell in cells], dtype=np.float64)
    except (TypeError, ValueError, ArithmeticError):  # not numbers, or too large
        pass
    return None


def _is_number(cell: Any) -> bool:
    # a span of time is an integer to numpy
    known = isinstance(cell, Real | Decimal | np.bool_)
    return known and not isinstance(cell, np.timedelta64)


def _plain(column: Any) -> Any:
    """Return a column as an Arrow array of plain cells, or a list of cells."""
    if isinstance(column, list):
        return column
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O":
            return column.tolist()
        try:
            column = pa.array(np.ascontiguousarray(column))
        except (pa.ArrowException, ValueError):  # types that Arrow lacks
            return column.tolist()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    while pa.types.is_dictionary(column.type) or _is_run(column):
        # categories that do not occur are not users
        runs = _is_run(column)
        try:
            column = run_end_decode(column) if runs else column.dictionary_decode()
        except pa.ArrowException:  # of a type that Arrow does not do it for
            return _values(column)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(column.type):
        return column.cast(pa.large_binary())
    if pa.types.is_float16(column.type):
        return column.cast(pa.float32())
    return column


def _is_run(column: Any) -> bool:
    return bool(pa.types.is_run_end_encoded(column.type))


def _values(array: Any) -> list[Any]:
    """Return cells as values of Python, None where it has no such value."""
    if pa.types.is_integer(array.type) and not array.null_count:
        return list(array.to_numpy().tolist())  # several times faster
    try:
        return list(array.to_pylist())
    except (ValueError, ArithmeticError):
        return [_value(cell) for cell in array]


def _value(cell: Any) -> Any:
    try:
        return cell.as_py()
    except (ValueError, ArithmeticError):  # a date after 9999, invalid UTF-8
        return None


def _label(cell: Any) -> Hashable:
    try:
        hash(cell)
    except (TypeError, ValueError):  # the latter from spans of time without a unit
        return None
    found: Hashable = cell
    return found


def _is_missing(label: Hashable) -> bool:
    try:
        # what differs from itself is missing too
        return label is None or bool(label != label)
    except TypeError:  # as missing cells of pandas, which compare with nothing
        return True


def _arrow_numbers(array: Any) -> NDArray[np.float64] | None:
    kind = array.type
    if array.null_count:
        return None
    if pa.types.is_decimal(kind):
        # by Arrow the last bits change with the digits that the column is declared with
        return given_numbers(array.to_pylist())
    number = (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
    )
    if not (number or len(array) == 0):
        return None
    floats = array.cast(pa.float64(), safe=False)
    return np.asarray(floats.to_numpy(zero_copy_only=False), dtype=np.float64)


@dataclass(frozen=True, repr=False)
class Catalogue:
    """The items that may be rated, which are public.

    Parameters
    ----------
    labels
        Label of each item: integers, or strings. A range has items 0 to n - 1.
    """

    labels: Sequence[int | str]
    _positions: Mapping[Any, int] | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"Catalogue of {len(self)} items"

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of(cls, items: Any) -> Catalogue:
        """Return the catalogue of a number of items, or of their labels."""
        if isinstance(items, Catalogue):
            return items
        if isinstance(items, Integral):
            at_least(1, items=items)
            n_items = int(items)
            if n_items > MOST_ITEMS:
                raise ValueError(f"items must be at most {MOST_ITEMS}, got {items!r}.")
            return cls(range(n_items))
        if isinstance(items, Set):
            raise ValueError(
                "items must be ordered, as item vectors are published in their order, "
                "got a set; give a list."
            )
        # of a table, parts are the names of its columns
        table = hasattr(items, "columns")
        if items is None or table or isinstance(items, str | bytes | Mapping):
            labels: Sequence[int | str] | None = None
        else:
            labels = _plain_labels(items)
        if not labels:
            raise ValueError(
                "items must be the number of items, or a list of their labels, all "
                "integers or all strings; it is the public catalogue."
            )
        if not all(map(_can_be_saved, labels)):
            raise ValueError(
                "items must be labels that can be saved: UTF-8 strings without null "
                "characters, or 64-bit integers."
            )
        positions = {label: position for position, label in enumerate(labels)}
        if len(positions) < len(labels):
            raise ValueError("items must be distinct labels; remove duplicates.")
        return cls(tuple(labels), positions)

    def in_words(self) -> str:
        """Describe the labels, for users whose ratings have other labels."""
        if self._positions is None:
            return f"integers from 0 to {len(self) - 1}"
        kind = "strings" if isinstance(self.labels[0], str) else "integers"
        return f"{len(self)} {kind}"

    def position(self, label: Any) -> int:
        """Return the position of a label, or -1 if it is not in the catalogue."""
        if self._positions is not None:
            try:
                return self._positions.get(label, -1)
            except Exception:  # a value that cannot be hashed is not a label
                return -1
        number = integer_id(label)
        return -1 if number is None or not 0 <= number < len(self) else number

    def as_strings(self) -> Catalogue:
        """Return the same items with labels as strings, as in a CSV file."""
        return Catalogue.of([str(label) for label in self.labels])


def integer_id(label: Any) -> int | None:
    """Return a value of any type as an integer, or None if it is not one."""
    if isinstance(label, np.timedelta64):  # an integer to numpy
        return None
    if isinstance(label, Integral):
        return int(label)
    if not isinstance(label, Real | Decimal | np.bool_):
        return None
    value: Any = label  # int() of any of these is known at run time only
    try:
        # by the float first: a short Decimal may have a billion digits
        number = int(value) if float(value).is_integer() else None
    except (TypeError, ValueError, ArithmeticError):  # not a finite number
        return None
    return number if number == label else None


def _plain_labels(items: Iterable[Any]) -> Sequence[int | str] | None:
    """Return labels as Python's own values, or None if they are not labels."""
    try:
        cells = items.tolist() if isinstance(items, np.ndarray) else list(items)
    except TypeError:
        return None
    if all(isinstance(cell, str) for cell in cells):
        return [str(cell) for cell in cells]
    if all(isinstance(c, Integral) and not isinstance(c, bool) for c in cells):
        return [int(cell) for cell in cells]
    return None


def _can_be_saved(label: int | str) -> bool:
    """Return whether a label can be saved, which must be known before the charge."""
    if isinstance(label, int):
        return -(2**63) <= label < 2**63
    try:
        return b"\0" not in label.encode()  # where NumPy ends a string
    except UnicodeEncodeError:  # a lone surrogate
        return False
