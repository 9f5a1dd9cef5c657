import copy
import pickle
from math import inf

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.base import is_regressor as predicts_numbers
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.refusal import raises_one_line

from tacit._random import as_generator, secret_key
from tacit.ensemble import (
    DurableLabeler,
    Labels,
    NeighborMap,
    PrivateLabeler,
    PrivateStudent,
    SmoothedVotes,
    VoteClassifier,
    _smoothing,
)
from tacit.exceptions import BudgetExceeded
from tacit.privacy import Budget, Ledger

CENTERS = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]])


def blobs(seed, n=600, labels=(0, 1, 2)):
    rng = as_generator(seed)
    codes = rng.integers(0, len(labels), n)
    return CENTERS[codes] + rng.normal(size=(n, 2)), np.asarray(labels)[codes]


def labeler(**options):
    given = {
        "n_teachers": 20,
        "epsilon": 20.0,
        "delta": 1e-4,
        "classes": [0, 1, 2],
        "n_queries": 100,
        "random_state": 0,
    }
    return PrivateLabeler(GaussianNB(), **{**given, **options})


def numbers(**options):
    return PrivateLabeler(
        DecisionTreeRegressor(max_depth=3),
        20,
        20.0,
        1e-4,
        y_range=(-6, 6),
        n_queries=100,
        random_state=0,
        **options,
    )


X, Y = blobs(1)
POOL, TRUTH = blobs(2, 100)
NEW, TOLD = blobs(3, 200)


@pytest.mark.parametrize("labels", [[0, 1, 2], ["a", "b", "c"], [-1, 5, 7]])
@pytest.mark.parametrize(
    "student", [None, LogisticRegression(), Ridge(), DecisionTreeClassifier()]
)
def test_any_student_learns_the_classes(labels, student):
    names = np.asarray(labels)
    model = PrivateStudent(labeler(classes=labels), student)
    assert model.fit(X, names[Y], X_public=POOL) is model
    assert is_classifier(model)
    assert not predicts_numbers(model)
    assert model.score(NEW, names[TOLD]) > 0.8
    assert_array_equal(model.classes_, names)
    assert model.predict_proba(NEW).shape == (200, 3)
    assert_allclose(model.predict_proba(NEW).sum(axis=1), 1.0)
    assert model.n_features_in_ == 2
    assert model.labels_.answered.all()
    assert model.privacy_.guarantee.epsilon == 20.0


def test_bare_truth_values_can_be_labels():
    model = PrivateStudent(labeler(classes=[False, True]), LogisticRegression())
    model.fit(X, Y == 1, X_public=POOL)
    assert model.predict(NEW).dtype == bool
    assert model.score(NEW, TOLD == 1) > 0.8


@pytest.mark.parametrize("student", [None, LinearRegression()])
def test_numbers_are_learnt_by_a_regressor(student):
    model = PrivateStudent(numbers(), student).fit(X, X[:, 0], X_public=POOL)
    assert predicts_numbers(model)
    assert not is_classifier(model)
    assert model.score(NEW, NEW[:, 0]) > 0.5
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("student", [None, LinearRegression()])
def test_numbers_near_the_end_of_a_range_are_learnt_without_a_bias(student):
    asking = numbers(noise="float").set_params(epsilon=1.0, n_queries=400)
    shown = np.r_[POOL, blobs(4, 300)[0]]
    fitted = asking.fit(X, np.full(600, 5.5))  # all that teachers can say
    labels = fitted.label(shown)
    noise = fitted.plan(600).mechanism.mean_scale(20)
    assert noise > 3
    off = {
        targets: np.mean(
            PrivateStudent(fitted, student, targets=targets)
            .fit_pool(shown, labels)
            .predict(shown)
            - 5.5
        )
        for targets in ("auto", "votes", "labels")
    }
    assert off["auto"] == off["votes"]
    assert abs(off["votes"]) < 4 * noise / 20
    # control: answers that were cut lie below on average
    assert off["labels"] < -1.0


