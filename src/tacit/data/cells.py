"""Cells of columns, each read by itself, whatever the other cells are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from numbers import Complex
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNREADABLE", "cells_of", "column_cells", "in_columns", "plain_category"]

# In the place of a cell that has no value in Python, as a date beyond all years
UNREADABLE = object()
# Units of pandas' dates, the finest first, which has the fewest years
UNITS = ("ns", "us", "ms", "s")


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
