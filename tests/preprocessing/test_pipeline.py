"""One ledger for all steps of a pipeline, through metadata routing."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from tacit._random import as_generator
from tacit.exceptions import BudgetExceeded
from tacit.feature_selection import PeelingSelector
from tacit.linear_model import LogisticRegression
from tacit.preprocessing import (
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PublicOneHot,
    PublicScaler,
    RandomFourierFeatures,
)
from tacit.privacy import Budget, Composed, Ledger

ADD = {"neighbors": "add_or_remove_one"}

N = 300
RANGES = {"age": (18, 98), "hours": (0, 80)}
HOUSING = ("owner", "tenant")
DELTA = 1e-6
TOTAL = Budget(2.0, 1e-5)


@pytest.fixture(autouse=True)
def routed():
    with config_context(enable_metadata_routing=True):
        yield


def table(seed=0):
    rng = as_generator(seed)
    X = pd.DataFrame(
        {
            "age": rng.uniform(18, 98, N),
            "hours": rng.uniform(0, 80, N),
            "housing": rng.choice(["owner", "tenant", "tent"], N),
        }
    )
    return X, (X["hours"] + rng.normal(0, 10, N) > 40).to_numpy()


def charged(step):
    return step.set_fit_request(ledger=True)


def classifier(epsilon=1.0):
    return charged(
        LogisticRegression(
            epsilon, DELTA, x_norm=2.0, classes=[False, True], random_state=0
        )
    )


def public_step():
    return make_column_transformer(
        (PublicScaler(RANGES), list(RANGES)),
        (PublicOneHot({"housing": HOUSING}), ["housing"]),
    )


def scaler(epsilon=0.5, ranges=(-1, 1)):
    return charged(PrivateStandardScaler(epsilon, DELTA, ranges=ranges, random_state=0))


def test_every_private_step_charges_the_one_ledger():
    X, y = table()
    ledger = Ledger(TOTAL)
    pipeline = make_pipeline(scaler(ranges=RANGES), classifier())
    pipeline.fit(X[list(RANGES)], y, ledger=ledger)
    entries = ledger.report().entries
    assert [e.label for e in entries] == ["PrivateStandardScaler", "LogisticRegression"]
    assert ledger.spent() <= 1.5
    together = Composed(tuple(e.event for e in entries)).curve(TOTAL.neighbors)
    assert together.epsilon(TOTAL.delta) <= ledger.spent() * (1 + 1e-6)
    apart = Ledger(TOTAL)
    for entry, epsilon in zip(entries, (0.5, 1.0), strict=True):
        apart.charge(entry.event, entry.label, guarantee=Budget(epsilon, DELTA))
    assert ledger.spent() == apart.spent()
    for step in pipeline:
        assert "ledger of its own" not in str(step.privacy_)


def test_sparse_rows_go_through_sparse():
    X, y = table()
    ledger = Ledger(TOTAL)
    encoder = PublicOneHot({"housing": HOUSING}, sparse_output=True)
    indicators = encoder.fit_transform(X[["housing"]])
    only_scaled = scaler(ranges=(0, 1)).set_params(with_mean=False)
    pipeline = make_pipeline(only_scaled, classifier())
    pipeline.fit(indicators, y, ledger=ledger)
    assert [e.label for e in ledger.report().entries] == [
        "PrivateStandardScaler",
        "LogisticRegression",
    ]
    assert sparse.issparse(pipeline[:-1].transform(indicators))
    dense = make_pipeline(only_scaled, classifier()).fit(
        indicators.toarray(), y, ledger=Ledger(TOTAL)
    )
    assert_allclose(dense[-1].coef_, pipeline[-1].coef_)


def test_public_steps_come_first_and_cost_nothing():
    X, y = table()
    ledger = Ledger(TOTAL)
    pipeline = make_pipeline(public_step(), scaler(), classifier())
    pipeline.fit(X, y, ledger=ledger)
    assert len(ledger.report().entries) == 2
    assert pipeline.predict(X).shape == (N,)


def test_private_steps_within_a_column_transformer_are_charged_too():
    X, y = table()
    ledger = Ledger(TOTAL)
    bounds = PrivateQuantileBounds(0.4, DELTA, ranges=RANGES, random_state=0)
    columns = make_column_transformer(
        (charged(bounds), list(RANGES)),
        (PublicOneHot({"housing": HOUSING}), ["housing"]),
    )
    make_pipeline(columns, classifier()).fit(X, y, ledger=ledger)
    labels = [entry.label for entry in ledger.report().entries]
    assert labels == ["PrivateQuantileBounds", "LogisticRegression"]


def test_an_overspend_is_refused_before_values_are_read_and_changes_nothing():
    X, y = table()
    ledger = Ledger(Budget(0.1, 1e-5))
    unreadable = X[list(RANGES)].copy()
    unreadable.iloc[0, 0] = np.nan
    pipeline = make_pipeline(scaler(ranges=RANGES), classifier())
    with pytest.raises(BudgetExceeded, match="PrivateStandardScaler"):
        pipeline.fit(unreadable, y, ledger=ledger)
    assert ledger.spent() == 0
    assert ledger.report().entries == ()


def test_a_later_step_that_overspends_leaves_the_charge_of_the_earlier():
    X, y = table()
    ledger = Ledger(Budget(0.6, 1e-5))
    pipeline = make_pipeline(scaler(ranges=RANGES), classifier())
    with pytest.raises(BudgetExceeded, match="LogisticRegression"):
        pipeline.fit(X[list(RANGES)], y, ledger=ledger)
    assert [e.label for e in ledger.report().entries] == ["PrivateStandardScaler"]


def test_a_step_that_does_not_ask_is_refused_by_scikit_learn():
    X, y = table()
    ledger = Ledger(TOTAL)
    silent = PrivateStandardScaler(0.5, DELTA, ranges=RANGES)
    with pytest.raises(ValueError, match="not explicitly set as requested"):
        make_pipeline(silent, classifier()).fit(X[list(RANGES)], y, ledger=ledger)
    assert ledger.report().entries == ()


def test_without_a_ledger_each_step_has_its_own():
    X, y = table()
    pipeline = make_pipeline(scaler(ranges=RANGES), classifier())
    with config_context(enable_metadata_routing=False):
        pipeline.fit(X[list(RANGES)], y)
    for step, epsilon in zip(pipeline, (0.5, 1.0), strict=True):
        assert step.privacy_.guarantee.epsilon == epsilon
        assert "no shared ledger was charged" in step.privacy_.notes


def test_without_routing_the_ledger_can_be_given_to_each_step_by_name():
    X, y = table()
    ledger = Ledger(TOTAL)
    pipeline = make_pipeline(scaler(ranges=RANGES), classifier())
    with config_context(enable_metadata_routing=False):
        pipeline.fit(
            X[list(RANGES)],
            y,
            privatestandardscaler__ledger=ledger,
            logisticregression__ledger=ledger,
        )
    assert len(ledger.report().entries) == 2


def test_a_search_charges_every_fit():
    X, y = table()
    ledger = Ledger(Budget(100.0, 1e-3))
    pipeline = make_pipeline(scaler(ranges=RANGES), classifier())
    grid = {"logisticregression__ridge": [0.1, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X[list(RANGES)], y, ledger=ledger)
    assert len(ledger.report().entries) == 2 * (2 * 2 + 1)
    assert search.best_estimator_[-1].privacy_.guarantee.epsilon == 1.0


@pytest.mark.parametrize(
    "step",
    [
        PublicScaler((-9, 9)),
        RandomFourierFeatures((-9, 9)),
        PeelingSelector(
            0.5, 1e-6, n_features_to_select=1, feature_bounds=9, y_range=(0, 1), **ADD
        ),
    ],
    ids=lambda step: type(step).__name__,
)
def test_a_private_pipeline_on_no_rows_ends_as_any_other(step):
    pipeline = make_pipeline(
        PrivateStandardScaler(ranges=(0, 1), delta=1e-6, **ADD),
        step,
        LogisticRegression(1.0, 1e-6, classes=[0, 1], x_norm=1.0, **ADD),
    )
    pipeline.fit(np.zeros((0, 2)), np.zeros(0, dtype=int))
    assert np.isfinite(pipeline[-1].coef_).all()
