"""Progressive scores on public streams: each row is predicted before it is learned.

``python -m benchmarks.streams.real`` takes about a quarter of an hour on one core,
``--quick`` the first rows of each stream at epsilon 1. Nothing was tuned on these sets:
all settings are defaults, and columns are scaled by ranges that are written in
`tacit.datasets`, without a look at the rows.

* Electricity, 45,312 half hours in the order of time: does the price rise.
* Covertype, 581,012 plots in the order of the file: two kinds of trees (is it lodgepole
  pine), and seven.
* Jester, 24,983 people in the order of the file: the mean rating that a person gives to
  other jokes, from those of the ten that everyone was asked about. A row is a person.

River's models learn without privacy, row by row, with its own running scaler. Scores
are for us who have the rows: to publish one of a private stream has its price.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from benchmarks.streams.common import RESULTS
from benchmarks.tables import arguments, markdown
from river import linear_model, multiclass, preprocessing

from tacit.datasets import load
from tacit.streaming import OnlineLinearRegression, OnlineLogisticRegression

EPSILONS, QUICK_EPSILONS = (0.5, 1.0, 4.0), (1.0,)
# So large that the noise is seen nowhere
WITHOUT = 1e12
QUICK_ROWS = 5_000


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in their order, and how many of them steps take."""

    name: str
    X: np.ndarray
    y: np.ndarray
    x_norm: float
    y_range: tuple[float, float] | None
    widths: tuple[int, ...]

    @property
    def metric(self) -> str:
        return "accuracy" if self.y_range is None else "mean squared error"

    def score(self, predicted: np.ndarray) -> float:
        if self.y_range is None:
            return float((predicted == self.y).mean())
        return float(((predicted - self.y) ** 2).mean())

    def model(self, epsilon: float, width: int, seed: int) -> Any:
        """Return a private learner with public settings alone."""
        terms = {
            "delta": 1 / len(self.y) ** 2,
            "horizon": -(-len(self.y) // width),
            "rows_per_step": width,
            "x_norm": self.x_norm,
            "random_state": seed,
            "noise": "float" if epsilon == WITHOUT else "grid",
        }
        if self.y_range is None:
            classes = tuple(np.unique(self.y).tolist())
            return OnlineLogisticRegression(epsilon, classes=classes, **terms)
        return OnlineLinearRegression(epsilon, y_range=self.y_range, **terms)


def streams(quick: bool) -> Iterator[Stream]:
    """Yield the streams, one after the other as they are large."""
    widths = (1, 32, 512)
    yield stream("electricity", load("electricity"), 8, widths, quick)
    for name, binary in (
        ("covertype, 2 classes", True),
        ("covertype, 7 classes", False),
    ):
        yield stream(name, load("covertype", binary=binary), 10, widths[1:], quick)
    yield stream("jester", load("jester"), 10, widths[:2], quick)


def stream(
    name: str, found: Any, n_ranged: int, widths: tuple[int, ...], quick: bool
) -> Stream:
    """Return a loaded set as a stream; its first columns have ranges to be centered in.

    The others are indicators, of which Covertype has two in each row.
    """
    X = np.array(found.X, dtype=np.float64)
    X[:, :n_ranged] = 2 * X[:, :n_ranged] - 1
    if quick:
        X, widths = X[:QUICK_ROWS], (32,)
    indicators = 2 if X.shape[1] > n_ranged else 0
    x_norm = float(np.sqrt(n_ranged + indicators))
    return Stream(name, X, found.y[: len(X)], x_norm, found.y_range, widths)


def privately(data: Stream, epsilon: float, width: int) -> tuple[np.ndarray, str]:
    """Return predictions of rows that were not seen yet, and what learned."""
    model = data.model(epsilon, width, seed=0)
    # before the first step: the first class, or the middle of the range
    start = np.unique(data.y)[0] if data.y_range is None else np.mean(data.y_range)
    predicted = np.full(len(data.y), start, dtype=data.y.dtype)
    for low in range(0, len(data.y), width):
        part = slice(low, low + width)
        if low:
            predicted[part] = model.predict(data.X[part])
        model.partial_fit(data.X[part], data.y[part])
    learner = type(model._private_stream.planned.learner).__name__
    return predicted, learner.removesuffix("Learner").lower()


def by_river(data: Stream) -> np.ndarray:
    """Return the predictions of River, which learns each row at once."""
    if data.y_range is not None:
        model: Any = linear_model.LinearRegression(x_norm=1.0)
    elif len(np.unique(data.y)) == 2:
        model = linear_model.LogisticRegression(x_norm=1.0)
    else:
        model = multiclass.OneVsRestClassifier(
            linear_model.LogisticRegression(x_norm=1.0)
        )
    model = preprocessing.StandardScaler() | model
    predicted = np.zeros(len(data.y), dtype=data.y.dtype)
    for position, (row, target) in enumerate(zip(data.X, data.y.tolist(), strict=True)):
        features = dict(enumerate(row.tolist()))
        guess = model.predict_one(features)
        predicted[position] = 0 if guess is None else guess
        model.learn_one(features, target)
    return predicted


def by_the_past(data: Stream) -> np.ndarray:
    """Return the commonest label so far, or the mean target so far."""
    if data.y_range is not None:
        means = np.cumsum(data.y) / np.arange(1, len(data.y) + 1)
        return np.concatenate([[np.mean(data.y_range)], means[:-1]])
    classes = np.unique(data.y)
    counts = np.cumsum(data.y[:, None] == classes, axis=0)
    return classes[np.concatenate([[0], counts[:-1].argmax(axis=1)])]


def main(argv: Sequence[str] | None = None) -> None:
    options = arguments(argv, __doc__)
    epsilons = QUICK_EPSILONS if options.quick else EPSILONS
    rows: list[dict[str, Any]] = []

    def note(data: Stream, width: int, method: str, epsilon: Any, run: Any) -> None:
        start = perf_counter()
        found = run(data, *(() if method != "tacit" else (epsilon, width)))
        predicted, learner = found if isinstance(found, tuple) else (found, "")
        seconds = perf_counter() - start
        rows.append(
            {
                "stream": data.name,
                "rows": len(data.y),
                "rows_per_step": width,
                "method": f"{method} ({learner})" if learner else method,
                "epsilon": "none" if epsilon == WITHOUT else epsilon,
                "metric": data.metric,
                "score": round(data.score(predicted), 4),
                "ms_a_row": round(1e3 * seconds / len(data.y), 4),
            }
        )
        print(markdown(rows[-1:]).splitlines()[-1], flush=True)

    for data in streams(options.quick):
        note(data, 1, "past rows", WITHOUT, by_the_past)
        note(data, 1, "river", WITHOUT, by_river)
        for width in data.widths:
            for epsilon in (*epsilons, WITHOUT):
                note(data, width, "tacit", epsilon, privately)
    RESULTS.save("real", rows, quick=options.quick)
    print()
    print(markdown(rows))


if __name__ == "__main__":
    main()
