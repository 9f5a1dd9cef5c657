"""Checks of parameters, with one form of message."""

from collections.abc import Iterable
from dataclasses import fields
from math import isfinite
from numbers import Integral, Number, Real
from typing import Any

import numpy as np

__all__ = [
    "PlainNumbers",
    "at_least",
    "at_most",
    "fraction",
    "moderate",
    "nonnegative",
    "one_of",
    "plain",
    "plain_number",
    "positive",
    "shown",
]

# Numbers whose squares and quotients are still ordinary numbers
SMALLEST, LARGEST = 1e-100, 1e100
# Characters of a text that a message repeats: a name, and no file
LONGEST = 80
# and parts of a list that it does: the ends of a range, and no column
MOST = 3


def shown(value: object) -> str:
    """Return a number, a short text or a few of them as written, and else the type.

    What was given in place of a parameter may be a table of private values.
    """
    few = type(value) in (list, tuple) and len(value) <= MOST  # type: ignore[arg-type]
    parts: Iterable[object] = value if few else (value,)  # type: ignore[assignment]
    if all(_is_short(part) for part in parts):
        return repr(value)
    return f"a value of type {type(value).__name__}"


def _is_short(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST
    if isinstance(value, int):  # Python refuses to write some thousands of digits
        return value.bit_length() <= 64
    return value is None or isinstance(value, Number)


def plain(instance: Any, *names: str) -> None:
    """Turn the numbers of a frozen dataclass, or of some fields, into Python's own.

    NumPy rounds sums and products of narrow numbers to their few digits, wraps narrow
    integers, and with them the bounds that privacy rests on. Call this before any
    check, so that the number that is checked is the number that is stored.
    """
    for name in names or [field.name for field in fields(instance)]:
        value = getattr(instance, name)
        exact = plain_number(value, name)
        if exact is not value:
            object.__setattr__(instance, name, exact)


class PlainNumbers:
    """Base of frozen dataclasses that have no checks of their own."""

    def __post_init__(self) -> None:
        plain(self)


def plain_number(value: Any, name: str) -> Any:
    """Return a number, or a tuple of numbers, as Python's own; anything else as it is.

    Numbers that are neither integers nor real, decimals, and arrays of no dimension
    raise ValueError: arithmetic with them is not that of floats.
    """
    if type(value) in (bool, int, float):
        return value
    if type(value) is tuple:
        return tuple(plain_number(part, name) for part in value)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        try:
            return float(value)
        except OverflowError:  # a fraction beyond all floats
            pass
    elif not isinstance(value, Number | np.ndarray) or getattr(value, "ndim", 0) > 0:
        return value
    raise ValueError(f"{name} must be an int or a float, got {shown(value)}.")


def _is_number(value: object) -> bool:
    """Return whether this is a finite number, and no truth value."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def positive(**named: object) -> None:
    """Refuse whatever is not a finite number above zero."""
    for name, value in named.items():
        if not (_is_number(value) and value > 0):  # type: ignore[operator]
            raise ValueError(f"{name} must be a finite number > 0, got {shown(value)}.")


def moderate(**named: object) -> None:
    """Refuse whatever is not a number from 1e-100 to 1e100."""
    positive(**named)
    for name, value in named.items():
        if not SMALLEST <= value <= LARGEST:  # type: ignore[operator]
            raise ValueError(
                f"{name} must be from 1e-100 to 1e100, got {shown(value)}."
            )


def nonnegative(**named: object) -> None:
    """Refuse whatever is not a finite number of at least zero."""
    for name, value in named.items():
        if not (_is_number(value) and value >= 0):  # type: ignore[operator]
            raise ValueError(
                f"{name} must be a finite number >= 0, got {shown(value)}."
            )


def fraction(*, closed: bool = True, **named: object) -> None:
    """Refuse whatever is outside ``[0, 1)``, or ``(0, 1)`` when not closed."""
    for name, value in named.items():
        low = "0 <=" if closed else "0 <"
        inside = _is_number(value) and (value >= 0 if closed else value > 0)  # type: ignore[operator]
        if not (inside and value < 1):  # type: ignore[operator]
            raise ValueError(
                f"{name} must be a number with {low} {name} < 1, got {shown(value)}."
            )


def at_least(least: int, **named: object) -> None:
    """Refuse whatever is not an integer of at least ``least``."""
    for name, value in named.items():
        if not (isinstance(value, Integral) and not isinstance(value, bool)) or (
            value < least
        ):
            raise ValueError(
                f"{name} must be an integer >= {least}, got {shown(value)}."
            )


def at_most(most: float, **named: Any) -> None:
    """Refuse whatever is above ``most``; names of what is not given are None."""
    for name, value in named.items():
        if value is not None and value > most:
            raise ValueError(f"{name} must be at most {most:g}, got {shown(value)}.")


def one_of(allowed: Iterable[object], **named: object) -> None:
    """Refuse whatever is not among the choices."""
    choices = tuple(allowed)
    for name, value in named.items():
        # an array compares entry by entry, so equality alone would not do
        if not isinstance(value, str | int | float | None) or value not in choices:
            *others, last = map(repr, choices)
            raise ValueError(
                f"{name} must be {', '.join(others)} or {last}, got {shown(value)}."
            )
