"""The private score: what it counts, what it costs, how often its interval covers."""

from dataclasses import fields

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from tests.stat import P_FAIL

from tacit._random import as_generator
from tacit.audit import assert_replays
from tacit.evaluation import hold_out, private_score
from tacit.evaluation._measures import predictions
from tacit.evaluation._score import (
    PARTS,
    PrivateScore,
    ScorePlan,
    _hoeffding,
    _interval,
)
from tacit.exceptions import BudgetExceeded
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.preprocessing import PublicScaler
from tacit.privacy import Budget, LaplaceNoise, Ledger, Neighbors, calibrate

REPLACE, ADD = (n.value for n in (Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE))
each_relation = pytest.mark.parametrize("neighbors", [REPLACE, ADD])


def rows(n=300, p=3, seed=0):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (n, p)) / np.sqrt(p)
    return X, (X[:, 0] + 0.3 * rng.standard_normal(n) > 0).astype(int)


def classifier(n_classes=2):
    X, y = rows()
    y = np.minimum(y + (X[:, 1] > 0.2), n_classes - 1)
    model = LogisticRegression(
        5.0, 1e-6, classes=range(n_classes), random_state=0, x_norm=1.0
    )
    return model.fit(X, y)


def regressor(y_range=(-1, 1)):
    X, _ = rows()
    y = sum(y_range) / 2 + X[:, 0] * (y_range[1] - y_range[0]) / 2
    return LinearRegression(5.0, 1e-6, y_range=y_range, random_state=0, x_norm=1.0).fit(
        X, y
    )


@each_relation
def test_without_noise_it_is_the_accuracy(neighbors):
    model, (X, y) = classifier(), rows(seed=1)
    found = private_score(model, X, y, epsilon=1e6, neighbors=neighbors)
    assert found.value == pytest.approx(model.score(X, y), abs=1e-5)
    assert found.measure == "accuracy"
    ends = stats.binomtest(round(300 * model.score(X, y)), 300).proportion_ci(0.955)
    assert (found.low, found.high) == pytest.approx(tuple(ends), abs=1e-9)


@each_relation
def test_without_noise_it_is_the_mean_absolute_error_cut_to_the_range(neighbors):
    model, (X, _) = regressor((40, 60)), rows(seed=1)
    y = np.linspace(20, 80, len(X))
    shown = np.clip(model.predict(X), 40, 60)
    found = private_score(model, X, y, epsilon=1e6, neighbors=neighbors)
    expected = np.abs(shown - np.clip(y, 40, 60)).mean()
    assert found.value == pytest.approx(expected, abs=1e-4)
    assert found.measure == "mean absolute error"
    assert 0 <= found.low < found.value < found.high <= 20


@pytest.mark.parametrize("model", [classifier(2), classifier(3), regressor()])
def test_predictions_are_those_of_the_model(model):
    X, _ = rows(500, seed=3)
    X[0] *= 50  # longer than any row may be
    np.testing.assert_allclose(predictions(model, X, 500), model.predict(X), rtol=1e-12)


def test_a_prediction_does_not_depend_on_other_rows():
    model, (X, _) = regressor(), rows(200, seed=4)
    X = X.astype(np.float32) * 3
    for cut in (1, 3, 10):
        np.testing.assert_array_equal(
            predictions(model, X, 200)[cut:], predictions(model, X[cut:], 200 - cut)
        )


@pytest.mark.parametrize(
    "model", [classifier(), regressor()], ids=["labels", "targets"]
)
@each_relation
def test_nothing_but_the_mechanism_tells_neighbors_apart(model, neighbors):
    X, y = rows(50, seed=5)
    other, changed = X.copy(), y.copy()
    other[0], changed[0] = -X[0], 1 - y[0]
    second = (X[1:], y[1:]) if neighbors == ADD else (other, changed)

    def release(X, y):
        return private_score(
            model, X, y, epsilon=1.0, neighbors=neighbors, random_state=0
        )

    report = assert_replays(release, (X, y), second)
    assert [entry.label for entry in report.entries] == ["Laplace"]
    assert report.entries[0].moved <= 1


