"""Tables of a fitted additive model: explanations, importances and scorecards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.additive._shapes import PairShape, Shape, intervals

__all__ = [
    "Contribution",
    "Explanation",
    "ScoringTable",
    "importances",
    "one_row",
    "scoring_table",
    "shape_facts",
    "shape_table",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Contribution:
    """What a column or a pair adds to the margin of one row, and the bin it is in."""

    name: str
    cell: str
    value: float


@dataclass(frozen=True)
class Explanation:
    """The margin of one row as a sum: prints as a table, the largest part first.

    Parameters
    ----------
    margin
        Sum of the intercept and of all parts.
    intercept
        Margin of a row whose shapes add nothing.
    parts
        What each column and pair adds, from the largest to the smallest.
    of
        What the margin is of, in words.
    """

    margin: float
    intercept: float
    parts: tuple[Contribution, ...]
    of: str

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return all rows of the table: names, cells and numbers."""
        return [
            *((each.name, each.cell, f"{each.value:+.4g}") for each in self.parts),
            ("intercept", "", f"{self.intercept:+.4g}"),
            ("sum", self.of, f"{self.margin:+.4g}"),
        ]

    def __str__(self) -> str:
        rows = [("column", "cell", "adds"), *self._rows()]
        first, second, third = (max(len(row[k]) for row in rows) for k in range(3))
        return "\n".join(
            f"{a:<{first}}  {b:<{second}}  {c:>{third}}" for a, b, c in rows
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the table for notebooks."""
        body = "".join(
            f"<tr><td>{escape(a)}</td><td>{escape(b)}</td><td>{escape(c)}</td></tr>"
            for a, b, c in self._rows()
        )
        head = "<tr><th>column</th><th>cell</th><th>adds</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class ScoringTable:
    """Scorecard: integer points for each bin, to be added up with a pencil.

    Parameters
    ----------
    base
        Points of every row.
    rows
        Column, cells and points.
    points
        Points that double the odds.
    off
        Most points by which a sum differs from the margin of the model.
    of
        What the odds are of, in words.
    """

    base: int
    rows: tuple[tuple[Any, str, int], ...]
    points: float
    off: float
    of: str

    @property
    def scale(self) -> str:
        """How points become odds, and how far they are from the model."""
        return (
            f"{self.points:g} points double the odds of {self.of}; 0 points are even "
            f"odds. A sum is within {self.off:.1f} points of the model."
        )

    def __str__(self) -> str:
        table = [("column", "cell", "points"), ("base", "", str(self.base))]
        table += [(str(name), cell, str(points)) for name, cell, points in self.rows]
        first, second, third = (max(len(row[k]) for row in table) for k in range(3))
        lines = [f"{a:<{first}}  {b:<{second}}  {c:>{third}}" for a, b, c in table]
        return "\n".join([*lines, self.scale])

    __repr__ = __str__


def scoring_table(
    shapes: Sequence[Shape], intercept: float, points: float, cells: int, of: str
) -> ScoringTable:
    """Return integer points; those of each column start at zero."""
    unit = points / log(2)
    base, rows, off = intercept * unit, [], 0.5
    for shape in shapes:
        scaled = shape.values[:, 0] * unit
        groups = _groups(shape, scaled, cells)
        means = [_mean(scaled, shape.mass, group) for group in groups]
        base += min(means)
        own = [round(mean - min(means)) for mean in means]
        off += max(
            float(np.abs(scaled[group] - min(means) - value).max())
            for group, value in zip(groups, own, strict=True)
        )
        rows += [(shape.column, *each) for each in _named(shape, groups, own)]
    return ScoringTable(round(base), tuple(rows), float(points), off, of)


def _groups(shape: Shape, values: Array, cells: int) -> list[slice]:
    """Return bins that get the same points: neighbors, a category or missing cells."""
    if shape.edges is None:
        return [slice(k, k + 1) for k in range(shape.n_bins)]
    last = shape.n_bins - 1
    ends = _segments(values[:last], np.maximum(shape.mass[:last], 1e-12), cells)
    return [*(slice(*pair) for pair in pairwise(ends)), slice(last, last + 1)]


def _segments(values: Array, weights: Array, most: int) -> list[int]:
    """Return ends of segments that are as constant as can be, in weighted squares."""
    n = len(values)
    sums = [np.append(0.0, np.cumsum(weights * values**power)) for power in (0, 1, 2)]
    # error of the segment from j to k, and the least error of the first k values
    mass, first, second = (each[None, :] - each[:, None] for each in sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.maximum(second - first**2 / mass, 0.0)
    error[np.tril_indices(n + 1)] = np.inf
    best, back = error[0].copy(), []
    for _ in range(min(most, n) - 1):
        total = best[:, None] + error
        back.append(total.argmin(axis=0))
        best = total.min(axis=0)
    ends = [n]
    for came in reversed(back):
        ends.append(int(came[ends[-1]]))
    return [0, *reversed(ends)]


def _mean(values: Array, mass: Array, group: slice) -> float:
    return float(np.average(values[group], weights=mass[group] + 1e-12))


def _named(
    shape: Shape, groups: Sequence[slice], points: Sequence[int]
) -> list[tuple[str, int]]:
    """Return groups in words and their points, with equal neighbors as one."""
    if shape.edges is None:
        return list(zip(shape.bin_labels, points, strict=True))
    last = len(groups) - 1
    kept = [k for k in range(last) if k == 0 or points[k] != points[k - 1]]
    ends = [*(groups[k].start for k in kept), groups[last].start]
    named = zip(intervals(shape.edges[ends]), (points[k] for k in kept), strict=True)
    return [*named, ("(missing)", points[last])]


def importances(
    shapes: Sequence[Shape], pairs: Sequence[PairShape], positions: Sequence[Any]
) -> dict[Any, float]:
    """Return the mean absolute contribution of each column and pair, largest first.

    Over the released masses of bins; those of a pair as if its columns were
    independent. Classes are averaged.
    """
    masses = [each.mass / max(float(each.mass.sum()), 1e-300) for each in shapes]
    found = {
        shape.column: float(mass @ np.abs(shape.values).mean(axis=1))
        for shape, mass in zip(shapes, masses, strict=True)
    }
    for pair, (j, k) in zip(pairs, positions, strict=True):
        sizes = np.abs(pair.values).mean(axis=-1)
        found[pair.columns] = float(masses[j] @ sizes @ masses[k])
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def shape_table(shape: Shape) -> dict[str, NDArray[Any]]:
    """Return the bins of a column as arrays of equal length."""
    none = np.full(shape.n_bins, np.nan)
    low, high = none.copy(), none.copy()
    if shape.edges is not None:
        low[:-1], high[:-1] = shape.edges[:-1], shape.edges[1:]
    stds = np.full(shape.values.shape, np.nan) if shape.std is None else shape.std
    several = shape.values.shape[1] > 1
    return {
        "low": low,
        "high": high,
        "label": np.array(shape.bin_labels, dtype=object),
        "value": shape.values.copy() if several else shape.values[:, 0].copy(),
        "std": stds.copy() if several else stds[:, 0].copy(),
        "mass": shape.mass.copy(),
    }


def shape_facts(
    shapes: Sequence[Shape],
    importances: Mapping[Any, float],
    intercept: Any,
    edited: Sequence[Any],
) -> dict[str, Any]:
    """Return shapes and importances as plain data, which is all released."""

    def named(column: Any) -> str:
        return (
            " and ".join(map(str, column)) if isinstance(column, tuple) else str(column)
        )

    return {
        "intercept": np.ravel(intercept).tolist(),
        "importances": [[named(name), size] for name, size in importances.items()],
        "pairs": len(importances) - len(shapes),
        "shapes": [
            {
                "column": str(shape.column),
                "edges": None if shape.edges is None else shape.edges.tolist(),
                "labels": [str(label) for label in shape.labels],
                "values": shape.values.tolist(),
                "std": None if shape.std is None else shape.std.tolist(),
                "mass": shape.mass.tolist(),
                "edited": shape.column in edited,
            }
            for shape in shapes
        ],
    }


def one_row(row: Any, columns: Sequence[Any]) -> Any:
    """Return cells of one row, or a data frame of one, as a table of these columns."""
    table = row
    if hasattr(row, "columns"):
        table = row[list(columns)] if columns[0] in row.columns else row
        table = np.asarray(table, dtype=object)
    elif hasattr(row, "index") and hasattr(row, "loc"):  # a row of a data frame
        table = [[row.loc[name] for name in columns]]
    cells = np.asarray(table, dtype=object)
    cells = cells[None] if cells.ndim == 1 else cells
    if cells.ndim != 2 or len(cells) != 1:
        raise ValueError(f"row must be one row, got shape {cells.shape}.")
    if cells.shape[1] != len(columns):
        raise ValueError(
            f"row must have a cell for each of {len(columns)} columns, got "
            f"{cells.shape[1]}."
        )
    return cells
