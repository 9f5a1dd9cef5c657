"""Conversion of the rows of a stream to numbers, where no row changes another.

Only the first step, before the charge, may reject a value. Later, a value that is not a
number is missing. Shapes, and the type of a whole array, are public.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from math import nan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._estimators import array_of, checked_values, is_untyped
from tacit.data.bounds import canonical, sorted_classes
from tacit.data.rows import column_cells, in_columns

__all__ = [
    "checked_classes",
    "class_positions",
    "column_of",
    "dense_values",
    "float_targets",
    "label_of",
    "labels_of",
    "number",
    "numeric_labels",
    "table_of",
]

Floats = NDArray[np.float64]

NUMBERS = "fiub"
# From here on integers are not distinct in a column that one missing value turns into
# floats; dates are integers in some columns and objects in others
NO_LABEL = 2.0**53
DATES = (date, timedelta, np.datetime64, np.timedelta64)
SEVERAL = (list, tuple, np.ndarray)


def number(cell: Any) -> float:
    """Return a number as a float, and NaN for anything else."""
    # a time difference is an integer to numpy
    if not isinstance(cell, Real | Decimal | np.bool_) or isinstance(
        cell, np.timedelta64
    ):
        return nan
    try:
        with np.errstate(all="ignore"):
            return float(cell)
    except Exception:  # an arbitrary object that raises is not a number
        return nan


def numbers(cells: NDArray[Any]) -> Floats:
    """Return an array as floats, NaN where a cell is not a number."""
    if cells.dtype.kind in NUMBERS:
        with np.errstate(all="ignore"):  # what does not fit is infinite
            return cells.astype(np.float64, copy=False)
    if cells.dtype.kind != "O":  # strings, dates, time differences, complex numbers
        return np.full(cells.shape, nan)
    found = [number(cell) for cell in cells.flat]
    return np.array(found, dtype=np.float64).reshape(cells.shape)


def dense_values(X: Any, *, first: bool = False) -> Floats:
    """Return features in dense float64, whatever their cells are.

    A cell that is not a number is rejected at the ``first`` step, and missing later.
    """
    if sparse.issparse(X):
        if X.dtype.kind not in NUMBERS:
            return checked_values(X) if first else np.full(X.shape, nan)
        return numbers(canonical(X).toarray())
    if hasattr(X, "iloc"):
        if first:
            return np.asarray(checked_values(X, finite=False), dtype=np.float64)
        columns = [X.iloc[:, position] for position in range(X.shape[1])]
        return np.column_stack([_frame_column(column) for column in columns])
    X = np.asarray(X)
    if first and X.dtype.kind not in NUMBERS:
        return np.asarray(checked_values(X, finite=False), dtype=np.float64)
    return numbers(X)


def _frame_column(column: Any) -> Floats:
    plain = isinstance(column.dtype, np.dtype)
    if not plain and getattr(column.dtype, "kind", "O") not in NUMBERS + "O":
        return np.full(len(column), nan)
    # columns of other types than numpy's have their own marker of missing values
    return numbers(column_cells(column))


def float_targets(y: Any, *, first: bool = False) -> Floats:
    """Return targets in float64, NaN where one is missing.

    A target that is not a number is rejected at the ``first`` step, and missing later.
    """
    array = np.asarray(y)
    found = numbers(array)
    numeric = array.dtype.kind in NUMBERS
    invalid = [] if numeric else array[np.isnan(found)].tolist()
    if first and any(cell is not None for cell in invalid):
        raise ValueError("y must hold numbers only.")
    return found


def numeric_labels(cells: NDArray[Any]) -> Floats:
    """Return labels of an array of numbers as `label_of` has them, else NaN."""
    found = numbers(cells)
    return np.where(np.abs(found) < NO_LABEL, found, nan)


def label_of(cell: Any) -> Any:
    """Return the canonical form of a label: a float, a string, an object, or None.

    It only depends on the cell, in whatever column the cell is. Missing values, dates,
    and numbers of 2**53 and more are no labels.
    """
    if isinstance(cell, DATES):
        return None
    if isinstance(cell, Real | Decimal | np.bool_):
        found = number(cell)
        return found if abs(found) < NO_LABEL else None
    try:
        hash(cell)
        return cell if bool(cell == cell) else None
    except Exception:  # an arbitrary object that raises is not a label
        return None


def labels_of(cells: NDArray[Any]) -> list[Any]:
    """Return the canonical form of each cell, None or NaN if it is not a label."""
    if cells.dtype.kind in NUMBERS:
        found: list[Any] = numeric_labels(cells).ravel().tolist()
        return found
    if cells.dtype.kind in "mM":
        return [None] * cells.size
    return [label_of(cell) for cell in cells.ravel().tolist()]


def class_positions(classes: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of each label among the classes, -1 for other labels."""
    code = {label: position for position, label in enumerate(labels_of(classes))}
    if len(code) < len(classes) or any(c is None or c != c for c in code):
        raise ValueError(
            "classes must be strings or numbers below 2**53 in size: dates and larger "
            "numbers are not the same in every column."
        )

    def position(label: Any) -> int:
        try:
            return code.get(label, -1)
        except Exception:  # an object that cannot be compared with others
            return -1

    return np.array([position(label) for label in labels_of(y)], dtype=np.int64)


