"""Public facts about columns, and the maps they fix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.preprocessing._parameters import (
    LEAST_PART,
    is_list,
    is_several,
    number,
    shown,
)

__all__ = [
    "LARGEST",
    "Ranges",
    "between",
    "checked_pair",
    "columns_of",
    "norm_bound",
    "of_each_column",
    "public_fill",
    "public_ranges",
    "reach_after",
    "require_zero",
    "standardized",
    "stretched",
    "zero_stays",
]

Pair = tuple[float, float]
Ranges = tuple[Pair, ...]
Floats = NDArray[np.float64]

# Ends of a range within these sizes leave room for squares and quotients
LARGEST, NARROWEST = 1e150, 1e-140


def columns_of(estimator: Any) -> list[Any]:
    """Return the names of the columns, or their positions where they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    return list(range(estimator.n_features_in_) if names is None else names)


def of_each_column(
    given: Any, columns: Sequence[Any], name: str, what: str
) -> list[Any]:
    """Return what a mapping or a sequence says of each column, in their order."""
    if isinstance(given, Mapping):
        for column in columns:
            if column not in given:
                raise ValueError(
                    f"{name} has no entry for column {column!r}; give its public "
                    f"{what}, or leave the column out."
                )
        return [given[column] for column in columns]
    if len(given) != len(columns):
        raise ValueError(
            f"{name} has {len(given)} entries and X has {len(columns)} columns; give "
            f"one public {what} a column, or name the columns."
        )
    return list(given)


def checked_pair(pair: Any, name: str) -> Pair:
    """Return two finite numbers, the lower first, or say what is wrong with them."""
    ends = [number(end) for end in pair] if is_several(pair) else []
    low, high = ends if len(ends) == 2 else (np.nan, np.nan)
    size = max(abs(low), abs(high))
    if not (low < high and size <= LARGEST):  # also when one of them is NaN
        raise ValueError(
            f"{name} must be two finite numbers, the lower first, got {shown(pair)}."
        )
    if not (high - low > LEAST_PART * size and high - low >= NARROWEST):
        raise ValueError(
            f"{name} must be two numbers that differ by more than {LEAST_PART:g} of "
            f"the larger, got {shown(pair)}."
        )
    return low, high


def public_ranges(ranges: Any, columns: Sequence[Any]) -> Ranges:
    """Return the lowest and highest value of each column."""
    if not (isinstance(ranges, Mapping) or is_list(ranges)):
        raise ValueError(
            "ranges must map columns to pairs, list a pair a column or be one pair "
            f"for all, got {type(ranges).__name__}."
        )
    if isinstance(ranges, np.ndarray) and ranges.dtype == np.float64:
        ranges = ranges.tolist()  # plain numbers are quicker to check one by one
    listed = isinstance(ranges, Mapping) or any(map(is_several, ranges))
    if not listed and len(ranges):
        return (checked_pair(ranges, "ranges"),) * len(columns)
    pairs = of_each_column(ranges, columns, "ranges", "range")
    return tuple(
        checked_pair(pair, f"ranges of column {column!r}")
        for pair, column in zip(pairs, columns, strict=True)
    )


def public_fill(missing: Any, columns: Sequence[Any]) -> Floats | None:
    """Return the public stand-in for a missing value of each column, if any."""
    if missing is None:
        return None
    if not (isinstance(missing, Mapping) or is_list(missing)):
        missing = [missing] * len(columns)
    values = of_each_column(missing, columns, "missing", "value")
    found = [number(value) for value in values]
    if not all(map(isfinite, found)):
        raise ValueError("missing must be None or finite numbers, one a column.")
    return np.array(found)


def norm_bound(n_columns: int, largest: float) -> float:
    """Return a bound on the norm of rows with entries up to ``largest``."""
    return sqrt(n_columns) * largest * (1 + 1e-15)  # root and products round


def zero_stays(ranges: Ranges, target: Pair) -> bool:
    """Whether zero becomes zero in every column, so that sparse rows stay sparse."""
    start, stop = map(Fraction, target)
    return all(
        low <= 0 <= high
        and start * (Fraction(high) - Fraction(low)) == Fraction(low) * (stop - start)
        for low, high in ranges
    )