def test_parameters_are_nested_and_cloned():
    model = PrivateStudent(labeler(), make_pipeline(StandardScaler(), Ridge(3.0)))
    assert model.get_params()["labeler__epsilon"] == 20.0
    assert model.get_params()["student__ridge__alpha"] == 3.0
    model.set_params(labeler__epsilon=4.0, student__ridge__alpha=2.0, targets="votes")
    again = clone(model)
    assert again.labeler is not model.labeler
    assert again.get_params()["labeler__epsilon"] == 4.0
    again.fit(X, Y, X_public=POOL)
    assert not hasattr(again.labeler, "n_queried_")
    assert not hasattr(again.student, "n_features_in_")
    assert again.labeler_.n_queried_ == 100
    assert again.student_.regressor_.n_features_in_ == 2


def test_a_pipeline_learns_from_tables_of_words():
    words = pd.DataFrame({"word": np.array(["x", "y", "z"])[Y], "size": X[:, 0]})
    columns = make_column_transformer(
        (OneHotEncoder(categories=[["x", "y", "z"]]), ["word"]), remainder="passthrough"
    )
    teacher = make_pipeline(columns, DecisionTreeClassifier(max_depth=3))
    asking = labeler().set_params(estimator=teacher)
    model = PrivateStudent(asking, make_pipeline(columns, LogisticRegression()))
    model.fit(words[100:], Y[100:], X_public=words[:100])
    assert model.score(words, Y) > 0.9
    assert list(model.feature_names_in_) == ["word", "size"]
    with pytest.raises(ValueError, match="give a student"):
        PrivateStudent(asking).fit(words[100:], Y[100:], X_public=words[:100])


def test_sparse_rows_and_lists_are_taken():
    asking = labeler().set_params(estimator=DecisionTreeClassifier(max_depth=3))
    model = PrivateStudent(asking, LogisticRegression())
    model.fit(sparse.csr_matrix(X), Y, X_public=sparse.csr_matrix(POOL))
    assert model.score(sparse.csr_matrix(NEW), TOLD) > 0.8
    model = PrivateStudent(asking).fit(X.tolist(), Y.tolist(), X_public=POOL.tolist())
    assert model.score(NEW.tolist(), TOLD) > 0.8


def test_the_default_student_averages_noise_that_a_tree_learns_by_heart():
    shown = np.r_[POOL, blobs(4, 300)[0]]
    averaged, by_heart = [], []
    for seed in range(3):
        asking = labeler(epsilon=3.0, n_queries=400, random_state=seed)
        fitted = asking.fit(X, Y)
        labels = fitted.label(shown)
        for student, scores in ((None, averaged), (DecisionTreeClassifier(), by_heart)):
            model = PrivateStudent(fitted, student).fit_pool(shown, labels)
            scores.append(model.score(NEW, TOLD))
    assert np.mean(averaged) > np.mean(by_heart) + 0.3


def answers(values, answered, votes=None):
    return Labels(np.asarray(values), np.asarray(answered), votes, len(values), 0)


@pytest.fixture(scope="module")
def fitted():
    return labeler().fit(X, Y)


NONE = answers(np.zeros(100, dtype=int), np.zeros(100, dtype=bool))
ONE = answers(np.full(100, 2), np.ones(100, dtype=bool))


@pytest.mark.parametrize("student", [None, LogisticRegression(), LinearSVC(), Ridge()])
def test_without_an_answer_the_student_is_the_public_default(student, fitted):
    model = PrivateStudent(fitted, student).fit_pool(POOL, NONE)
    assert set(model.predict(NEW)) == {0}
    assert model.predict_proba(NEW).shape == (200, 3)


@pytest.mark.parametrize("student", [LogisticRegression(), LinearSVC()])
def test_one_label_alone_makes_a_constant_student(student, fitted):
    with pytest.raises(ValueError, match="class"):
        clone(student).fit(POOL, ONE.values)  # what it would do by itself
    model = PrivateStudent(fitted, student).fit_pool(POOL, ONE)
    assert set(model.predict(NEW)) == {2}
    smooth = PrivateStudent(fitted, targets="labels").fit_pool(POOL, ONE)
    assert set(smooth.predict(NEW)) == {2}


