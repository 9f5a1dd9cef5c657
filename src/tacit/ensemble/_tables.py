"""Rows and questions as tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tacit._estimators import checked_values, listed
from tacit.data.bounds import canonical
from tacit.data.cells import in_columns
from tacit.stability._taken_rows import check_takeable

__all__ = ["one_row", "table_of"]


def table_of(X: Any) -> Any:
    """Return rows that can be taken by their places, as an array, table or CSR.

    Types of columns are the caller's. A list has none, and one text in it would make
    texts of all other rows to numpy, so that lists must hold numbers.
    """
    if sparse.issparse(X):
        return canonical(X)
    X = in_columns(X)
    if hasattr(X, "iloc"):
        check_takeable("X", X)
        return X
    if hasattr(X, "shape"):
        return np.asarray(X)
    cells = listed(X)
    # the shape is refused elsewhere, in words of its own
    return checked_values(cells, finite=False) if cells.ndim == 2 else cells


def one_row(x: Any) -> Any:
    """Return one question as a table of one row, or refuse more."""
    if hasattr(x, "iloc") and x.ndim == 1:
        # a row of a data frame is a column of objects, and has lost their types
        x = x.to_frame().T.infer_objects()
    elif not hasattr(x, "shape"):
        cells = np.asarray(x, dtype=object)
        x = [x] if cells.ndim == 1 else x
    elif len(x.shape) == 1 and not sparse.issparse(x):
        x = np.asarray(x)[None]
    table = table_of(x)
    if len(table.shape) == 2 and table.shape[0] != 1:
        raise ValueError(
            f"x must be one row, got {table.shape[0]}; ask several with label."
        )
    return table
