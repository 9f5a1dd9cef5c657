"""Parameters as plain Python numbers, rejected by name where they are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from math import inf, isfinite, nan
from numbers import Integral, Real
from reprlib import repr as truncated
from typing import Any

import numpy as np

__all__ = [
    "LEAST_PART",
    "checked_budget_numbers",
    "checked_integer",
    "checked_number",
    "checked_part",
    "checked_truth",
    "is_list",
    "is_missing",
    "is_several",
    "number",
    "shown",
]

# Parts of a range below this are lost among the digits of its ends
LEAST_PART = 1e-9


def shown(value: Any) -> str:
    """Return a parameter in one short line, whatever it is."""
    try:
        return " ".join(truncated(value).split())
    except Exception:  # an integer may have too many digits to print
        return f"{type(value).__name__} that cannot be printed"


def is_list(value: Any) -> bool:
    """Whether a value lists others: text and arrays without an axis do not."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(
        value, str | bytes | bytearray
    )


def is_several(value: Any) -> bool:
    """Whether a value is a list, or a column of another library."""
    return is_list(value) or getattr(value, "ndim", 0) == 1


def is_missing(value: Any) -> bool:
    """Whether a value stands for a missing one, as None, NaN, NA and NaT do."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # NA equals nothing, not even so
        return True


def number(value: Any) -> float:
    """Return a number as a float, and NaN for whatever is not one.

    Truth values, text and spans of time are no numbers. One too large for a float is
    infinite.
    """
    # as most are, and there may be many
    if type(value) is float or (type(value) is int and abs(value) < 2**53):
        return float(value)
    other = isinstance(value, bool | np.timedelta64)  # both are integers to Python
    if other or not isinstance(value, Real | Decimal):
        return nan
    try:
        with np.errstate(all="ignore"):
            return float(value)
    except OverflowError:
        return inf
    except (TypeError, ValueError, ArithmeticError):
        return nan


def checked_number(
    value: Any, name: str, words: str, fits: Callable[[float], bool]
) -> float:
    """Return a number as a float, or reject it in these words."""
    found = number(value)
    if not fits(found):
        raise ValueError(f"{name} must be {words}, got {shown(value)}.")
    return found


def checked_part(value: Any, name: str) -> float:
    """Return a part of a range that is neither too small to see nor all of it."""
    words = f"a number of at least {LEAST_PART:g} and below 1"
    return checked_number(value, name, words, lambda part: LEAST_PART <= part < 1)


def checked_truth(value: Any, name: str) -> bool:
    """Return a truth value as that of Python."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {shown(value)}.")
    return bool(value)


def checked_integer(value: Any, name: str, least: int, most: int) -> int:
    """Return an integer of any kind as that of Python, which does not wrap around."""
    known = isinstance(value, Integral) and isfinite(number(value))
    found = int(value) if known else least - 1
    if not least <= found <= most:
        raise ValueError(
            f"{name} must be an integer from {least} to {most}, got {shown(value)}."
        )
    return found


def checked_budget_numbers(epsilon: Any, delta: Any) -> tuple[float, float | None]:
    """Return epsilon and delta as floats, None for the delta that follows the rows."""
    words = "a finite number > 0"
    found = checked_number(epsilon, "epsilon", words, lambda e: 0 < e < inf)
    if delta is None:
        return found, None
    words = "a number with 0 <= delta < 1"
    return found, checked_number(delta, "delta", words, lambda d: 0 <= d < 1)