@each_relation
def test_the_row_that_matters_most_moves_the_sums_by_all_that_is_declared(neighbors):
    n = 5 if neighbors == REPLACE else None
    plan = ScorePlan(n, 1e-9)
    parts = np.array([PARTS, PARTS, 0, 0, 0], dtype=np.int64)
    other = parts[1:] if neighbors == ADD else np.array([0, PARTS, 0, 0, 0])
    first, second = (plan.run(side, as_generator(0)) for side in (parts, other))
    assert np.abs(first - second).sum() == pytest.approx(1.0, abs=1e-6)
    assert plan.mechanism.sensitivity == 1.0


def covered(draw, mean, neighbors, repeats, seed, shrink=0.0):
    """Count intervals that hold the mean, for parts of 200 rows drawn by ``draw``."""
    rng, hits = as_generator(seed), 0
    n = 200 if neighbors == REPLACE else None
    multiplier = calibrate(LaplaceNoise, Budget(0.3, 0.0, neighbors))
    plan = ScorePlan(n, multiplier)
    for _ in range(repeats):
        values = draw(rng, 200)
        noisy = plan.run(np.rint(values * PARTS).astype(np.int64), rng)
        right = draw is labels
        low, high = _interval(plan.bounds(noisy, 0.1 * 0.1), 0.9, right)
        middle, half = (low + high) / 2, (high - low) / 2 * (1 - shrink)
        hits += abs(mean - middle) <= half
    return hits


def labels(rng, n):
    return (rng.random(n) < 0.9).astype(float)


def errors(rng, n):
    return rng.beta(1, 4, n)


@pytest.mark.statistical
@each_relation
@pytest.mark.parametrize(("draw", "mean"), [(labels, 0.9), (errors, 0.2)])
def test_intervals_cover_as_often_as_they_say(draw, mean, neighbors, seed):
    repeats = 250
    hits = covered(draw, mean, neighbors, repeats, seed)
    assert stats.binomtest(hits, repeats, 0.9, alternative="less").pvalue > P_FAIL
    # control: intervals a tenth as wide are caught
    narrow = covered(draw, mean, neighbors, repeats, seed, shrink=0.9)
    assert stats.binomtest(narrow, repeats, 0.9, alternative="less").pvalue <= P_FAIL


@pytest.mark.parametrize(("n_rows", "sums"), [(2000, 1), (None, 2)])
def test_all_noisy_sums_of_a_score_are_within_reach_at_once(n_rows, sums):
    plan = ScorePlan(n_rows, multiplier=2.0)
    _, high, _, rest_high = plan.bounds(np.array([1000.0, 1000.0]), alpha=0.01)
    reach = min(high, rest_high) - 1000
    # of Laplace noise: beyond, on either side, with this chance for each of the sums
    beyond = sums * np.exp(-reach / plan.mechanism.scale(sums))
    assert 0.0099 < beyond <= 0.01


def test_hoeffding_is_the_inverse_of_its_bound():
    low = _hoeffding(30.0, 70.0, 0.01)
    gone = 30 * np.log(0.3 / low) + 70 * np.log(0.7 / (1 - low))
    assert gone == pytest.approx(np.log(100), rel=1e-6)
    assert _hoeffding(0.0, 10.0, 0.01) == 0.0
    assert 0 < _hoeffding(10.0, 0.0, 0.01) < 1


def test_it_is_charged_without_a_delta():
    model, (X, y) = classifier(), rows(seed=1)
    ledger = Ledger(Budget(1.0, 1e-6))
    found = private_score(model, X, y, epsilon=0.5, ledger=ledger, random_state=0)
    assert found.privacy.guarantee == Budget(0.5, 0.0)
    assert found.privacy.seeded
    assert [e.label for e in ledger.report().entries] == ["private score"]
    assert ledger.spent() == pytest.approx(0.5, rel=1e-3)
    with pytest.raises(BudgetExceeded):
        private_score(model, np.full_like(X, np.nan), y, epsilon=0.6, ledger=ledger)
    assert len(ledger.report().entries) == 1


