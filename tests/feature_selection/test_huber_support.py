"""The huberized lasso, a selector for blocks of rows to vote by."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import Lasso
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit._random import as_generator
from tacit.feature_selection import BlockVoteSelector, HuberLassoSupport


@parametrize_with_checks([HuberLassoSupport(1)])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def rows(n, p, seed, outliers=0.0):
    rng = as_generator(seed)
    X = rng.uniform(0, 10, (n, p))
    y = X[:, 2] - X[:, 5] + rng.standard_normal(n)
    far = rng.random(n) < outliers
    y[far] += 40 * X[far, 0]
    return X, y


def test_weights_minimize_the_huberized_loss(seed):
    X, y = rows(400, 8, seed, outliers=0.05)
    found = HuberLassoSupport(8, penalty=0.05).fit(X, y).coef_
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    t = y - np.median(y)
    t = t / (1.4826 * np.median(np.abs(t)))

    def value(v):
        r = t - v[0] - Z @ (v[1:9] - v[9:])
        cut = np.clip(r, -1.35, 1.35)
        derivatives = -Z.T @ cut / len(t)
        total = np.mean(cut * (r - cut / 2)) + 0.05 * v[1:].sum()
        return total, np.r_[-cut.mean(), derivatives + 0.05, -derivatives + 0.05]

    limits = [(None, None)] + [(0, None)] * 16
    least = minimize(value, np.zeros(17), jac=True, bounds=limits, tol=1e-14).x
    assert found == pytest.approx(least[1:9] - least[9:], abs=1e-3)
    np.testing.assert_array_equal(found != 0, np.abs(least[1:9] - least[9:]) > 1e-6)


def test_outliers_mislead_a_lasso_and_not_a_huberized_one(seed):
    X, y = rows(500, 10, seed, outliers=0.04)
    huberized = HuberLassoSupport(2).fit(X, y)
    assert huberized.get_support(indices=True).tolist() == [2, 5]
    plain = SelectFromModel(Lasso(0.1), threshold=-np.inf, max_features=2).fit(X, y)
    assert 0 in plain.get_support(indices=True)


def test_blocks_vote_by_it(seed):
    X, y = rows(4_000, 10, seed, outliers=0.04)
    voted = BlockVoteSelector(
        4.0,
        1e-6,
        n_features_to_select=2,
        selector=HuberLassoSupport(2),
        random_state=0,
    ).fit(X, y)
    assert voted.selection_ == (2, 5)


def test_constant_columns_and_targets_are_taken():
    X = np.column_stack([np.ones(20), np.arange(20.0), np.zeros(20)])
    fitted = HuberLassoSupport(2).fit(X, X[:, 1])
    assert fitted.get_support().tolist() == [False, True, False]
    assert not HuberLassoSupport(2).fit(X, np.ones(20)).get_support().any()


@pytest.mark.parametrize(
    "given", [{"n_features_to_select": 0}, {"penalty": 0.0}, {"threshold": -1.0}]
)
def test_bad_parameters_are_named(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        HuberLassoSupport(**{"n_features_to_select": 1, **given}).fit(
            np.eye(3), np.ones(3)
        )