def test_without_a_number_the_student_is_the_middle_of_the_range():
    asking = numbers().fit(X, X[:, 0])
    none = answers(np.zeros(100), np.zeros(100, dtype=bool))
    model = PrivateStudent(asking, LinearRegression()).fit_pool(POOL, none)
    assert_array_equal(model.predict(NEW), np.zeros(200))


def test_classes_that_no_answer_has_get_probability_zero(fitted):
    labels = answers(np.repeat([0, 2], 50), np.ones(100, dtype=bool))
    model = PrivateStudent(fitted, LogisticRegression()).fit_pool(POOL, labels)
    assert_array_equal(model.predict_proba(NEW)[:, 1], np.zeros(200))
    assert_allclose(model.predict_proba(NEW).sum(axis=1), 1.0)


def test_rows_without_an_answer_are_dropped_or_guessed(fitted):
    answered = np.arange(100) < 20
    labels = answers(np.where(answered, TRUTH, 0), answered)
    seen = []

    class Witness(LogisticRegression):
        def fit(self, X, y):
            seen.append(len(X))
            return super().fit(X, y)

    PrivateStudent(fitted, Witness()).fit_pool(POOL, labels)
    assert seen == [20]
    seen.clear()
    model = PrivateStudent(fitted, Witness(), unanswered="self_train")
    model.fit_pool(POOL, labels)
    assert 20 < seen[-1] <= 100
    assert model.score(NEW, TOLD) > 0.8
    assert set(model.predict(NEW)) == {0, 1, 2}


def test_rows_that_nothing_was_left_for_shape_the_default_student():
    more = np.r_[POOL, blobs(5, 200)[0]]
    model = PrivateStudent(labeler()).fit(X, Y, X_public=more)
    assert model.labels_.n_queried == 100
    assert model.labels_.answered.sum() == 100
    assert len(model.student_.regressor_.map_.rows_) == 300


def test_labels_alone_need_no_other_rows():
    model = PrivateStudent(labeler(private="labels")).fit(X, Y)
    assert len(model.labels_) == len(set(model.questions_)) == 100
    assert not np.array_equal(np.sort(model.questions_), np.arange(100))
    assert (model.labels_.values == Y[model.questions_]).mean() > 0.8
    assert any("labels alone" in words for words in model.privacy_.assumptions)
    assert model.score(NEW, TOLD) > 0.8
    with pytest.raises(ValueError, match="X_public must be given"):
        PrivateStudent(labeler()).fit(X, Y)


def test_which_rows_are_queried_depends_on_no_label():
    asked = [
        PrivateStudent(labeler(private="labels"), Ridge()).fit(X, labels).questions_
        for labels in (Y, Y[::-1])
    ]
    assert_array_equal(*asked)


def test_which_rows_are_queried_leaks_nothing_of_the_key():
    n = 2**12
    model = labeler(private="labels", n_queries=n, random_state=5)
    table, order = PrivateStudent(model)._pool(model, np.zeros((n, 1)), None)
    words = np.frombuffer(secret_key(model.random_state), dtype="<u4") % n

    def drawn(order):
        """The first draws of a shuffle, which are read off its result."""
        where, now, found = np.arange(n), np.arange(n), []
        for last in range(n - 1, n - 5, -1):
            position = where[order[last]]
            found.append(position)
            now[[last, position]] = now[[position, last]]
            where[now[[last, position]]] = last, position
        return found

    assert table.shape == (n, 1)
    assert not set(drawn(order)) & set(words.tolist())
    # the positive control: the stream of the key itself tells its bits
    leaked = as_generator(5).permutation(n)
    assert len(set(drawn(leaked)) & set(words.tolist())) >= 2


