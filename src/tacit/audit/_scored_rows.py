"""Scores of members and non-members, from one call in random order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.audit._seeds import shuffled

__all__ = ["ScoreFunction", "rows_of", "scored_together"]

Floats = NDArray[np.float64]
ScoreFunction = Callable[[Any, Any, Any], ArrayLike]
Side = tuple[Any, NDArray[Any]]


def rows_of(name: str, side: Sequence[Any]) -> Side:
    """Return rows as they are and labels as an array, after a check of shapes."""
    if len(side) != 2:
        raise ValueError(f"{name} must be rows and labels (X, y), got {len(side)}.")
    X, y = side[0], np.asarray(side[1])
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if y.ndim != 1 or rows != len(y) or rows < 2:
        raise ValueError(
            f"{name} must have one label for each of at least two rows, got {rows} "
            f"rows and labels of shape {y.shape}."
        )
    return X, y


def scored_together(
    function: ScoreFunction,
    model: Any,
    members: Side,
    others: Side,
    sequence: np.random.SeedSequence,
) -> tuple[Floats, Floats]:
    """Return scores of members and of others, from one call on all rows shuffled.

    Neither the batch nor the order shows a score function which rows are members.
    """
    y = np.concatenate([members[1], others[1]])
    order = shuffled(sequence, len(y))
    X = _stacked(members[0], others[0], order)
    found = np.asarray(function(model, X, y[order]), dtype=float)
    if found.shape != y.shape or np.isnan(found).any():
        raise ValueError(
            f"score must return one number a row, without NaN, got {found.shape}."
        )
    scores = np.empty_like(found)
    scores[order] = found
    n_members = len(members[1])
    return scores[:n_members], scores[n_members:]


def _stacked(first: Any, second: Any, order: NDArray[np.intp]) -> Any:
    """Return both tables as one, in this order and of their own kind."""
    frames = [hasattr(table, "iloc") for table in (first, second)]
    names = [list(getattr(table, "columns", ())) for table in (first, second)]
    if all(frames) and names[0] == names[1]:
        import pandas as pd  # noqa: PLC0415 - an extra

        return pd.concat([first, second], ignore_index=True).iloc[order]
    if not any(frames):
        try:
            if sparse.issparse(first) and sparse.issparse(second):
                return sparse.vstack([first, second], format="csr")[order]
            return np.concatenate([first, second])[order]
        except ValueError:  # other columns, or rows of another shape
            pass
    raise ValueError(
        "members and non_members must be tables of one kind with the same columns."
    )
