"""Public facts about the columns of a table, and the codes of its cells.

A number becomes the position of its cell among equal parts of the public range, a
category its position in the public list. Each code depends on one cell alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._estimators import checked_values, listed
from tacit._validate import plain
from tacit.data.rows import column_cells
from tacit.preprocessing._columns import checked_pair
from tacit.preprocessing._parameters import is_list, is_missing, is_several, shown

__all__ = [
    "CELLS",
    "Column",
    "codes_of",
    "public_columns",
]

Codes = NDArray[np.int32]

# Equal parts of a public range, of which private bins are made
CELLS = 2**14
# Types of cells that pandas puts where one is missing
MARKS = ("NAType", "NaTType")
# Codes of a category that is not listed, and of a missing cell, after the listed ones
OTHER, MISSING = 0, 1
MOST_CATEGORIES = 10_000
# Names of columns that an error lists
MOST_NAMED = 5


@dataclass(frozen=True)
class Column:
    """Public facts about one column.

    Parameters
    ----------
    name
        Name or position of the column.
    low, high
        Ends of the range of a column of numbers.
    categories
        Categories of any other column, as they are listed; None for numbers.
    monotone
        1 where the shape must not fall, -1 where it must not rise, else 0.
    """

    name: Any
    low: float = 0.0
    high: float = 1.0
    categories: tuple[Any, ...] | None = None
    monotone: int = 0

    def __post_init__(self) -> None:
        plain(self, "low", "high")

    @property
    def is_numeric(self) -> bool:
        """Whether the column has numbers."""
        return self.categories is None

    @property
    def n_codes(self) -> int:
        """Number of codes: cells or categories, unlisted and missing ones included."""
        if self.categories is None:
            return CELLS + 1
        return len(self.categories) + 2

    @property
    def missing(self) -> int:
        """Code of a missing cell."""
        return self.n_codes - 1

    def edge(self, cell: int) -> float:
        """Return the lower end of a cell, in the unit of the column."""
        return self.low + (self.high - self.low) * (cell / CELLS)


def public_columns(ranges: Any, categories: Any, names: Sequence[Any]) -> list[Column]:
    """Return the facts about all columns: each has a range or a list of categories."""
    lists = _by_column(categories, "categories", names)
    if is_list(ranges) and len(ranges) and not any(map(is_several, ranges)):
        # one range for all columns of numbers
        ranges = {name: ranges for name in names if name not in lists}
    pairs = _by_column(ranges, "ranges", names)
    found = []
    for name in names:
        if (name in lists) == (name in pairs):
            both = "both" if name in lists else "neither"
            raise ValueError(
                f"column {name!r} must have an entry in ranges or in categories, got "
                f"{both}; give the public range of numbers, or the public categories."
            )
        if name in pairs:
            low, high = checked_pair(pairs[name], f"ranges of column {name!r}")
            found.append(Column(name, low, high))
        else:
            found.append(Column(name, categories=_public_list(lists[name], name)))
    return found


def _by_column(given: Any, parameter: str, names: Sequence[Any]) -> dict[Any, Any]:
    """Return what a mapping, or a sequence with one entry a column, gives."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                few = ", ".join(map(repr, names[:MOST_NAMED]))
                more = ", ..." if len(names) > MOST_NAMED else ""
                raise ValueError(
                    f"{parameter} has an entry for column {shown(name)}, and X has no "
                    f"such column; take it out, or name one of {few}{more}."
                )
        return {name: given[name] for name in names if name in given}
    if not is_list(given):
        raise ValueError(
            f"{parameter} must map columns to public facts, got "
            f"{type(given).__name__}; give a dictionary."
        )
    if len(given) != len(names):
        raise ValueError(
            f"{parameter} has {len(given)} entries and X has {len(names)} columns; "
            "give one a column, None where it has none, or a dictionary."
        )
    return {
        name: facts
        for name, facts in zip(names, given, strict=True)
        if facts is not None
    }


