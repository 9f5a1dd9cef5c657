"""Plots of models: coefficients, and accuracy against epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit._validate import at_least, fraction
from tacit.plots._axes import ACCENT, MUTED, axes_for, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["coefficients", "privacy_utility"]

Floats = NDArray[np.float64]


def privacy_utility(
    epsilons: ArrayLike,
    scores: ArrayLike,
    baseline: float | None = None,
    *,
    ax: Axes | None = None,
    label: str | None = None,
    measure: str = "score",
    **line: Any,
) -> Axes:
    """Draw a score against epsilon: the mean over repeats, and their spread.

    Parameters
    ----------
    epsilons
        One for each row of ``scores``.
    scores
        A vector, or a matrix with one column per repeat.
    baseline
        Score without privacy, drawn as a line.
    ax
        Axes to draw on; None makes new ones.
    label
        Name in the legend.
    measure
        Label of the vertical axis.
    **line
        Passed to `matplotlib.axes.Axes.plot`.

    Notes
    -----
    The band is one standard deviation to each side. Scores on private rows are private
    too, and choosing an epsilon by such a plot costs budget: draw it on public rows, or
    on rows set aside for it.
    """
    # long: one check of the data and one artist of the figure after another
    x = np.asarray(epsilons, dtype=np.float64).ravel()
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or len(table) != len(x) or table.size == 0:
        raise ValueError(
            f"scores must have one row for each of the {len(x)} epsilons, got shape "
            f"{np.shape(scores)}."
        )
    if not np.all(x > 0):
        raise ValueError("epsilons must all be > 0.")
    order = np.argsort(x)
    x, table = x[order], table[order]
    mean, spread = table.mean(axis=1), table.std(axis=1, ddof=int(table.shape[1] > 1))
    ax = style(axes_for(ax))
    (drawn,) = ax.plot(
        x, mean, label=label or "private", **{"color": ACCENT, "marker": "o", **line}
    )
    if table.shape[1] > 1:
        ax.fill_between(
            x,
            mean - spread,
            mean + spread,
            color=drawn.get_color(),
            alpha=0.2,
            linewidth=0,
        )
    if baseline is not None:
        ax.axhline(baseline, color=MUTED, linestyle="--", label="without privacy")
    ax.set(xscale="log", xlabel="epsilon", ylabel=measure, title="Privacy and accuracy")
    ax.legend(frameon=False)
    return ax


def coefficients(
    model: Any,
    intervals: Any = None,
    top: int = 30,
    *,
    output: int = 0,
    feature_names: ArrayLike | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw the largest coefficients, with bars for the noise where it is known.

    Parameters
    ----------
    model
        A fitted linear model.
    intervals
        Object with ``low`` and ``high``, shaped as the coefficients. None draws bars
        from ``model.noise_.coef``, the standard deviations of the noise, if there are
        any.
    top
        Number of coefficients, largest first.
    output
        Row of ``coef_``; with more than two classes, each class has one.
    feature_names
        Names of the columns; None takes ``model.feature_names_in_``, or numbers them.
    level
        Probability that bars from ``noise_`` cover.
    ax
        Axes to draw on; None makes new ones.

    Notes
    -----
    The size of a coefficient depends on the unit of its column: compare only columns of
    the same scale. Plotting is post-processing and costs no budget.
    """
    at_least(1, top=top)
    fraction(level=level, closed=False)
    weights = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    if not 0 <= output < len(weights):
        raise ValueError(f"output must lie in 0..{len(weights) - 1}, got {output!r}.")
    row = weights[output]
    chosen = np.argsort(-np.abs(row), kind="stable")[:top][::-1]
    ax = axes_for(ax, figsize=(6.4, 1.2 + 0.24 * len(chosen)))
    style(ax, grid="x")
    position = np.arange(len(chosen))
    low, high, covers = _bars(model, intervals, weights.shape, level)
    ax.axvline(0.0, color=MUTED, linewidth=0.8)
    if low is not None and high is not None:
        ax.hlines(
            position, low[output, chosen], high[output, chosen], color=ACCENT, alpha=0.5
        )
    ax.plot(row[chosen], position, marker="o", linestyle="none", color=ACCENT)
    ax.set_yticks(position, _names(model, feature_names, chosen, len(row)))
    more = f", largest {len(chosen)} of {len(row)}" if len(chosen) < len(row) else ""
    ax.set(xlabel=f"coefficient{covers}", title=f"Coefficients{more}")
    return ax


def _bars(
    model: Any, intervals: Any, shape: tuple[int, ...], level: float
) -> tuple[Floats | None, Floats | None, str]:
    """Return the ends of the bars, shaped as the coefficients, and a description."""
    if intervals is not None:
        ends = (np.asarray(end, dtype=np.float64) for end in _ends(intervals))
        low, high = (np.atleast_2d(end) for end in ends)
        if low.shape != shape or high.shape != shape:
            raise ValueError(
                f"intervals must have the shape {shape} of the coefficients, got "
                f"{low.shape} and {high.shape}."
            )
        return low, high, " and its interval"
    noise: Any = getattr(model, "noise_", None)
    if getattr(noise, "coef", None) is None:
        return None, None, " (noise not known for this solver)"
    wide = noise.stds(level) * np.asarray(noise.coef, dtype=np.float64)
    center = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    wide = np.broadcast_to(wide, shape)
    return center - wide, center + wide, f" and {level:.0%} of the noise"


def _ends(intervals: Any) -> tuple[Any, Any]:
    if not (hasattr(intervals, "low") and hasattr(intervals, "high")):
        raise TypeError(
            "intervals must have the fields low and high, got "
            f"{type(intervals).__name__}."
        )
    return intervals.low, intervals.high


def _names(
    model: Any, feature_names: ArrayLike | None, chosen: NDArray[np.intp], n: int
) -> list[str]:
    given = feature_names
    if given is None:
        given = getattr(model, "feature_names_in_", None)
    if given is None:
        return [f"column {j}" for j in chosen]
    names = [str(name) for name in np.asarray(given, dtype=object)]
    if len(names) != n:
        raise ValueError(f"feature_names must name {n} columns, got {len(names)}.")
    # a dollar sign would start a formula
    return [names[j].replace("$", r"\$") for j in chosen]
