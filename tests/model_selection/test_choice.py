"""Scores by name, and the choice between fitted models."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from tests.model_selection.tables import rows
from tests.stat import assert_probability, assert_probability_at_most

from tacit import Budget, BudgetExceeded, Ledger
from tacit._random import as_generator
from tacit.audit import assert_replays
from tacit.evaluation import private_score
from tacit.evaluation._measures import PARTS, ROOT, Measure
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.mechanisms import PermuteAndFlip
from tacit.model_selection import (
    PrivateSearchCV,
    private_accuracy,
    private_choice,
    private_rmse,
)
from tacit.preprocessing import PublicScaler
from tacit.privacy import PureDP

REPLACE, ADD = "replace_one", "add_or_remove_one"
each_relation = pytest.mark.parametrize("neighbors", [REPLACE, ADD])


def classifier(sign=1.0, **given):
    X, y = rows()
    model = LogisticRegression(
        9.0,
        1e-6,
        classes=[0, 1],
        solver="output_perturbation",
        random_state=0,
        **given,
        x_norm=1.0,
    ).fit(X, y)
    model.coef_ = sign * np.array([[1.0, 0.0, 0.0]])
    model.intercept_ = np.zeros(1)
    return model


def regressor(derivative=1.0, y_range=(-1, 1)):
    X, _ = rows()
    model = LinearRegression(
        9.0, 1e-6, y_range=y_range, random_state=0, x_norm=1.0
    ).fit(X, X[:, 0])
    model.coef_, model.intercept_ = np.array([derivative, 0.0, 0.0]), 0.0
    return model


@each_relation
def test_without_noise_it_is_the_root_of_the_mean_squared_error(neighbors):
    model, (X, _) = regressor(0.5), rows(seed=1)
    y = np.linspace(-3, 3, len(X))
    shown = np.clip(model.predict(X), -1, 1)
    expected = np.sqrt(np.mean((shown - np.clip(y, -1, 1)) ** 2))
    found = private_rmse(model, X, y, epsilon=1e6, neighbors=neighbors)
    assert found.value == pytest.approx(expected, abs=1e-5)
    assert found.measure == "root mean squared error"
    assert 0 < found.low < found.value < found.high <= 2
    mean = private_score(model, X, y, epsilon=1e6, neighbors=neighbors)
    assert mean.value < found.value


def test_the_accuracy_is_the_score_of_a_classifier():
    model, (X, y) = classifier(), rows(seed=1)
    given = {"epsilon": 1.0, "random_state": 0}
    assert private_accuracy(model, X, y, **given) == private_score(model, X, y, **given)
    with pytest.raises(ValueError, match="model must be a regressor for the root"):
        private_rmse(model, X, y, epsilon=1.0)
    with pytest.raises(ValueError, match="model must be a classifier for the accuracy"):
        private_accuracy(regressor(), X, y, epsilon=1.0)


@each_relation
@pytest.mark.parametrize("y_range", [(-1.0, 1.0), (0.0, 1e6), (-1e-3, 1.0)])
def test_a_row_counts_at_most_one_square(neighbors, y_range):
    low, high = y_range
    measure = Measure(ROOT, y_range)
    answers = np.array([low, high, np.nan, -1e300, 1e300, (low + high) / 2])
    for target in (low, high, (low + high) / 2):
        parts = measure.parts(answers, np.full(6, target))
        assert parts.min() >= 0
        assert parts.max() <= PARTS
        assert parts.dtype == np.int64
    assert measure.parts(np.array([low]), np.array([high])) == PARTS
    assert measure.in_units(1.0) == high - low
    near = Measure(ROOT, y_range, 0.25)
    assert near.parts(np.array([low]), np.array([high])) == PARTS
    assert near.in_units(1.0) == (high - low) / 4
    eighth = near.parts(np.array([low]), np.array([low + (high - low) / 8]))
    assert eighth == pytest.approx(PARTS / 4, abs=1)


@each_relation
@pytest.mark.statistical
def test_intervals_of_the_root_cover_as_often_as_they_say(neighbors, seed):
    model, rng = regressor(0.0), as_generator(seed)
    true, hits, short = np.sqrt(1 / 6), 0, 0
    for _ in range(200):
        y = rng.triangular(-1, 0, 1, 200)  # of variance one sixth
        score = private_rmse(
            model, np.zeros((200, 3)), y, epsilon=0.5, neighbors=neighbors
        )
        hits += score.low <= true <= score.high
        # a tenth as wide about the value, for the control
        ends = (0.9 * score.value + 0.1 * end for end in (score.low, score.high))
        short += next(ends) <= true <= next(ends)
    assert_probability_at_most(200 - hits, 200, 0.05)
    with pytest.raises(AssertionError, match="is over probability"):
        assert_probability_at_most(200 - short, 200, 0.05)


@each_relation
def test_the_best_model_is_chosen_where_noise_is_small(neighbors):
    X, y = rows(seed=1)
    models = [classifier(-1.0), classifier(), DummyClassifier().fit(X, y)]
    choice = private_choice(models, X, y, epsilon=5.0, neighbors=neighbors)
    assert choice.index == 1
    assert choice.model is models[1]
    assert choice.privacy.guarantee.epsilon == 5.0
    assert choice.privacy.entries[0].event == PureDP(5.0)
    derivatives = [regressor(derivative) for derivative in (0.0, 0.5, 1.0)]
    assert private_choice(derivatives, X, X[:, 0], epsilon=100.0).index == 2


@pytest.mark.statistical
def test_choices_have_the_odds_of_their_scores(seed):
    # permute-and-flip between two: the worse is taken if it comes first and is accepted
    X = np.zeros((4, 3))
    X[:, 0] = 1.0
    models, y = [classifier(), classifier(-1.0)], np.array([1, 1, 1, 0])
    rng = as_generator(seed)
    found = [
        private_choice(models, X, y, epsilon=1.0, random_state=rng).index
        for _ in range(600)
    ]
    assert_probability(sum(found), 600, np.exp(-2 / 2) / 2)
    with pytest.raises(AssertionError, match="is not probability"):
        assert_probability(sum(found), 600, np.exp(-2) / 2)


@each_relation
def test_nothing_but_the_mechanism_tells_neighbors_apart(neighbors):
    X, y = rows(50, seed=5)
    other, changed = X.copy(), y.copy()
    other[-1], changed[-1] = -X[-1], 1 - y[-1]
    second = (X[:-1], y[:-1]) if neighbors == ADD else (other, changed)
    models = [classifier(), classifier(-1.0)]

    def release(X, y):
        choice = private_choice(
            models, X, y, epsilon=1.0, neighbors=neighbors, random_state=0
        )
        return choice.index, choice.privacy

    report = assert_replays(release, (X, y), second)
    assert [entry.label for entry in report.entries] == ["PermuteAndFlip"]
    assert report.entries[0].moved <= 1


def test_two_choices_with_one_seed_share_no_noise(monkeypatch):
    X, y = rows()
    first, second, third = classifier(), classifier(-1.0), classifier(2.0)
    drawn = []

    def draw(mechanism, scores, rng):
        drawn.append(int(rng.integers(2**62)))
        return 0

    monkeypatch.setattr(PermuteAndFlip, "__call__", draw)
    for models, epsilon in (
        ([first, second], 1.0),
        ([first, second], 1.0),
        ([first, third], 1.0),
        ([first, second], 0.5),
        ([first, second, second], 1.0),
    ):
        private_choice(models, X, y, epsilon=epsilon, random_state=3)
    once, again, *others = drawn
    assert once == again
    assert len({once, *others}) == 4


def test_choices_are_charged_before_they_are_made():
    X, y = rows()
    ledger = Ledger(Budget(1.0))
    models = [classifier(), classifier(-1.0)]
    choice = private_choice(models, X, y, epsilon=0.7, ledger=ledger)
    assert ledger.spent() == pytest.approx(0.7, rel=1e-5)
    assert "no shared ledger was charged" not in choice.privacy.notes
    with pytest.raises(BudgetExceeded, match="private choice"):
        private_choice(models, X, y, epsilon=0.7, ledger=ledger)


def test_models_may_be_pipelines_and_searches():
    X, y = rows()
    pipeline = make_pipeline(
        PublicScaler((-1, 1)),
        LogisticRegression(
            9.0, 1e-6, classes=[0, 1], solver="output_perturbation", x_norm=1.0
        ),
    ).fit(X, y)
    search = PrivateSearchCV(
        LogisticRegression(classes=[0, 1], solver="output_perturbation", x_norm=1.0),
        {"ridge": [0.0, 1.0]},
        4.0,
        1e-6,
        mean_repeats=3,
    ).fit(X, y)
    choice = private_choice([pipeline, search], X, y, epsilon=1.0)
    assert choice.index in (0, 1)
    assert (
        "the model predicts each row from that row alone" in choice.privacy.assumptions
    )
    assert private_accuracy(search, X, y, epsilon=1e5).value == pytest.approx(
        search.score(X, y), abs=1e-3
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": []}, "two fitted models or more"),
        ({"models": {"a": classifier(), "b": classifier()}}, "models must be a list"),
        ({"models": classifier()}, "models must be a list"),
        ({"models": [classifier()]}, "two fitted models or more"),
        ({"models": [classifier(), regressor()]}, "model must be a classifier for the"),
        ({"models": [classifier(), "best"]}, "model must be a fitted classifier or"),
        (
            {"models": [regressor(), regressor(y_range=(0, 1))]},
            "models must all have the same y_range",
        ),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"y": [0, 1]}, "as many rows as each other"),
        ({"neighbors": "none"}, "neighbors must be"),
    ],
)
def test_bad_input_is_refused_before_the_charge(change, message):
    X, y = rows()
    ledger = Ledger(Budget(9.0))
    given = {"models": [classifier(), classifier()], "X": X, "y": y, "epsilon": 1.0}
    given |= change
    with pytest.raises(ValueError, match=message):
        private_choice(given.pop("models"), ledger=ledger, **given)
    assert ledger.spent() == 0


def test_neighbors_of_models_that_differ_must_be_given():
    X, y = rows()
    first, second = classifier(), classifier()
    second.privacy_ = replace(
        second.privacy_, guarantee=Budget(9.0, 1e-6, "add_or_remove_one")
    )
    with pytest.raises(ValueError, match="neighbors must be given"):
        private_choice([first, second], X, y, epsilon=1.0)
    assert private_choice([first, second], X, y, epsilon=1.0, neighbors=ADD).index >= 0


def test_the_loss_of_a_choice_is_within_its_bound(seed):
    X, y = rows(2000, seed=2)
    models = [classifier(sign) for sign in (1.0, -1.0)] * 5
    bound = 2 * np.log(10 / 1e-6) / 0.3
    best = max(np.sum(model.predict(X) == y) for model in models)
    choice = private_choice(models, X, y, epsilon=0.3, random_state=seed)
    assert best - np.sum(choice.model.predict(X) == y) <= bound
