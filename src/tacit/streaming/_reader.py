"""Reading of the rows of a step into arrays, where no row changes another.

Only the first step, before the charge, may reject a value. Later, a value that is not a
number is missing. Shapes, and the type of a whole array, are public.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._estimators import array_of, checked_values
from tacit._validate import public_range, target_unit, true_or_false
from tacit.convex import Loss
from tacit.data import RowBounds
from tacit.data.bounds import NUMBERS, canonical, class_positions, numbers
from tacit.data.rows import column_cells, in_columns, is_untyped
from tacit.solvers import Problem

__all__ = [
    "ClassLabels",
    "LinearReader",
    "RowReader",
    "TargetRange",
    "column_of",
    "constant_feature",
    "dense_values",
    "float_targets",
    "table_of",
]

Array = NDArray[np.float64]

SEVERAL = (list, tuple, np.ndarray)
# The constant feature, in units of the bound on a row
STREAM_INTERCEPT_FRACTION = 0.5


def table_of(X: Any, width: int | None = None) -> Any:
    """Return rows as something with a shape; cells of lists remain as they are.

    Parameters
    ----------
    X
        An array, a table, a sparse matrix, or a list of rows.
    width
        Number of columns at a later step; None at the first. Rows of another length in
        a list or an array of objects are missing, also if all are: an error would
        depend on the length of the last row that has it.
    """
    X = in_columns(X)
    if width is not None and (is_untyped(X) or _has_other_rows(X, width)):
        X = list(X)
    if hasattr(X, "shape"):
        complex_kind = getattr(getattr(X, "dtype", None), "kind", None) == "c"
        return np.full(X.shape, nan) if complex_kind and width is not None else X
    if width is None or not isinstance(X, list):
        # numpy would convert a list with one string in it to strings
        return np.asarray(X, dtype=object)
    table = np.full((len(X), width), None, dtype=object)
    for position, row in enumerate(X):
        if _length(row) == width:
            for column, cell in enumerate(row):
                table[position, column] = cell
    return table


def _has_other_rows(X: Any, width: int) -> bool:
    """Return whether rows of an array of objects made its shape another one.

    One column of objects may have a row in each cell.
    """
    if sparse.issparse(X) or getattr(X, "dtype", None) != np.dtype(object):
        return False
    return bool(X.ndim > 0 and (X.ndim != 2 or X.shape[1] != width))


def _length(row: Any) -> int | None:
    if isinstance(row, np.ndarray) and row.ndim != 1:
        return None
    try:
        return len(row) if isinstance(row, SEVERAL) else None
    except Exception:  # an arbitrary object: an exception would leak information
        return None


def column_of(y: Any, *, first: bool = False) -> NDArray[Any]:
    """Return targets as a vector; their shape or kind may be rejected."""
    if sparse.issparse(y):
        raise ValueError("y must be dense: sparse labels are not supported.")
    y = y if is_untyped(y) else array_of(y)
    if not first and (is_untyped(y) or (y.dtype.kind == "O" and y.ndim > 0)):
        # a shape inferred from the cells would depend on all of them
        cells = list(y)
        column = np.empty(len(cells), dtype=object)
        for position, cell in enumerate(cells):
            column[position] = cell[0] if _length(cell) == 1 else cell
        return column
    array = np.asarray(y, dtype=object) if is_untyped(y) else y
    if array.dtype.kind == "c":
        if first:
            raise ValueError("Complex data not supported: y must hold real numbers.")
        array = array.astype(object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError("y should be a 1d array, with one target for each row.")
    return array


def dense_values(X: Any, *, first: bool = False) -> Array:
    """Return features in dense float64, whatever their cells are.

    A cell that is not a number is rejected at the ``first`` step, and missing later.
    """
    if sparse.issparse(X):
        if X.dtype.kind not in NUMBERS:
            return checked_values(X) if first else np.full(X.shape, nan)
        return numbers(canonical(X).toarray())
    if hasattr(X, "iloc"):
        if first:
            return np.asarray(checked_values(X, finite=False), dtype=np.float64)
        columns = [X.iloc[:, position] for position in range(X.shape[1])]
        return np.column_stack([_frame_column(column) for column in columns])
    X = np.asarray(X)
    if first and X.dtype.kind not in NUMBERS:
        return np.asarray(checked_values(X, finite=False), dtype=np.float64)
    return numbers(X)


def _frame_column(column: Any) -> Array:
    plain = isinstance(column.dtype, np.dtype)
    if not plain and getattr(column.dtype, "kind", "O") not in NUMBERS + "O":
        return np.full(len(column), nan)
    # columns of other types than numpy's have their own marker of missing values
    return numbers(column_cells(column))


def float_targets(y: Any, *, first: bool = False) -> Array:
    """Return targets in float64, NaN where one is missing.

    A target that is not a number is rejected at the ``first`` step, and missing later.
    """
    array = np.asarray(y)
    found = numbers(array)
    numeric = array.dtype.kind in NUMBERS
    invalid = [] if numeric else array[np.isnan(found)].tolist()
    if first and any(cell is not None for cell in invalid):
        raise ValueError(
            "y must hold numbers only; encode labels, or use a classifier."
        )
    return found


class RowReader(Protocol):
    """Validation and clipping of the rows of a step: frozen, public facts only."""

    def read(self, X: Any, y: Any, *, first: bool) -> tuple[Array, NDArray[Any]]:
        """Return rows and targets within their bounds; unusable rows become zeros.

        Only the ``first`` step, before the charge, may reject a value.
        """
        ...


@dataclass(frozen=True)
class TargetRange:
    """Public range of targets, which are centered and scaled to [-1, 1].

    Parameters
    ----------
    low, high
        Ends of the range.
    center, scale
        Target that becomes zero, and distance from it that becomes one.
    """

    low: float
    high: float
    center: float
    scale: float

    @classmethod
    def of(cls, y_range: Any, fit_intercept: bool) -> TargetRange:
        """Return the range of an estimator."""
        return cls(*public_range(y_range), *target_unit(y_range, fit_intercept))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Clipping of targets, in words."""
        return (f"targets are clipped to [{self.low:g}, {self.high:g}]",)

    def encoded(self, y: Any, *, first: bool) -> tuple[Array, NDArray[np.bool_]]:
        """Return targets in [-1, 1], and which of them are numbers."""
        values = float_targets(y, first=first)
        usable = np.isfinite(values)
        values = np.clip(np.where(usable, values, self.center), self.low, self.high)
        return np.clip((values - self.center) / self.scale, -1.0, 1.0), usable


