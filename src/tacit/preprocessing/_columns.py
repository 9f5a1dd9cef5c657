"""Public facts about columns, and the maps they fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = [
    "Ranges",
    "between",
    "checked_pair",
    "columns_of",
    "norm_bound",
    "of_each_column",
    "public_ranges",
    "stretched",
    "zero_stays",
]

Pair = tuple[float, float]
Ranges = tuple[Pair, ...]
Floats = NDArray[np.float64]

# Ends of a range within these sizes leave room for squares and quotients
LARGEST, NARROWEST = 1e150, 1e-150


def columns_of(estimator: Any) -> list[Any]:
    """Return the names of the columns, or their places where they have none."""
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
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        low = high = np.nan
    sized = max(abs(low), abs(high)) <= LARGEST and high - low >= NARROWEST
    if not sized:  # also when one of them is NaN
        raise ValueError(
            f"{name} must be two finite numbers, the lower first, got {pair!r}."
        )
    return low, high


def public_ranges(ranges: Any, columns: Sequence[Any]) -> Ranges:
    """Return the lowest and highest value of each column."""
    if isinstance(ranges, str) or not isinstance(
        ranges, Mapping | Sequence | np.ndarray
    ):
        raise ValueError(
            "ranges must map columns to pairs, list a pair a column or be one pair "
            f"for all, got {type(ranges).__name__}."
        )
    if not isinstance(ranges, Mapping) and len(ranges) and np.ndim(ranges[0]) == 0:
        return (checked_pair(ranges, "ranges"),) * len(columns)
    pairs = of_each_column(ranges, columns, "ranges", "range")
    return tuple(
        checked_pair(pair, f"ranges of column {column!r}")
        for pair, column in zip(pairs, columns, strict=True)
    )


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


def between(values: Floats, low: float, high: float, dtype: Any) -> NDArray[Any]:
    """Return the values within both ends, also after they are rounded to ``dtype``."""
    kind = np.dtype(dtype).type
    ends = [kind(low), kind(high)]
    if float(ends[0]) < low:
        ends[0] = np.nextafter(ends[0], kind(np.inf))
    if float(ends[1]) > high:
        ends[1] = np.nextafter(ends[1], kind(-np.inf))
    return np.clip(values.astype(dtype, copy=False), *ends)


def stretched(X: Any, lows: Floats, highs: Floats, target: Pair) -> Any:
    """Map each column's range to the target, cutting what is outside.

    A sparse ``X`` stays sparse, which is right only where zero stays zero.
    """
    start, stop = target
    rates = (stop - start) / (highs - lows)
    if sparse.issparse(X):
        places = X.indices
        lows, highs, rates = lows[places], highs[places], rates[places]
        values = X.data
    else:
        values = X
    moved = np.clip(values.astype(np.float64), lows, highs)
    moved -= lows
    moved *= rates
    moved += start
    found = between(moved, start, stop, values.dtype)
    if not sparse.issparse(X):
        return found
    return type(X)((found, X.indices, X.indptr), shape=X.shape, copy=True)
