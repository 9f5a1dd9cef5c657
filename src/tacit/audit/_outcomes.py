"""What an observer sees of a fit, as numbers that distinguish two data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit._state import leaves

__all__ = ["Outcome", "failed", "observed", "steady_differences", "table"]

Floats = NDArray[np.float64]
# By path: numbers where there are some, else a string
Outcome = dict[str, Floats | str]
ERROR = "error"


def observed(fitted: Any) -> Outcome:
    """Return all that can be read off the public fitted attributes."""
    if not (hasattr(fitted, "coef_") or hasattr(fitted, "shapes_")):
        raise ValueError("estimator must have coef_ or shapes_ after fit.")
    given = fitted.get_params(deep=False)
    seen: Outcome = {}
    for path, leaf in leaves(fitted, "").items():
        name = path[1:].partition(".")[0].partition("[")[0]
        if name and name[0] != "_" and name not in given:
            numbers = _numbers(leaf)
            seen[path[1:]] = repr(leaf) if numbers is None else numbers
    return seen


def failed(error: Exception) -> Outcome:
    """Return what a fit that raised let an observer see."""
    return {ERROR: type(error).__qualname__, f"{ERROR} text": str(error)}


def _numbers(leaf: Any) -> Floats | None:
    match leaf:
        case (_, int() as number) if abs(number) < 2**53:
            return np.array([float(number)])
        case ("builtins.float" | "numpy.float64", bytes() as bits):
            return np.frombuffer(bits)
        case (_, str() as kind, tuple(), bytes() as bits):
            dtype = np.dtype(kind)
            if dtype.kind in "biuf":
                return np.frombuffer(bits, dtype).astype(float)
    return None


def steady_differences(first: list[Outcome], second: list[Outcome]) -> list[str]:
    """Return the paths that are constant on each side and differ between them."""
    found = []
    for path in _paths(first, second):
        a, b = ({_exact(o.get(path)) for o in side} for side in (first, second))
        if len(a) == len(b) == 1 and a != b:
            found.append(path)
    return found


def table(first: list[Outcome], second: list[Outcome]) -> tuple[Floats, Floats]:
    """Return a row of numbers for each outcome.

    Columns are the numbers, and for each path whether it has the value that speaks most
    for one side. Columns are defined by the first halves only, so that the other halves
    may judge.
    """
    columns: list[tuple[Floats, Floats]] = []
    for path in _paths(first, second):
        values = [[o.get(path) for o in side] for side in (first, second)]
        columns.append(_coordinates(*values))
        for key in (_exact, _finiteness):
            columns.append(_indicator(*([key(v) for v in side] for side in values)))
    a, b = (np.concatenate(parts, axis=1) for parts in zip(*columns, strict=True))
    return a, b


def _paths(first: list[Outcome], second: list[Outcome]) -> list[str]:
    return sorted({path for outcome in (*first, *second) for path in outcome})


def _exact(value: Floats | str | None) -> Hashable:
    return value.tobytes() if isinstance(value, np.ndarray) else value


def _finiteness(value: Floats | str | None) -> Hashable:
    """Return the infinities and NaN among numbers, or whether there are no numbers."""
    if not isinstance(value, np.ndarray):
        return value is None
    return np.where(np.isfinite(value), 0.0, value).tobytes()


def _indicator(first: Sequence[Hashable], second: Sequence[Hashable]) -> Any:
    """Return 1 where the value is the one whose counts differ most, else 0."""
    counts = Counter(first[: len(first) // 2])
    counts.subtract(second[: len(second) // 2])
    most = max(counts, key=lambda value: abs(counts[value]))
    return tuple(
        np.array([[float(value == most)] for value in side]) for side in (first, second)
    )


def _coordinates(first: Sequence[Any], second: Sequence[Any]) -> Any:
    """Return the numbers, with the mean for those that are missing."""
    chosen = (*first[: len(first) // 2], *second[: len(second) // 2])
    sizes = Counter(v.size for v in chosen if isinstance(v, np.ndarray))
    size = sizes.most_common(1)[0][0] if sizes else 0

    def rows(values: Sequence[Any]) -> Floats:
        found = np.full((len(values), size), np.nan)
        for i, value in enumerate(values):
            if isinstance(value, np.ndarray) and value.size == size:
                found[i] = np.where(np.isfinite(value), value, np.nan)
        return found

    known = np.ma.masked_invalid(rows(chosen))
    # in parts, as the sum of the largest numbers has no float
    middle = np.ma.filled((known / max(len(chosen), 1)).sum(axis=0), 0.0)
    fraction = np.ma.filled(known.count(axis=0) / max(len(chosen), 1), 0.0)
    middle = middle / np.where(fraction > 0, fraction, 1.0)
    a, b = (np.where(np.isnan(r), middle, r) for r in map(rows, (first, second)))
    return a, b
