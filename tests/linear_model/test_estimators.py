"""What every private linear model does alike, over ESTIMATORS."""

import inspect
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from tests.cases import Cases, cases
from tests.public import public

import tacit.linear_model
from tacit._execution import steps
from tacit._random import as_generator
from tacit._release import is_note
from tacit.audit import assert_replays
from tacit.convex import Huber
from tacit.exceptions import BudgetExceeded
from tacit.linear_model import (
    ElasticNet,
    GeneralizedLinearModel,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
    SimplexRegressor,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from tacit.privacy import Budget, Ledger, Neighbors
from tacit.solvers import NoisyGD

N, P = 120, 3
Y_RANGE = (-4.0, 6.0)
SHARED_CASES = Cases(
    estimators=[
        LogisticRegression(x_norm=1.0),
        LogisticRegression(multi_class="one_vs_rest", x_norm=1.0),
        GeneralizedLinearModel(x_norm=1.0),
        GeneralizedLinearModel(loss=Huber(0.5), y_range=Y_RANGE, x_norm=1.0),
        LinearSVC(x_norm=1.0),
        LinearRegression(y_range=Y_RANGE, x_norm=1.0),
        Ridge(y_range=Y_RANGE, x_norm=1.0),
        HuberRegressor(y_range=Y_RANGE, x_norm=1.0),
        SimplexRegressor(y_range=Y_RANGE, x_max=1.0),
        Lasso(alpha=0.1, feature_bounds=1.5, y_range=Y_RANGE),
        ElasticNet(alpha=0.1, feature_bounds=1.5, y_range=Y_RANGE),
        SparseLogisticRegression(feature_bounds=1.5),
        SparseLinearRegression(
            n_features_to_select=2, feature_bounds=1.5, y_range=Y_RANGE
        ),
    ]
)
ESTIMATORS = cases("estimators")
SPARSE = (Lasso, ElasticNet, SparseLogisticRegression, SparseLinearRegression)

every_estimator = pytest.mark.parametrize("model", ESTIMATORS, ids=repr)


def data(model, n=N, seed=0):
    rng = as_generator(seed)
    X = rng.normal(size=(n, P)) / 3
    if is_classifier(model):
        scores = X @ rng.normal(size=(P, n_classes(model))) * 5
        return X, scores.argmax(axis=1)
    return X, X @ np.array([3.0, 1.0, -2.0]) + 1.0 + rng.normal(size=n) / 4


def n_classes(model):
    return 2 if isinstance(model, SparseLogisticRegression) else 3


def fitted_attributes(model):
    return {name for name in vars(model) if name.endswith("_")}


def test_every_public_estimator_is_here():
    kinds = {type(model).__name__ for model in ESTIMATORS}
    assert kinds >= public(tacit.linear_model, "fit")


@every_estimator
@pytest.mark.parametrize("neighbors", [n.value for n in Neighbors])
def test_fit_reports_what_it_promised_spent_and_assumed(model, neighbors, seed):
    X, y = data(model)
    model = clone(model).set_params(
        delta=1e-6, neighbors=neighbors, expected_rows=N, random_state=seed
    )
    report = model.fit(X, y).privacy_
    expected = {"bounds_", "coef_", "intercept_", "loss_", "noise_", "privacy_"}
    expected.add("n_features_in_")
    if isinstance(model, SPARSE):
        expected.add("path_")
    if isinstance(model, SparseLinearRegression):
        expected.add("selection_")
    if is_classifier(model):
        expected.add("classes_")
    assert fitted_attributes(model) == expected
    assert report.guarantee == Budget(1.0, 1e-6, neighbors)
    assert 0.9 < report.spent <= 1.0
    assert [entry.label for entry in report.entries] == [type(model).__name__]
    told = " ".join(report.assumptions)
    assert "chosen without looking at the data" in told
    assert ("targets are clipped to [-4, 6]" in told) is not is_classifier(model)
    assert ("number of rows is public" in told) is (neighbors == "replace_one")


@every_estimator
def test_delta_defaults_to_one_over_the_squared_rows(model, seed):
    X, y = data(model)
    fitted = clone(model).set_params(random_state=seed).fit(X, y)
    assert fitted.privacy_.guarantee == Budget(1.0, 1 / N**2)


@every_estimator
def test_sparse_rows_give_what_dense_rows_give(model, seed):
    X, y = data(model)
    X[X < 0] = 0.0
    # corners are drawn in another way from sparse rows, by the same law
    drawn = isinstance(model, SimplexRegressor)
    dense, thin = (
        clone(model)
        .set_params(epsilon=1e6 if drawn else 1.0, random_state=seed)
        .fit(Z, y)
        for Z in (X, sparse.csr_array(X))
    )
    # otherwise as far as the certificate of the minimizer goes
    near = {"rtol": 0, "atol": 0.05} if drawn else {"rtol": 1e-4, "atol": 1e-5}
    assert_allclose(thin.coef_, dense.coef_, **near)
    assert_allclose(thin.intercept_, dense.intercept_, **near)
    seen = dense.predict(X), dense.predict(sparse.csc_matrix(X))
    if is_classifier(model):
        assert_array_equal(*seen)
    else:
        assert_allclose(*seen, rtol=1e-12)


@every_estimator
def test_single_precision_is_widened_before_it_is_clipped(model, seed):
    X, y = data(model)
    X = X.astype(np.float32)
    narrow, wide = (
        clone(model).set_params(random_state=seed).fit(Z, y)
        for Z in (X, X.astype(np.float64))
    )
    assert_array_equal(narrow.coef_, wide.coef_)
    assert_array_equal(narrow.predict(X), wide.predict(X))


@every_estimator
def test_feature_names_of_a_frame_are_kept_and_checked(model, seed):
    X, y = data(model)
    frame = pd.DataFrame(X, columns=["age", "income", "height"])
    model = clone(model).set_params(random_state=seed).fit(frame, pd.Series(y))
    assert_array_equal(model.feature_names_in_, frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"age": "years"}))


