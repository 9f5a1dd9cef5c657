"""Rows sorted into cells by label and sensitive features."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit._estimators import array_of
from tacit._validate import one_of

__all__ = [
    "LEAST_ROWS",
    "NOTIONS",
    "Cells",
    "Group",
    "Layout",
    "cells_of",
    "column",
    "distinct",
    "public_values",
]

NOTIONS = (
    "equalized_odds",
    "equal_opportunity",
    "accuracy_parity",
    "demographic_parity",
    "accuracy",
)
# Notions that look at each label of a group apart
BY_LABEL = ("equalized_odds", "equal_opportunity", "demographic_parity")
# Rows that every cell needs: fractions of fewer rows are too uncertain
LEAST_ROWS = 5


class Group(NamedTuple):
    """Rows that a figure is about.

    Parameters
    ----------
    label
        Label that these rows have, or that is predicted for demographic parity; None
        where the notion takes all labels together.
    sensitive
        Value of the sensitive feature, a tuple of values where there are several, or
        None for all rows.
    """

    label: Any
    sensitive: Any

    def __str__(self) -> str:
        parts = [] if self.label is None else [f"label {self.label}"]
        if self.sensitive is not None:
            several = isinstance(self.sensitive, tuple)
            values = self.sensitive if several else (self.sensitive,)
            parts.append("group " + ", ".join(map(str, values)))
        return ", ".join(parts) or "all rows"

    def to_dict(self) -> dict[str, Any]:
        """Return the group as plain data."""
        several = isinstance(self.sensitive, tuple)
        return {
            "label": self.label,
            "sensitive": list(self.sensitive) if several else self.sensitive,
        }


@dataclass(frozen=True)
class Layout:
    """The cells that a notion looks at, from labels and groups alone, in order.

    ``desirable`` labels count for equality of opportunity; for other notions all do.
    """

    notion: str
    labels: tuple[Any, ...]
    people: tuple[Any, ...]
    desirable: tuple[Any, ...]

    @classmethod
    def of(
        cls,
        notion: str,
        labels: tuple[Any, ...],
        people: tuple[Any, ...],
        desirable: Any,
    ) -> Layout:
        """Return the layout, or reject labels that the notion has no use for."""
        if notion == "demographic_parity" and len(labels) != 2:
            raise ValueError(
                "demographic_parity is for two labels; use equalized_odds for more, "
                "and rows of both labels."
            )
        return cls(notion, labels, people, _desirable(desirable, notion, labels))

    @property
    def alone(self) -> bool:
        """Whether the figure is the accuracy on all rows, compared with nothing."""
        return self.notion == "accuracy"

    @property
    def cells(self) -> tuple[Group, ...]:
        """What defines each cell."""
        if self.notion in BY_LABEL:
            return tuple(Group(y, s) for y in self.labels for s in self.people)
        if self.notion == "accuracy_parity":
            return tuple(Group(None, s) for s in self.people)
        return (Group(None, None),)

    def sort(self, y_true: Any, sensitive_features: Any) -> Cells:
        """Return the cell of each row, or reject what is in none."""
        label_codes = _codes("y_true", column("y_true", y_true), self.labels)
        group_codes = _codes(
            "sensitive_features", _sensitive(sensitive_features), self.people
        )
        if len(label_codes) != len(group_codes):
            raise ValueError(
                "y_true and sensitive_features must have as many rows as each other."
            )
        if self.notion in BY_LABEL:
            codes = label_codes * len(self.people) + group_codes
        elif self.notion == "accuracy_parity":
            codes = group_codes
        else:
            codes = np.zeros_like(group_codes)
        return Cells(self, codes)


@dataclass(frozen=True, eq=False)
class Cells:
    """The cell of each row in a layout."""

    layout: Layout
    codes: NDArray[np.intp]

    def counts(self, chosen: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the number of rows in each cell, of those that are chosen."""
        codes = self.codes if chosen is None else self.codes[chosen]
        return np.bincount(codes, minlength=len(self.layout.cells)).astype(np.int64)

    def means(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the mean of ``values`` over the rows of each cell."""
        sums = np.bincount(self.codes, values, minlength=len(self.layout.cells))
        return np.asarray(sums / self.counts(), dtype=np.float64)


def cells_of(
    y_true: Any, sensitive_features: Any, notion: str, desirable: Any = None
) -> Cells:
    """Return the cells of rows, of which each needs `LEAST_ROWS`."""
    one_of(NOTIONS, notion=notion)
    labels = _ordered("y_true", column("y_true", y_true))
    people = _ordered("sensitive_features", _sensitive(sensitive_features))
    layout = Layout.of(notion, labels, people, desirable)
    cells = layout.sort(y_true, sensitive_features)
    if cells.counts().min() < LEAST_ROWS:
        raise ValueError(
            f"Each group of sensitive_features must have at least {LEAST_ROWS} rows"
            f"{' of every label' if notion in BY_LABEL else ''}; merge small groups or "
            "leave them out."
        )
    return cells


def column(name: str, values: Any) -> NDArray[Any]:
    """Return one value a row, as they were given."""
    array = array_of(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(
            f"{name} must have one value for each row, and at least one row."
        )
    return array


def _sensitive(values: Any) -> NDArray[Any]:
    """Return the group of each row, as a tuple where there are several columns."""
    array = array_of(values)
    if array.ndim != 2 or array.shape[1] == 1:
        return column("sensitive_features", values)
    # column by column, so that strings beside numbers do not convert these
    parts = values.items() if hasattr(values, "items") else enumerate(array.T)
    columns = [array_of(part).tolist() for _, part in parts]
    joined = np.empty(len(array), dtype=object)
    joined[:] = list(zip(*columns, strict=True))
    return joined


def _ordered(name: str, values: NDArray[Any]) -> tuple[Any, ...]:
    """Return the values that occur, in order."""
    found = distinct(name, values.tolist())
    try:
        return tuple(sorted(found))
    except TypeError:  # strings beside numbers
        return tuple(sorted(found, key=lambda value: (str(type(value)), str(value))))


def distinct(name: str, values: Iterable[Any]) -> set[Any]:
    """Return the values that occur, after checks."""
    try:
        found = set(values)
    except TypeError:
        raise ValueError(
            f"{name} must contain strings or numbers, or tuples of them."
        ) from None
    if any(_missing(value) for value in found):
        raise ValueError(
            f"{name} must have no missing values; give them a value of their own or "
            "leave the rows out."
        )
    return found


def public_values(name: str, values: Any) -> tuple[Any, ...]:
    """Return public labels or groups in their order, after checks."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list, got {type(values).__name__}.")
    listed = tuple(values)
    if not listed or len(distinct(name, listed)) < len(listed):
        raise ValueError(f"{name} must name the public {name}, each of them once.")
    return listed


