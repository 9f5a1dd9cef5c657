"""Pairs of a user and an item, in the forms they come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.recommend._ratings.catalogue import Catalogue

__all__ = ["cells_of", "paired", "rated_pairs"]

NAMES = ("user", "item")


def paired(pairs: Any, catalogue: Catalogue) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the users' labels and the items' places; refuse items that are not there.

    Parameters
    ----------
    pairs
        Rows of two labels, or a data frame with columns called so.
    catalogue
        The public items.
    """
    users, items = _columns(pairs)
    positions = np.array([catalogue.position(label) for label in items], dtype=np.intp)
    if (positions < 0).any():
        raise ValueError("pairs must name items of the catalogue.")
    return users, positions


def _columns(pairs: Any) -> tuple[list[Any], list[Any]]:
    if hasattr(pairs, "columns"):
        names = getattr(pairs, "column_names", pairs.columns)
        if not set(NAMES) <= set(names):
            raise ValueError("pairs must have the columns 'user' and 'item'.")
        users, items = (cells_of(pairs[name]) for name in NAMES)
        return users, items
    if isinstance(pairs, np.ma.MaskedArray):
        raise ValueError(
            "pairs must not be a masked array; leave out the rows that are masked."
        )
    if isinstance(pairs, np.ndarray):
        pairs = np.asarray(pairs)  # a column of a matrix would be a matrix
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(
                "pairs must have two columns, users and items, got an array of shape "
                f"{pairs.shape}."
            )
        return pairs[:, 0].tolist(), pairs[:, 1].tolist()
    # row by row, as an array would make texts of numbers next to texts
    try:
        rows = [tuple(pair) for pair in pairs]
    except TypeError:
        rows = [()]
    if any(len(row) != 2 for row in rows):
        raise ValueError("pairs must be rows of a user's label and an item's.")
    return [user for user, _ in rows], [item for _, item in rows]


def cells_of(column: Any) -> list[Any]:
    """Return the labels of a frame's column as values of Python.

    An array would make floats of whole numbers where another label is missing.
    """
    if hasattr(column, "iloc"):  # of pandas, whose categories would be such an array
        column = column.astype(object)
    to_list = getattr(column, "to_pylist", None) or column.to_list
    return to_list()


def rated_pairs(rated: Any) -> tuple[Any, Any]:
    """Return pairs, and the rating of each, of rows that have all three.

    Parameters
    ----------
    rated
        Rows of a user's label, an item's and a rating, or a data frame with columns
        called so.
    """
    if hasattr(rated, "columns"):
        names = list(getattr(rated, "column_names", rated.columns))
        if names.count("rating") == 1:
            return rated, cells_of(rated["rating"])
    elif isinstance(rated, np.ndarray):
        if rated.ndim == 2 and rated.shape[1] == 3:
            return rated[:, :2], rated[:, 2].tolist()
    elif isinstance(rated, Sequence) and all(
        isinstance(row, Sequence) and len(row) == 3 for row in rated
    ):
        return [tuple(row[:2]) for row in rated], [row[2] for row in rated]
    raise ValueError(
        "ratings must be given, one for each of the pairs, or pairs be rows of user, "
        "item and rating or a data frame with these columns."
    )
