"""What a promise leaves to an attacker, in figures for a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.privacy import Budget, PrivacyCurve, PrivacyReport
from tacit.privacy.attacker import TradeOff, curve_of, epsilon_grid

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
    rates = np.unique(
        np.concatenate([[0.0], np.logspace(-4, -1.3, 25), np.linspace(0.05, 1, 58)])
    )
    power = bound.power(rates)
    return [
        {"false": round(float(a), 6), "true": round(float(b), 6)}
        for a, b in zip(rates, power, strict=True)
    ]


def curve_points(report: PrivacyReport) -> list[dict[str, float]]:
    """Return points of the privacy curve of a fit, to well below its promised delta."""
    curve: PrivacyCurve = curve_of(report)
    promise: Budget = report.promise
    smallest = promise.delta / 100 if promise.delta > 0 else 1e-12
    epsilons = epsilon_grid(curve, smallest, n=90)
    points: list[dict[str, Any]] = []
    for epsilon in epsilons:
        delta = curve.delta(float(epsilon))
        if delta >= min(smallest, 1e-12):
            points.append({"epsilon": float(epsilon), "delta": delta})
    return points
