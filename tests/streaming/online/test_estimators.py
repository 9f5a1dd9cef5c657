"""Estimators that learn on streams, from the outside."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit._random import as_generator
from tacit.convex import Logistic, OneVsRest, Softmax
from tacit.streaming import (
    GradientSums,
    OnlineLinearRegression,
    OnlineLogisticRegression,
    PerturbedIterates,
    QuadraticLeader,
)
from tacit.streaming.online._logistic import methods

ESTIMATORS = [
    OnlineLogisticRegression(horizon=40, x_norm=1.0),
    OnlineLogisticRegression(epsilon=1e4, x_norm=10.0, random_state=0),
    OnlineLogisticRegression(
        method="quadratic_leader", horizon=40, random_state=0, x_norm=1.0
    ),
    OnlineLinearRegression(y_range=(-3, 3), horizon=40, random_state=0, x_norm=1.0),
    OnlineLinearRegression(
        y_range=(-3, 3), horizon=40, method="gradient_sums", random_state=0, x_norm=1.0
    ),
]
PERTURBED = ("implicit", "gradient", "leader")


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def classify(model, n_steps, n_rows, labels=(0, 1), seed=0, width=3):
    """Return the share of right predictions in the second half of a stream."""
    rng = as_generator(seed)
    labels, right = np.asarray(labels), []
    for step in range(n_steps):
        X = rng.uniform(-0.5, 0.5, (n_rows, width))
        y = labels[np.argmax(X[:, : len(labels)], axis=1)]
        if step > n_steps // 2:
            right.append(np.mean(model.predict(X) == y))
        model.partial_fit(X, y)
    return float(np.mean(right))


def regress(model, n_steps, n_rows, center=0.0, size=1.0, seed=0):
    """Return the mean squared error over the variance, in the second half."""
    rng = as_generator(seed)
    errors = []
    for step in range(n_steps):
        X = rng.uniform(-0.5, 0.5, (n_rows, 3))
        y = center + size * (X @ [1.0, -0.5, 0.0] + rng.normal(size=n_rows) / 20)
        if step > n_steps // 2:
            errors.append(np.mean((model.predict(X) - y) ** 2) / np.var(y))
        model.partial_fit(X, y)
    return float(np.mean(errors))


@pytest.mark.parametrize(
    "labels", [(0, 1), ("no", "yes"), (-1, 1), (True, False), (1.5, 2.5)], ids=repr
)
def test_two_labels_of_any_kind_are_learned(labels, seed):
    model = OnlineLogisticRegression(
        1.0,
        1e-6,
        horizon=100,
        rows_per_step=100,
        classes=labels,
        random_state=seed,
        x_norm=1.0,
    )
    assert classify(model, 100, 100, labels) > 0.85
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    assert set(model.classes_.tolist()) == set(labels)


@pytest.mark.parametrize("method", ["gradient_sums", "quadratic_leader"])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
def test_three_labels_are_learned_jointly(method, neighbors, seed):
    model = OnlineLogisticRegression(
        4.0,
        1e-6,
        horizon=100,
        rows_per_step=100,
        classes=("a", "b", "c"),
        method=method,
        neighbors=neighbors,
        random_state=seed,
        x_norm=1.0,
    )
    assert classify(model, 100, 100, ("a", "b", "c")) > 0.8
    P = model.predict_proba(np.zeros((2, 3)))
    assert P.shape == (2, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert model.decision_function(np.zeros((2, 3))).shape == (2, 3)
    np.testing.assert_allclose(model.predict_log_proba(np.zeros((2, 3))), np.log(P))


def test_rare_labels_do_no_harm(seed):
    model = OnlineLogisticRegression(
        1.0,
        1e-6,
        horizon=100,
        rows_per_step=50,
        classes=(0, 1),
        random_state=seed,
        x_norm=1.0,
    )
    rng = as_generator(seed)
    wrong = 0
    for step in range(100):
        X = rng.uniform(-0.5, 0.5, (50, 3))
        y = (rng.uniform(size=50) < 0.02).astype(int)
        if step > 50:
            wrong += np.sum(model.predict(X) != y)
        model.partial_fit(X, y)
    assert wrong / (49 * 50) < 0.06


@pytest.mark.parametrize("method", ["auto", "gradient_sums"])
@pytest.mark.parametrize(
    ("center", "size", "y_range"),
    [
        (0.0, 1.0, (-1, 1)),
        (1000.0, 5.0, (995, 1005)),
        (3.0, 0.2, (2, 4)),
        (0.0, 1e-6, (-1e-6, 1e-6)),
    ],
    ids=["usual", "far from zero", "fill little", "tiny"],
)
def test_targets_in_any_unit_are_learned(method, center, size, y_range, seed):
    model = OnlineLinearRegression(
        4.0,
        1e-6,
        horizon=100,
        rows_per_step=200,
        y_range=y_range,
        method=method,
        random_state=seed,
        x_norm=1.0,
    )
    assert regress(model, 100, 200, center, size) < 0.5
    assert model.coef_.shape == (3,)
    assert isinstance(model.intercept_, float)


def test_without_an_intercept_zero_stays_zero():
    model = OnlineLinearRegression(
        1.0,
        1e-6,
        horizon=5,
        rows_per_step=20,
        y_range=(0, 5),
        fit_intercept=False,
        x_norm=1.0,
    )
    model.partial_fit(np.full((20, 1), 0.5), np.full(20, 2.0))
    assert model.intercept_ == 0.0
    assert model.predict([[0.0]]) == [0.0]


@pytest.mark.parametrize("epsilon", [0.01, 1000.0])
@pytest.mark.parametrize("rows", [1, 1000])
@pytest.mark.parametrize("method", ["gradient_sums", "quadratic_leader"])
def test_small_and_large_budgets_and_steps_are_fine(epsilon, rows, method):
    labels = OnlineLogisticRegression(
        epsilon,
        1e-6,
        horizon=3,
        rows_per_step=rows,
        classes=(0, 1),
        method=method,
        x_norm=1.0,
    )
    numbers = OnlineLinearRegression(
        epsilon,
        1e-6,
        horizon=3,
        rows_per_step=rows,
        y_range=(0, 1),
        method=method,
        x_norm=1.0,
    )
    X, y = np.full((rows, 1), 0.3), np.ones(rows)
    for _ in range(3):
        for model in (labels, numbers):
            model.partial_fit(X, y)
            assert np.isfinite(model.coef_).all()
    assert np.isfinite(labels.predict_proba(X)).all()


@pytest.mark.parametrize("method", PERTURBED)
def test_perturbed_iterates_go_by_name(method, seed):
    common = {"horizon": 20, "rows_per_step": 50, "random_state": seed}
    labels = OnlineLogisticRegression(
        8.0, 1e-6, classes=("a", "b", "c"), method=method, **common, x_norm=1.0
    )
    assert classify(labels, 20, 50, ("a", "b", "c")) > 0.4
    kind = OneVsRest if method == "implicit" else Softmax
    assert isinstance(labels.loss_, kind)
    np.testing.assert_allclose(labels.predict_proba(np.zeros((2, 3))).sum(axis=1), 1.0)
    numbers = OnlineLinearRegression(
        1e5, 1e-6, y_range=(-1, 1), method=method, **common, x_norm=1.0
    )
    assert regress(numbers, 20, 50) < 0.8
    assert isinstance(methods()[method], PerturbedIterates)


def test_auto_is_by_moments_where_steps_are_few_and_by_gradients_where_many():
    def learner(model, n_features=5):
        return type(model.plan(n_features).learner).__name__

    def logistic(horizon):
        return OnlineLogisticRegression(
            1.0, 1e-6, horizon=horizon, classes=(0, 1), x_norm=1.0
        )

    assert learner(logistic(59)) == "QuadraticLearner"
    assert learner(logistic(60)) == "GradientLearner"
    assert learner(logistic(60), 300) == "GradientLearner"
    linear = OnlineLinearRegression(
        1.0, 1e-6, horizon=10_000, y_range=(0, 1), x_norm=1.0
    )
    assert learner(linear) == "QuadraticLearner"
    assert learner(linear, 300) == "GradientLearner"


def test_a_method_object_brings_its_own_settings():
    model = OnlineLogisticRegression(
        1.0,
        1e-6,
        horizon=9,
        classes=(0, 1),
        method=GradientSums("tree", learning_rate=0.125, noise="float"),
        x_norm=1.0,
    )
    learner = model.plan(2).learner
    assert learner.rate == 0.125
    assert type(learner.mechanism).__name__ == "TreeSum"
    assert any("floating-point" in words for words in learner.assumptions)
    named = clone(model).set_params(method="gradient_sums", noise="float")
    assert named.plan(2).learner.mechanism.noise == "float"


@pytest.mark.parametrize("method", [GradientSums, 3, "fast"])
def test_what_is_no_method_is_refused(method):
    model = OnlineLogisticRegression(classes=(0, 1), method=method, x_norm=1.0)
    with pytest.raises(ValueError, match="method must be one of 'auto'"):
        model.plan(2)


def test_the_slope_of_the_logistic_loss_is_capped_where_that_saves_noise():
    def loss(rows):
        model = OnlineLogisticRegression(
            1.0, 1e-6, horizon=100, rows_per_step=rows, classes=(0, 1), x_norm=1.0
        )
        return model.plan(3).learner.problem.loss

    assert loss(10) == Logistic(cap=0.5)
    assert loss(10**7) == Logistic()


def test_classes_may_come_with_the_first_step_and_must_stay():
    X, y = np.zeros((4, 2)), np.array(["b", "a", "b", "a"])
    model = OnlineLogisticRegression(1.0, 1e-6, horizon=3, x_norm=1.0)
    with pytest.raises(ValueError, match="classes must be given"):
        model.partial_fit(X, y)
    model.partial_fit(X, y, classes=["b", "a"])
    model.partial_fit(X, y).partial_fit(X, y, ["a", "b"])
    assert model.classes_.tolist() == ["a", "b"]
    assert any("labels is public" in words for words in model.privacy_.assumptions)
    again = OnlineLogisticRegression(
        1.0, 1e-6, horizon=3, classes=("a", "b"), x_norm=1.0
    )
    with pytest.raises(ValueError, match="classes must be those"):
        again.partial_fit(X, y, classes=("a", "c"))
    again.partial_fit(X, y)
    assert not any("labels" in words for words in again.privacy_.assumptions)
    with pytest.raises(ValueError, match="classes must be those"):
        again.partial_fit(X, y, classes=("a", "b", "c"))
    assert again.n_steps_ == 1


def test_fit_takes_labels_from_the_table_and_says_so():
    X, y = np.zeros((4, 2)), np.array([3, 1, 2, 1])
    model = OnlineLogisticRegression(1.0, 1e-6, horizon=3, x_norm=1.0).fit(X, y)
    assert model.classes_.tolist() == [1, 2, 3]
    assert model.fit(X, np.array([7, 8, 8, 7])).classes_.tolist() == [7, 8]
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, np.ones(4))


def test_words_parameters_and_pipelines():
    model = OnlineLinearRegression(
        2.0, y_range=(0, 1), method=QuadraticLeader(), x_norm=1.0
    )
    assert "epsilon=2.0" in repr(model)
    assert model.get_params()["horizon"] == 1000
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    double = FunctionTransformer(lambda X: 2 * np.asarray(X))
    fitted = make_pipeline(double, model).fit(np.zeros((9, 2)), np.zeros(9))
    assert fitted.predict(np.zeros((1, 2))).shape == (1,)


def test_predictions_are_of_shortened_rows_and_cut_to_the_range(seed):
    model = OnlineLinearRegression(
        1.0,
        1e-6,
        horizon=2,
        rows_per_step=5,
        y_range=(0, 1),
        random_state=seed,
        x_norm=1.0,
    )
    model.partial_fit(np.full((5, 2), 0.5), np.ones(5))
    far = model.predict(np.array([[1e6, 1e6], [-1e6, 1e6]]))
    near = model.predict(np.array([[1e3, 1e3], [-1e3, 1e3]]))
    np.testing.assert_allclose(far, near)
    assert ((far >= 0) & (far <= 1)).all()
