"""Item sides that can be saved, and the values of their fields in files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np

from tacit._discovery import declaring
from tacit.persistence._arrays import FILE, Arrays
from tacit.persistence._errors import ModelFileError
from tacit.recommend.items.side import ItemSide

__all__ = ["KINDS", "SideKind"]

# Largest number of which products do not overflow
LARGEST = 1e100
# Maximum length of a list of integers
LONGEST = 2**16


@dataclass(frozen=True)
class Value:
    """Saved form of a field as plain data, a check of it, and the way back."""

    fits: Callable[[Any], bool]
    written: Callable[[Any], Any] = lambda value: value
    restored: Callable[[Any], Any] = lambda value: value


NUMBER = Value(lambda value: type(value) is float, float)
NUMBER_OR_NONE = Value(
    lambda value: value is None or type(value) is float,
    lambda value: None if value is None else float(value),
)
COUNT = Value(lambda value: type(value) is int and 1 <= value < 2**31, int)


def _integers(dtype: type[np.integer[Any]], most: int) -> Value:
    """Return a short array of integers from zero to ``most``."""

    def fits(value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) <= LONGEST
            and all(type(number) is int and 0 <= number <= most for number in value)
        )

    return Value(fits, np.ndarray.tolist, lambda value: np.array(value, dtype=dtype))


# By the types of fields; integers are counts
BY_TYPE = {float: NUMBER, float | None: NUMBER_OR_NONE, int: COUNT}


def _value(hint: Any) -> Value:
    """Return how a field is saved, by its annotation."""
    if get_origin(hint) is not Annotated:
        return BY_TYPE[hint]
    kind, limit = get_args(hint)
    if kind is str:
        return Value(lambda value: type(value) is str and value in limit)
    (dtype,) = get_args(get_args(kind)[1])
    return _integers(dtype, limit)


@dataclass(frozen=True)
class SideKind:
    """Saved form of a class of item sides, by the annotations of its fields."""

    make: type[ItemSide]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.make, include_extras=True)

    @cached_property
    def all_arrays(self) -> dict[str, tuple[str, ...]]:
        """Names of the lengths of all arrays of floats."""
        hints = {name: get_args(hint)[1:] for name, hint in self._hints.items()}
        return {
            name: lengths
            for name, lengths in hints.items()
            if lengths and all(isinstance(length, str) for length in lengths)
        }

    @cached_property
    def all_values(self) -> dict[str, Value]:
        """All other fields."""
        return {
            name: _value(hint)
            for name, hint in self._hints.items()
            if name not in self.all_arrays
        }

    def check_shapes(self, found: Arrays) -> None:
        """Reject arrays of other dimensions, or whose lengths do not agree."""
        lengths: dict[str, int] = {}
        for name, wanted in self.all_arrays.items():
            shape = found[name].shape
            fits = len(shape) == len(wanted) and all(
                lengths.setdefault(key, length) == length
                for key, length in zip(wanted, shape, strict=True)
            )
            if not fits:
                raise ModelFileError(
                    f"{FILE} has an array {name!r} of another shape than the side "
                    "needs."
                )
        if not lengths["items"]:
            raise ModelFileError(f"{FILE} has no item.")

    def is_usable(self, side: ItemSide) -> bool:
        """Return whether users can compute with a side whose lengths agree."""
        numbers = [getattr(side, name) for name in self.all_arrays]
        values = (getattr(side, name) for name in self.all_values)
        numbers += [value for value in values if not isinstance(value, str | None)]
        small = all(bool((np.abs(part) <= LARGEST).all()) for part in numbers)
        return bool(side.low < side.high) and small and side.is_consistent()


_SIDES = declaring("_at_home", "tacit.recommend.items")
KINDS = {
    kind.__name__: SideKind(kind)
    for kind in sorted(_SIDES, key=lambda kind: kind.__name__)
    if kind is not ItemSide
}
