"""Shapes of additive models: values, noise, monotone columns and edits by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from tacit.additive._bins import Bins
from tacit.additive._columns import Column
from tacit.preprocessing._parameters import shown

__all__ = [
    "Edit",
    "PairShape",
    "Shape",
    "edited_values",
    "intervals",
    "monotone_values",
    "shape_of_column",
    "with_monotone",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shape:
    """Shape function of one column: what each bin adds to the prediction.

    Parameters
    ----------
    column
        Name or position of the column.
    edges
        Lower ends of the bins of numbers, and the upper end of the last; None for
        categories.
    labels
        Categories, ``"(other)"`` and ``"(missing)"``; of numbers ``"(missing)"`` alone.
    values
        What each bin adds, with the bin of missing cells last. Classes have a column
        each where there are more than two.
    mass
        Fraction of the rows in each bin, with noise.
    std
        Standard deviation that noise gives to each value, of their shape; None where
        it is not known, and after an edit. Of a monotone column, that before values
        were put in order.
    """

    column: Any
    edges: Array | None
    labels: tuple[Any, ...]
    values: Array
    mass: Array
    std: Array | None = None

    @property
    def n_bins(self) -> int:
        """Number of bins, that of missing cells included."""
        return len(self.values)

    @property
    def middles(self) -> Array:
        """Midpoints of the bins of numbers."""
        if self.edges is None:
            raise ValueError(
                f"column {self.column!r} has categories, which have no midpoints; "
                f"give an array of {self.n_bins} values."
            )
        middles: Array = (self.edges[:-1] + self.edges[1:]) / 2
        return middles

    @property
    def bin_labels(self) -> tuple[str, ...]:
        """Each bin in words: an interval, a category or missing."""
        if self.edges is None:
            return tuple(map(str, self.labels))
        return (*intervals(self.edges), "(missing)")


@dataclass(frozen=True, eq=False)
class PairShape:
    """What each pair of bins of two columns adds to the prediction.

    Parameters
    ----------
    columns
        Names or positions of the columns.
    values
        An axis for the bins of each column, and one for classes.
    """

    columns: tuple[Any, Any]
    values: Array


class Edit(NamedTuple):
    """A shape that was set by hand: its column, and its values before and after."""

    column: Any
    before: Array
    after: Array


def intervals(edges: Array) -> list[str]:
    """Return the intervals between edges in words, with as few digits as differ."""
    for digits in range(4, 17):
        ends = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(ends)) == len(ends):
            break
    closing = [")"] * (len(ends) - 2) + ["]"]
    spans = zip(ends[:-1], ends[1:], closing, strict=True)
    return [f"[{low}, {high}{end}" for low, high, end in spans]


def shape_of_column(bins: Bins, values: Array, std: Array | None = None) -> Shape:
    """Return the shape function of a column, given what each of its bins adds."""
    column = bins.column
    if column.is_numeric:
        edges = np.array([column.edge(int(cell)) for cell in bins.starts])
        edges = np.append(edges, column.high)
        return Shape(column.name, edges, ("(missing)",), values, bins.mass, std)
    labels = (*(column.categories or ()), "(other)", "(missing)")
    return Shape(column.name, None, labels, values, bins.mass, std)


def with_monotone(
    monotone: Any, columns: Sequence[Column], interactions: Any, n_outputs: int
) -> tuple[Column, ...]:
    """Return the columns with the directions that ``monotone`` gives, checked."""
    if monotone is None:
        return tuple(columns)
    if not isinstance(monotone, Mapping):
        raise ValueError(
            "monotone must map columns to 1 (rising) or -1 (falling), got "
            f"{type(monotone).__name__}; give a dictionary."
        )
    names = {column.name: k for k, column in enumerate(columns)}
    found = list(columns)
    for name, direction in monotone.items():
        if name not in names:
            raise ValueError(f"monotone names the column {name!r}, which X lacks.")
        is_number = isinstance(direction, Real) and not isinstance(direction, bool)
        if not is_number or direction not in (1, -1):
            raise ValueError(
                f"monotone of column {name!r} must be 1 (rising) or -1 (falling), got "
                f"{shown(direction)}."
            )
        k = names[name]
        if not columns[k].is_numeric:
            raise ValueError(
                f"monotone takes columns of numbers, and {name!r} has categories."
            )
        found[k] = replace(columns[k], monotone=int(direction))
    if monotone and n_outputs > 1:
        raise ValueError("monotone needs two classes: with more, no margin is one.")
    paired = interactions if isinstance(interactions, tuple) else ()
    if monotone and (
        (interactions and not paired)
        or any(found[k].monotone for pair in paired for k in pair)
    ):
        raise ValueError(
            "a pair could break the order of a monotone column; give interactions as a "
            "list of pairs of other columns, or 0."
        )
    return tuple(found)


def monotone_values(bins: Bins, values: Array) -> Array:
    """Return the nearest values, by mass, in the order that the column has."""
    direction = bins.column.monotone
    if not direction:
        return values
    # without a mass, a bin would not count at all
    weights = np.maximum(bins.mass[:-1], 1e-12)
    ordered = isotonic_regression(
        values[:-1, 0], sample_weight=weights, increasing=direction > 0
    )
    return np.append(ordered, values[-1, 0])[:, None]


def edited_values(shape: Shape, values: Any) -> Array:
    """Return what ``set_shape`` is given as values of all bins, checked."""
    n_bins, n_outputs = shape.values.shape
    if callable(values):
        given = np.asarray(values(shape.middles), dtype=np.float64)
        if given.shape not in ((n_bins - 1,), (n_bins - 1, n_outputs)):
            raise ValueError(
                f"values must return one number for each of {n_bins - 1} midpoints, "
                f"got shape {given.shape}."
            )
        given = given.reshape(n_bins - 1, -1) + np.zeros((1, n_outputs))
        given = np.concatenate([given, shape.values[-1:]])  # missing cells stay
    else:
        given = np.asarray(values, dtype=np.float64)
        if given.shape == (n_bins,) and n_outputs == 1:
            given = given[:, None]
        if given.shape != (n_bins, n_outputs):
            one = f"({n_bins},)" if n_outputs == 1 else f"({n_bins}, {n_outputs})"
            raise ValueError(
                f"values must have one entry for each bin of column {shape.column!r}, "
                f"shape {one}, got {given.shape}; shape_table lists the bins."
            )
    if not np.isfinite(given).all():
        raise ValueError("values must be finite.")
    return given.copy()
