"""Functions of rows that may fail, and whose failures tell nobody."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._quiet import attempt
from tacit.mechanisms.subsets import random_seeds

__all__ = ["ListedRows", "as_vote", "asked", "seeds_for", "taken", "votes_of"]

Function = Callable[..., Any]

# Types whose values are told apart by how they print
_PLAIN = (bool, int, float, str, bytes, type(None))
# In the names of types of Arrow that keep values of rows that were left out
_DICTIONARY = "dictionary<"


def seeds_for(function: Function, n: int, rng: Generator) -> list[int | None]:
    """Return a seed for each of n calls, where the function has a use for it.

    They are drawn before the rows are looked at or even counted.
    """
    try:
        takes = "random_state" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions do not say
        takes = False
    if not takes:
        return [None] * n
    return list(random_seeds(n, rng))


def asked(function: Function, X: Any, y: Any, seed: int | None = None) -> Any:
    """Return what the function says of these rows, and None where it fails.

    What it raises, warns of or prints is kept from view. It must not log rows, nor
    write them anywhere.
    """
    given = {} if seed is None else {"random_state": seed}
    return attempt(function, X, y, **given)


def as_vote(value: Any) -> Any:
    """Return a plain value, or None for what is none or is not equal to itself."""
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
    """Return the vote of each set of rows: a plain value, or None for no vote."""
    return [
        # indexing copies, so that a function cannot write into the rows
        as_vote(asked(function, taken(X, rows), taken(y, rows), seed))
        for rows, seed in zip(sets, seeds, strict=True)
    ]


class ListedRows:
    """Rows or targets of a list, of which each set has the type of its own rows.

    NumPy chooses a type for all of a list, so that one string in it would make strings
    of the numbers in every set.

    Parameters
    ----------
    cells
        The list; nothing is read here but its length.
    """

    def __init__(self, cells: Iterable[Any]) -> None:
        self._private_cells = list(cells)

    @property
    def shape(self) -> tuple[int]:
        """Number of rows."""
        return (len(self._private_cells),)

    def __getitem__(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return an array of these rows alone, as NumPy makes it of them."""
        # [vote:lists]
        own = [self._private_cells[row] for row in rows.tolist()]
        try:
            return np.array(own)
        except Exception:  # rows of several lengths, or a stranger's object
            objects = np.empty(len(own), dtype=object)
            for place, row in enumerate(own):
                objects[place] = row
            return objects


def taken(table: Any, rows: NDArray[np.intp]) -> Any:
    """Return a copy of these rows that tells nothing of others.

    Labels of rows count those before them, and categories, their order and the width of
    texts are those of the whole table. Names and types of columns are public, and so is
    the order of categories where it is part of the type.
    """
    if table is None:
        return None
    if hasattr(table, "iloc"):
        return _unlabeled(table.iloc[rows])
    part = table[rows]
    if isinstance(part, np.ndarray) and part.dtype.kind in "US":
        # as wide as the longest text among these rows
        return np.array(part.tolist(), dtype=part.dtype.kind).reshape(part.shape)
    return part


def _unlabeled(part: Any) -> Any:
    """Return rows of a data frame, or of one column, without labels and notes."""
    # [vote:labels]
    part = part.reset_index(drop=True)
    part.attrs = {}
    if part.ndim == 1:
        return _own(part)
    for place, kind in enumerate(part.dtypes):
        if kind.name == "category" or _DICTIONARY in kind.name:
            part.isetitem(place, _own(part.iloc[:, place]))
    return part


def _own(column: Any) -> Any:
    """Return a column whose categories, or dictionary, are of its own rows alone."""
    if hasattr(column, "cat"):
        column = column.cat.remove_unused_categories()
        if column.cat.ordered:
            return column
        # [vote:categories] in an order that is known from these rows
        kinds = _in_order(column.cat.categories[_first_seen(column.cat.codes)])
        return column.cat.set_categories(kinds)
    return _rebuilt(column) if _DICTIONARY in column.dtype.name else column


def _first_seen(codes: Any) -> NDArray[np.intp]:
    """Return the codes that there are, in the order of the rows."""
    found, first = np.unique(codes.to_numpy(), return_index=True)
    order = np.argsort(first)
    return found[order][found[order] >= 0].astype(np.intp)


def _in_order(kinds: Any) -> Any:
    """Return categories sorted, or as they are where they cannot be compared."""
    try:
        return kinds.sort_values()
    except TypeError:
        return kinds


def _rebuilt(column: Any) -> Any:
    """Return a column in Arrow's memory, made of its own cells alone."""
    first = _dictionary(column)
    # a dictionary is in the order in which its values come
    made = type(column)([*first, *column.tolist()], dtype=column.dtype)
    return made.iloc[len(first) :].reset_index(drop=True).rename(column.name)


def _dictionary(column: Any) -> list[Any]:
    """Return the values that there are, in order, and none for another type."""
    ordered = getattr(column.dtype.pyarrow_dtype, "ordered", None)
    if ordered is None:
        return []
    try:
        present = dict.fromkeys(column.dropna().tolist())
        if not ordered:
            return sorted(present)
    except TypeError:  # values without an order, or that have parts
        return []
    whole = column.array.__arrow_array__().unify_dictionaries()
    listed = whole.chunk(0).dictionary.to_pylist() if whole.num_chunks else []
    return [value for value in listed if value in present]