def checked_classes(classes: Any) -> NDArray[Any]:
    """Return sorted labels, or reject fewer than two."""
    found = sorted_classes(classes)
    class_positions(found, found)  # rejects what has no canonical form
    return found


def table_of(X: Any, width: int | None = None) -> Any:
    """Return rows as something with a shape; cells of lists remain as they are.

    Parameters
    ----------
    X
        An array, a table, a sparse matrix, or a list of rows.
    width
        Number of columns at a later step; None at the first. Rows of another length in
        a list or an array of objects are missing, also if all are: an error would
        depend on the length of the last row that has it.
    """
    X = in_columns(X)
    if width is not None and (is_untyped(X) or _has_other_rows(X, width)):
        X = list(X)
    if hasattr(X, "shape"):
        complex_kind = getattr(getattr(X, "dtype", None), "kind", None) == "c"
        return np.full(X.shape, nan) if complex_kind and width is not None else X
    if width is None or not isinstance(X, list):
        # numpy would convert a list with one string in it to strings
        return np.asarray(X, dtype=object)
    table = np.full((len(X), width), None, dtype=object)
    for position, row in enumerate(X):
        if _length(row) == width:
            for column, cell in enumerate(row):
                table[position, column] = cell
    return table


def _has_other_rows(X: Any, width: int) -> bool:
    """Return whether rows of an array of objects made its shape another one.

    One column of objects may have a row in each cell.
    """
    if sparse.issparse(X) or getattr(X, "dtype", None) != np.dtype(object):
        return False
    return bool(X.ndim > 0 and (X.ndim != 2 or X.shape[1] != width))


def _length(row: Any) -> int | None:
    if isinstance(row, np.ndarray) and row.ndim != 1:
        return None
    try:
        return len(row) if isinstance(row, SEVERAL) else None
    except Exception:  # an arbitrary object: an exception would leak information
        return None


def column_of(y: Any, *, first: bool = False) -> NDArray[Any]:
    """Return targets as a vector; their shape or kind may be rejected."""
    if sparse.issparse(y):
        raise ValueError("y must be dense: sparse labels are not supported.")
    y = y if is_untyped(y) else array_of(y)
    if not first and (is_untyped(y) or (y.dtype.kind == "O" and y.ndim > 0)):
        # a shape inferred from the cells would depend on all of them
        cells = list(y)
        column = np.empty(len(cells), dtype=object)
        for position, cell in enumerate(cells):
            column[position] = cell[0] if _length(cell) == 1 else cell
        return column
    array = np.asarray(y, dtype=object) if is_untyped(y) else y
    if array.dtype.kind == "c":
        if first:
            raise ValueError("Complex data not supported: y must hold real numbers.")
        array = array.astype(object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError("y should be a 1d array, with one target for each row.")
    return array
