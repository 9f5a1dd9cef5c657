"""Shapes of an additive model for a page of limited size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.reports._format import number, percent, truncated

__all__ = ["AdditiveShapes", "ShapePanel"]

Array = NDArray[np.float64]

# Columns drawn of each output, with one output and with several, and bars of
# importances; outputs drawn
MOST_DRAWN, FEWER_DRAWN, MOST_BARS, MOST_OUTPUTS = 24, 8, 40, 6
# Categories drawn, and rows of the table of a column of numbers
MOST_CATEGORIES, MOST_ROWS = 20, 16
# Charts leave out bins with a smaller fraction of the rows
FEWEST = 1e-3
# Standard deviations to each side of a band, and the probability that it states
WIDE, LEVEL = 1.96, 0.95

WRONG = "facts['shapes'] must be what shape_facts of an additive model returned."


@dataclass(frozen=True, eq=False)
class ShapePanel:
    """The shape of one column for one output.

    ``low`` and ``high`` are the ends of the band, or None. ``edges`` are None for
    categories, which ``labels`` lists.
    """

    name: str
    edges: Array | None
    labels: list[str]
    values: Array
    low: Array | None
    high: Array | None
    mass: Array
    edited: bool

    @property
    def ends(self) -> list[float]:
        """Lowest and highest value that is drawn, bands included, where rows are."""
        shown = self.mass >= min(FEWEST, self.mass.max())
        drawn = [
            each for each in (self.values, self.low, self.high) if each is not None
        ]
        both = np.concatenate([each[shown] for each in drawn])
        return [float(both.min()), float(both.max())]

    @property
    def missing(self) -> str:
        """What missing cells add, with their band, in words."""
        words = f"{percent(float(self.mass[-1]))} of the rows, add "
        words += number(float(self.values[-1]), 3)
        if self.low is None or self.high is None:
            return words
        low, high = float(self.low[-1]), float(self.high[-1])
        return f"{words} ({number(low, 3)} to {number(high, 3)})"

    @property
    def categories(self) -> list[dict[str, Any]]:
        """Categories with the most rows, as rows of a chart."""
        order = np.argsort(-self.mass, kind="stable")[:MOST_CATEGORIES]
        order = order[self.mass[order] >= min(FEWEST, self.mass.max())]
        return [self._row(int(k)) for k in np.sort(order)]

    def _row(self, k: int) -> dict[str, Any]:
        return {
            "name": self.labels[k if self.edges is None else -1],
            "value": float(self.values[k]),
            "low": None if self.low is None else float(self.low[k]),
            "high": None if self.high is None else float(self.high[k]),
            "mass": float(self.mass[k]),
        }

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows of the table: categories, or runs of bins of numbers."""
        if self.edges is None:
            return [self._row(k) for k in range(len(self.values))]
        last = len(self.values) - 1
        size = -(-last // MOST_ROWS)
        found = []
        for start in range(0, last, size):
            end = min(start + size, last)
            own = slice(start, end)
            weights = self.mass[own] + 1e-12

            def mean(
                values: Array | None, own: slice = own, by: Array = weights
            ) -> Any:
                return (
                    None
                    if values is None
                    else float(np.average(values[own], weights=by))
                )

            first, until = (
                number(float(self.edges[start])),
                number(float(self.edges[end])),
            )
            found.append(
                {
                    "name": f"{first} to {until}",
                    "value": mean(self.values),
                    "low": mean(self.low),
                    "high": mean(self.high),
                    "mass": float(self.mass[own].sum()),
                }
            )
        return [*found, self._row(last)]


@dataclass(frozen=True, eq=False)
class AdditiveShapes:
    """Shapes of all columns, and how much each column and pair adds.

    ``outputs`` are the name, intercept and panels of each margin; ``bars`` the rows of
    the chart of importances.
    """

    outputs: list[tuple[str, float, list[ShapePanel]]]
    bars: list[dict[str, Any]]
    n_columns: int
    n_pairs: int
    n_outputs: int
    banded: bool

    @classmethod
    def of(cls, facts: Any, classes: Sequence[Any] | None) -> AdditiveShapes:
        """Return what ``shape_facts`` returned, checked."""
        try:
            return cls._of(facts, classes)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise ValueError(WRONG) from None

    @classmethod
    def _of(cls, facts: Mapping[str, Any], classes: Any) -> AdditiveShapes:
        intercept = _floats(facts["intercept"], 1)
        names = _output_names(len(intercept), classes)
        given = list(facts["importances"])
        sizes = _floats([value for _, value in given], 1).tolist()
        bars: list[dict[str, Any]] = [
            {"name": truncated(name, 60), "value": size}
            for (name, _), size in zip(given, sizes, strict=True)
        ]
        order = {bar["name"]: k for k, bar in enumerate(bars)}
        shapes = sorted(
            facts["shapes"],
            key=lambda each: order.get(truncated(each["column"], 60), len(order)),
        )
        panels = [_panels(each, len(intercept)) for each in shapes]
        drawn = MOST_DRAWN if len(intercept) == 1 else FEWER_DRAWN
        outputs = [
            (name, float(intercept[k]), [each[k] for each in panels[:drawn]])
            for k, name in enumerate(names[:MOST_OUTPUTS])
        ]
        banded = any(each[0].low is not None for each in panels)
        pairs = int(facts["pairs"])
        return cls(outputs, bars[:MOST_BARS], len(panels), pairs, len(names), banded)


def _floats(values: Any, ndim: int) -> Array:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != ndim or not np.isfinite(found).all() or not found.size:
        raise ValueError(WRONG)
    return found


def _panels(facts: Mapping[str, Any], n_outputs: int) -> list[ShapePanel]:
    """Return the panels of one column, one for each output."""
    values, mass = _floats(facts["values"], 2), _floats(facts["mass"], 1)
    edges = None if facts["edges"] is None else _floats(facts["edges"], 1)
    labels = [truncated(label, 40) for label in facts["labels"]]
    std = None if facts["std"] is None else _floats(facts["std"], 2)
    fits = (
        values.shape == (len(mass), n_outputs)
        and (std is None or std.shape == values.shape)
        and (edges is None or (len(edges) == len(mass) and (np.diff(edges) > 0).all()))
        and len(labels) == (len(mass) if edges is None else 1)
        and (mass >= 0).all()
    )
    if not fits:
        raise ValueError(WRONG)
    return [
        ShapePanel(
            truncated(facts["column"], 60),
            edges,
            labels,
            values[:, k],
            None if std is None else values[:, k] - WIDE * std[:, k],
            None if std is None else values[:, k] + WIDE * std[:, k],
            mass,
            bool(facts["edited"]),
        )
        for k in range(n_outputs)
    ]


def _output_names(n_outputs: int, classes: Sequence[Any] | None) -> list[str]:
    labels = [truncated(label, 60) for label in classes or ()]
    if n_outputs == 1:
        return ["prediction" if len(labels) != 2 else f"log-odds of {labels[1]}"]
    return (
        labels
        if len(labels) == n_outputs
        else [f"output {k}" for k in range(n_outputs)]
    )
