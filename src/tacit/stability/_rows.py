"""Subsets of rows that leak nothing about other rows, and isolated calls on them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from tacit._execution import attempt
from tacit.data.rows import in_columns, is_untyped, plain_category
from tacit.mechanisms.subsets import random_seeds

__all__ = [
    "ListedRows",
    "as_table",
    "as_vote",
    "check_selectable",
    "isolated_call",
    "seeds_for",
    "select_rows",
    "votes_of",
]

# Part of the name of Arrow types, which keep values of rows that are not selected
_DICTIONARY = "dictionary<"


class ListedRows:
    """Rows or targets of a list, whose subsets have the types of their own rows.

    NumPy chooses one type for a list: a single string in it would turn the numbers of
    every subset into strings. Only the length is read before rows are selected.
    """

    def __init__(self, cells: Iterable[Any]) -> None:
        self._private_cells = list(cells)

    @property
    def shape(self) -> tuple[int]:
        """Number of rows."""
        return (len(self._private_cells),)

    def __getitem__(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return an array of these rows only.

        Strings stay objects: an array of strings is as wide as the longest.
        """
        # [vote:lists]
        own = [self._private_cells[row] for row in rows.tolist()]
        try:
            cells = np.array(own, dtype=object)
            if any(isinstance(cell, str | bytes) for cell in cells.flat):
                return cells
            return np.array(own)
        except Exception:  # rows of several lengths, or objects of a foreign class
            objects = np.empty(len(own), dtype=object)
            for position, row in enumerate(own):
                objects[position] = row
            return objects


def select_rows(table: Any, rows: NDArray[np.intp]) -> Any:
    """Return a copy of these rows that does not depend on others.

    Row labels would count the rows before them; categories, their order and the width
    of strings would be those of the whole table. Names and types of columns are public,
    and so is the order of categories where it is part of the type.
    """
    if table is None:
        return None
    if hasattr(table, "iloc"):
        return _without_labels(table.iloc[rows])
    part = table[rows]
    if isinstance(part, np.ndarray) and part.dtype.kind in "US":
        # as wide as the longest string among these rows
        return np.array(part.tolist(), dtype=part.dtype.kind).reshape(part.shape)
    return part


def _without_labels(part: Any) -> Any:
    """Return rows of a data frame, or of one column, without labels and attributes."""
    # [vote:labels]
    part = part.reset_index(drop=True)
    part.attrs = {}
    if part.ndim == 1:
        return _own_categories(part)
    for position, kind in enumerate(part.dtypes):
        if kind.name == "category" or _DICTIONARY in kind.name:
            part.isetitem(position, _own_categories(part.iloc[:, position]))
    return part


def _own_categories(column: Any) -> Any:
    """Return a column whose categories, or dictionary, come from its own rows only."""
    if hasattr(column, "cat"):
        return _recategorized(column)
    return _rebuilt(column) if _DICTIONARY in column.dtype.name else column


def _recategorized(column: Any) -> Any:
    """Return a categorical column whose categories come from its own cells only.

    pandas chooses the type of categories by all of them, so it is chosen again; so is
    their order where it is not part of the type.
    """
    import pandas  # noqa: PLC0415 - optional

    # [vote:categories]
    codes, ordered = column.cat.codes.to_numpy(), column.cat.ordered
    present = np.unique(codes[codes >= 0]) if ordered else _first_seen(codes)
    listed = column.cat.categories.take(present).tolist()
    kinds = list(map(plain_category, listed))
    own = list(dict.fromkeys(kinds))
    if not ordered:
        own = _in_order(own)
    positions = {kind: position for position, kind in enumerate(own)}
    # the last entry is for missing cells, whose code is -1
    lookup = np.full(len(column.cat.categories) + 1, -1)
    lookup[present] = [positions[kind] for kind in kinds]
    index = pandas.Index(own, tupleize_cols=False)
    made = pandas.Categorical.from_codes(lookup[codes], index, ordered=ordered)
    return type(column)(made, name=column.name)


