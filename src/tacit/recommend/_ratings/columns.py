"""Columns of ratings: labels told apart, and numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.compute import run_end_decode

__all__ = ["UserCodes", "as_numbers", "given_numbers", "listed"]


class UserCodes:
    """Users by the order in which they come, as each batch adds some.

    It holds each label, hence memory in proportion to the number of users.
    """

    def __init__(self) -> None:
        self._private_positions: dict[Hashable, int] = {}

    def of(self, column: Any) -> NDArray[np.int64]:
        """Return the place of the user of each cell, new ones after the others."""
        positions = self._private_positions
        labels, codes = listed(column)
        found = list(map(positions.get, labels))
        for k in [k for k, position in enumerate(found) if position is None]:
            if _is_missing(labels[k]):
                raise ValueError(
                    "ratings must have a user in each row, a whole number or a text; "
                    "leave out rows without one."
                ) from None
            found[k] = positions.setdefault(labels[k], len(positions))
        return np.array(found, dtype=np.int64)[codes]


def listed(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the different cells in the order they come, and which each cell is.

    What can be no label, as a list, is None there. Other cells change nothing about
    one: it is of the kind that it has itself, or that its column is declared to have.
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
        return _told_apart(cells)
    except (TypeError, ValueError):
        return _told_apart([_label(cell) for cell in cells])


def _told_apart(cells: list[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    positions: dict[Hashable, int] = {}
    codes = [positions.setdefault(cell, len(positions)) for cell in cells]
    return list(positions), np.array(codes, dtype=np.int64)


def as_numbers(column: Any) -> NDArray[np.float64]:
    """Return ratings as numbers, or refuse what is no finite number."""
    cells = _plain(column)
    found = given_numbers(cells) if isinstance(cells, list) else _arrow_numbers(cells)
    if found is None or not np.isfinite(found).all():
        raise ValueError(
            "ratings must be finite numbers, with none missing; leave out items that a "
            "user did not rate."
        ) from None
    return found


def given_numbers(values: Any) -> NDArray[np.float64] | None:
    """Return the numbers of a list or a column, or None for what is no such thing."""
    if isinstance(values, str | bytes | Mapping) or getattr(values, "ndim", 1) != 1:
        return None
    try:
        cells = list(values)
        if all(map(_is_number, cells)):
            return np.array([float(cell) for cell in cells], dtype=np.float64)
    except (TypeError, ValueError, ArithmeticError):  # none, or beyond all floats
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
        except (pa.ArrowException, ValueError):  # types that Arrow has not
            return column.tolist()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    while pa.types.is_dictionary(column.type) or _is_run(column):
        # categories that no row has are no users
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
    return pa.types.is_run_end_encoded(column.type)


def _values(array: Any) -> list[Any]:
    """Return cells as values of Python, None where it has no such value."""
    if pa.types.is_integer(array.type) and not array.null_count:
        return array.to_numpy().tolist()  # many times faster
    try:
        return array.to_pylist()
    except (ValueError, ArithmeticError):
        return [_value(cell) for cell in array]


def _value(cell: Any) -> Any:
    try:
        return cell.as_py()
    except (ValueError, ArithmeticError):  # a date after 9999, bytes that are no text
        return None


def _label(cell: Any) -> Hashable:
    try:
        hash(cell)
    except (TypeError, ValueError):  # the latter from spans of time without a unit
        return None
    return cell


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
    return array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
