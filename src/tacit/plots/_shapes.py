"""Plots of the shapes of additive models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit._validate import fraction
from tacit.plots._axes import ACCENT, MUTED, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_shapes"]

Floats = NDArray[np.float64]

# Columns of small multiples, and the fraction of the height that shows the rows
ACROSS, STRIP = 3, 0.14
# Categories with a smaller fraction of the rows are left out
FEWEST = 1e-3
# Up to so many labels of categories are slanted; more are small and upright, and beyond
# the second only every k-th is drawn
SLANTED, UPRIGHT = 9, 30


def plot_shapes(
    model: Any,
    columns: Iterable[Any] | None = None,
    *,
    output: int = 0,
    level: float = 0.95,
    axes: Any = None,
) -> NDArray[Any]:
    """Draw the shapes of an additive model, with bands for the noise where it is known.

    The gray strip below each line shows where the rows are, by the released counts.

    Parameters
    ----------
    model
        A fitted additive model.
    columns
        Names or positions of columns; None for all, the most important first.
    output
        Class whose margin is drawn, where there are more than two.
    level
        Probability that a band contains the value without noise.
    axes
        Axes to draw on, one a column; None makes a figure of small multiples.

    Returns
    -------
    ndarray of Axes
        One a column, with the same vertical scale.

    Notes
    -----
    Plotting is post-processing and costs no budget.
    """
    from scipy.stats import norm  # noqa: PLC0415 - a quarter of a second

    fraction(level=level, closed=False)
    shapes = _chosen(model, columns)
    n_outputs = shapes[0].values.shape[1]
    if not 0 <= output < n_outputs:
        raise ValueError(f"output must lie in 0..{n_outputs - 1}, got {output!r}.")
    found = _axes(axes, len(shapes))
    wide = float(norm.ppf((1 + level) / 2))
    bands = [_Band.of(shape, output, wide) for shape in shapes]
    ends = [0.0, *(end for band in bands for end in band.ends)]
    low, high = min(ends), max(ends)
    height = max(high - low, 1e-9)
    floor = low - STRIP / (1 - STRIP) * height
    for ax, shape, band in zip(found, shapes, bands, strict=True):
        style(ax, grid="y")
        ax.axhline(0.0, color=MUTED, linewidth=0.8)
        ax.set(ylim=(floor, high + 0.03 * height), title=_literal(shape.column))
        if shape.edges is None:
            _draw_categories(ax, shape, band)
        else:
            _draw_numbers(ax, shape, band, floor, 0.9 * (low - floor))
    found[0].set_ylabel("adds")
    return found


class _Band:
    """Values of one output, the ends of their band, and which bins have rows."""

    def __init__(self, values: Floats, half: Floats | None, mass: Floats) -> None:
        self.values, self.half = values, half
        self.shown = mass >= min(FEWEST, mass.max())

    @classmethod
    def of(cls, shape: Any, output: int, wide: float) -> _Band:
        half = None if shape.std is None else wide * shape.std[:, output]
        return cls(shape.values[:, output], half, shape.mass)

    @property
    def ends(self) -> list[float]:
        half = np.zeros_like(self.values) if self.half is None else self.half
        low, high = self.values - half, self.values + half
        return [float(low[self.shown].min()), float(high[self.shown].max())]


def _chosen(model: Any, columns: Iterable[Any] | None) -> list[Any]:
    """Return the shapes of the columns, in the order to draw them."""
    shapes = {shape.column: shape for shape in model.shapes_}
    if columns is None:
        return [shapes[name] for name in model.importances_ if name in shapes]
    names = list(columns)
    unknown = [name for name in names if name not in shapes]
    if unknown or not names:
        raise ValueError(
            "columns must be names or positions of columns of the model, got "
            f"{names!r}."
        )
    return [shapes[name] for name in names]


def _axes(axes: Any, n: int) -> NDArray[Any]:
    """Return the given axes, or new ones of a figure of small multiples."""
    if axes is not None:
        found = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        if len(found) != n:
            raise ValueError(f"axes must be {n}, one a column, got {len(found)}.")
        return found
    import matplotlib.pyplot as plt  # noqa: PLC0415 - half a second, and an extra

    across = min(ACROSS, n)
    down = -(-n // across)
    size = (3.4 * across, 2.6 * down)
    _, made = plt.subplots(
        down, across, figsize=size, layout="constrained", sharey=True, squeeze=False
    )
    for left in made.ravel()[n:]:
        left.set_visible(False)
    found = made.ravel()[:n]
    return np.asarray(found, dtype=object)


def _draw_numbers(
    ax: Axes, shape: Any, band: _Band, floor: float, height: float
) -> None:
    values = band.values[:-1]
    if band.half is not None:
        half = band.half[:-1]
        # the strip stays free
        low = np.maximum(values - half, floor + height)
        ax.stairs(
            values + half,
            shape.edges,
            baseline=low,
            fill=True,
            color=ACCENT,
            alpha=0.2,
            linewidth=0,
        )
    density = np.sqrt(shape.mass[:-1] / np.diff(shape.edges))
    # a narrow bin with many rows would hide the others
    most = max(float(np.quantile(density, 0.9)), 1e-300)
    rows = floor + height * np.minimum(density / most, 1.0)
    ax.stairs(rows, shape.edges, baseline=floor, fill=True, color=MUTED, alpha=0.45)
    ax.stairs(values, shape.edges, baseline=None, color=ACCENT, linewidth=1.6)
    ax.set_xlim(shape.edges[0], shape.edges[-1])
    if band.shown[-1]:
        off = "" if band.half is None else f" \N{PLUS-MINUS SIGN} {band.half[-1]:.2g}"
        ax.set_xlabel(f"missing cells: {band.values[-1]:+.2g}{off}")


def _draw_categories(ax: Axes, shape: Any, band: _Band) -> None:
    shown = np.flatnonzero(band.shown)
    position = np.arange(len(shown))
    values = band.values[shown]
    if band.half is not None:
        half = band.half[shown]
        ax.vlines(
            position, values - half, values + half, color=ACCENT, alpha=0.4, linewidth=5
        )
    ax.plot(position, values, marker="o", linestyle="none", color=ACCENT)
    names = [_literal(shape.labels[k])[:16] for k in shown]
    if len(names) <= SLANTED:
        ax.set_xticks(position, names, rotation=30, ha="right")
    else:
        every = -(-len(names) // UPRIGHT)
        ax.set_xticks(position[::every], names[::every], rotation=90, fontsize=6)
    ax.set_xlim(-0.6, len(shown) - 0.4)


def _literal(name: Any) -> str:
    # a dollar sign would start a formula
    return str(name).replace("$", r"\$")