@dataclass(frozen=True)
class ClassLabels:
    """Public class labels: -1 and 1 for two of them, codes for more.

    Parameters
    ----------
    classes
        Sorted labels. The bounds of the same reader have them as plain values, to
        compare plans by.
    seen
        Whether they came with the first rows.
    """

    classes: NDArray[Any] = field(repr=False, compare=False)
    seen: bool = False

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Where the labels are from, in words."""
        if not self.seen:
            return ()
        return ("the set of labels is public (given or seen with the first rows)",)

    def encoded(self, y: Any, *, first: bool) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return labels as the loss expects them, and which of them are known."""
        positions = class_positions(self.classes, y)
        two = len(self.classes) == 2
        return (2.0 * positions - 1.0 if two else positions), positions >= 0


@dataclass(frozen=True)
class LinearReader:
    """Rows clipped to their bound, with a constant feature, and encoded targets.

    Parameters
    ----------
    bounds
        Bounds on the features of a row.
    constant
        Value of the constant feature, or None.
    targets
        Encoding of the targets.
    keep
        Which rows count, from clipped features; None for all.
    """

    bounds: RowBounds
    constant: float | None
    targets: TargetRange | ClassLabels
    keep: Callable[[Array], NDArray[np.bool_]] | None = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Clipping of rows and targets, in words."""
        norm = self.bounds.x_norm
        return (
            f"rows are clipped to L2 norm {norm:g} (chosen without looking at the "
            "data)",
            *self.targets.assumptions,
        )

    def problem(self, loss: Loss, n_rows: int, n_features: int) -> Problem:
        """Return the problem of a stream, without a penalty."""
        bounds, constant = self.bounds, self.constant
        if constant is not None:
            bounds = bounds.with_intercept(constant)
        n_columns = n_features + (constant is not None)
        return Problem(loss, bounds, n_rows, n_columns, constant=constant)

    def read(self, X: Any, y: Any, *, first: bool) -> tuple[Array, NDArray[Any]]:
        """Return clipped rows with the constant, and targets; zeros if unusable."""
        X = dense_values(X, first=first)
        targets, usable = self.targets.encoded(y, first=first)
        usable = usable & np.isfinite(X).all(axis=1)
        # in C order, so that a norm is summed in one order whatever the table was
        X = np.ascontiguousarray(np.where(usable[:, None], X, 0.0))
        X = self.bounds.clip(X)
        kept = usable if self.keep is None else self.keep(X)
        if self.constant is not None:
            X = np.column_stack([X, np.where(usable, self.constant, 0.0)])
        # [streams:unusable] an unusable row is zero whatever its values are
        X, targets = np.ascontiguousarray(X), np.where(usable, targets, 0)
        if self.keep is None:
            return X, targets
        # [incremental:keep] row by row, so that one row only decides about itself
        return np.where(kept[:, None], X, 0.0), np.where(kept, targets, 0.0)

    def split(self, weights: Array) -> tuple[Array, Array]:
        """Return the weights of the features, and the intercepts."""
        if self.constant is None:
            return weights, np.zeros(weights.shape[1])
        return weights[:-1], weights[-1] * self.constant


def constant_feature(x_norm: float, fit_intercept: Any) -> float | None:
    """Return the value of the constant feature, or None."""
    true_or_false(fit_intercept=fit_intercept)
    return x_norm * STREAM_INTERCEPT_FRACTION if fit_intercept else None
