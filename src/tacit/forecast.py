"""What to expect of a private fit, from public facts and made-up rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge

from tacit._estimators import promised_budget
from tacit._progress import steps
from tacit._validate import at_least, fraction
from tacit.datasets import imagined_rows
from tacit.privacy import Budget, GaussianNoise, calibrate

__all__ = ["Forecast", "Outlook", "expected_score", "least_rows"]

# How much the columns tell: deviation of the linear scores
STRENGTHS = {"weak": 1.0, "middling": 2.0, "strong": 4.0}
# Made-up rows to fit on; more are stood for by less noise
MOST_ROWS = 16_384
FEW_ROWS = 4_096
TEST_ROWS = 8_192
# Powers of two among which the least number of rows is sought
LOWEST, HIGHEST = 6, 27


@dataclass(frozen=True)
class Outlook:
    """Scores to expect when the columns tell so much about the target."""

    signal: str
    plain: float
    low: float
    high: float

    @property
    def loss(self) -> float:
        """What privacy costs in the middle of the range."""
        return self.plain - (self.low + self.high) / 2


@dataclass(frozen=True)
class Forecast:
    """Scores of private fits on made-up rows, beside those of fits without privacy."""

    measure: str
    outlooks: tuple[Outlook, ...]
    simulated_rows: int


def expected_score(
    model: Any,
    n_rows: int,
    widths: Sequence[int],
    *,
    n_classes: int = 0,
    repeats: int = 3,
    random_state: int = 0,
) -> Forecast:
    """Return what ``model`` would score on made-up rows with these columns.

    Parameters
    ----------
    model
        Private estimator, with its budget and bounds; it is not changed.
    n_rows
        Number of rows there will be.
    widths
        One entry a column: 1 for a number, more for so many categories.
    n_classes
        Number of labels, or 0 for a regression.
    repeats
        Private fits for each strength of the signal.
    random_state
        Seed of the made-up rows and of the noise.

    Notes
    -----
    Accuracy for labels and R2 for targets, on rows that were not fitted. Only the
    shape of the table and the budget enter: real rows may be easier or harder, and what
    carries over is the distance to the fit without privacy. More than 16,384 rows are
    stood for by fewer, with the noise reduced in the same proportion.
    """
    at_least(2, n_rows=n_rows)
    at_least(1, repeats=repeats)
    outlooks = []
    for place, (signal, strength) in zip(
        steps(len(STRENGTHS), "made-up rows"), STRENGTHS.items(), strict=True
    ):
        plain, scores = _scores(
            model,
            n_rows,
            widths,
            n_classes,
            strength,
            MOST_ROWS,
            repeats,
            random_state + place,
        )
        outlooks.append(Outlook(signal, plain, min(scores), max(scores)))
    measure = "accuracy" if is_classifier(model) else "R2"
    return Forecast(measure, tuple(outlooks), min(n_rows, MOST_ROWS))


def least_rows(
    model: Any,
    widths: Sequence[int],
    *,
    n_classes: int = 0,
    tolerance: float = 0.02,
    random_state: int = 0,
) -> int | None:
    """Return the power of two of rows from which privacy costs at most ``tolerance``.

    Measured as in `expected_score` with a middling signal. None when even a hundred
    million rows are too few.
    """
    fraction(tolerance=tolerance, closed=False)

    def loss(exponent: int) -> float:
        plain, scores = _scores(
            model,
            2**exponent,
            widths,
            n_classes,
            STRENGTHS["middling"],
            FEW_ROWS,
            3,
            random_state,
        )
        return plain - float(np.mean(scores))

    low, high = LOWEST - 1, HIGHEST  # too few, and enough if anything is
    # one step more than it takes to halve the powers down to one
    for _ in steps((HIGHEST - LOWEST).bit_length() + 1, "least rows"):
        if high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if loss(middle) <= tolerance else (middle, high)
    return None if high == HIGHEST else 2**high


def _scores(
    model: Any,
    n_rows: int,
    widths: Sequence[int],
    n_classes: int,
    strength: float,
    most_rows: int,
    repeats: int,
    seed: int,
) -> tuple[float, list[float]]:
    """Return the score without privacy, and those of private fits."""
    n_fit = min(n_rows, most_rows)
    X, y = imagined_rows(
        n_fit + TEST_ROWS,
        widths,
        n_classes=n_classes,
        strength=strength,
        random_state=seed,
    )
    X_fit, y_fit, X_test, y_test = X[:n_fit], y[:n_fit], X[n_fit:], y[n_fit:]
    if n_classes:
        y_fit[:n_classes] = np.arange(n_classes)[: len(y_fit)]  # none may be missing
    budget = promised_budget(model.epsilon, model.delta, model.neighbors, n_rows)
    changes = {
        "epsilon": _epsilon_of_fewer(budget, n_rows / n_fit),
        "delta": budget.delta,
        "expected_rows": n_fit,
        **({"classes": range(n_classes)} if n_classes else {"y_range": (-1.0, 1.0)}),
    }
    private = clone(model).set_params(**changes)
    scores = [
        private.set_params(random_state=seed + 1 + k)
        .fit(X_fit, y_fit)
        .score(X_test, y_test)
        for k in range(repeats)
    ]
    plain = LogisticRegression(C=10.0, max_iter=500) if n_classes else Ridge(1e-3)
    return float(plain.fit(X_fit, y_fit).score(X_test, y_test)), scores


def _epsilon_of_fewer(budget: Budget, times: float) -> float:
    """Return the epsilon with ``times`` less noise, in place of so many more rows."""
    if times == 1 or budget.delta == 0:
        return budget.epsilon * times
    multiplier = calibrate(GaussianNoise, budget) / times
    return GaussianNoise(multiplier).curve(budget.neighbors).epsilon(budget.delta)