def test_the_relation_is_that_of_the_model():
    X, y = rows()
    model = LogisticRegression(
        1.0, 1e-6, neighbors=ADD, classes=[0, 1], x_norm=1.0
    ).fit(X, y)
    report = private_score(model, X, y, epsilon=1.0).privacy
    assert report.guarantee.neighbors is Neighbors.ADD_OR_REMOVE_ONE
    assert "the number of rows is public" not in report.assumptions
    assert "no shared ledger was charged" in report.notes


def test_a_pipeline_is_scored_and_its_assumption_told():
    X, y = rows()
    scaler = PublicScaler([(-1, 1)] * 3)
    model = make_pipeline(
        scaler, LogisticRegression(5.0, 1e-6, classes=[0, 1], x_norm=1.0)
    )
    model.fit(X, y)
    found = private_score(model, X, y, epsilon=1e6)
    assert found.value == pytest.approx(model.score(X, y), abs=1e-5)
    assert (
        "the model predicts each row from that row alone" in found.privacy.assumptions
    )


@pytest.mark.parametrize("model", [classifier(3), regressor()])
def test_sparse_rows_and_lists_give_what_dense_rows_give(model):
    X, y = rows(seed=6)
    found = {
        private_score(model, Z, y, epsilon=1.0, random_state=0).value
        for Z in (X, X.tolist(), sparse.csr_array(X))
    }
    assert len(found) == 1


def test_one_row_alone_is_scored():
    model, (X, y) = classifier(), rows()
    found = private_score(model, X[:1], y[:1], epsilon=0.1, neighbors=ADD)
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("n", [0, 1, 3])
def test_any_number_of_rows_is_scored_where_it_is_private(n):
    X, y = rows()
    for model in (classifier(), regressor(), DummyClassifier().fit(X, y)):
        found = private_score(model, X[:n], y[:n], epsilon=1.0, neighbors=ADD)
        assert 0 <= found.low <= found.value <= found.high


class Log(RegressorMixin, BaseEstimator):
    y_range = (0, 3)

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.log(X[:, 0])


@pytest.mark.parametrize(("odd", "more"), [(-1.0, 1.0), (0.0, 0.0), (np.inf, 1.0)])
def test_an_answer_that_is_no_number_is_one_error_at_most(odd, more):
    X, y = np.ones((500, 1)), np.zeros(500)
    model = Log().fit(X)
    X[0] = odd
    found = private_score(model, X, y, epsilon=1e6)
    assert found.value * 500 / 3 == pytest.approx(more, abs=1e-3)


def test_infinite_weights_move_the_sum_by_one_a_row():
    model, (X, y) = regressor(), rows(seed=1)
    model.coef_ = np.array([np.inf, -np.inf, 0.0])
    X = np.abs(X)  # so that every sum is infinity less infinity
    found = private_score(model, X, y, epsilon=1e6)
    assert found.value == pytest.approx(2.0, abs=1e-4)


class Listed(ClassifierMixin, BaseEstimator):
    """Answers in a list, one of which may be of another kind."""

    def fit(self, X, y=None):
        self.classes_ = [0, 1]
        return self

    def predict(self, X):
        return [1 if x[0] > 0 else "unsure" for x in X]


def test_one_answer_of_another_kind_is_one_wrong_answer():
    X, y = np.ones((100, 1)), np.ones(100, dtype=int)
    X[0] = -1
    found = private_score(Listed().fit(X), X, y, epsilon=1e6)
    assert found.value == pytest.approx(0.99, abs=1e-5)


@pytest.mark.parametrize("odd", ["unknown", 1.5, None, b"1", True, np.float64(1)])
@pytest.mark.parametrize("form", [list, lambda y: np.array(y, dtype=object)])
def test_a_label_of_another_kind_is_right_where_it_equals_the_answer(odd, form):
    model, (X, y) = classifier(), rows()
    answers = model.predict(X)
    position = int(np.flatnonzero(answers == 1)[0])
    labels = answers.tolist()
    labels[position] = odd
    found = private_score(model, X, form(labels), epsilon=1e9)
    missed = 0 if odd in (1, 1.0) else 1 / len(y)
    assert found.value == pytest.approx(1 - missed, abs=1e-6)