def _public_list(given: Any, name: Any) -> tuple[Any, ...]:
    """Return the categories of a column: at least one, distinct, none missing."""
    try:
        # the order of a set is not public
        categories = tuple(given) if is_several(given) else ()
        distinct = 0 < len(set(categories)) == len(categories) <= MOST_CATEGORIES
    except TypeError:
        categories, distinct = (), False
    if not distinct or any(map(is_missing, categories)):
        raise ValueError(
            f"categories of column {name!r} must list 1 to {MOST_CATEGORIES} distinct "
            f"values, none missing, got {shown(given)}."
        )
    return categories


def codes_of(X: Any, columns: Sequence[Column]) -> Codes:
    """Return the code of each cell, or raise an error that quotes none.

    Every cell is read by itself: numbers as floats, categories by equality.
    """
    table = listed(X)
    found = np.empty((table.shape[0], len(columns)), dtype=np.int32)
    numeric = [k for k, column in enumerate(columns) if column.is_numeric]
    if numeric:
        part = table.iloc[:, numeric] if hasattr(table, "iloc") else table[:, numeric]
        part = _with_none(part)
        values = checked_values(
            part, allow_missing=True, finite=False, encode="or give their categories"
        )
        for position, k in enumerate(numeric):
            found[:, k] = _cells(values[:, position], columns[k])
    for k, column in enumerate(columns):
        if not column.is_numeric:
            found[:, k] = _categories(_cells_as_written(table, k, column), column)
    return found


def _with_none(part: Any) -> Any:
    """Return columns of numbers with None for cells that pandas marks as missing."""

    def unmarked(cells: NDArray[Any]) -> NDArray[Any]:
        marked = [type(cell).__name__ in MARKS for cell in cells.flat]
        if not any(marked):
            return cells
        plain = cells.copy()
        plain[np.reshape(marked, cells.shape)] = None
        return plain

    if not hasattr(part, "iloc"):
        return unmarked(part) if part.dtype.kind == "O" else part
    objects = [
        k
        for k, kind in enumerate(part.dtypes)
        if isinstance(kind, np.dtype) and kind.kind == "O"
    ]
    if objects:
        part = part.copy(deep=False)
        for k in objects:
            part.isetitem(k, unmarked(np.asarray(part.iloc[:, k])))
    return part


def _cells_as_written(table: Any, position: int, column: Column) -> list[Any]:
    framed = hasattr(table, "iloc")
    cells = column_cells(table.iloc[:, position]) if framed else table[:, position]
    if cells.dtype.kind in "mM":
        # which are integers to Python, in a unit that depends on the type
        raise ValueError(
            f"column {column.name!r} has dates or spans of time, and a public list of "
            "categories; turn its cells into strings or numbers before the fit."
        )
    return list(cells.tolist())


def _cells(values: NDArray[Any], column: Column) -> Codes:
    """Return the cell of each number; those outside the range are clipped to it."""
    numbers = values.astype(np.float64)
    missing = np.isnan(numbers)
    numbers = np.clip(np.where(missing, column.low, numbers), column.low, column.high)
    with np.errstate(all="ignore"):
        part = (numbers - column.low) / (column.high - column.low)
    cells: Codes = np.clip((part * CELLS).astype(np.int32), 0, CELLS - 1)
    cells[missing] = column.missing
    return cells


def _categories(cells: Sequence[Any], column: Column) -> Codes:
    """Return the position of each cell in the list of categories."""
    listed = column.categories or ()
    position = {category: code for code, category in enumerate(listed)}

    def code(cell: Any) -> int:
        try:
            found = position.get(cell)
            if found is None:
                found = len(listed) + (MISSING if is_missing(cell) else OTHER)
        except Exception:  # a value without a hash, or a cell's own code
            found = len(listed) + OTHER
        return found

    try:  # at once where all cells can be looked up, as is usual
        codes = [
            code(cell) if found is None else found
            for cell, found in zip(cells, map(position.get, cells), strict=True)
        ]
    except Exception:
        codes = list(map(code, cells))
    return np.array(codes, dtype=np.int32)
