"""The contract of scikit-learn, as its own checks see it: none is excused."""

import pytest
from sklearn.datasets import make_regression
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.cases import other_estimators

from tacit.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
    SimplexRegressor,
    SparseLogisticRegression,
)

ESTIMATORS = [
    LogisticRegression(x_norm=1.0),
    LogisticRegression(epsilon=1e4, x_norm=10.0, random_state=0),
    LogisticRegression(
        delta=1e-6,
        neighbors="add_or_remove_one",
        expected_rows=100,
        random_state=0,
        x_norm=1.0,
    ),
    LogisticRegression(solver="noisy_gd", random_state=0, x_norm=1.0),
    LogisticRegression(
        multi_class="one_vs_rest", epsilon=2.0, random_state=0, x_norm=1.0
    ),
    LinearSVC(epsilon=2.0, random_state=0, x_norm=1.0),
    LinearRegression(y_range=(-3, 3), random_state=0, x_norm=1.0),
    Ridge(y_range=(-3, 3), random_state=0, x_norm=1.0),
    HuberRegressor(y_range=(-3, 3), random_state=0, x_norm=1.0),
    SimplexRegressor(y_range=(-3, 3), random_state=0, x_max=1.0),
    Lasso(alpha=0.01, feature_bounds=5.0, y_range=(-3, 3), random_state=0),
    ElasticNet(alpha=0.01, feature_bounds=5.0, y_range=(-3, 3), random_state=0),
    SparseLogisticRegression(epsilon=2.0, feature_bounds=5.0, random_state=0),
]


@parametrize_with_checks([*ESTIMATORS, *other_estimators(ESTIMATORS)])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [LinearRegression, Ridge, HuberRegressor])
def test_regressors_score_well_where_privacy_is_cheap(kind, seed):
    # what scikit-learn asks of regressors that do not declare a poor score
    X, y = make_regression(
        n_samples=200,
        n_features=10,
        n_informative=1,
        bias=5.0,
        noise=20,
        random_state=42,
    )
    X, y = scale(X), scale(y)
    model = kind(epsilon=100.0, x_norm=5.0, y_range=(-4, 4), random_state=seed)
    assert model.fit(X, y).score(X, y) > 0.5