def _first_seen(codes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the codes in use, in the order of the rows."""
    found, first = np.unique(codes, return_index=True)
    order = np.argsort(first)
    return found[order][found[order] >= 0].astype(np.intp)


def _in_order(kinds: list[Any]) -> list[Any]:
    """Return categories sorted, or unchanged where they cannot be compared."""
    try:
        return sorted(kinds)
    except Exception:  # an object of a foreign class may fail in any way
        return kinds


def _rebuilt(column: Any) -> Any:
    """Return an Arrow column that stores its own cells only.

    Python reads no cell: for some it has no value, such as strings that are not UTF-8.
    """
    import pyarrow as pa  # noqa: PLC0415 - optional

    cells = column.array.__arrow_array__()
    kind = cells.type
    plain = _without_dictionaries(kind)
    if _DICTIONARY in str(plain):
        raise TypeError
    values = cells.cast(plain)
    if pa.types.is_dictionary(kind):
        values = _dictionary_of(cells, values)
    made = type(column.array)(values)
    return type(column)(made, name=column.name)


def _dictionary_of(cells: Any, values: Any) -> Any:
    """Return values with a dictionary of the distinct ones, in order."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute  # noqa: PLC0415

    kind = cells.type
    present = compute.unique(values).drop_null()
    if kind.ordered and cells.num_chunks:
        # an order that is part of the type is public
        whole = compute.unique(cells.unify_dictionaries().chunk(0).dictionary)
        own = whole.filter(compute.is_in(whole, value_set=present))
    else:
        own = present.take(compute.sort_indices(present))
    codes = compute.index_in(values, value_set=own).combine_chunks()
    return pa.DictionaryArray.from_arrays(
        codes.cast(kind.index_type), own, ordered=kind.ordered
    )


def _without_dictionaries(kind: Any) -> Any:
    """Return an Arrow type with plain values instead of dictionaries."""
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(kind):
        return _without_dictionaries(kind.value_type)
    if pa.types.is_list(kind):
        return pa.list_(_without_dictionaries(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_without_dictionaries(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_without_dictionaries(f.type)) for f in kind])
    return kind


def check_selectable(name: str, table: Any) -> None:
    """Reject columns of types whose rows cannot be selected, whatever the values."""
    if not hasattr(table, "iloc"):
        return
    empty = table.iloc[:0]
    columns = [empty] if empty.ndim == 1 else [column for _, column in empty.items()]
    for column in columns:
        if _DICTIONARY not in column.dtype.name:
            continue
        try:
            _rebuilt(column)
        except Exception:  # because of the type, as there are no rows
            rejected = True
        else:
            rejected = False
        if rejected:  # raised here, without the message of another library
            raise TypeError(
                f"{name} must have no column of type {column.dtype.name}, whose rows "
                "cannot be separated from each other; store its values without a "
                "dictionary."
            )


Function = Callable[..., Any]

# Types whose values are compared by their repr
_PLAIN = (bool, int, float, str, bytes, type(None))


def seeds_for(function: Function, n: int, rng: Generator) -> list[int | None]:
    """Return a seed for each of n calls, or None where the function takes none.

    Seeds are drawn before the rows are read or counted.
    """
    try:
        takes = "random_state" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions do not say
        takes = False
    if not takes:
        return [None] * n
    return list(random_seeds(n, rng))


def isolated_call(
    function: Function, X: Any, y: Any, rows: NDArray[np.intp], seed: int | None = None
) -> Any:
    """Return the function's value for these rows, and None where it fails.

    Errors, warnings and output of the call, and of the selection of rows, are
    suppressed. The function must not log rows, nor write them to files.
    """
    given = {} if seed is None else {"random_state": seed}
    # [vote:taking] indexing copies, so that a function cannot write into the rows
    return attempt(
        lambda: function(select_rows(X, rows), select_rows(y, rows), **given)
    )


def as_vote(value: Any) -> Any:
    """Return a plain value, or None for any other and for NaN."""
    try:
        return _plain(value)
    except (TypeError, ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is tuple:
        return tuple(_plain(part) for part in value)
    if type(value) not in _PLAIN or value != value:
        raise TypeError
    repr(value)  # integers of thousands of digits do not print
    return value


def votes_of(
    function: Function,
    X: Any,
    y: Any,
    sets: Iterable[NDArray[np.intp]],
    seeds: Iterable[int | None],
) -> list[Any]:
    """Return the vote of each set of rows: a plain value, or None."""
    return [
        as_vote(isolated_call(function, X, y, rows, seed))
        for rows, seed in zip(sets, seeds, strict=True)
    ]


def as_table(name: str, values: Any) -> Any:
    """Return rows that can be selected by position.

    Arrays and columns keep their types, which are public. The rows of any other
    sequence are stored as they are.
    """
    if sparse.issparse(values):
        return values.tocsr()
    table = in_columns(values)
    if not hasattr(table, "iloc") and not isinstance(table, np.ndarray):
        # an array of another library
        if hasattr(table, "dtype") and hasattr(table, "__array__"):
            table = np.asarray(table)
        elif is_untyped(table):
            return ListedRows(table)
        else:
            raise TypeError(
                f"{name} must be an array, a sparse matrix, a data frame or a list of "
                f"rows, got {type(values).__name__}."
            )
    table = table if hasattr(table, "iloc") else np.asarray(table)
    if len(table.shape) not in (1, 2):
        raise ValueError(
            f"{name} must have one row a person, got {len(table.shape)} dimensions."
        )
    check_selectable(name, table)
    return table