class Failing(ClassifierMixin, BaseEstimator):
    """Learns from the synthetic answers of a rehearsal, and fails after it."""

    n_fits = 0

    def fit(self, X, y):
        Failing.n_fits += 1
        if Failing.n_fits > 1:
            raise RuntimeError("no")
        return self

    def predict(self, X):
        return X


def test_a_student_that_fails_loses_no_answer():
    model = PrivateStudent(labeler(), LogisticRegression()).fit(X, Y, X_public=POOL)
    model.student, Failing.n_fits = Failing(), 0
    with pytest.raises(RuntimeError):
        model.fit(X, Y, X_public=POOL)
    with pytest.raises(NotFittedError):
        model.predict(NEW)
    assert model.labels_.answered.all()
    model.set_params(student=Ridge(), labeler=model.labeler_)
    assert model.fit_pool(POOL, model.labels_).score(NEW, TOLD) > 0.8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"targets": "shares"}, "targets"),
        ({"unanswered": "guess"}, "unanswered"),
        ({"student": Ridge}, "student"),
        ({"student": 3}, "student"),
        ({"student": LogisticRegression(), "targets": "votes"}, "regressor"),
        ({"student": Ridge(), "targets": "labels"}, "classifier"),
        ({"student": Ridge(), "unanswered": "self_train"}, "predict_proba"),
        ({"student": LinearSVC(), "unanswered": "self_train"}, "predict_proba"),
        ({"unanswered": "self_train"}, "predict_proba"),
        ({"labeler__mechanism": "stable", "targets": "votes"}, "releases votes"),
        ({"labeler__mechanism": "stable", "student": Ridge()}, "classifier"),
        ({"labeler": numbers(), "student": LogisticRegression()}, "regressor"),
        (
            {"labeler": numbers(mechanism="median"), "targets": "votes"},
            "releases votes",
        ),
        ({"labeler": GaussianNB()}, "PrivateLabeler"),
        ({"labeler": None}, "PrivateLabeler"),
    ],
)
def test_what_does_not_go_together_is_rejected_before_the_charge(options, words):
    model = PrivateStudent(labeler()).set_params(**options)
    ledger = Ledger(Budget(20.0, 1e-4))
    before = dict(vars(model))
    with raises_one_line((TypeError, ValueError), match=words):
        model.fit(X, Y, X_public=POOL, ledger=ledger)
    assert vars(model) == before
    assert not ledger.report().entries


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (POOL[:, :1], "2 columns of X, got 1"),
        (POOL[:1], "at least 2 rows"),
        (POOL[0], "at least 2 rows"),
        (POOL * inf, "infinity"),
        (sparse.csr_matrix(POOL), "sparse"),
    ],
)
def test_public_rows_of_other_kinds_are_rejected_before_the_charge(pool, words):
    model, ledger = PrivateStudent(labeler()), Ledger(Budget(20.0, 1e-4))
    with (
        pytest.raises((TypeError, ValueError), match=words),
        np.errstate(all="ignore"),
    ):
        model.fit(X, Y, X_public=pool, ledger=ledger)
    assert not ledger.report().entries
    assert not hasattr(model, "n_features_in_")


def test_the_ledger_pays_once_and_rejects_the_second_fit():
    model, ledger = PrivateStudent(labeler(), Ridge()), Ledger(Budget(20.0, 1e-4))
    model.fit(X, Y, X_public=POOL, ledger=ledger)
    assert len(ledger.report().entries) == 1
    before = dict(vars(model))
    with pytest.raises(BudgetExceeded):
        model.fit(X, Y, X_public=POOL, ledger=ledger)
    assert vars(model) == before


def test_the_number_of_private_rows_is_in_no_message():
    asking = labeler(neighbors="add_or_remove_one")
    for rows in (X[:77], X[:77, 0]):
        with pytest.raises(ValueError, match="X") as found:
            PrivateStudent(asking).fit(rows, Y, X_public=POOL)
        assert "77" not in str(found.value)