def test_labels_are_compared_without_rounding():
    X, big = rows()[0], 2**53
    classes = [big, big + 1]
    y = np.resize(classes, len(X))
    model = LogisticRegression(
        1.0, 1e-6, classes=classes, fit_intercept=False, x_norm=1.0
    )
    model.fit(X, y)
    model.coef_ = np.array([[1.0, 0.0, 0.0]])
    X = np.abs(X)  # every answer is the second class, which no float is
    found = private_score(model, X, np.full(len(X), float(big)), epsilon=1e6)
    assert found.value == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("seed", [1, np.random.SeedSequence(1)])
def test_two_scores_with_one_seed_share_no_noise(seed):
    model, (X, y) = classifier(), rows(seed=1)
    other = classifier()
    other.coef_ = other.coef_ * (1 + 1e-12)  # another model with the same answers

    def noise(model, epsilon):
        found = private_score(model, X, y, epsilon=epsilon, random_state=seed)
        return epsilon * (found.value - model.score(X, y)) * len(X)

    once, again = noise(model, 0.5), noise(model, 0.5)
    assert once == again
    assert abs(once - noise(model, 1.0)) > 1e-3
    assert abs(once - noise(other, 0.5)) > 1e-3


REJECTED = {
    "must be a fitted classifier or regressor": lambda m, X, y: (object(), X, y),
    "X contains NaN": lambda m, X, y: (m, X * np.nan, y),
    "as many rows": lambda m, X, y: (m, X, y[:-1]),
    "y_range must be given": lambda m, X, y: (
        regressor().set_params(y_range=None),
        X,
        y,
    ),
    "y must hold numbers only": lambda m, X, y: (regressor(), X, y.astype(str)),
    "not fitted": lambda m, X, y: (LogisticRegression(x_norm=1.0), X, y),
    "at least one row": lambda m, X, y: (DummyClassifier().fit(X, y), X[:0], y[:0]),
}


@pytest.mark.parametrize("words", REJECTED)
def test_bad_input_is_refused_in_words_and_charges_nothing(words):
    ledger = Ledger(Budget(2.0, 1e-5))
    arguments = REJECTED[words](classifier(), *rows())
    with pytest.raises(ValueError, match=words):
        private_score(*arguments, epsilon=1.0, ledger=ledger)
    assert ledger.spent() == 0


def test_a_score_has_the_parts_that_reports_read():
    names = [field.name for field in fields(PrivateScore)]
    assert names == ["value", "low", "high", "measure", "privacy", "level"]


@each_relation
def test_held_out_rows_and_the_others_are_all_rows_once(neighbors):
    kept, held = hold_out(1000, 0.25, neighbors=neighbors, random_state=0)
    assert sorted([*kept, *held]) == list(range(1000))
    assert abs(len(held) - 250) < 80
    if neighbors == REPLACE:
        assert len(held) == 250


def test_one_row_more_moves_no_other_where_rows_are_added():
    _, held = hold_out(400, 0.3, neighbors=ADD, random_state=0)
    _, more = hold_out(401, 0.3, neighbors=ADD, random_state=0)
    assert set(held) == set(more) - {400}


@pytest.mark.parametrize("n", [0, 1, 2])
def test_any_number_of_rows_is_split_where_it_is_private(n):
    kept, held = hold_out(n, 0.9998, neighbors=ADD)
    assert sorted([*kept, *held]) == list(range(n))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((1, 0.5), "n_rows"), ((10, 0.0), "fraction"), ((10, 1.0), "fraction")],
)
def test_a_split_that_is_none_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        hold_out(*arguments)


def test_a_model_that_quotes_a_row_where_it_fails_is_not_repeated():
    X, y = np.eye(2)[np.arange(20) % 2], np.resize(["no", "yes"], 20)
    model, ledger = DummyClassifier().fit(X, y), Ledger(Budget(1.0, 0.0))

    def quotes(X):
        raise ValueError(f"cannot use {X[0]}")

    model.predict = quotes
    with pytest.raises(ValueError, match="its predict failed") as error:
        private_score(model, [["Rosebud"]] * 20, y, epsilon=1.0, ledger=ledger)
    assert error.value.__context__ is None
    assert ledger.spent() == 0
