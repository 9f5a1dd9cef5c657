"""Columns of ratings: labels told apart, and numbers."""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["UserCodes", "as_numbers", "listed"]


class UserCodes:
    """Users by the order in which they come, as each batch adds some.

    It holds each label, hence memory in proportion to the number of users.
    """

    def __init__(self) -> None:
        self._private_places: dict[Hashable, int] = {}

    def of(self, column: Any) -> NDArray[np.int64]:
        """Return the place of the user of each cell, new ones after the others."""
        places = self._private_places
        try:
            labels, codes = listed(column)
            found = list(map(places.get, labels))
            for k in [k for k, place in enumerate(found) if place is None]:
                label = labels[k]
                # what differs from itself is missing too
                if label is None or label != label:
                    raise TypeError
                found[k] = places.setdefault(label, len(places))
        except TypeError:
            raise ValueError(
                "ratings must have a user in each row, a whole number or a text; leave "
                "out rows without one."
            ) from None
        return np.array(found, dtype=np.int64)[codes]


def listed(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the different cells in the order they come, and which each cell is.

    Cells that cannot be hashed raise a TypeError.
    """
    array = _arrow(column)
    if array is None:
        places: dict[Hashable, int] = {}
        codes = [places.setdefault(cell, len(places)) for cell in column]
        return list(places), np.array(codes, dtype=np.int64)
    encoded = array.dictionary_encode(null_encoding="encode")
    labels, codes = encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
    if pa.types.is_integer(labels.type) and not labels.null_count:
        return labels.to_numpy().tolist(), codes  # many times faster
    return labels.to_pylist(), codes


def as_numbers(column: Any) -> NDArray[np.float64]:
    """Return ratings as numbers, or refuse what is no finite number."""
    array = _arrow(column)
    try:
        found = _object_numbers(column) if array is None else _arrow_numbers(array)
        finite = bool(np.isfinite(found).all())
    except (TypeError, ValueError, ArithmeticError, pa.ArrowException):
        finite = False
    if not finite:
        raise ValueError(
            "ratings must be finite numbers, with none missing; leave out items that a "
            "user did not rate."
        ) from None
    return found


def _arrow(column: Any) -> Any:
    """Return a column as an Arrow array of plain cells, or None for mixed objects."""
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        if isinstance(column, np.ndarray) and column.dtype.kind == "O":
            return None
        column = pa.array(np.ascontiguousarray(column))
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        # categories that no row has are no users
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_float16(column.type):
        return column.cast(pa.float32())
    return column


def _arrow_numbers(array: Any) -> NDArray[np.float64]:
    kind = array.type
    number = (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )
    if array.null_count or not (number or len(array) == 0):
        raise TypeError
    return array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _object_numbers(cells: Any) -> NDArray[np.float64]:
    if not all(isinstance(cell, Real | Decimal | np.bool_) for cell in cells):
        raise TypeError
    return np.array([float(cell) for cell in cells], dtype=np.float64)
