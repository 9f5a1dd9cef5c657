"""Pairs of a user and an item, in the forms they come in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.recommend._catalogue import Catalogue

__all__ = ["paired"]

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
    places = np.array([catalogue.place(label) for label in items], dtype=np.intp)
    if (places < 0).any():
        raise ValueError("pairs must name items of the catalogue.")
    return users, places


def _columns(pairs: Any) -> tuple[list[Any], list[Any]]:
    if hasattr(pairs, "columns"):
        names = getattr(pairs, "column_names", pairs.columns)
        if not set(NAMES) <= set(names):
            raise ValueError("pairs must have the columns 'user' and 'item'.")
        users, items = (_listed(np.asarray(pairs[name])) for name in NAMES)
        return users, items
    if isinstance(pairs, np.ndarray):
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(
                "pairs must have two columns, users and items, got an array of shape "
                f"{pairs.shape}."
            )
        return _listed(pairs[:, 0]), _listed(pairs[:, 1])
    # row by row, as an array would make texts of numbers next to texts
    try:
        rows = [tuple(pair) for pair in pairs]
    except TypeError:
        rows = [()]
    if any(len(row) != 2 for row in rows):
        raise ValueError("pairs must be rows of a user's label and an item's.")
    return [user for user, _ in rows], [item for _, item in rows]


def _listed(column: NDArray[Any]) -> list[Any]:
    """Return labels as values of Python, whole numbers as such."""
    labels = column.tolist()
    if column.dtype.kind == "f" and all(label.is_integer() for label in labels):
        return [int(label) for label in labels]
    return labels