def _missing(value: Any) -> bool:
    parts = value if isinstance(value, tuple) else (value,)
    # a missing value of numpy is not equal to itself, and pandas cannot say
    return any(part is None or _unlike_itself(part) for part in parts)


def _unlike_itself(value: Any) -> bool:
    try:
        return bool(value != value)
    except TypeError:
        return True


def _codes(name: str, values: NDArray[Any], known: tuple[Any, ...]) -> NDArray[np.intp]:
    """Return the index of each row's value among the known ones."""
    positions = {value: position for position, value in enumerate(known)}
    listed: list[Hashable] = values.tolist()
    if not distinct(name, listed) <= set(positions):
        raise ValueError(
            f"{name} must have public values only: the labels of the model, or the "
            "values given as groups."
        )
    return np.array([positions[value] for value in listed], dtype=np.intp)


def _desirable(desirable: Any, notion: str, labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the labels that count."""
    if notion != "equal_opportunity":
        if desirable is not None:
            raise ValueError(
                f"desirable is for notion='equal_opportunity', got notion={notion!r}."
            )
        return labels
    if desirable is None:
        # of two numbers the larger is the usual one; strings have no such order
        if len(labels) != 2 or any(isinstance(label, str) for label in labels):
            raise ValueError(
                "desirable must name the labels that count, unless they are two "
                "numbers, of which the larger does."
            )
        return labels[-1:]
    several = isinstance(desirable, list | tuple | set | frozenset | np.ndarray)
    wanted = set(desirable) if several else {desirable}
    if not wanted or not wanted <= set(labels):
        raise ValueError("desirable must name labels of y_true.")
    return tuple(label for label in labels if label in wanted)