@every_estimator
def test_long_rows_are_shortened_when_predicting_too(model, seed):
    X, y = data(model)
    model = clone(model).set_params(random_state=seed).fit(X, y)
    longer = np.sign(X[:5]) * 3.0  # as far out in each entry as in norm
    assert_allclose(model.predict(longer), model.predict(longer * 1e6))


@every_estimator
def test_seeded_fits_agree_and_fresh_ones_differ(model, seed):
    X, y = data(model)
    fixed = [clone(model).set_params(random_state=seed).fit(X, y) for _ in range(2)]
    assert_array_equal(fixed[0].coef_, fixed[1].coef_)
    free = [clone(model).set_params(epsilon=0.1).fit(X, y) for _ in range(3)]
    # weights on a simplex may be one of few corners
    least = 1 if isinstance(model, SimplexRegressor) else 3
    assert len({fit.coef_.tobytes() for fit in free}) >= least


@every_estimator
def test_fitted_model_survives_pickling_and_a_clone_is_blank(model, seed):
    X, y = data(model)
    ledger = Ledger(Budget(1.0, 1e-3))
    model = clone(model).set_params(random_state=seed).fit(X, y, ledger=ledger)
    back = pickle.loads(pickle.dumps(model))
    assert_array_equal(back.predict(X), model.predict(X))
    assert back.privacy_ == model.privacy_
    assert not fitted_attributes(clone(model))


@every_estimator
def test_refused_fit_releases_and_charges_nothing(model):
    X, y = data(model)
    ledger = Ledger(Budget(1.2, 1e-3))
    model.fit(X, y, ledger=ledger)
    again = clone(model)
    with pytest.raises(BudgetExceeded, match="nothing was charged or released"):
        again.fit(X, y, ledger=ledger)
    assert len(ledger.report().entries) == 1
    assert not fitted_attributes(again)
    with pytest.raises(NotFittedError):
        again.predict(X)


@every_estimator
def test_parameters_are_stored_untouched(model):
    given = inspect.signature(type(model)).parameters
    sentinels = {name: object() for name in given}
    assert type(model)(**sentinels).get_params(deep=False) == sentinels


