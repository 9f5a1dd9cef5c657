"""The ROC curve of an attack, on axes that are made when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_roc", "roc"]

Floats = NDArray[np.float64]

# readable in print and to color-blind eyes, on white
LINE, FORBIDDEN = "#1f5fa8", "#b3261e"


def roc(
    scores_in: Sequence[float] | Floats, scores_out: Sequence[float] | Floats
) -> tuple[Floats, Floats]:
    """Return false and true positive rates from the strictest threshold to none."""
    present, absent = np.sort(scores_in), np.sort(scores_out)
    # each distinct score is a threshold, so that ties move both rates at once
    cuts = np.unique(np.concatenate([present, absent]))[::-1]
    false = 1 - np.searchsorted(absent, cuts, side="left") / len(absent)
    true = 1 - np.searchsorted(present, cuts, side="left") / len(present)
    return np.append(0.0, false), np.append(0.0, true)


def draw_roc(
    scores_in: Sequence[float] | Floats,
    scores_out: Sequence[float] | Floats,
    name: str,
    ax: Axes | None,
    *,
    promise: tuple[float, float] | None = None,
) -> Axes:
    """Draw the curve, and above it what the promise of epsilon and delta forbids."""
    if ax is None:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - half a second, and an extra

        _, ax = plt.subplots(layout="constrained")
    if promise is not None:
        epsilon, delta = promise
        rates = np.linspace(0, 1, 501)
        most = np.minimum(
            np.exp(epsilon) * rates + delta, 1 - np.exp(-epsilon) * (1 - delta - rates)
        )
        ax.fill_between(
            rates,
            np.clip(most, 0.0, 1.0),
            1.0,
            color=FORBIDDEN,
            alpha=0.15,
            linewidth=0,
            label=f"forbidden by epsilon {epsilon:g}",
        )
    ax.plot(*roc(scores_in, scores_out), color=LINE, label=name)
    ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="toss of a coin")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
    ax.legend(loc="lower right", frameon=False)
    return ax
