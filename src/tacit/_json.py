"""Plain data and canonical JSON."""

from __future__ import annotations

import json
from collections.abc import Collection
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["DEEPEST", "canonical", "plain", "readable_parameters"]

# Beyond these limits, readers of JSON differ
DEEPEST = 50
LARGEST = 2**128


def canonical(data: Any) -> str:
    """Return plain data as a string that is equal only for equal data of equal types.

    Names are sorted, and there are no spaces and only ASCII characters.
    """
    return json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def plain(value: Any, name: str, depth: int = 0) -> Any:
    """Return a value as JSON would give it back, with Python numbers.

    A value that JSON cannot represent raises a ValueError that begins with its path.
    """
    if depth > DEEPEST:
        raise ValueError(f"{name} is nested more than {DEEPEST} deep.")
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return _text(value, name)
    if isinstance(value, Integral):
        if abs(int(value)) > LARGEST:
            raise ValueError(f"{name} must have no integer beyond 2^128.")
        return int(value)
    if isinstance(value, Real):
        if not isfinite(value):
            raise ValueError(f"{name} must be finite, got {float(value)!r}.")
        return float(value)
    if isinstance(value, list | tuple):
        return [plain(part, name, depth + 1) for part in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {
            _text(key, name): plain(part, f"{name}[{key!r}]", depth + 1)
            for key, part in value.items()
        }
    raise ValueError(
        f"{name} must be plain data (strings, finite numbers, bools, lists and dicts "
        f"with strings as keys), got {type(value).__name__}."
    )


def readable_parameters(
    estimator: Any, left_out: Collection[str] = ()
) -> dict[str, Any]:
    """Return the parameters of an estimator as plain data that a person can read."""
    return {
        name: _readable(value)
        for name, value in estimator.get_params().items()
        if name not in left_out
    }


def _readable(value: Any) -> Any:
    """Return a parameter as a person would write it, in full.

    Series, frames and long arrays print only a part of themselves, so that two
    different ones could look the same.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return repr(value)
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, list | tuple | range):
        return [_readable(part) for part in value]
    if callable(getattr(value, "items", None)):
        return {str(key): _readable(part) for key, part in value.items()}
    if hasattr(value, "__array__"):
        return _readable(np.asarray(value).tolist())
    return repr(value)


def _text(value: str, name: str) -> str:
    """Return a string that can be written as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} has a string that is not valid Unicode.") from None
    return str(value)
