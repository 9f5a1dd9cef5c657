"""Least squares on privately selected columns: one charge, two stages, few weights."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import linear_model as plain
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.linear_model.selected import VOTES, P, data, model

from tacit._random import as_generator
from tacit.evaluation import coefficient_intervals, expected_score, private_score
from tacit.feature_selection import ExponentialSelector
from tacit.linear_model import SparseLinearRegression
from tacit.linear_model._sparse import SparseLinearModel


@parametrize_with_checks(
    [
        SparseLinearRegression(
            n_features_to_select=2,
            selector=VOTES,
            feature_bounds=5.0,
            y_range=(-3, 3),
            random_state=0,
        ),
    ]
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def test_parameters_of_a_selector_inside_are_found_and_cloned():
    inside = model(
        selector=ExponentialSelector(n_features_to_select=1, coef_bound=0.5),
        selection_share=0.3,
    )
    given = clone(inside).get_params()
    assert given["selector__coef_bound"] == 0.5
    assert given["selection_share"] == 0.3
    assert clone(inside).set_params(selector__coef_bound=2.0).selector.coef_bound == 2.0
    assert inside.selector.coef_bound == 0.5


def best_subset(X, y, size):
    """Return the columns and weights with the least squared error, by trying all."""
    if size == 1:
        sizes = [(j,) for j in range(X.shape[1])]
    else:
        sizes = [(j, k) for k in range(X.shape[1]) for j in range(k)]
    fits = [plain.LinearRegression().fit(X[:, chosen], y) for chosen in sizes]
    scores = [
        fit.score(X[:, chosen], y) for fit, chosen in zip(fits, sizes, strict=True)
    ]
    best = int(np.argmax(scores))
    return sizes[best], fits[best]


@pytest.mark.parametrize("size", [1, 2])
def test_without_noise_it_is_the_best_subset(size, seed):
    X, y = data()
    fitted = model(1e6, 1e-2, n_features_to_select=size, random_state=seed).fit(X, y)
    chosen, best = best_subset(X, y, size)
    assert fitted.selection_ == chosen
    assert_allclose(fitted.coef_[list(chosen)], best.coef_, atol=2e-3)
    assert fitted.intercept_ == pytest.approx(best.intercept_, abs=2e-3)
    others = np.delete(fitted.coef_, chosen)
    assert not others.any()
    assert_array_equal(fitted.selected_features_, chosen)
    assert_array_equal(fitted.sparse_coef_.toarray(), fitted.coef_[None])


def test_the_error_falls_like_one_over_the_rows(seed):
    sizes = (2000, 8000)
    errors = []
    for n in sizes:
        X, y = data(n)
        exact = plain.LinearRegression().fit(X[:, [2, 7]], y).coef_
        runs = [
            # a selector that is planned in no time
            model(
                4.0, selector="exponential", solver="ada_ssp", random_state=seed + k
            ).fit(X, y)
            for k in range(8)
        ]
        assert all(run.selection_ == (2, 7) for run in runs)
        off = [np.linalg.norm(run.coef_[[2, 7]] - exact) for run in runs]
        errors.append(np.mean(off))
    derivative = np.log(errors[1] / errors[0]) / np.log(sizes[1] / sizes[0])
    assert -1.4 < derivative < -0.6


def test_units_of_features_and_targets_change_nothing_else(seed):
    X, y = data()
    one = model(random_state=seed).fit(X, y)
    units = np.geomspace(0.1, 1e3, P)
    other = model(feature_bounds=units, y_range=(-300, 500), random_state=seed).fit(
        X * units, y * 100
    )
    assert one.selection_ == other.selection_
    assert_allclose(other.coef_ * units / 100, one.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
def test_codes_of_zero_and_one_are_found(neighbors, seed):
    rng = as_generator(seed)
    X = (rng.uniform(size=(5000, 20)) < np.linspace(0.05, 0.5, 20)).astype(float)
    y = 2 * X[:, 5] - X[:, 15] + X[:, 19] + 0.3 * rng.normal(size=5000)
    fitted = model(
        n_features_to_select=3,
        feature_bounds=[(0, 1)] * 20,
        neighbors=neighbors,
        expected_rows=4000,  # a wrong guess costs accuracy only
        random_state=seed,
    ).fit(X, y)
    assert fitted.selection_ == (5, 15, 19)
    assert fitted.score(X, y) > 0.8


def test_a_target_that_fills_a_tenth_of_its_range_still_finds_its_columns(seed):
    X, y = data(10_000)
    fitted = model(2.0, y_range=(-3, 77), random_state=seed).fit(X, y)
    assert fitted.selection_ == (2, 7)


def test_far_more_columns_than_rows_are_no_problem(seed):
    X, y = data(500, 3000)
    fitted = model(8.0, random_state=seed).fit(X, y)
    assert fitted.selection_ == (2, 7)
    assert fitted.score(X, y) > 0.8


def test_sparse_rows_are_fitted_like_dense_ones(seed):
    rng = as_generator(seed)
    X = (rng.uniform(size=(3000, 15)) < 0.2) * rng.uniform(0, 1, size=(3000, 15))
    y = 2 * X[:, 3] - X[:, 4]
    given = {"feature_bounds": [(0, 1)] * 15, "random_state": seed}
    fitted = model(5.0, **given).fit(sparse.csr_array(X), y)
    assert fitted.selection_ == (3, 4)
    assert fitted.score(X, y) > 0.7
    assert_allclose(fitted.predict(sparse.csr_array(X)), fitted.predict(X))


@pytest.mark.parametrize("epsilon", [0.01, 1000.0])
@pytest.mark.parametrize("shape", [(2, 1), (2, 5), (40, 3)])
def test_few_rows_and_any_budget_give_numbers(shape, epsilon, seed):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, size=shape)
    X[:, -1] = 0.5  # a constant column
    fitted = model(epsilon, random_state=seed).fit(X, X[:, 0])
    assert np.isfinite([*fitted.coef_, fitted.intercept_]).all()
    assert np.isfinite(fitted.predict(X)).all()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_and_without_delta_and_intercept(delta, fit_intercept, seed):
    X, y = data(5000)
    fitted = model(4.0, delta, fit_intercept=fit_intercept, random_state=seed).fit(
        X, y - (0 if fit_intercept else 1)
    )
    assert fitted.selection_ == (2, 7)
    assert fitted.score(X, y - (0 if fit_intercept else 1)) > 0.9
    assert (fitted.intercept_ != 0) is fit_intercept
    guarantee = fitted.privacy_.guarantee
    assert guarantee.delta == delta
    event = fitted.privacy_.entries[0].event
    assert event.curve(guarantee.neighbors).epsilon(delta) <= 4.0


def test_names_of_columns_give_bounds_and_are_told(seed):
    X, y = data()
    names = [f"f{j}" for j in range(P)]
    bounds = dict.fromkeys(reversed(names), (-1.0, 1.0))
    fitted = model(4.0, feature_bounds=bounds, random_state=seed)
    fitted.fit(pd.DataFrame(X, columns=names), y)
    assert fitted.selected_names_.tolist() == ["f2", "f7"]
    assert isinstance(fitted, SparseLinearModel)
    unnamed = fitted.set_params(feature_bounds=1.0).fit(X, y)
    with pytest.raises(AttributeError, match="needs names"):
        _ = unnamed.selected_names_


def test_scores_work_and_intervals_are_refused(seed):
    X, y = data()
    fitted = model(4.0, random_state=seed).fit(X, y)
    score = private_score(fitted, X, y, epsilon=1.0, random_state=seed)
    assert score.measure == "mean absolute error"
    assert score.low <= score.value <= score.high
    with pytest.raises(ValueError, match="not available for sparse models"):
        coefficient_intervals(fitted, X, y, epsilon=1.0)
    assert fitted.noise_ is None


def test_scores_to_expect_are_of_as_many_columns_as_are_selected():
    forecast = expected_score(model(2.0), 2000, [1] * 8, repeats=1)
    medium = forecast.outlooks[1]
    assert medium.signal == "medium"
    assert medium.plain == pytest.approx(0.5, abs=0.1)
    # two columns are enough, as no other has signal
    assert medium.high > 0.3


def test_rows_of_a_file_are_fitted_like_rows_in_memory(tmp_path, seed):
    X, y = data(300)
    path = tmp_path / "rows"
    stored = np.memmap(path, dtype=np.float64, mode="w+", shape=X.shape)
    stored[:] = X
    one, two = (model(random_state=seed).fit(rows, y) for rows in (X, stored))
    assert_array_equal(one.coef_, two.coef_)


def test_it_is_a_step_of_a_pipeline(seed):
    X, y = data()
    steps = make_pipeline(FunctionTransformer(), model(4.0, random_state=seed))
    assert steps.fit(X, y).score(X, y) > 0.8