@every_estimator
def test_nothing_but_the_releases_depends_on_the_rows(model, seed):
    X, y = data(model, n=12)
    other, targets = X.copy(), y.copy()
    X[0], other[0] = 1e6, -1e6
    targets[0] = (1 + y[0]) % n_classes(model) if is_classifier(model) else -1e6

    def train(X, y):
        settings = {"epsilon": 2.0, "delta": 1e-4, "random_state": seed}
        if is_classifier(model):
            settings["classes"] = range(n_classes(model))
        return clone(model).set_params(**settings).fit(X, y)

    assert_replays(train, (X, y), (other, targets))


class Stepping(NoisyGD):
    """A descent that counts its steps aloud where one asks."""

    def run(self, plan, rows, rng):
        for _ in steps(plan.n_steps, "Stepping"):
            pass
        return super().run(plan, rows, rng)


def without_time(text):
    return re.sub(r"\d+:\d\d:\d\d", "TIME", text)


def test_bar_shows_the_same_for_other_rows_and_is_off_by_default(capfd):
    shown = []
    for seed, verbose in ((0, 1), (7, True), (0, 0), (7, False)):
        X, y = data(LogisticRegression(x_norm=1.0), seed=seed)
        model = LogisticRegression(
            solver=Stepping(n_steps=40), verbose=verbose, x_norm=1.0
        )
        model.fit(X, y)
        out, err = capfd.readouterr()
        assert out == ""
        shown.append(without_time(err))
    assert "Stepping" in shown[0]
    assert shown[0] == shown[1]
    assert shown[2:] == ["", ""]


@every_estimator
def test_fitting_is_silent(model, capfd):
    model = clone(model)
    X, y = data(model)
    model.fit(X, y).predict(X)
    assert capfd.readouterr() == ("", "")


PLANNED = [
    LogisticRegression(1.0, classes=[0, 1], x_norm=1.0),
    LogisticRegression(0.5, classes=range(3), solver="amp", x_norm=1.0),
    LinearSVC(1.0, classes=[0, 1], solver="noisy_gd", x_norm=1.0),
    LinearRegression(1.0, y_range=(0, 10), x_norm=1.0),
    Ridge(1.0, alpha=2.0, y_range=(0, 10), solver="ada_ssp", x_norm=1.0),
    HuberRegressor(1.0, y_range=(0, 10), x_norm=1.0),
    SimplexRegressor(1.0, y_range=(0, 10), x_max=1.0),
    Lasso(1.0, feature_bounds=1.0, y_range=(0, 10)),
    ElasticNet(1.0, feature_bounds=[1, 2, 3, (-1, 2)], y_range=(0, 10), solver="cd"),
    SparseLogisticRegression(1.0, feature_bounds=1.0, classes=[0, 1]),
]


@pytest.mark.parametrize("model", PLANNED, ids=lambda model: type(model).__name__)
def test_a_plan_without_rows_is_what_a_fit_is_charged(model):
    rng = as_generator(0)
    X = rng.uniform(-1, 1, size=(300, 4))
    y = rng.integers(0, 2, size=300)
    planned = model.plan(*X.shape)
    report = clone(model).fit(X, y).privacy_
    assert report.entries[0].event == planned.event
    assert report.guarantee == planned.budget
    assert set(planned.assumptions) <= {*report.assumptions, *report.notes}
    assert set(filter(is_note, planned.assumptions)) <= set(report.notes)
    assert not any(map(is_note, report.assumptions))


def test_a_plan_of_a_classifier_needs_its_classes():
    with pytest.raises(ValueError, match="classes must be given"):
        LogisticRegression(1.0, x_norm=1.0).plan(100, 3)


@pytest.mark.parametrize("shape", [(1, 3), (10, 0), (10.5, 3), (10, True)])
def test_a_plan_needs_a_shape(shape):
    with pytest.raises(ValueError, match=r"n_rows|n_features"):
        LinearRegression(1.0, y_range=(0, 1), x_norm=1.0).plan(*shape)


@pytest.mark.parametrize(
    ("intercept", "unit"), [(True, (1.0, 2.0)), (False, (0.0, 3.0))]
)
def test_all_targets_are_within_one_in_the_unit_of_the_fit(intercept, unit):
    model = LinearRegression(y_range=(-1.0, 3.0), fit_intercept=intercept, x_norm=1.0)
    assert model.target_unit() == unit
