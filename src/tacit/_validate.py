"""Checks of parameters, with messages of one form."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from math import isfinite, nan
from numbers import Integral, Number, Real
from typing import Any

import numpy as np

__all__ = [
    "LARGEST",
    "SMALLEST",
    "PlainNumbers",
    "at_least",
    "at_most",
    "fraction",
    "if_given",
    "moderate",
    "nonnegative",
    "one_of",
    "plain",
    "plain_number",
    "positive",
    "public_ends",
    "public_range",
    "shown",
    "target_unit",
]

# Range of numbers whose squares and quotients are normal floats
SMALLEST, LARGEST = 1e-100, 1e100
# Longest string that a message repeats: a name, but not a file
LONGEST = 80
# and longest list: the ends of a range, but not a column
MOST = 3


def shown(value: object) -> str:
    """Return a number, a short string or a short list as written; else its type.

    A value given for a parameter by mistake may be a table of private values.
    """
    few = type(value) in (list, tuple) and len(value) <= MOST  # type: ignore[arg-type]
    parts: Iterable[object] = value if few else (value,)  # type: ignore[assignment]
    if all(_is_short(part) for part in parts):
        return repr(value)
    return f"a value of type {type(value).__name__}"


def _is_short(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST
    if isinstance(value, int):  # Python does not print integers of many digits
        return value.bit_length() <= 64
    return value is None or isinstance(value, Number)


def plain(instance: Any, *names: str) -> None:
    """Convert numbers in fields of a frozen dataclass to Python numbers.

    NumPy rounds sums and products of low-precision floats and wraps small integers,
    which would break the bounds that privacy relies on. Call this before any check, so
    that the number that is checked is the number that is stored.
    """
    for name in names or [field.name for field in fields(instance)]:
        value = getattr(instance, name)
        exact = plain_number(value, name)
        if exact is not value:
            object.__setattr__(instance, name, exact)


class PlainNumbers:
    """Base class of frozen dataclasses without checks of their own."""

    def __post_init__(self) -> None:
        plain(self)


def plain_number(value: Any, name: str) -> Any:
    """Return a number, or a tuple of numbers, as Python numbers; others as they are.

    Complex numbers, decimals and zero-dimensional arrays raise ValueError: their
    arithmetic is not that of floats.
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
    """Return whether this is a finite number and not a bool."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def if_given(check: Callable[..., None], *limits: float, **named: object) -> None:
    """Apply a check to the values that are not None."""
    check(*limits, **{name: x for name, x in named.items() if x is not None})


def positive(**named: object) -> None:
    """Require finite numbers above zero."""
    for name, value in named.items():
        if not (_is_number(value) and value > 0):  # type: ignore[operator]
            raise ValueError(f"{name} must be a finite number > 0, got {shown(value)}.")


def moderate(**named: object) -> None:
    """Require numbers from 1e-100 to 1e100."""
    positive(**named)
    for name, value in named.items():
        if not SMALLEST <= value <= LARGEST:  # type: ignore[operator]
            raise ValueError(
                f"{name} must be from 1e-100 to 1e100, got {shown(value)}."
            )


def nonnegative(**named: object) -> None:
    """Require finite numbers of at least zero."""
    for name, value in named.items():
        if not (_is_number(value) and value >= 0):  # type: ignore[operator]
            raise ValueError(
                f"{name} must be a finite number >= 0, got {shown(value)}."
            )


def fraction(*, closed: bool = True, **named: object) -> None:
    """Require numbers in ``[0, 1)``, or in ``(0, 1)`` if not closed."""
    for name, value in named.items():
        low = "0 <=" if closed else "0 <"
        inside = _is_number(value) and (value >= 0 if closed else value > 0)  # type: ignore[operator]
        if not (inside and value < 1):  # type: ignore[operator]
            raise ValueError(
                f"{name} must be a number with {low} {name} < 1, got {shown(value)}."
            )


def at_least(least: int, **named: object) -> None:
    """Require integers of at least ``least``."""
    for name, value in named.items():
        if not (isinstance(value, Integral) and not isinstance(value, bool)) or (
            value < least
        ):
            raise ValueError(
                f"{name} must be an integer >= {least}, got {shown(value)}."
            )


def at_most(most: float, **named: Any) -> None:
    """Require numbers of at most ``most``; None passes."""
    for name, value in named.items():
        if value is not None and value > most:
            raise ValueError(f"{name} must be at most {most:g}, got {shown(value)}.")


def true_or_false(**named: object) -> None:
    """Require booleans, of Python or NumPy."""
    for name, value in named.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {shown(value)}.")


def one_of(allowed: Iterable[object], **named: object) -> None:
    """Require values among the choices."""
    choices = tuple(allowed)
    for name, value in named.items():
        # an array compares entry by entry, so its type is checked first
        if not isinstance(value, str | int | float | None) or value not in choices:
            *others, last = map(repr, choices)
            raise ValueError(
                f"{name} must be {', '.join(others)} or {last}, got {shown(value)}."
            )


def public_ends(given: Any, name: str, what: str) -> tuple[float, float]:
    """Return the two ends of a range that must be set without the data, or raise."""
    if given is None:
        raise ValueError(
            f"{name} must be given: the lowest and highest {what} there can be, set "
            "without the data."
        )
    try:
        ends = tuple(given)
    except TypeError:
        ends = ()
    real = all(isinstance(end, Real) and not isinstance(end, bool) for end in ends)
    try:
        low, high = map(float, ends) if real and len(ends) == 2 else (nan, nan)
    except OverflowError:  # an integer too large for a float
        low = high = nan
    if not (isfinite(low) and isfinite(high) and low < high):
        raise ValueError(
            f"{name} must be two finite numbers, the lower first, got {shown(given)}."
        )
    return low, high


def public_range(y_range: Any) -> tuple[float, float]:
    """Return the two ends of ``y_range``, or raise."""
    low, high = public_ends(y_range, "y_range", "target")
    if not (np.isfinite(high - low) and (high - low) > 1e-9 * max(abs(low), abs(high))):
        raise ValueError(
            "y_range must be finite in width and wider than round-off, "
            f"got {shown(y_range)}."
        )
    return low, high


def target_unit(y_range: Any, fit_intercept: bool) -> tuple[float, float]:
    """Return the center and the scale that map targets in the range to [-1, 1]."""
    low, high = public_range(y_range)
    # without an intercept zero must stay zero
    center = low + (high - low) / 2 if fit_intercept else 0.0
    return center, max(high - center, center - low)