def ends_within(low: Any, high: Any, dtype: Any) -> tuple[Floats, Floats, Any]:
    """Return ends that ``dtype`` can hold, no wider than these, and the type to use.

    That is float64 where the given type has no two values within some pair of ends.
    """
    kind = np.dtype(dtype).type
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    if np.maximum(-low, high).max() > float(np.finfo(kind).max):
        return low, high, np.float64
    first, last = low.astype(kind), high.astype(kind)
    first = np.where(first < low, np.nextafter(first, kind(np.inf)), first)
    last = np.where(last > high, np.nextafter(last, kind(-np.inf)), last)
    if not (first < last).all():
        return low, high, np.float64
    return first.astype(np.float64), last.astype(np.float64), kind


def between(values: Floats, low: float, high: float, dtype: Any) -> NDArray[Any]:
    """Return the values within both ends, also after they are rounded to ``dtype``.

    Where that type has no two values within the ends, they stay as they are.
    """
    first, last, kind = ends_within(low, high, dtype)
    return np.clip(values, first, last).astype(kind, copy=False)


def require_zero(ranges: Ranges) -> None:
    """Reject ranges that would clip the entries which a sparse table omits."""
    if not all(low <= 0 <= high for low, high in ranges):
        raise ValueError(
            "ranges must hold 0 in every column of a sparse X, whose entries are "
            "mostly 0; give such ranges, or call X.toarray() first."
        )


def standardized(
    X: Any, ranges: Ranges, mean: Floats, scale: Floats, bounds: Floats
) -> Any:
    """Clip to the ranges, subtract, divide, and clip to ``bounds`` on both sides.

    A sparse ``X`` stays sparse, which is right only where zero stays zero.
    """
    lows, highs = np.array(ranges).T
    # by columns and not by entries, so that the rows have no part in the type
    first, last, kind = ends_within(-bounds, bounds, X.dtype)

    def change(values: Any, lows: Floats, highs: Floats, *others: Floats) -> Any:
        mean, scale, first, last = others
        moved = np.clip(values.astype(np.float64), lows, highs)
        moved -= mean
        moved /= scale
        return np.clip(moved, first, last).astype(kind, copy=False)

    return _changed(X, change, lows, highs, mean, scale, first, last)


def _changed(X: Any, change: Callable[..., NDArray[Any]], *facts: Floats) -> Any:
    """Return rows with each value changed by facts of its column; CSR stays CSR."""
    if not sparse.issparse(X):
        return change(X, *facts)
    found = change(X.data, *(fact[X.indices] for fact in facts))
    return type(X)((found, X.indices, X.indptr), shape=X.shape, copy=True)


def reach_after(ranges: Ranges, mean: Floats, scale: Floats, limit: float) -> Floats:
    """Return bounds on the absolute values of `standardized` columns.

    Differences and quotients round, but never past those of a larger number.
    """
    lows, highs = np.array(ranges).T
    farthest = np.maximum(highs - mean, mean - lows)
    reach: Floats = np.minimum(farthest / scale, limit)
    return reach


def stretched(
    X: Any, lows: Floats, highs: Floats, target: Pair, fill: Floats | None = None
) -> Any:
    """Map each column's range to the target, cutting what is outside.

    A sparse ``X`` stays sparse, which is right only where zero stays zero. ``fill``
    stands in for what is missing, one value a column.
    """
    start, stop = target
    rates = (stop - start) / (highs - lows)

    def change(values: Any, lows: Floats, highs: Floats, *others: Floats) -> Any:
        rates, *fills = others
        moved = values.astype(np.float64)
        for missing in fills:
            moved = np.where(np.isnan(moved), missing, moved)
        moved = np.clip(moved, lows, highs, out=moved)
        moved -= lows
        moved *= rates
        moved += start
        return between(moved, start, stop, values.dtype)

    fills = () if fill is None else (fill,)
    return _changed(X, change, lows, highs, rates, *fills)
