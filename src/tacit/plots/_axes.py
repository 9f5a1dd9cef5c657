"""Axes and colors of all plots."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ACCENT", "FORBIDDEN", "MUTED", "axes_for", "style", "up"]

# readable in print and to color-blind eyes, on white
ACCENT, MUTED, FORBIDDEN = "#1f5fa8", "#6b7480", "#b3261e"


def axes_for(ax: Axes | None, **size: Any) -> Axes:
    """Return ``ax``, or new axes of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # noqa: PLC0415 - half a second, and an extra

    _, made = plt.subplots(layout="constrained", **size)
    return cast("Axes", made)


def style(ax: Axes, *, grid: str = "both") -> Axes:
    """Hide the frame at the top and right, and draw a faint grid behind the marks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, color="0.9", linewidth=0.8)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    return ax


def up(value: float, digits: int = 4) -> str:
    """Return an upper limit with few digits, rounded up."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal(repr(float(value)))):g}"
