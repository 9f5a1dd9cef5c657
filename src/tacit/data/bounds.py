"""Public bounds on rows, enforced by clipping, and public labels.

A label has one canonical form, whatever column it is in, so that no row changes how
another is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from math import nan, sqrt
from numbers import Number, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._validate import LARGEST, SMALLEST, plain, plain_number, positive, shown

__all__ = [
    "NUMBERS",
    "RowBounds",
    "TargetBounds",
    "canonical",
    "checked_classes",
    "class_positions",
    "label_of",
    "labels_of",
    "number",
    "numbers",
    "numeric_labels",
    "sorted_classes",
]

EPS = float(np.finfo(np.float64).eps)  # twice the unit round-off
TINY = float(np.finfo(np.float64).tiny)
PIECE = 2**20  # entries looked at together
NUMBERS = "fiub"
# From here on integers are not distinct in a column that one missing value turns into
# floats; dates are integers in some columns and objects in others
NO_LABEL = 2.0**53
DATES = (date, timedelta, np.datetime64, np.timedelta64)


class TargetBounds:
    """Public facts about targets and labels, in bounds of all kinds."""

    y_range: tuple[float, float]
    classes: tuple[Any, ...] | None

    def _check_targets(self) -> None:
        object.__setattr__(
            self, "y_range", plain_number(tuple(self.y_range), "y_range")
        )
        low, high = self.y_range
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ValueError(
                "y_range must be two finite numbers, the lower first, "
                f"got {self.y_range!r}."
            )

    def clip_target(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``y`` clipped to the public range."""
        return np.clip(y, *self.y_range)

    def codes(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of each label among the public classes."""
        classes = np.asarray(self.classes)
        order = np.argsort(classes)
        # numpy compares integers and floats as floats, which are exact up to 2**53;
        # Python compares them without rounding
        exact = classes.dtype.kind == y.dtype.kind != "O"
        if {classes.dtype.kind, y.dtype.kind} <= set("biuf"):
            exact |= bool((np.abs(classes.astype(np.float64)) < 2.0**53).all())
        code = {label: position for position, label in enumerate(classes.tolist())}
        codes = np.empty(len(y), dtype=np.int64)
        for start in range(0, len(y), PIECE):  # to use little memory besides
            piece = y[start : start + PIECE]
            if exact:
                found = np.searchsorted(classes, piece, sorter=order)
                positions = order[np.minimum(found, len(classes) - 1)]
                known = np.array_equal(classes[positions], piece)
            else:
                labels = (_position(code, label) for label in piece.tolist())
                positions = np.fromiter(labels, np.int64, len(piece))
                known = bool((positions >= 0).all())
            if not known:
                raise ValueError(
                    "y holds labels outside the public classes; map them to one of "
                    "classes before the fit; the string '1' is not the number 1."
                )
            codes[start : start + PIECE] = positions
        return codes


def sorted_classes(classes: Any) -> NDArray[Any]:
    """Return the public labels in order; ValueError if a label could be misread.

    NumPy turns numbers next to a string into strings, which no number in ``y`` equals.
    """
    cells = np.ravel(np.asarray(classes, dtype=object))
    kinds = {_kind(label) for label in cells}
    if len(kinds) > 1:
        raise ValueError(
            "classes must be of one kind, all numbers or all strings, got "
            f"{shown(classes)}."
        )
    labels: NDArray[Any] = np.unique(np.asarray(classes))
    missing = labels.dtype.kind == "f" and np.isnan(labels).any()
    if len(cells) < 2 or missing:
        raise ValueError("classes must name at least 2 labels, none of them missing.")
    if len(labels) < len(cells):
        raise ValueError(f"classes must be distinct, got {shown(classes)}.")
    return labels


def _kind(label: Any) -> type:
    """Return the kind of a label: labels of two kinds never equal each other."""
    known = (kind for kind in (str, bytes) if isinstance(label, kind))
    number = isinstance(label, Number | np.bool_)
    return Number if number else next(known, type(label))


def _position(code: dict[Any, int], label: Any) -> int:
    """Return the index of a label that equals a class, and -1 for any other."""
    try:
        return code.get(label, -1)
    except Exception:  # what has no hash, or cannot be compared, is no label
        return -1


def number(cell: Any) -> float:
    """Return a number as a float, and NaN for anything else."""
    # a time difference is an integer to numpy
    if not isinstance(cell, Real | Decimal | np.bool_) or isinstance(
        cell, np.timedelta64
    ):
        return nan
    try:
        with np.errstate(all="ignore"):
            return float(cell)
    except Exception:  # an arbitrary object that raises is not a number
        return nan


def numbers(cells: NDArray[Any]) -> NDArray[np.float64]:
    """Return an array as floats, NaN where a cell is not a number."""
    if cells.dtype.kind in NUMBERS:
        with np.errstate(all="ignore"):  # what does not fit is infinite
            return cells.astype(np.float64, copy=False)
    if cells.dtype.kind != "O":  # strings, dates, time differences, complex numbers
        return np.full(cells.shape, nan)
    found = [number(cell) for cell in cells.flat]
    return np.array(found, dtype=np.float64).reshape(cells.shape)


def numeric_labels(cells: NDArray[Any]) -> NDArray[np.float64]:
    """Return labels of an array of numbers as `label_of` has them, else NaN."""
    found = numbers(cells)
    return np.where(np.abs(found) < NO_LABEL, found, nan)


def label_of(cell: Any) -> Any:
    """Return the canonical form of a label: a float, a string, an object, or None.

    It only depends on the cell, in whatever column the cell is. Missing values, dates,
    and numbers of 2**53 and more are no labels.
    """
    if isinstance(cell, DATES):
        return None
    if isinstance(cell, Real | Decimal | np.bool_):
        found = number(cell)
        return found if abs(found) < NO_LABEL else None
    try:
        hash(cell)
        return cell if bool(cell == cell) else None
    except Exception:  # an arbitrary object that raises is not a label
        return None


def labels_of(cells: NDArray[Any]) -> list[Any]:
    """Return the canonical form of each cell, None or NaN if it is not a label."""
    if cells.dtype.kind in NUMBERS:
        found: list[Any] = numeric_labels(cells).ravel().tolist()
        return found
    if cells.dtype.kind in "mM":
        return [None] * cells.size
    return [label_of(cell) for cell in cells.ravel().tolist()]


def class_positions(classes: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of each label among the classes, -1 for other labels."""
    code = {label: position for position, label in enumerate(labels_of(classes))}
    if len(code) < len(classes) or any(c is None or c != c for c in code):
        raise ValueError(
            "classes must be strings or numbers below 2**53 in size: dates and larger "
            "numbers are not the same in every column."
        )

    def position(label: Any) -> int:
        try:
            return code.get(label, -1)
        except Exception:  # an object that cannot be compared with others
            return -1

    return np.array([position(label) for label in labels_of(y)], dtype=np.int64)


def checked_classes(classes: Any) -> NDArray[Any]:
    """Return sorted labels, or reject fewer than two."""
    found = sorted_classes(classes)
    class_positions(found, found)  # rejects what has no canonical form
    return found


@dataclass(frozen=True)
class RowBounds(TargetBounds):
    """Public bound on the norm of a row.

    Parameters
    ----------
    x_norm
        Bound on the norm of the features of a row.
    norm
        ``"l2"`` (Euclidean) or ``"linf"`` (largest entry).
    y_range
        Lowest and highest target of a regression.
    classes
        Public labels of a classification, or None.

    Notes
    -----
    **Bound.** After `clip` every row is within ``x_norm`` in exact arithmetic, not
    only as computed: rows at the bound are clipped a few units of round-off below.
    Rows clearly inside are returned bit for bit.
    """

    x_norm: float = 1.0
    norm: str = "l2"
    y_range: tuple[float, float] = (-1.0, 1.0)
    classes: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        self._check_targets()
        plain(self, "x_norm")
        positive(x_norm=self.x_norm)
        object.__setattr__(self, "x_norm", float(self.x_norm))
        if not SMALLEST <= self.x_norm <= LARGEST:
            raise ValueError(
                f"x_norm must be between 1e-100 and 1e100, got {self.x_norm!r}; "
                "rescale the features."
            )
        if self.norm not in ("l2", "linf"):
            raise ValueError(f"norm must be 'l2' or 'linf', got {self.norm!r}.")

    def factors(self, X: Any) -> NDArray[np.float64]:
        """Return the factor of each row that brings it within the L2 bound."""
        largest, norms = _norms(canonical(X))
        # computed norms are off by at most this factor, and the scaled row by as much
        width = X.shape[1] + 8
        limit = self.x_norm * (1 - 2 * width * EPS)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inside = largest * norms <= limit
            factors = np.where(inside, 1.0, limit / largest / norms)
        # below the normal numbers a quotient can be rounded up by a large share
        return np.where(factors < TINY, np.nextafter(factors, 0.0), factors)

    def clip(self, X: Any) -> Any:
        """Return ``X`` in float64, dense or CSR as it was, with every row inside."""
        X = canonical(X)
        if self.norm == "linf":
            if sparse.issparse(X):
                if X.dtype == np.float64 and _within(X.data, self.x_norm):
                    return X
                clipped = X.astype(np.float64)
                np.clip(clipped.data, -self.x_norm, self.x_norm, out=clipped.data)
                return clipped
            return np.clip(X.astype(np.float64), -self.x_norm, self.x_norm)
        factors = self.factors(X)
        if sparse.issparse(X):
            clipped = X.astype(np.float64)
            clipped.data *= np.repeat(factors, np.diff(X.indptr))
            return clipped
        return X * factors[:, None]

    def with_intercept(self, value: float) -> RowBounds:
        """Return the bounds of rows with one more feature, always ``value``.

        The constant sits inside the bound, so an intercept is as private as any
        other coefficient.
        """
        norm = (
            sqrt(self.x_norm**2 + value**2)
            if self.norm == "l2"
            else max(self.x_norm, abs(value))
        )
        # squares, sum, root and product round by three halves of a unit at most
        norm *= 1 + 2 * EPS
        if norm > LARGEST:
            raise ValueError(
                f"x_norm must be at most {LARGEST:g} together with the constant "
                f"feature of the intercept, got {self.x_norm!r}; rescale the features."
            )
        return RowBounds(norm, self.norm, self.y_range, self.classes)


def canonical(X: Any, dtype: Any = None) -> Any:
    """Return a sparse ``X`` as CSR with every entry stored once; others as they are.

    Entries stored twice add up, in ``dtype`` where it is given, so that clipping them
    one by one would bound nothing. What is in order already is not copied.
    """
    if not sparse.issparse(X):
        return X
    X = _by_rows(X, dtype)
    if X is None:  # raised here, without a context that has indices of entries
        raise ValueError(
            "X has entries in rows or columns that it does not have; build the sparse "
            "matrix anew."
        )
    stored = X.indices[: X.indptr[-1]]
    # scipy remembers whether entries are unique, and may remember wrongly
    sorted_once = _sorted_once(stored, X.indptr)
    fresh = sparse.csr_array(
        (X.data, X.indices, X.indptr), shape=X.shape, copy=not sorted_once
    )
    fresh.has_canonical_format = fresh.has_sorted_indices = sorted_once
    if not sorted_once:
        fresh.sum_duplicates()
    return fresh


def _by_rows(X: Any, dtype: Any) -> Any:
    """Return a sparse ``X`` as CSR, or None where it is not well formed."""
    try:
        # before scipy follows any index
        if not _is_formed(X):
            return None
        if dtype is not None:
            X = X.astype(dtype)
        X = X.tocsr()
        # lists of lists carry any index along
        return X if _is_formed(X) else None
    except MemoryError:
        raise
    except Exception:  # parts of other types and lengths, in as many ways
        return None


def _is_formed(X: Any) -> bool:
    """Return whether all stored indices are in the matrix; scipy follows any.

    And whether the parts fit each other, and ends of rows rise up to what is stored.
    """
    match X.format:
        case "coo":
            parts = (*X.coords, X.data)
            if len({part.shape for part in parts}) > 1:
                return False
            inside = (
                at.dtype.kind in "iu" and ((at >= 0) & (at < size)).all()
                for at, size in zip(X.coords, X.shape, strict=True)
            )
            return all(inside)
        case "lil":
            lengths = [[len(cells) for cells in part] for part in (X.rows, X.data)]
            return len(X.rows) == X.shape[0] and lengths[0] == lengths[1]
        case "dia":
            return X.data.ndim == 2 and len(X.offsets) == len(X.data)
        case "csr" | "csc" | "bsr":
            return _is_compressed(X)
    return True


def _is_compressed(X: Any) -> bool:
    """Return whether rows, columns or blocks that are stored one by one are formed."""
    lines, beyond = X.shape[::-1] if X.format == "csc" else X.shape
    if X.format == "bsr":
        lines, beyond = lines // X.blocksize[0], beyond // X.blocksize[1]
    ends, indices = X.indptr, X.indices
    wide = 3 if X.format == "bsr" else 1
    if not (X.data.ndim == wide and ends.ndim == indices.ndim == 1):
        return False
    if ends.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        return False
    ordered = len(ends) == lines + 1 and ends[0] == 0 and (ends[1:] >= ends[:-1]).all()
    if not ordered or len(indices) != len(X.data) or ends[-1] > len(indices):
        return False
    return not len(indices) or bool(indices.min() >= 0 and indices.max() < beyond)


def _sorted_once(indices: NDArray[Any], indptr: NDArray[Any]) -> bool:
    """Return whether the columns of each row rise, read in pieces to save memory."""
    for low in range(0, len(indices) - 1, PIECE):
        piece = indices[low : low + PIECE + 1]
        falls = 1 + low + np.flatnonzero(piece[1:] <= piece[:-1])
        # only at the beginning of a row may the column fall
        first = np.searchsorted(indptr, falls)
        if not np.array_equal(indptr[first], falls):
            return False
    return True


def _within(values: NDArray[np.float64], bound: float) -> bool:
    """Return whether all values are within the bound; not if one is no number."""
    return len(values) == 0 or bool(values.min() >= -bound and values.max() <= bound)


def _norms(X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return per row a scale and the L2 norm in units of it, without overflow."""
    if sparse.issparse(X):
        data = X.data.astype(np.float64, copy=False)
        largest = _row_reduce(np.maximum, np.abs(data), X.indptr)
        scale = np.where(largest > 0, largest, 1.0)
        unit = data / np.repeat(scale, np.diff(X.indptr))
        return scale, np.sqrt(_row_reduce(np.add, unit**2, X.indptr))
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    scale = np.ones(len(squares))
    norms = np.sqrt(squares)
    # squares that overflow, or so small that they lost digits
    odd = ~((squares > 1e-250) & (squares < 1e250)) & (squares != 0) | ~np.isfinite(
        squares
    )
    if odd.any():
        rows = X[odd].astype(np.float64)
        scale[odd] = np.abs(rows).max(axis=1)
        norms[odd] = np.sqrt(((rows / scale[odd][:, None]) ** 2).sum(axis=1))
    return scale, norms


def _row_reduce(
    ufunc: np.ufunc, values: NDArray[np.float64], indptr: NDArray[Any]
) -> NDArray[np.float64]:
    """Reduce the stored values of each row; empty rows give zero."""
    out = np.zeros(len(indptr) - 1)
    filled = np.diff(indptr) > 0
    if filled.any():
        out[filled] = ufunc.reduceat(values, indptr[:-1][filled])
    return out
