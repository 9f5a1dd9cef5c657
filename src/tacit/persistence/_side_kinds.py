"""The item sides that can be saved, and what makes each of them whole again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.persistence._arrays import FILE, Arrays
from tacit.persistence._errors import ModelFileError
from tacit.recommend.items.linear import LOCAL_STEPS, LinearItems, NeighborItems
from tacit.recommend.items.steps import ReplayedItems, WalkItems

__all__ = ["KINDS", "SideKind"]

# Of a number whose products with others users can still compute with
LARGEST = 1e100
# Whole numbers in a list
LONGEST = 2**16
# Neighbors that may be more than there are items
MOST_NEIGHBORS = 2**12


@dataclass(frozen=True)
class Value:
    """What is kept of a side as plain data.

    Parameters
    ----------
    fits
        Whether something from a file may be it.
    written, restored
        To plain data, and back.
    """

    fits: Callable[[Any], bool]
    written: Callable[[Any], Any] = lambda value: value
    restored: Callable[[Any], Any] = lambda value: value


NUMBER = Value(lambda value: type(value) is float, float)
NUMBER_OR_NONE = Value(
    lambda value: value is None or type(value) is float,
    lambda value: None if value is None else float(value),
)
COUNT = Value(lambda value: type(value) is int and 1 <= value < 2**31, int)


def _one_of(words: tuple[str, ...]) -> Value:
    return Value(lambda value: type(value) is str and value in words)


def _integers(dtype: type[np.integer[Any]], most: int) -> Value:
    """Return a short array of whole numbers, from zero to ``most``."""

    def fits(value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) <= LONGEST
            and all(type(number) is int and 0 <= number <= most for number in value)
        )

    return Value(fits, np.ndarray.tolist, lambda value: np.array(value, dtype=dtype))


@dataclass(frozen=True)
class SideKind:
    """One item side: its class, its arrays and its other values.

    Parameters
    ----------
    make
        The class.
    arrays
        Shape of each array of floats beside those that every side has, by names of
        lengths: those of the same name are equal. ``"items"`` is the number of items
        and ``"rank"`` the length of their vectors.
    values
        What else it has, beside the range of ratings.
    check
        Whether a side whose shapes fit may come from a fit. Code that is compiled
        without a look at bounds relies on it.
    """

    make: Any
    arrays: dict[str, tuple[str, ...]]
    values: dict[str, Value]
    check: Callable[[Any], bool]

    @property
    def all_arrays(self) -> dict[str, tuple[str, ...]]:
        """Shapes of all arrays."""
        return {"vectors": ("items", "rank"), "offsets": ("items",), **self.arrays}

    @property
    def all_values(self) -> dict[str, Value]:
        """All other values."""
        return {"low": NUMBER, "high": NUMBER, **self.values}

    def refuse_shapes(self, found: Arrays) -> None:
        """Refuse arrays of other shapes, or of lengths that do not go together."""
        lengths: dict[str, int] = {}
        for name, wanted in self.all_arrays.items():
            shape = found[name].shape
            told = len(shape) == len(wanted) and all(
                lengths.setdefault(key, length) == length
                for key, length in zip(wanted, shape, strict=True)
            )
            if not told:
                raise ModelFileError(
                    f"{FILE} has an array {name!r} of another shape than the side "
                    "needs."
                )
        if not lengths["items"]:
            raise ModelFileError(f"{FILE} has no item.")

    def is_usable(self, side: Any) -> bool:
        """Return whether users can compute with a side, whose shapes fit."""
        numbers = [getattr(side, name) for name in self.all_arrays]
        values = (getattr(side, name) for name in self.all_values)
        numbers += [value for value in values if not isinstance(value, str | None)]
        small = all(bool((np.abs(part) <= LARGEST).all()) for part in numbers)
        return bool(side.low < side.high) and small and self.check(side)


def _is_linear(side: LinearItems) -> bool:
    return bool(side.prior_count >= 0)


def _is_neighborhood(side: NeighborItems) -> bool:
    n_items = side.n_items
    # users make a matrix of so many neighbors
    few = side.n_neighbors <= max(n_items, MOST_NEIGHBORS)
    return few and side.vectors.shape[1] == n_items and bool(side.prior_count >= 0)


def _is_walk(side: WalkItems) -> bool:
    return side.row_norm is None or side.row_norm > 0


def _is_replay(side: ReplayedItems) -> bool:
    ranks = side.ranks
    # every direction of every step is there, and all of the last one's
    return bool(
        ranks.sum() == side.projections.shape[1]
        and (ranks[-1] if len(ranks) else 0) == side.vectors.shape[1]
        and len(ranks) <= len(side.step_sizes)
        and (side.radii > 0).all()
        and side.row_norm > 0
    )


KINDS: dict[str, SideKind] = {
    kind.make.__name__: kind
    for kind in (
        SideKind(
            LinearItems,
            {"penalties": ("rank",)},
            {
                "prior_level": NUMBER,
                "prior_count": NUMBER,
                "step": _one_of(LOCAL_STEPS),
            },
            _is_linear,
        ),
        SideKind(
            NeighborItems,
            {"covariance": ("items", "items")},
            {
                "variance": NUMBER,
                "n_neighbors": COUNT,
                "prior_level": NUMBER,
                "prior_count": NUMBER,
            },
            _is_neighborhood,
        ),
        SideKind(
            ReplayedItems,
            {
                "projections": ("items", "directions"),
                "shrinks": ("directions",),
                "step_sizes": ("steps",),
                "radii": ("steps",),
            },
            {
                "ranks": _integers(np.int64, LONGEST),
                "row_norm": NUMBER,
                "max_ratings": COUNT,
                "key": _integers(np.uint8, 255),
            },
            _is_replay,
        ),
        SideKind(
            WalkItems,
            {"keeps": ("rank",), "lengths": ("rank",), "strengths": ("rank",)},
            {
                "prior_level": NUMBER,
                "max_ratings": COUNT,
                "row_norm": NUMBER_OR_NONE,
            },
            _is_walk,
        ),
    )
}
