"""Linear models of any loss: what they predict follows from the loss."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import is_classifier, is_regressor

from tacit import Seed
from tacit._random import as_generator
from tacit.convex import Huber, HuberizedHinge, Logistic, Softmax
from tacit.linear_model import (
    GeneralizedLinearModel,
    HuberRegressor,
    LinearSVC,
    LogisticRegression,
)
from tacit.persistence import load_model, save_model


def rows(n=300, p=3, seed=0):
    rng = as_generator(seed)
    X = rng.normal(size=(n, p)) / 3
    return X, X @ np.array([1.0, 2.0, 0.0])


@pytest.mark.parametrize(
    ("loss", "same"),
    [
        (Logistic(), LogisticRegression(classes=[0, 1], x_norm=1.0)),
        (HuberizedHinge(0.5), LinearSVC(classes=[0, 1], x_norm=1.0)),
    ],
    ids=["logistic", "hinge"],
)
def test_a_loss_of_labels_makes_the_classifier_of_that_loss(loss, same):
    X, scores = rows()
    y = (scores > 0).astype(int)
    model = GeneralizedLinearModel(
        loss=loss, classes=[0, 1], random_state=Seed(1), x_norm=1.0
    )
    assert is_classifier(model)
    assert_array_equal(
        model.fit(X, y).coef_, same.set_params(random_state=Seed(1)).fit(X, y).coef_
    )
    assert model.score(X, y) > 0.6
    assert model.privacy_.guarantee == same.privacy_.guarantee


def test_a_loss_of_numbers_makes_the_regressor_of_that_loss():
    X, y = rows()
    given = {"y_range": (-2.0, 2.0), "random_state": Seed(1)}
    model = GeneralizedLinearModel(loss=Huber(0.5), **given, x_norm=1.0)
    assert is_regressor(model)
    assert not hasattr(model, "decision_function")
    # the threshold of the regressor is in units of the targets
    same = HuberRegressor(threshold=1.0, **given, x_norm=1.0).fit(X, y)
    assert_array_equal(model.fit(X, y).coef_, same.coef_)
    assert_array_equal(model.predict(X), same.predict(X))


def test_a_loss_of_codes_needs_as_many_classes():
    X, scores = rows()
    y = np.digitize(scores, [-0.3, 0.3])
    model = GeneralizedLinearModel(loss=Softmax(3), classes=range(3), x_norm=1.0)
    assert model.fit(X, y).coef_.shape == (3, 3)
    with pytest.raises(ValueError, match=r"is not for 4 labels; give a loss"):
        model.set_params(classes=range(4)).fit(X, y)


@dataclass(frozen=True)
class Own(Logistic):
    """A loss of one's own: half of the logistic one."""

    def value(self, y, Z):
        return super().value(y, Z) / 2

    def derivative(self, y, Z):
        return super().derivative(y, Z) / 2

    def curvature(self, y, Z):
        return super().curvature(y, Z) / 2


def test_a_loss_of_ones_own_has_an_estimator():
    X, scores = rows()
    y = scores > 0
    model = GeneralizedLinearModel(4.0, loss=Own(), classes=[False, True], x_norm=1.0)
    assert model.fit(X, y).coef_.shape == (1, 3)


def test_a_loss_that_declares_no_targets_is_rejected():
    X, y = rows()
    with pytest.raises(
        ValueError, match=r"declare targets as .numbers., .* got object"
    ):
        GeneralizedLinearModel(loss=object(), x_norm=1.0).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        GeneralizedLinearModel(classes=[0, 1], x_norm=1.0),
        GeneralizedLinearModel(classes=range(3), x_norm=1.0),
        GeneralizedLinearModel(loss=Huber(0.2), y_range=(-2.0, 2.0), x_norm=1.0),
    ],
    ids=repr,
)
def test_a_saved_model_comes_back(model, tmp_path):
    X, scores = rows()
    y = scores if is_regressor(model) else np.arange(len(X)) % len(model.classes)
    save_model(model.fit(X, y), tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert_array_equal(again.predict(X), model.predict(X))
