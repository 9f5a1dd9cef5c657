"""Without privacy to pay for, private models are those of scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import nnls
from sklearn import linear_model as peers
from sklearn.base import clone
from sklearn.multiclass import OneVsRestClassifier

from tacit._random import as_generator
from tacit.convex import (
    L1,
    Box,
    Huber,
    HuberizedHinge,
    L2Ball,
    Objective,
    OneVsRest,
    minimize,
)
from tacit.data import RowBounds
from tacit.data.rows import ArrayRows
from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
    SimplexRegressor,
)
from tacit.solvers import AMP, NoisyGD
from tacit.solvers._base import INTERCEPT_FRACTION

N, P = 150, 3
FREE = {"epsilon": 1e13, "delta": 1e-5}
Y_RANGE = (-40.0, 60.0)


def rows(n=N, seed=3):
    return RowBounds().clip(as_generator(seed).normal(size=(n, P)) / 2)


def labels(X, n_classes, seed=4):
    rng = as_generator(seed)
    scores = X @ rng.normal(size=(P, n_classes)) * 5
    return (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def targets(X, seed=5):
    noise = as_generator(seed).normal(size=len(X))
    return X @ np.array([8.0, -5.0, 2.0]) + 12.0 + noise


def with_constant(X):
    return np.c_[X, np.full(len(X), INTERCEPT_FRACTION)]


def minimum(loss, ridge, X, y, y_range=(-1.0, 1.0)):
    return minimize(
        Objective(loss, ridge),
        ArrayRows(X, y),
        tolerance=1e-9,
        x_norm=1.1,
        y_range=y_range,
    ).W


def test_one_against_the_rest_is_that_of_scikit_learn(seed):
    X = rows()
    y = labels(X, 4)
    model = LogisticRegression(
        **FREE,
        multi_class="one_vs_rest",
        solver=AMP(ridge=2.0),
        fit_intercept=False,
        random_state=seed,
        x_norm=1.0,
    ).fit(X, y)
    alone = peers.LogisticRegression(
        C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000
    )
    peer = OneVsRestClassifier(alone).fit(X, y)
    expected = np.vstack([binary.coef_ for binary in peer.estimators_])
    assert_allclose(model.coef_, expected, rtol=0, atol=1e-6)
    assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_support_vectors_are_those_of_the_rounded_hinge(n_classes, seed):
    X = rows()
    y = labels(X, n_classes)
    model = LinearSVC(
        **FREE, h=0.3, solver=AMP(ridge=2.0), random_state=seed, x_norm=1.0
    )
    model.fit(X, y)
    hinge = HuberizedHinge(0.3)
    if n_classes == 2:
        W = minimum(hinge, 2.0, with_constant(X), 2.0 * y - 1)
    else:
        W = minimum(OneVsRest(hinge, n_classes), 2.0, with_constant(X), y)
    assert_allclose(model.coef_, W[:-1].T, rtol=0, atol=1e-6)
    assert_allclose(model.intercept_, W[-1] * INTERCEPT_FRACTION, rtol=0, atol=1e-6)
    assert not hasattr(model, "predict_proba")


def test_rounded_hinge_comes_near_the_hinge(seed):
    X = rows(n=400)
    y = labels(X, 2)
    model = LinearSVC(
        **FREE, h=0.02, ridge=1.0, solver=AMP(), random_state=seed, x_norm=1.0
    )
    hinge = minimum(HuberizedHinge(1e-3), 1.0, with_constant(X), 2.0 * y - 1)
    assert_allclose(model.fit(X, y).coef_[0], hinge[:-1, 0], atol=0.05)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_least_squares_are_those_of_scikit_learn(fit_intercept, seed):
    X = rows()
    y = targets(X)
    model = LinearRegression(
        **FREE,
        y_range=Y_RANGE,
        fit_intercept=fit_intercept,
        random_state=seed,
        x_norm=1.0,
    ).fit(X, y)
    peer = peers.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    # the noise is in units of the range, a hundred wide
    assert_allclose(model.coef_, peer.coef_, rtol=0, atol=1e-4)
    assert_allclose(model.intercept_, peer.intercept_, rtol=0, atol=1e-4)
    assert_allclose(model.predict(X), peer.predict(X), rtol=0, atol=1e-4)
    assert model.score(X, y) == pytest.approx(peer.score(X, y), abs=1e-6)


def test_ridge_is_that_of_scikit_learn_in_the_units_of_the_targets(seed):
    X = rows()
    y = targets(X)
    model = Ridge(
        **FREE, alpha=3.0, y_range=Y_RANGE, random_state=seed, x_norm=1.0
    ).fit(X, y)
    center = sum(Y_RANGE) / 2
    peer = peers.Ridge(alpha=3.0, fit_intercept=False, tol=1e-12)
    peer.fit(with_constant(X), y - center)
    assert_allclose(model.coef_, peer.coef_[:-1], rtol=0, atol=1e-5)
    expected = center + INTERCEPT_FRACTION * peer.coef_[-1]
    assert_allclose(model.intercept_, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("threshold", [None, 0.8])
def test_huber_is_the_minimum_in_the_units_of_the_targets(threshold, seed):
    X = rows()
    y = targets(X)
    y[:5] = 55.0  # outliers
    model = HuberRegressor(
        **FREE,
        threshold=threshold,
        alpha=2.0,
        y_range=Y_RANGE,
        solver=AMP(ridge=1e-3),
        random_state=seed,
        x_norm=1.0,
    ).fit(X, y)
    cut = 0.15 * (Y_RANGE[1] - Y_RANGE[0]) if threshold is None else threshold
    W = minimum(Huber(cut), 2.0, with_constant(X), y - 10.0, (-50.0, 50.0))[:, 0]
    assert_allclose(model.coef_, W[:-1], rtol=0, atol=1e-5)
    assert_allclose(
        model.intercept_, 10.0 + INTERCEPT_FRACTION * W[-1], rtol=0, atol=1e-5
    )


def test_simplex_finds_the_weights_of_a_mean(seed):
    X = np.sign(as_generator(6).normal(size=(2000, 4)))
    y = X @ np.array([1.4, 0.6, 0.0, 0.0])
    model = SimplexRegressor(
        1e6, 1e-5, radius=2.0, y_range=(-2, 2), random_state=seed, x_max=1.0
    ).fit(X, y)
    assert_allclose(model.coef_.sum(), 2.0, rtol=1e-9)
    assert model.coef_.min() >= 0
    assert model.intercept_ == 0.0
    assert_allclose(model.coef_, [1.4, 0.6, 0.0, 0.0], atol=0.1)


def test_sets_are_in_the_units_of_the_targets(seed):
    X = rows(n=400)
    y = targets(X) - 12.0
    settings = {**FREE, "y_range": Y_RANGE, "fit_intercept": False}
    ball = LinearRegression(
        **settings, penalty=L2Ball(4.0), random_state=seed, x_norm=1.0
    )
    assert np.linalg.norm(ball.fit(X, y).coef_) == pytest.approx(4.0, rel=1e-6)
    positive = LinearRegression(
        **settings,
        penalty=Box(0.0, 100.0),
        solver=NoisyGD(n_steps=2000, clip=10.0, momentum=0.9, step=2e-3),
        random_state=seed,
        x_norm=1.0,
    ).fit(X, y)
    assert_allclose(positive.coef_, nnls(X, y)[0], atol=1e-3)


@pytest.mark.parametrize("epsilon", [1e2, 1e3, 1e4])
def test_a_large_budget_does_not_lose_the_weights_of_a_penalty(epsilon):
    rng = as_generator(0)
    X = rng.uniform(-0.5, 0.5, size=(3000, 4))
    y = rng.random(3000) < 1 / (1 + np.exp(-6 * X[:, 0]))
    model = LogisticRegression(
        epsilon, 1e-8, penalty=L1(50.0), solver="amp", classes=[False, True], x_norm=1.0
    )
    descent = clone(model).set_params(solver="noisy_gd", random_state=0)
    found = model.set_params(random_state=0).fit(X, y).coef_
    assert found[0, 1:].tolist() == [0, 0, 0]
    assert found[0, 0] == pytest.approx(descent.fit(X, y).coef_[0, 0], rel=0.05)