def test_copies_and_pickles_hold_no_teacher():
    model = PrivateStudent(labeler(), Ridge()).fit(X, Y, X_public=POOL)
    content = pickle.dumps(model)
    assert b"_private" not in content
    assert b"_private" in pickle.dumps({"_private_labeler_state": 1})
    for again in (pickle.loads(content), copy.deepcopy(model)):
        assert_array_equal(again.predict(NEW), model.predict(NEW))
        assert again.privacy_ == model.privacy_
        with pytest.raises(ValueError, match="copy of a labeler"):
            again.labeler_.label(POOL)


def test_a_durable_labeler_teaches_and_its_student_can_be_copied(tmp_path):
    with DurableLabeler(labeler(), tmp_path / "folder") as durable:
        durable.fit(X, Y)
        model = PrivateStudent(durable, Ridge())
        with pytest.raises(TypeError, match="fit_pool"):
            model.fit(X, Y, X_public=POOL)
        model.fit_pool(POOL)
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict(NEW), model.predict(NEW))
        told = PrivateStudent(durable, Ridge()).fit_pool(POOL, durable.labels)
        assert durable.n_queried == 100
        assert_array_equal(told.predict(NEW), model.predict(NEW))


def test_a_labeler_that_was_not_fitted_teaches_no_pool():
    with pytest.raises(NotFittedError):
        PrivateStudent(labeler()).fit_pool(POOL)
    with pytest.raises(ValueError, match="one for each row"):
        PrivateStudent(labeler().fit(X, Y)).fit_pool(POOL, NONE.values)
    with pytest.raises(NotFittedError):
        PrivateStudent(labeler()).predict(NEW)


def test_names_and_order_of_columns_must_agree():
    named = pd.DataFrame(X, columns=["a", "b"])
    public = pd.DataFrame(POOL, columns=["b", "a"])
    with pytest.raises(ValueError, match="feature names"):
        PrivateStudent(labeler()).fit(named, Y, X_public=public)


def test_a_student_prints_nothing(capsys):
    PrivateStudent(labeler()).fit(X, Y, X_public=POOL)
    assert capsys.readouterr() == ("", "")


def test_fractions_become_probabilities():
    class Fixed(Ridge):
        def predict(self, X):
            return np.array([[0.5, -1.0, 1.5], [-1.0, -1.0, -2.0]])

    model = VoteClassifier(Fixed(), ["a", "b", "c"]).fit(POOL[:2], np.zeros((2, 3)))
    assert_allclose(
        model.predict_proba(POOL[:2]), [[0.25, 0, 0.75], [1 / 3, 1 / 3, 1 / 3]]
    )
    assert model.predict(POOL[:2]).tolist() == ["c", "a"]


class Shrunk(Ridge):
    """Nearly the same shares everywhere, as after much smoothing."""

    def predict(self, X):
        return np.array([0.8, 0.2]) + np.outer(X[:, 0], [-0.01, 0.01])


def test_offsets_let_a_class_win_as_often_as_it_is_voted_for(seed):
    X = as_generator(seed).normal(size=(2000, 1))
    shares = np.eye(2)[(X[:, 0] > 1).astype(int)]
    model = VoteClassifier(Shrunk(), [0, 1], balance=1.0).fit(X, shares)
    assert not model.regressor_.predict(X).argmax(axis=1).any()
    assert abs(model.predict(X).mean() - shares[:, 1].mean()) < 0.01
    # an average that is all noise moves nothing
    noise = shares + as_generator(seed).normal(0, 100, shares.shape)
    model = VoteClassifier(Shrunk(), [0, 1]).fit(X, noise - noise.mean(axis=0) + 0.3)
    assert_allclose(model.offsets_, 0.0)


def moons(n, seed):
    return make_moons(n, noise=0.06, random_state=seed)


def test_smoothing_takes_noise_off_that_hides_every_single_vote(seed):
    pool, truth = moons(800, 0)
    new, told = moons(300, 1)
    votes = np.eye(2)[truth] + as_generator(seed).normal(0, 2, (800, 2))
    single = (votes.argmax(axis=1) == truth).mean()
    linear = (Ridge().fit(pool, votes).predict(new).argmax(axis=1) == told).mean()
    smooth = SmoothedVotes().fit(pool, votes)
    found = (smooth.predict(new).argmax(axis=1) == told).mean()
    assert single < 0.7
    assert found > max(linear + 0.05, 0.9)
    assert smooth.walk_ > 1


