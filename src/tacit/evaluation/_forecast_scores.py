"""Forecasts of the score of a private fit, from public facts and synthetic rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import inf
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge

from tacit._estimators import guaranteed_budget
from tacit._execution import one_blas_thread, steps
from tacit._random import Seed
from tacit._validate import at_least, fraction
from tacit.datasets._synthetic_rows import synthetic_rows
from tacit.evaluation._measures import without_warnings
from tacit.exceptions import PlanError
from tacit.privacy import Budget, GaussianNoise, calibrate

__all__ = ["Forecast", "Outlook", "expected_score", "least_rows"]


@dataclass(frozen=True)
class _Signal:
    """Strength of the signal, and the part of their range that targets fill."""

    words: str
    strength: float
    spread: float = 1.0


# For labels the standard deviation of linear scores; for targets the ratio to the
# noise, so that the best R2 is 0.2, 0.5 and 0.8
LABELS = (_Signal("weak", 1.0), _Signal("medium", 2.0), _Signal("strong", 4.0))
TARGETS = (
    _Signal("weak", 0.5),
    _Signal("medium", 1.0),
    _Signal("strong", 2.0),
    _Signal("medium, in a tenth of the range", 1.0, 0.1),
)
# Synthetic rows to fit on; more are simulated by less noise
MOST_ROWS = 16_384
FEW_ROWS = 4_096
TEST_ROWS = 8_192
# Powers of two among which the least number of rows is sought
LOWEST, HIGHEST = 6, 27


@dataclass(frozen=True)
class Outlook:
    """Expected scores for one strength of the signal."""

    signal: str
    plain: float
    low: float
    high: float

    @property
    def loss(self) -> float:
        """Loss by privacy, in the middle of the range."""
        return self.plain - (self.low + self.high) / 2


@dataclass(frozen=True)
class Forecast:
    """Scores of private fits on synthetic rows, next to those of non-private fits."""

    measure: str
    outlooks: tuple[Outlook, ...]


def expected_score(
    model: Any,
    n_rows: int,
    widths: Sequence[int],
    *,
    n_classes: int = 0,
    repeats: int = 3,
    random_state: int = 0,
) -> Forecast:
    """Return what ``model`` would score on synthetic rows with these columns.

    Parameters
    ----------
    model
        Private estimator, with its budget and bounds; it is not changed.
    n_rows
        Expected number of rows.
    widths
        One entry a column: 1 for a number, more for so many categories.
    n_classes
        Number of labels, or 0 for a regression.
    repeats
        Private fits for each strength of the signal.
    random_state
        Seed of the synthetic rows and of the noise.

    Notes
    -----
    Accuracy for labels and R2 for targets, on rows that were not fitted. Only the
    shape of the table and the budget enter: real rows may be easier or harder. Noise in
    a regression is in proportion to the width of ``y_range``, so one forecast is for a
    target that fills a tenth of it, at its low end, as durations and amounts often do.
    A model that selects columns gets as many informative columns as it selects. More
    than 16,384 rows are simulated by fewer, with proportionally less noise.
    """
    at_least(2, n_rows=n_rows)
    at_least(1, repeats=repeats)
    _check_table(model, widths, n_classes)
    outlooks = []
    signals = LABELS if n_classes else TARGETS
    for position, signal in zip(
        steps(len(signals), "synthetic rows"), signals, strict=True
    ):
        seed = random_state + position
        table = _Table.of(
            model, min(n_rows, MOST_ROWS), widths, n_classes, signal, seed
        )
        plain, scores = _scores(model, n_rows, table, repeats, seed)
        outlooks.append(Outlook(signal.words, plain, min(scores), max(scores)))
    measure = "accuracy" if is_classifier(model) else "R2"
    return Forecast(measure, tuple(outlooks))


def least_rows(
    model: Any,
    widths: Sequence[int],
    *,
    n_classes: int = 0,
    tolerance: float = 0.02,
    random_state: int = 0,
) -> int | None:
    """Return the least power of two of rows where privacy costs at most ``tolerance``.

    Measured as in `expected_score`, for a signal of medium strength and a target that
    fills its range. Numbers of rows that have no plan are too few. None when even a
    hundred million rows are.
    """
    fraction(tolerance=tolerance, closed=False)
    _check_table(model, widths, n_classes)

    @cache
    def table(n_fit: int) -> _Table:
        signal = (LABELS if n_classes else TARGETS)[1]
        return _Table.of(model, n_fit, widths, n_classes, signal, random_state)

    def loss(exponent: int) -> float:
        n_rows = 2**exponent
        try:
            plain, scores = _scores(
                model, n_rows, table(min(n_rows, FEW_ROWS)), 3, random_state
            )
        except PlanError:  # too few for any plan
            return inf
        return plain - float(np.mean(scores))

    low, high = LOWEST - 1, HIGHEST  # too few, and enough if anything is
    # one step more than it takes to halve the powers down to one
    for _ in steps((HIGHEST - LOWEST).bit_length() + 1, "least rows"):
        if high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if loss(middle) <= tolerance else (middle, high)
    return None if high == HIGHEST else 2**high


def _check_table(model: Any, widths: Any, n_classes: int) -> None:
    """Check the description of the columns and the labels of a table."""
    if isinstance(widths, str) or not np.iterable(widths) or not list(widths):
        raise ValueError(
            "widths must list one number a column, such as [1] * 35 for 35 columns of "
            f"numbers, got {widths!r}."
        )
    for width in widths:
        at_least(1, widths=width)
    at_least(0, n_classes=n_classes)
    if is_classifier(model) and n_classes < 2:
        raise ValueError(
            f"n_classes must be the number of labels, 2 or more, for "
            f"{type(model).__name__}, got {n_classes!r}."
        )
    if n_classes and not is_classifier(model):
        raise ValueError(
            f"n_classes must be 0 for {type(model).__name__}, which has no labels, got "
            f"{n_classes!r}."
        )


@dataclass(frozen=True, eq=False)
class _Table:
    """Synthetic rows to fit on and to score on, with the score without privacy."""

    n_classes: int
    widths: tuple[int, ...]
    X: Any
    y: Any
    X_test: Any
    y_test: Any

    @classmethod
    def of(
        cls,
        model: Any,
        n_fit: int,
        widths: Sequence[int],
        n_classes: int,
        signal: _Signal,
        seed: int,
    ) -> _Table:
        """Draw the rows, and split them."""
        X, y = synthetic_rows(
            n_fit + TEST_ROWS,
            widths,
            n_classes=n_classes,
            strength=signal.strength,
            spread=signal.spread,
            # a model that selects columns is for targets with few informative columns
            n_messages=getattr(model, "n_features_to_select", None),
            random_state=seed,
        )
        y_fit = y[:n_fit]
        if n_classes:
            y_fit[:n_classes] = np.arange(n_classes)[: len(y_fit)]  # none is missing
        return cls(n_classes, tuple(widths), X[:n_fit], y_fit, X[n_fit:], y[n_fit:])

    def as_cells(self, X: Any) -> Any:
        """Return rows with codes of categories instead of their indicators."""
        ends = np.cumsum(self.widths)[:-1]
        return np.column_stack(
            [
                part[:, 0] if part.shape[1] == 1 else part.argmax(axis=1)
                for part in np.split(X, ends, axis=1)
            ]
        )

    @cached_property
    def plain(self) -> float:
        """The score without privacy."""
        labels = self.n_classes > 0
        model = LogisticRegression(C=10.0, max_iter=500) if labels else Ridge(1e-3)
        return float(model.fit(self.X, self.y).score(self.X_test, self.y_test))


def _scores(
    model: Any, n_rows: int, table: _Table, repeats: int, seed: int
) -> tuple[float, list[float]]:
    """Return the score without privacy, and those of private fits."""
    n_fit, n_classes = len(table.X), table.n_classes
    budget = guaranteed_budget(model.epsilon, model.delta, model.neighbors, n_rows)
    targets = {"classes": range(n_classes)} if n_classes else {"y_range": (-1.0, 1.0)}
    # nobody's rows are protected here, and exact noise takes longer to load and to draw
    quick = {"noise": "float"} if isinstance(getattr(model, "solver", ""), str) else {}
    X, X_test = table.X, table.X_test
    if getattr(type(model), "reads_cells", False):
        public = model._synthetic_cells(table.widths)
        X, X_test = map(table.as_cells, (X, X_test))
    else:
        public = model._synthetic(X.shape[1])
    private = clone(model).set_params(
        **public,
        **targets,
        **quick,
        epsilon=_epsilon_of_fewer(budget, n_rows / n_fit),
        delta=budget.delta,
        expected_rows=n_fit,
    )
    with one_blas_thread(), without_warnings():
        scores = [
            private.set_params(random_state=Seed(seed + 1 + k))
            .fit(X, table.y)
            .score(X_test, table.y_test)
            for k in range(repeats)
        ]
        return table.plain, scores


def _epsilon_of_fewer(budget: Budget, times: float) -> float:
    """Return the epsilon with ``times`` less noise, which simulates more rows."""
    if times == 1 or budget.delta == 0:
        return budget.epsilon * times
    multiplier = calibrate(GaussianNoise, budget) / times
    return GaussianNoise(multiplier).curve(budget.neighbors).epsilon(budget.delta)
