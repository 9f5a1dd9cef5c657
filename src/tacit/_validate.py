"""Checks of parameters, with one form of message."""

from collections.abc import Iterable
from math import isfinite
from numbers import Integral, Real

__all__ = ["at_least", "fraction", "nonnegative", "one_of", "positive"]


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def positive(**named: object) -> None:
    """Refuse whatever is not a finite number above zero."""
    for name, value in named.items():
        if not (_is_number(value) and isfinite(value) and value > 0):  # type: ignore[arg-type, operator]
            raise ValueError(f"{name} must be a finite number > 0, got {value!r}.")


def nonnegative(**named: object) -> None:
    """Refuse whatever is not a finite number of at least zero."""
    for name, value in named.items():
        if not (_is_number(value) and isfinite(value) and value >= 0):  # type: ignore[arg-type, operator]
            raise ValueError(f"{name} must be a finite number >= 0, got {value!r}.")


def fraction(*, closed: bool = True, **named: object) -> None:
    """Refuse whatever is outside ``[0, 1)``, or ``(0, 1)`` when not closed."""
    for name, value in named.items():
        low = "0 <=" if closed else "0 <"
        inside = _is_number(value) and (value >= 0 if closed else value > 0)  # type: ignore[operator]
        if not (inside and value < 1):  # type: ignore[operator]
            raise ValueError(
                f"{name} must be a number with {low} {name} < 1, got {value!r}."
            )


def at_least(least: int, **named: object) -> None:
    """Refuse whatever is not an integer of at least ``least``."""
    for name, value in named.items():
        if not (isinstance(value, Integral) and not isinstance(value, bool)) or (
            value < least
        ):
            raise ValueError(f"{name} must be an integer >= {least}, got {value!r}.")


def one_of(allowed: Iterable[object], **named: object) -> None:
    """Refuse whatever is not among the choices."""
    choices = tuple(allowed)
    for name, value in named.items():
        if value not in choices:
            *others, last = map(repr, choices)
            raise ValueError(
                f"{name} must be {', '.join(others)} or {last}, got {value!r}."
            )
