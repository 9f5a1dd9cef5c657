"""Figures of groups, and the intervals they may lie in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.plots._axes import ACCENT, MUTED, axes_for, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.fairness._groups import Group

__all__ = ["draw_groups"]

Floats = NDArray[np.float64]


def draw_groups(
    notion: str,
    groups: tuple[Group, ...],
    values: Floats,
    *,
    intervals: tuple[tuple[str, Floats, Floats], ...] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw one line a group, with a bar for each named interval."""
    ax = style(axes_for(ax), grid="x")
    positions = np.arange(len(groups))[::-1]
    ax.axvline(0.0, color="0.6", linewidth=1)
    for (name, lower, upper), color, width in zip(
        intervals, (ACCENT, MUTED), (5, 2), strict=False
    ):
        ax.hlines(
            positions, lower, upper, color=color, linewidth=width, alpha=0.5, label=name
        )
    ax.plot(values, positions, "o", color=ACCENT, label="measured")
    ax.set_yticks(positions, [str(group) for group in groups])
    ax.set_xlabel(notion.replace("_", " "))
    if intervals:
        ax.legend(frameon=False)
    return ax
