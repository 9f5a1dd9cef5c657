"""Charts of the shapes of an additive model, as small multiples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tacit.reports._charts import (
    BOTH,
    NARROW,
    Chart,
    axis,
    chart,
    coefficient_chart,
    names_axis,
)
from tacit.reports._shapes import AdditiveShapes, ShapePanel

__all__ = ["shape_charts"]

Points = Sequence[Mapping[str, Any]]

HEIGHT = 150  # of the frame of one shape, in pixels
STRIP = 0.14  # part of the frame that shows where the rows are


def shape_charts(shapes: AdditiveShapes | None) -> dict[str, Any]:
    """Return the chart of importances and one of each shape, by their names."""
    if shapes is None:
        return {}
    found = {
        "importances": chart(
            "importances",
            "How much each column adds",
            "Bars are the mean absolute contribution of a column or of a pair.",
            partial(importance_chart, shapes.bars),
            BOTH,
        )
    }
    for output, (words, _, panels) in enumerate(shapes.outputs):
        ends = [0.0, *(end for panel in panels for end in panel.ends)]
        for position, panel in enumerate(panels):
            name = f"shape{output}-{position}"
            found[name] = chart(
                name,
                f"Shape of {panel.name}",
                f"What each value of the column adds to the {words}. The table below "
                "gives the figures.",
                partial(shape_chart, panel, (min(ends), max(ends))),
                (NARROW,),
            )
    return found


def importance_chart(rows: Points, width: int) -> Chart:
    """Chart of bars from zero, the longest on top."""
    most = max([1e-12, *(row["value"] for row in rows)])
    drawn = Chart(
        axis("mean absolute contribution", 0.0, 1.04 * most, 4 if width < 500 else 9),
        names_axis([row["name"] for row in rows], width),
        width,
        20 * len(rows),
    )
    for k, row in enumerate(rows):
        drawn.line([(0.0, k + 0.5), (row["value"], k + 0.5)], "accent", 10)
    return drawn


def shape_chart(panel: ShapePanel, ends: tuple[float, float], width: int) -> Chart:
    """Chart of one shape with its band, and below it where the rows are.

    All charts of an output have the same ``ends``, so that they can be compared.
    """
    if panel.edges is None:
        return coefficient_chart(panel.categories, width, "adds", ends)
    low, high = ends
    height = max(high - low, 1e-9)
    floor = low - STRIP / (1 - STRIP) * height
    drawn = Chart(
        axis("", panel.edges[0], panel.edges[-1], 5),
        axis("adds", floor, high + 0.03 * height, 5),
        width,
        HEIGHT,
    )
    steps = np.repeat(panel.edges, 2)[1:-1]

    def stairs(values: Any) -> list[tuple[float, float]]:
        kept = np.clip(np.repeat(values[:-1], 2), floor, high)
        return list(zip(steps.tolist(), kept.tolist(), strict=True))

    density = np.sqrt(panel.mass[:-1] / np.diff(panel.edges))
    # a narrow bin with many rows would hide the others
    most = max(float(np.quantile(density, 0.9)), 1e-300)
    rows = floor + 0.9 * (low - floor) * np.minimum(density / most, 1.0)
    base = [(float(panel.edges[-1]), floor), (float(panel.edges[0]), floor)]
    drawn.area([*stairs(np.append(rows, 0.0)), *base], "muted", 0.45)
    if panel.low is not None and panel.high is not None:
        drawn.area([*stairs(panel.high), *reversed(stairs(panel.low))], "accent", 0.22)
    drawn.line([(panel.edges[0], 0.0), (panel.edges[-1], 0.0)], "muted", 1)
    drawn.line(stairs(panel.values), "accent")
    return drawn
