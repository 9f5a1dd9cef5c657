"""Plots of guarantees: privacy curves, trade-offs, audits and ledgers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit._validate import fraction, positive
from tacit.plots._axes import ACCENT, FORBIDDEN, MUTED, axes_for, style, up
from tacit.privacy import Budget, Neighbors, PrivacyReport
from tacit.privacy.attacker import TradeOff, curve_grid, guarantee_of, rate_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["audit_roc", "ledger", "privacy_curve", "roc", "trade_off"]

Floats = NDArray[np.float64]

COIN = "tossing a coin"


def privacy_curve(
    subject: Any,
    *,
    neighbors: Neighbors | str = Neighbors.REPLACE_ONE,
    ax: Axes | None = None,
    label: str | None = None,
    **line: Any,
) -> Axes:
    """Draw the privacy curve: every (epsilon, delta) that holds; mark the guarantee.

    Parameters
    ----------
    subject
        A `PrivacyReport`, an event, a `PrivacyCurve`, a `Budget` or a `Ledger`.
    neighbors
        Relation between data sets for an event; the others have their own.
    ax
        Axes to draw on; None makes new ones.
    label
        Name in the legend.
    **line
        Passed to `matplotlib.axes.Axes.plot`.

    Notes
    -----
    **Bound.** The entries of a report are composed as if fixed before the first of
    them. For charges chosen after seeing results, only the guarantee holds.

    Examples
    --------
    >>> from tacit.plots import privacy_curve
    >>> from tacit.privacy import GaussianNoise
    >>> ax = privacy_curve(GaussianNoise(multiplier=2.0))  # doctest: +SKIP
    """
    epsilons, deltas = curve_grid(subject, neighbors)
    guarantee = guarantee_of(subject)
    ax = style(axes_for(ax))
    line = {"color": ACCENT, **line}
    ax.plot(epsilons, deltas, label=label, **line)
    if guarantee is not None:
        height = guarantee.delta or float(deltas.min())
        ax.plot(
            [guarantee.epsilon],
            [height],
            marker="o",
            linestyle="none",
            color=FORBIDDEN,
            label=f"guarantee: epsilon {up(guarantee.epsilon)}, delta "
            f"{up(guarantee.delta)}",
        )
    ax.set(yscale="log", xlabel="epsilon", ylabel="delta", title="Privacy curve")
    ax.set_xlim(left=0.0)
    if label is not None or guarantee is not None:
        ax.legend(frameon=False)
    return ax


def trade_off(
    subject: Any,
    *,
    neighbors: Neighbors | str = Neighbors.REPLACE_ONE,
    ax: Axes | None = None,
    label: str | None = None,
    **line: Any,
) -> Axes:
    """Draw the ROC curve that no attacker can exceed, and that of guessing.

    Parameters
    ----------
    subject, neighbors, ax, label, **line
        As for `privacy_curve`.

    Notes
    -----
    **Bound.** The largest true-positive rate at each false-positive rate, of a test
    that distinguishes two neighboring data sets; see `TradeOff`.
    """
    bound = TradeOff.of(subject, neighbors)
    rates = rate_grid()
    ax = style(axes_for(ax))
    name = label or f"best attacker: right {up(100 * bound.accuracy(), 3)}% of the time"
    ax.plot(rates, bound.power(rates), label=name, **{"color": ACCENT, **line})
    _frame(ax, "Limit on attackers")
    return ax


def audit_roc(
    scores_in: ArrayLike,
    scores_out: ArrayLike,
    epsilon: float | None = None,
    delta: float = 0.0,
    *,
    ax: Axes | None = None,
    label: str | None = None,
    **line: Any,
) -> Axes:
    """Draw the ROC curve of an audit over the region that a guarantee forbids.

    Parameters
    ----------
    scores_in, scores_out
        One score per training, with and without the row; higher means present.
    epsilon, delta
        Guarantee whose forbidden region is shaded; None shades nothing.
    ax, label, **line
        As for `privacy_curve`.

    Notes
    -----
    With few trainings the curve may enter the region by chance. Only a confidence bound
    is a refutation: see `tacit.audit.audit`.
    """
    present, absent = _scores("scores_in", scores_in), _scores("scores_out", scores_out)
    ax = style(axes_for(ax))
    if epsilon is not None:
        positive(epsilon=epsilon)
        fraction(delta=delta)
        bound = TradeOff.of(Budget(epsilon, delta))
        rates = rate_grid()
        forbidden: dict[str, Any] = {"color": FORBIDDEN, "alpha": 0.15, "linewidth": 0}
        ax.fill_between(
            rates,
            bound.power(rates),
            1.0,
            label=f"forbidden by epsilon {up(epsilon)}, delta {up(delta)}",
            **forbidden,
        )
        ax.fill_between(rates, 0.0, 1 - bound.power(1 - rates), **forbidden)
    ax.plot(
        *roc(present, absent),
        label=label or f"attack, {len(present)} and {len(absent)} trainings",
        **{"color": ACCENT, "drawstyle": "steps-post", **line},
    )
    _frame(ax, "Attack")
    return ax


def ledger(subject: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the charges of a ledger, their spend together, and the budget.

    Parameters
    ----------
    subject
        A `Ledger`, or the `PrivacyReport` of one.
    ax
        Axes to draw on; None makes new ones.

    Notes
    -----
    A stem is the epsilon of one charge by itself. The stems do not add up: the solid
    line is the spend of all charges together.
    """
    report = subject if isinstance(subject, PrivacyReport) else subject.report()
    own = np.array([entry.epsilon for entry in report.entries], dtype=float)
    seeded = np.array([entry.seeded for entry in report.entries], dtype=bool)
    position = np.arange(1, len(own) + 1)
    ax = style(axes_for(ax), grid="y")
    for chosen, color, name in (
        (~seeded, ACCENT, "each charge by itself"),
        (seeded, FORBIDDEN, "FIXED SEED: not private"),
    ):
        if chosen.any():
            ax.vlines(
                position[chosen], 0.0, own[chosen], color=color, label=name, linewidth=3
            )
    ax.axhline(report.spent, color=ACCENT, label=f"spent: {up(report.spent)}")
    ax.axhline(
        report.guarantee.epsilon,
        color=FORBIDDEN,
        linestyle="--",
        label=f"budget: {up(report.guarantee.epsilon)}",
    )
    if 0 < len(own) <= 12:
        ax.set_xticks(
            position, [entry.label.replace("$", r"\$") for entry in report.entries]
        )
        ax.tick_params(axis="x", rotation=30)
    ax.set(
        xlabel="charge",
        ylabel=f"epsilon at delta {up(report.guarantee.delta)}",
        title="Spent budget",
    )
    ax.set_xlim(0.5, max(len(own), 1) + 0.5)
    ax.set_ylim(bottom=0.0)
    ax.legend(frameon=False)
    return ax


def roc(present: Floats, absent: Floats) -> tuple[Floats, Floats]:
    """Return false- and true-positive rates, from the strictest threshold down."""
    # each distinct score is a threshold, so ties move both rates at once
    thresholds = np.unique(np.concatenate([present, absent]))[::-1]
    false, true = (
        np.searchsorted(np.sort(-scores), -thresholds, side="right") / len(scores)
        for scores in (absent, present)
    )
    return np.append(0.0, false), np.append(0.0, true)


def _scores(name: str, values: ArrayLike) -> Floats:
    scores = np.asarray(values, dtype=np.float64).ravel()
    if scores.size == 0 or np.isnan(scores).any():
        raise ValueError(f"{name} must have at least one score and no NaN.")
    return scores


def _frame(ax: Axes, title: str) -> None:
    if COIN not in {line.get_label() for line in ax.get_lines()}:
        ax.plot([0, 1], [0, 1], color=MUTED, linestyle=":", label=COIN)
    ax.set(
        xlim=(0, 1),
        ylim=(0, 1),
        aspect="equal",
        xlabel="false-positive rate",
        ylabel="true-positive rate",
        title=title,
    )
    ax.legend(frameon=False, loc="lower right")
