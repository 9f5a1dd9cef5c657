"""Every way to fit that is compared, with and without privacy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from benchmarks.additive.data import SETS, Split, Table, indicators
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LinearRegression as PlainLinear
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit import Seed
from tacit.linear_model import LinearRegression, LogisticRegression

# Pairs of columns of the additive model that has some
PAIRS = 3
SCIKIT_LEARN = f"scikit-learn {sklearn.__version__}"
INTERPRET = "interpret-core 0.7.8"


@dataclass(frozen=True)
class Spend:
    """What a private fit may spend, and under which relation."""

    epsilon: float
    delta: float
    seed: int
    neighbors: str = "replace_one"

    def options(self, n_rows: int) -> dict[str, Any]:
        """Return the parameters of an estimator of the library."""
        given: dict[str, Any] = {"delta": self.delta, "random_state": Seed(self.seed)}
        if self.neighbors != "replace_one":
            # rows may be added, so their number is only expected
            given |= {"neighbors": self.neighbors, "expected_rows": n_rows}
        return given


@dataclass(frozen=True)
class Method:
    """A row of the tables: a fit here, or one that the peer is sent."""

    name: str
    title: str
    fit: Callable[[Table, Spend], Any] | None = None
    private: bool = True
    slow: bool = False
    code: str = ""  # library and version, where it is another one

    @property
    def is_peer(self) -> bool:
        return self.fit is None


def linear_rows(rows: Table) -> np.ndarray:
    """Return rows for linear models: in [0, 1], and for a regression in [-1, 1]."""
    X = indicators(rows)
    return X if rows.y_range is None else 2.0 * X - 1.0


@dataclass(frozen=True)
class Fitted:
    """A model, and what it is given of a table."""

    model: Any
    features: Callable[[Table], Any]

    def predict(self, rows: Table) -> np.ndarray:
        return np.asarray(self.model.predict(self.features(rows)))


def linear(train: Table, spend: Spend) -> Fitted:
    """Fit the default of the library on one-hot and scaled columns."""
    X, options = linear_rows(train), spend.options(len(train.y))
    if train.y_range is None:
        model = LogisticRegression(
            spend.epsilon, x_norm=1.0, classes=train.classes, **options
        )
    else:
        model = LinearRegression(
            spend.epsilon,
            x_norm=float(np.sqrt(X.shape[1])),
            y_range=train.y_range,
            **options,
        )
    return Fitted(model.fit(X, train.y), linear_rows)


def additive_classes() -> tuple[type, type]:
    """Return the additive classifier and regressor of the library."""
    from tacit.additive import (  # noqa: PLC0415 - the suite runs without them
        AdditiveClassifier,
        AdditiveRegressor,
    )

    return AdditiveClassifier, AdditiveRegressor


def additive_with(pairs: int) -> Callable[[Table, Spend], Fitted]:
    """Return a fit of the additive model with so many pairs of columns."""

    def fit(train: Table, spend: Spend) -> Fitted:
        classifier, regressor = additive_classes()
        facts: dict[str, Any] = {
            "ranges": dict(train.ranges),
            "categories": {n: list(c) for n, c in train.categories.items()},
            "interactions": pairs,
            **spend.options(len(train.y)),
        }
        if train.y_range is None:
            model = classifier(spend.epsilon, classes=train.classes, **facts)
        else:
            model = regressor(spend.epsilon, y_range=train.y_range, **facts)
        return Fitted(model.fit(train.frame, train.y), lambda rows: rows.frame)

    return fit


def plain_linear(train: Table, spend: Spend) -> Fitted:
    """Fit scikit-learn's linear model on standardized columns."""
    if train.y_range is None:
        # in steps of the columns' own spread, wide ranges hide nothing
        model = make_pipeline(StandardScaler(), PlainLogistic(max_iter=500))
    else:
        model = PlainLinear()
    return Fitted(model.fit(indicators(train), train.y), indicators)


def categorical(rows: Table) -> pd.DataFrame:
    """Return the frame with its categories as scikit-learn's trees take them."""
    types = {
        name: pd.CategoricalDtype(list(listed))
        for name, listed in rows.categories.items()
    }
    return rows.frame.astype(types)


def plain_trees(train: Table, spend: Spend) -> Fitted:
    kind = (
        HistGradientBoostingClassifier
        if train.y_range is None
        else HistGradientBoostingRegressor
    )
    model = kind(categorical_features="from_dtype", random_state=spend.seed)
    return Fitted(model.fit(categorical(train), train.y), categorical)


def _listed(*methods: Method) -> Mapping[str, Method]:
    return {method.name: method for method in methods}


METHODS = _listed(
    Method("additive", "additive", additive_with(0)),
    Method("additive_pairs", f"additive, {PAIRS} pairs", additive_with(PAIRS)),
    Method("linear", "linear", linear),
    Method("dp_ebm", "DP-EBM", code=INTERPRET),
    Method("dp_ebm_rate", "DP-EBM, learning rate 0.1", code=INTERPRET),
    Method(
        "plain_linear", "scikit-learn linear", plain_linear, False, code=SCIKIT_LEARN
    ),
    Method("plain_trees", "boosted trees", plain_trees, False, code=SCIKIT_LEARN),
    Method("ebm", "EBM", private=False, slow=True, code=INTERPRET),
    Method("ebm_pairs", "EBM with pairs", private=False, slow=True, code=INTERPRET),
)

# Runs of slow methods, and of all but the library's on large tables
SLOW_RUNS, LARGE_RUNS, SLOW_LARGE_RUNS = 3, 3, 1


def n_runs(name: str, method: Method, most: int) -> int:
    """Return how many splits a method is run on."""
    if SETS[name].large:
        return min(most, SLOW_LARGE_RUNS if method.slow else LARGE_RUNS)
    return min(most, SLOW_RUNS) if method.slow else most


def offered(name: str, method: Method) -> str:
    """Return why a method cannot fit a table, or an empty string."""
    several = (SETS[name].n_classes or 0) > 2
    if several and method.is_peer and method.private:
        return "DP-EBM has two classes at most"
    return ""


def timed_fit(
    method: Method, split: Split, spend: Spend, clock: Callable[[], float]
) -> tuple[float, float]:
    """Return the score and the CPU seconds of the fit alone."""
    assert method.fit is not None
    start = clock()
    fitted = method.fit(split.train, spend)
    took = clock() - start
    return split.score(fitted.predict(split.test)), took
