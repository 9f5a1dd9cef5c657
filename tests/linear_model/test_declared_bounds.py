"""Where the bound on rows comes from: a parameter, a transformer, or nowhere."""

import gc

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

from tacit import Budget, Ledger
from tacit._random import as_generator
from tacit.data import declared
from tacit.data.declared import declared_bounds
from tacit.feature_selection import PeelingSelector
from tacit.linear_model import (
    GeneralizedLinearModel,
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
    SimplexRegressor,
)
from tacit.model_selection import PrivateSearchCV
from tacit.persistence import load_model, save_model
from tacit.preprocessing import (
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PublicOneHot,
    PublicScaler,
    RandomFourierFeatures,
    RandomPartitionTrees,
)
from tacit.streaming import (
    IncrementalLinearRegression,
    OnlineLinearRegression,
    OnlineLogisticRegression,
)

N, HIGH = 400, 50.0
CLASSIFIERS = [LogisticRegression, LinearSVC, GeneralizedLinearModel]
REGRESSORS = [LinearRegression, Ridge, HuberRegressor, SimplexRegressor]
RANGES = [(0, HIGH)] * 3
STEPS = [
    PublicScaler(RANGES, target=(-2, 1)),
    RandomFourierFeatures(RANGES, 4, random_state=0),
    RandomPartitionTrees(RANGES, 4, 2, random_state=0),
    PrivateStandardScaler(1.0, ranges=RANGES),
    PrivateQuantileBounds(1.0, 0.0, ranges=RANGES),
]


def rows():
    return as_generator(0).uniform(0, HIGH, (N, 3))


def model_of(kind, **given):
    targets = {"classes": [0, 1]} if kind in CLASSIFIERS else {"y_range": (0, 1)}
    return kind(1.0, **targets, **given)


@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_without_a_bound_a_fit_and_a_plan_are_rejected_and_cost_nothing(kind):
    X, ledger = rows(), Ledger(Budget(1.0, 1e-3))
    model = model_of(kind)
    name = "x_max" if kind is SimplexRegressor else "x_norm"
    with pytest.raises(ValueError, match=f"{name} must be given: a public bound"):
        model.fit(X, X[:, 0] > 20, ledger=ledger)
    with pytest.raises(ValueError, match=f"{name} must be given"):
        model.plan(N, 3)
    assert ledger.spent() == 0


@pytest.mark.parametrize(
    "kind",
    [OnlineLogisticRegression, OnlineLinearRegression, IncrementalLinearRegression],
)
def test_a_stream_without_a_bound_is_rejected_at_its_first_step(kind):
    targets = (
        {"classes": [0, 1]} if kind is OnlineLogisticRegression else {"y_range": (0, 1)}
    )
    model = kind(1.0, 1e-6, horizon=2, **targets)
    ledger = Ledger(Budget(1.0, 1e-3))
    with pytest.raises(ValueError, match="x_norm must be given"):
        model.partial_fit(rows()[:1], [1], ledger=ledger)
    assert ledger.spent() == 0


@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_the_bound_that_a_scaler_declares_is_taken_and_reported(kind):
    X = rows()
    fitted = make_pipeline(PublicScaler(RANGES), model_of(kind)).fit(X, X[:, 0] > 20)
    scaler, model = fitted[0], fitted[-1]
    entries = kind is SimplexRegressor
    assert model.bounds_.x_norm == (scaler.x_max_ if entries else scaler.x_norm_)
    assert "(declared by PublicScaler" in model.privacy_.assumptions[0]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_each_transformer_declares_bounds_that_its_rows_obey(step):
    found = step.fit(rows()).transform(rows())
    bounds = declared_bounds(found)
    assert bounds.source == type(step).__name__
    assert (bounds.x_norm, bounds.x_max) == (step.x_norm_, step.x_max_)
    dense = found.toarray() if sparse.issparse(found) else found
    assert np.abs(dense).max() <= bounds.x_max
    assert np.linalg.norm(dense, axis=1).max() <= bounds.x_norm


def test_indicators_declare_their_bounds_too():
    found = PublicOneHot([["a", "b"]], sparse_output=True).fit_transform([["a"], ["b"]])
    assert declared_bounds(found).x_norm == pytest.approx(1.0)


def test_a_data_frame_is_declared_as_well():
    scaler = PublicScaler(RANGES).set_output(transform="pandas")
    assert declared_bounds(scaler.fit_transform(rows())).x_max == 1.0


def test_a_parameter_comes_before_what_is_declared():
    X = PublicScaler(RANGES).fit_transform(rows())
    model = LogisticRegression(1.0, x_norm=0.5, classes=[0, 1])
    assert model.fit(X, X[:, 0] > 0).bounds_.x_norm == 0.5
    assert "chosen without looking" in model.privacy_.assumptions[0]


def test_nothing_is_declared_of_other_rows():
    X = PublicScaler(RANGES).fit_transform(rows())
    assert declared_bounds(X) is not None
    assert declared_bounds(X[:10]) is None
    assert declared_bounds(X * 2) is None


def test_what_is_gone_leaves_no_note():
    before = len(declared._noted)
    X = PublicScaler(RANGES).fit_transform(rows())
    assert len(declared._noted) == before + 1
    del X
    gc.collect()
    assert len(declared._noted) <= before


def test_selected_columns_keep_the_bound():
    X = PublicScaler(RANGES).fit_transform(rows())
    selector = PeelingSelector(
        n_features_to_select=2, feature_bounds=1.0, y_range=(0, 1)
    )
    found = selector.fit(X, (X[:, 0] > 0).astype(float)).transform(X)
    assert declared_bounds(found) == declared_bounds(X)


@pytest.mark.parametrize(
    "step", [PublicScaler(RANGES), PrivateStandardScaler(ranges=RANGES)]
)
def test_a_search_plans_and_fits_with_the_declared_bound(step):
    X = rows()
    model = make_pipeline(step, LogisticRegression(classes=[0, 1]))
    search = PrivateSearchCV(
        model, {"logisticregression__ridge": [0.0, 1.0]}, epsilon=4.0, mean_repeats=4
    )
    best = search.fit(X, (X[:, 0] > 20).astype(int)).best_estimator_
    if hasattr(best, "steps"):  # a search may end without a run
        assert best[-1].bounds_.x_norm == best[0].x_norm_


def test_a_search_without_a_bound_is_rejected_before_its_charge():
    X, ledger = rows(), Ledger(Budget(9.0, 1e-3))
    # declared of all rows together, but not of the parts that are fitted
    X = PublicScaler(RANGES).fit_transform(X)
    model = LogisticRegression(classes=[0, 1])
    search = PrivateSearchCV(model, {"ridge": [0.0, 1.0]}, epsilon=4.0)
    with pytest.raises(ValueError, match="x_norm must be given"):
        search.fit(X, (X[:, 0] > 0).astype(int), ledger=ledger)
    assert ledger.spent() == 0


def test_a_model_with_a_declared_bound_is_saved_with_it(tmp_path):
    X = PublicScaler(RANGES).fit_transform(rows())
    model = LogisticRegression(1.0, classes=[0, 1]).fit(X, (X[:, 0] > 0).astype(int))
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.bounds_ == model.bounds_
    assert np.array_equal(again.predict(rows()), model.predict(rows()))