def test_noise_alone_is_smoothed_to_a_constant(seed):
    pool, truth = moons(800, 0)
    noise = as_generator(seed).normal(size=(800, 2))
    spread = SmoothedVotes().fit(pool, noise).predict(pool).std()
    signal = SmoothedVotes().fit(pool, np.eye(2)[truth] + noise).predict(pool).std()
    assert spread < 0.15
    assert signal > 0.4


def test_rows_of_weight_zero_have_no_target(seed):
    pool, truth = moons(400, 0)
    weights = (as_generator(seed).random(400) < 0.2).astype(float)
    first = SmoothedVotes().fit(pool, truth, sample_weight=weights)
    wrong = np.where(weights > 0, truth, 1e6)
    second = SmoothedVotes().fit(pool, wrong, sample_weight=weights)
    assert_allclose(first.predict(pool), second.predict(pool))
    assert ((first.predict(pool) > 0.5) == truth).mean() > 0.95
    with pytest.raises(ValueError, match="at least"):
        SmoothedVotes().fit(pool, truth, sample_weight=np.zeros(400))


@pytest.mark.parametrize("n", [2, 3, 12])
def test_few_or_equal_rows_can_be_smoothed(n):
    for rows in (np.zeros((n, 3)), np.arange(3.0 * n).reshape(n, 3)):
        model = SmoothedVotes().fit(rows, np.arange(n))
        assert np.isfinite(model.predict(rows)).all()
        assert np.isfinite(NeighborMap().fit_transform(rows)).all()
    assert_allclose(SmoothedVotes().fit(rows, np.ones(n)).predict(rows), 1.0)


def test_the_map_of_a_row_does_not_depend_on_other_rows():
    public, _ = moons(300, 0)
    private, _ = moons(50, 1)
    known = NeighborMap(20).fit(public)
    together = known.transform(private)
    apart = np.vstack([known.transform(row[None]) for row in private])
    assert_allclose(together, apart)
    assert together.shape == (50, 20)
    assert len(known.get_feature_names_out()) == 20


def test_leading_directions_of_many_rows_are_those_of_all(monkeypatch):
    public, _ = moons(700, 0)
    fast = NeighborMap(30).fit(public)
    vectors = np.linalg.qr(fast.components_[:, :10])[0]
    assert_allclose(fast.rates_[0], 1.0, atol=1e-6)
    assert (np.diff(fast.rates_) <= 1e-12).all()
    monkeypatch.setattr(_smoothing, "DENSE", 10_000)
    exact = NeighborMap(30).fit(public)
    assert_allclose(fast.rates_[:10], exact.rates_[:10], atol=1e-3)
    basis = np.linalg.qr(exact.components_[:, :30])[0]
    assert np.linalg.norm(basis.T @ vectors) ** 2 > 9.9


def test_half_of_the_offsets_cost_little_where_teachers_disagree(seed):
    # class 1 has votes everywhere and the most of them on few rows
    rows = as_generator(seed).normal(size=(2000, 3))
    rare = 0.25 + 0.2 * np.tanh(rows[:, 0] - 1)
    exact = np.column_stack([1 - rare, rare])
    shares = exact + as_generator(seed).normal(0, 0.3, exact.shape)
    half = VoteClassifier(SmoothedVotes(), [0, 1]).fit(rows, shares)
    full = VoteClassifier(SmoothedVotes(), [0, 1], balance=1.0).fit(rows, shares)

    def agreed(positions):
        return exact[np.arange(2000), positions].mean()

    constant = agreed(np.zeros(2000, dtype=int))
    assert agreed(half.predict(rows)) > constant - 0.015
    # control: offsets in full give the rare class the rows of the other
    assert agreed(full.predict(rows)) < constant - 0.03
