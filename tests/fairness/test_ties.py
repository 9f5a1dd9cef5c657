"""Ties, which scorecards of integers have: decided as in predictions."""

import numpy as np
import pytest
from sklearn import linear_model as plain
from sklearn.svm import SVC
from tests.fairness.people import Linear, models, people

from tacit._random import as_generator
from tacit.fairness import (
    certify_model,
    compare_models,
    group_fairness,
    private_certificate,
)
from tacit.fairness._groups import NOTIONS
from tacit.fairness._margins import linear_margins

DISTANCE = 0.4


def scorecard(n_labels, seed):
    """Whole points for whole features, so that many scores are equal."""
    rng = as_generator(seed)
    k = 1 if n_labels == 2 else n_labels
    points = rng.integers(-2, 3, size=(k, 4)).astype(float)
    X = rng.integers(-1, 2, size=(3000, 4)).astype(float)
    y, s = rng.integers(n_labels, size=3000), rng.integers(3, size=3000)
    return Linear(points, np.zeros(k), np.arange(n_labels)), X, y, s


def near(model, rng):
    step = rng.normal(size=model.coef_.shape)
    step *= DISTANCE / np.linalg.norm(step)
    return Linear(model.coef_ + step, model.intercept_, model.classes_)


def certificates(model, X, y, s, notion, **others):
    """The certificate without noise, and one with next to none."""
    given = {"sensitive_features": s, "distance": DISTANCE, "notion": notion} | others
    paid = private_certificate(
        model, X, y, epsilon=1e6, groups=np.unique(s), random_state=0, **given
    )
    return certify_model(model, X, y, **given), paid


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("notion", ["equalized_odds", "accuracy_parity", "accuracy"])
def test_scorecards_with_ties_have_the_figures_of_their_predictions(notion, n_labels):
    for seed in range(5):
        model, X, y, s = scorecard(n_labels, seed)
        assert (linear_margins(model, X, y).margins == 0).mean() > 0.05
        given = {"sensitive_features": s, "notion": notion}
        truth = group_fairness(y, model.predict(X), **given).values
        others = [
            group_fairness(y, near(model, as_generator(run)).predict(X), **given).values
            for run in range(40)
        ]
        for held in certificates(model, X, y, s, notion):
            np.testing.assert_allclose(held.values, truth, atol=1e-3)
            assert (held.lower - 1e-3 <= np.min(others, axis=0)).all()
            assert (held.upper + 1e-3 >= np.max(others, axis=0)).all()
            moved = np.abs(np.subtract(others, truth)).max(axis=0)
            assert (moved <= held.change + 1e-3).all()


@pytest.mark.parametrize("notion", NOTIONS)
def test_a_tie_that_is_right_can_be_lost(notion):
    """Ties and narrow rows of one group, all right, which a model near loses."""
    parts = [([1.0, 1.0], "a", 0), ([1.0, 1.1], "a", 0), ([0.0, 5.0], "b", 0),
             ([5.0, 0.0], "a", 1), ([5.0, 0.0], "b", 1)]  # fmt: skip
    X = np.repeat([row for row, _, _ in parts], 1000, axis=0)
    s = np.repeat([group for _, group, _ in parts], 1000)
    y = np.repeat([label for _, _, label in parts], 1000)
    first = Linear(np.array([[1.0, -1.0]]), np.zeros(1))
    second = Linear(np.array([[1.2, -1.0]]), np.zeros(1))
    given = {"sensitive_features": s, "notion": notion}
    if notion == "equal_opportunity":
        given["desirable"] = 0
    truth, other = (
        group_fairness(y, model.predict(X), **given).values for model in (first, second)
    )
    extra = {name: given[name] for name in given if name == "desirable"}
    for held in certificates(first, X, y, s, notion, **extra):
        np.testing.assert_allclose(held.values, truth, atol=1e-3)
        assert (np.abs(other - truth) <= held.change + 1e-3).all()
    compared = compare_models(y, first=first, second=second, X=X, **given)
    np.testing.assert_array_equal(compared.first.values, truth)
    np.testing.assert_array_equal(compared.second.values, other)
    assert compared.turned == 0.4


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_a_vector_for_each_pair_of_labels_is_refused(shift):
    X, y, s = people(400, n_labels=3)
    X = X + shift
    pairs = SVC(kernel="linear", C=0.1).fit(X, y)
    assert pairs.coef_.shape == (3, 5)  # as if there were one for each label
    with pytest.raises(ValueError, match="which SVC does not"):
        certify_model(pairs, X, y, sensitive_features=s, distance=0.1)
    # control: with two labels, or a vector for each, answers are those of the scores
    two = SVC(kernel="linear", C=0.1).fit(X, y > 0)
    for model, truth in [(two, y > 0), (plain.SGDClassifier().fit(X, y), y)]:
        found = linear_margins(model, X, truth)
        assert found.right.mean() == (model.predict(X) == truth).mean()


def test_an_intercept_of_zero_is_one_where_the_model_says_so():
    X, y, _ = people(100)
    first, _ = models(intercept=False)
    without = linear_margins(first, X, y).lipschitz
    first.fit_intercept = True
    found = linear_margins(first, X, y).lipschitz
    np.testing.assert_allclose(found, np.hypot(without, 1.0))


def test_rows_whose_squares_are_too_large_have_norms():
    X, y, _ = people(100)
    first, _ = models()
    found = linear_margins(first, 1e160 * X, y)
    np.testing.assert_allclose(found.lipschitz / 1e160, np.linalg.norm(X, axis=1))
