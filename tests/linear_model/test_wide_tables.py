"""More columns than rows: how rows are bounded, and what that finds."""

import numpy as np
import pytest
from scipy import sparse

from tacit._random import as_generator
from tacit.convex import L1, L1Ball
from tacit.linear_model import LinearSVC, LogisticRegression
from tacit.persistence import load_model, save_model
from tacit.privacy import Budget
from tacit.solvers import NoisyGD
from tacit.solvers._auto import auto_norm, sparse_radius

CLASSIFIERS = [LogisticRegression, LinearSVC]


@pytest.mark.parametrize(
    ("n_rows", "n_features", "is_sparse", "budget", "norm"),
    [
        (4000, 5000, False, Budget(0.1, 1e-7), "linf"),
        (4000, 5000, True, Budget(0.1, 1e-7), "l2"),
        (4000, 4000, False, Budget(0.1, 1e-7), "l2"),
        (4000, 5000, False, Budget(1e4, 1e-7), "l2"),
        (4000, 5000, False, Budget(0.1), "l2"),
    ],
    ids=["wide", "sparse", "square", "quiet", "pure"],
)
def test_the_norm_follows_from_public_facts(
    n_rows, n_features, is_sparse, budget, norm
):
    assert auto_norm(n_rows, n_features, is_sparse, budget) == norm


def wide_rows(seed, n=1500, p=2000):
    rng = as_generator(seed)
    X = np.clip(rng.normal(size=(n + 1000, p)) / 3, -1, 1)
    y = (X[:, 3] - X[:, 11] + 0.1 * rng.normal(size=len(X)) > 0).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_few_columns_that_matter_are_found_among_many(kind, seed):
    X, y, X_test, y_test = wide_rows(seed)
    model = kind(0.5, classes=[0, 1], random_state=seed, x_norm=1.0).fit(X, y)
    short = kind(
        0.5, x_norm=1.0, bound_norm="l2", classes=[0, 1], random_state=seed
    ).fit(X, y)
    assert model.bounds_.norm == "linf"
    assert set(np.flatnonzero(model.coef_[0])) & {3, 11}
    assert model.score(X_test, y_test) > short.score(X_test, y_test) + 0.1


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize(
    ("given", "convert", "norm"),
    [
        ({}, np.asarray, "linf"),
        ({}, sparse.csr_array, "l2"),
        ({"penalty": L1(1.0)}, np.asarray, "l2"),
        ({"solver": NoisyGD(n_steps=2)}, np.asarray, "l2"),
        ({"bound_norm": "l2"}, np.asarray, "l2"),
        ({"bound_norm": "linf", "penalty": L1Ball(2.0)}, np.asarray, "linf"),
    ],
    ids=["auto", "sparse", "penalty", "solver", "asked", "ball"],
)
def test_what_is_asked_for_is_done(kind, given, convert, norm, seed):
    X, y, _, _ = wide_rows(seed, n=60, p=80)
    model = kind(1.0, classes=[0, 1], random_state=seed, **given, x_norm=1.0).fit(
        convert(X), y
    )
    assert model.bounds_.norm == norm
    # prediction bounds rows as the fit did
    longer = model.decision_function(convert(10 * X))
    limit = np.abs(model.coef_).sum() if norm == "linf" else np.linalg.norm(model.coef_)
    assert np.max(np.abs(longer - model.intercept_)) <= limit * (1 + 1e-9)


def few_words(seed, n=3000, p=20_000):
    """Return rows of norm one with a few of many words, and labels by one of them."""
    rng = as_generator(seed)
    words = sparse.random_array((n, p), density=40 / p, rng=rng, format="lil")
    y = (rng.random(n) < 0.4).astype(int)
    words[:, 0] = 0.5 * y[:, None]
    words = words.tocsr()
    norms = np.sqrt(words.multiply(words).sum(axis=1))
    return sparse.csr_array(words / norms.reshape(-1, 1)), y


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_word_that_matters_is_found_in_sparse_rows(kind, seed, tmp_path):
    X, y = few_words(seed)
    budget = {"delta": 1e-7, "classes": [0, 1], "x_norm": 1.0, "random_state": seed}
    model = kind(2.0, **budget).fit(X, y)
    assert model.bounds_.norm == "linf"
    assert model.bounds_.x_norm == 1 / 8
    assert model.score(X, y) > 0.9
    assert kind(2.0, bound_norm="l2", **budget).fit(X, y).score(X, y) < 0.85
    save_model(model, tmp_path / "model")
    assert load_model(tmp_path / "model").bounds_ == model.bounds_


def test_the_ball_grows_with_the_budget_up_to_a_limit():
    radii = [sparse_radius(9000, 40_000, Budget(e, 1e-8)) for e in (0.7, 1.0, 9.0)]
    assert 5.0 < radii[0] < radii[1] < 10.0
    assert radii[2] == 10.0


def test_sparse_rows_whose_words_drown_stay_in_the_euclidean_norm():
    for epsilon, norm in ((0.3, "l2"), (1.0, "linf")):
        assert auto_norm(9000, 40_000, True, Budget(epsilon, 1e-8)) == norm


def test_sparse_rows_of_several_classes_stay_in_the_euclidean_norm():
    planned = LogisticRegression(3.0, x_norm=1.0, classes=range(3)).plan(
        9000, 40_000, sparse=True
    )
    assert planned.problem.bounds.norm == "l2"
