"""What a promise leaves to an attacker, in figures for a page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.privacy import PrivacyReport
from tacit.privacy.attacker import TradeOff, curve_grid, rate_grid

__all__ = ["CHANCES", "RATES", "Odds", "curve_points", "odds_of", "roc_points"]

# False-positive rates and chances that are tabulated
RATES = (0.001, 0.01, 0.1)
CHANCES = (0.05, 0.001)


@dataclass(frozen=True)
class Odds:
    """Bounds on the best attacker who starts from even odds.

    Parameters
    ----------
    accuracy
        How often the attacker guesses right.
    found
        Largest true-positive rate at each of ``RATES``.
    right
        Share of the accused who are rightly accused, at each of ``RATES``.
    sure
        How sure the attacker becomes, save with each of ``CHANCES``.
    """

    accuracy: float
    found: tuple[float, ...]
    right: tuple[float, ...]
    sure: tuple[float, ...]


def odds_of(bound: TradeOff) -> Odds:
    """Return the tabulated bounds of a trade-off."""
    rates = np.array(RATES)
    return Odds(
        bound.accuracy(),
        tuple(map(float, bound.power(rates))),
        tuple(map(float, bound.precision(rates))),
        tuple(bound.posterior(chance) for chance in CHANCES),
    )


def roc_points(bound: TradeOff) -> list[dict[str, float]]:
    """Return points of the largest ROC curve, dense where it bends."""
    rates = rate_grid()
    return [
        {"false": round(float(a), 6), "true": round(float(b), 6)}
        for a, b in zip(rates, bound.power(rates), strict=True)
    ]


def curve_points(report: PrivacyReport) -> list[dict[str, float]]:
    """Return points of the privacy curve of a fit, to well below its promised delta."""
    epsilons, deltas = curve_grid(report, n=90)
    return [
        {"epsilon": float(e), "delta": float(d)}
        for e, d in zip(epsilons, deltas, strict=True)
    ]
