"""What is public about ratings before a fit: the catalogue of items and the range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite, nan
from numbers import Integral, Real
from typing import Any

import numpy as np

from tacit._validate import at_least, plain, shown

__all__ = ["Catalogue", "RatingFacts", "checked_range", "integer_id"]


# positions of items are stored in 32 bits
MOST_ITEMS = 2**31 - 1
# Steps of 32-bit numbers that a range of ratings has at least
LEAST_STEPS = 1000


@dataclass(frozen=True, repr=False)
class Catalogue:
    """The items that may be rated, which are public.

    Parameters
    ----------
    labels
        Label of each item: integers, or strings. A range has items 0 to n - 1.
    """

    labels: Sequence[int | str]
    _positions: Mapping[Any, int] | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"Catalogue of {len(self)} items"

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of(cls, items: Any) -> Catalogue:
        """Return the catalogue of a number of items, or of their labels."""
        if isinstance(items, Catalogue):
            return items
        if isinstance(items, Integral):
            at_least(1, items=items)
            n_items = int(items)
            if n_items > MOST_ITEMS:
                raise ValueError(f"items must be at most {MOST_ITEMS}, got {items!r}.")
            return cls(range(n_items))
        if isinstance(items, Set):
            raise ValueError(
                "items must be ordered, as item vectors are published in their order, "
                "got a set; give a list."
            )
        # of a table, parts are the names of its columns
        table = hasattr(items, "columns")
        if items is None or table or isinstance(items, str | bytes | Mapping):
            labels: Sequence[int | str] | None = None
        else:
            labels = _plain_labels(items)
        if not labels:
            raise ValueError(
                "items must be the number of items, or a list of their labels, all "
                "integers or all strings; it is the public catalogue."
            )
        if not all(map(_can_be_saved, labels)):
            raise ValueError(
                "items must be labels that can be saved: UTF-8 strings without null "
                "characters, or 64-bit integers."
            )
        positions = {label: position for position, label in enumerate(labels)}
        if len(positions) < len(labels):
            raise ValueError("items must be distinct labels; remove duplicates.")
        return cls(tuple(labels), positions)

    def in_words(self) -> str:
        """Describe the labels, for users whose ratings have other labels."""
        if self._positions is None:
            return f"integers from 0 to {len(self) - 1}"
        kind = "strings" if isinstance(self.labels[0], str) else "integers"
        return f"{len(self)} {kind}"

    def position(self, label: Any) -> int:
        """Return the position of a label, or -1 if it is not in the catalogue."""
        if self._positions is not None:
            try:
                return self._positions.get(label, -1)
            except Exception:  # a value that cannot be hashed is not a label
                return -1
        number = integer_id(label)
        return -1 if number is None or not 0 <= number < len(self) else number

    def as_strings(self) -> Catalogue:
        """Return the same items with labels as strings, as in a CSV file."""
        return Catalogue.of([str(label) for label in self.labels])


def integer_id(label: Any) -> int | None:
    """Return a value of any type as an integer, or None if it is not one."""
    if isinstance(label, np.timedelta64):  # an integer to numpy
        return None
    if isinstance(label, Integral):
        return int(label)
    if not isinstance(label, Real | Decimal | np.bool_):
        return None
    value: Any = label  # int() of any of these is known at run time only
    try:
        # by the float first: a short Decimal may have a billion digits
        number = int(value) if float(value).is_integer() else None
    except (TypeError, ValueError, ArithmeticError):  # not a finite number
        return None
    return number if number == label else None


def _plain_labels(items: Iterable[Any]) -> Sequence[int | str] | None:
    """Return labels as Python's own values, or None if they are not labels."""
    try:
        cells = items.tolist() if isinstance(items, np.ndarray) else list(items)
    except TypeError:
        return None
    if all(isinstance(cell, str) for cell in cells):
        return [str(cell) for cell in cells]
    if all(isinstance(c, Integral) and not isinstance(c, bool) for c in cells):
        return [int(cell) for cell in cells]
    return None


def _can_be_saved(label: int | str) -> bool:
    """Return whether a label can be saved, which must be known before the charge."""
    if isinstance(label, int):
        return -(2**63) <= label < 2**63
    try:
        return b"\0" not in label.encode()  # where NumPy ends a string
    except UnicodeEncodeError:  # a lone surrogate
        return False


@dataclass(frozen=True)
class RatingFacts:
    """Public facts about a table of ratings.

    Parameters
    ----------
    n_items
        Number of items in the public catalogue.
    low, high
        Ends of the range of ratings, into which all are clipped.
    n_users
        Number of users to plan for: the actual number when neighbors replace a user, a
        guess when they add or remove one. Only accuracy depends on it.
    max_ratings
        Maximum number of ratings of a user that are used for what is published.
    """

    n_items: int
    low: float
    high: float
    n_users: int
    max_ratings: int

    def __post_init__(self) -> None:
        plain(self)
        at_least(
            1, n_items=self.n_items, n_users=self.n_users, max_ratings=self.max_ratings
        )

    @property
    def middle(self) -> float:
        """Middle of the range, which stands for an unknown rating."""
        return self.low / 2 + self.high / 2

    @property
    def half_width(self) -> float:
        """Half the width of the range: no rating is further from the middle."""
        return self.high / 2 - self.low / 2

    @property
    def width(self) -> float:
        """Width of the range: no centered rating is larger."""
        return self.high - self.low


def checked_range(rating_range: Any) -> tuple[float, float]:
    """Return the two ends of the range, checked; they must be set without the data."""
    if rating_range is None:
        raise ValueError(
            "rating_range must be given: the lowest and highest rating there can be, "
            "set without the data."
        )
    try:
        ends = tuple(rating_range)
    except TypeError:
        ends = ()
    real = all(isinstance(end, Real) and not isinstance(end, bool) for end in ends)
    try:
        low, high = map(float, ends) if real and len(ends) == 2 else (nan, nan)
    except OverflowError:
        raise ValueError(
            "rating_range must be within 1e30, got an integer too large for a float."
        ) from None
    if not (isfinite(low) and isfinite(high) and low < high):
        raise ValueError(
            "rating_range must be two finite numbers, the lower first, "
            f"got {shown(rating_range)}."
        )
    largest = max(abs(low), abs(high))
    step = float(np.spacing(np.float32(min(largest, 1e30))))
    if largest > 1e30 or high - low < max(LEAST_STEPS * step, 1e-30):
        raise ValueError(
            "rating_range must be within 1e30 and wide enough for 32-bit numbers, got "
            f"{shown(rating_range)}; take the lower end off all ratings, or scale them."
        )
    return low, high
