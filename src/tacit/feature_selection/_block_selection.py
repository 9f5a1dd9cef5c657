"""What a block of rows says when it is asked for columns."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import lars_path

from tacit._random import Seed

__all__ = ["Ask", "first_columns"]


@dataclass(frozen=True, eq=False)
class Ask:
    """Ask a selector for columns, whatever kind of selector it is.

    Parameters
    ----------
    selector
        An object of scikit-learn's kind, cloned for each block; a function of features
        and targets that returns places of columns or a mask; or None for
        `first_columns`.
    n_select
        Number of columns, for the last of these.
    """

    selector: Any
    n_select: int

    def __call__(self, X: Any, y: Any, random_state: int) -> tuple[int, ...]:
        if self.selector is None:
            found = first_columns(X, y, self.n_select)
        elif hasattr(self.selector, "get_support"):
            fresh = clone(self.selector)
            # a generator that blocks share would carry something from one to the next
            seeds = {
                name: Seed(random_state)
                for name in fresh.get_params()
                if name.split("__")[-1] == "random_state"
            }
            found = fresh.set_params(**seeds).fit(X, y).get_support()
        else:
            found = self.selector(X, y)
        return _positions(found, X.shape[1])


def first_columns(X: Any, y: Any, n_select: int) -> Any:
    """Return the columns that enter the lasso path first, all columns scaled alike.

    Notes
    -----
    **Bound.** The path is that of least angle regression, which is the lasso's as long
    as no column leaves it again (Efron, Hastie, Johnstone and Tibshirani 2004, Theorem
    1). It is a function of the rows alone, and fails where fewer columns enter.
    """
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    X = X - X.mean(axis=0)
    norms = np.sqrt((X**2).sum(axis=0))
    # what is left of a constant column after centering is round-off
    varied = np.flatnonzero(norms > 1e-10 * max(1.0, norms.max(initial=0.0)))
    y = np.asarray(y, dtype=np.float64)
    _, active, _ = lars_path(
        X[:, varied] / norms[varied], y - y.mean(), method="lar", max_iter=n_select
    )
    if len(active) < n_select:
        raise ValueError("Too few rows, or columns that vary, to tell so many apart.")
    return varied[np.asarray(active[:n_select], dtype=np.intp)]


def _positions(found: Any, n_features: int) -> tuple[int, ...]:
    """Return places of columns in order, from places or a mask."""
    array = np.asarray(found)
    if array.dtype.kind == "b" and array.shape == (n_features,):
        array = np.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError
    positions = sorted(
        {int(position) for position in array if isinstance(position, Integral)}
    )
    if positions and not 0 <= positions[0] <= positions[-1] < n_features:
        raise ValueError
    return tuple(positions)
