"""Models on streams, as river takes them."""

import copy
import pickle
import runpy
import sys
from fractions import Fraction

import numpy as np
import pytest
from river import checks, compose, evaluate, metrics, preprocessing
from river.base import Classifier, Regressor

import tacit.streaming.river
from tacit import Budget, Ledger
from tacit._estimators import exclusive_step
from tacit._random import as_generator
from tacit.exceptions import BudgetExceeded
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.streaming import (
    HedgeAggregator,
    IncrementalERM,
    OnlineLinearRegression,
    OnlineLogisticRegression,
)
from tacit.streaming.river import RiverClassifier, RiverRegressor

NAMES = ["a", "b", "c"]


def rows(n, seed=0):
    """Return features within one, labels and targets of them."""
    rng = as_generator(seed)
    X = rng.uniform(-0.5, 0.5, (n, 3))
    label = X[:, 0] > rng.normal(0, 0.05, n)
    return X, label, 5 + 3 * X[:, 0]


def named(X):
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]


def classifier(**given):
    settings = {"horizon": 20, "rows_per_step": 10, "classes": [False, True]}
    return OnlineLogisticRegression(
        20.0, 1e-6, random_state=0, **{"x_norm": 1.0, **settings, **given}
    )


def regressor(**given):
    settings = {"horizon": 20, "rows_per_step": 10, "y_range": (0.0, 10.0)}
    return OnlineLinearRegression(
        20.0, 1e-6, random_state=0, **{"x_norm": 1.0, **settings, **given}
    )


def test_rivers_own_evaluation_meets_the_model_itself():
    X, y, _ = rows(200)
    private = RiverClassifier(classifier(), NAMES)
    score = evaluate.progressive_val_score(
        zip(named(X), y.tolist(), strict=True), private, metrics.Accuracy()
    )
    direct = classifier()
    right = []
    for start in range(0, 200, 10):
        step = slice(start, start + 10)
        if start:
            right.extend(direct.predict(X[step]) == y[step])
        direct.partial_fit(X[step], y[step])
    assert (private.stream.coef_ == direct.coef_).all()
    assert private.predict_one(named(X)[0]) == direct.predict(X[:1])[0]
    assert private.predict_proba_one(named(X)[0]) == pytest.approx(
        dict(zip([False, True], direct.predict_proba(X[:1])[0], strict=True))
    )
    # river does not judge rows that have no prediction yet
    assert score.get() == pytest.approx(np.mean(right))
    assert score.get() > 0.7


def test_numbers_are_predicted_as_by_the_model_itself():
    X, _, y = rows(200)
    private, direct = RiverRegressor(regressor(), NAMES), regressor()
    score = evaluate.progressive_val_score(
        zip(named(X), y.tolist(), strict=True), private, metrics.MAE()
    )
    for start in range(0, 200, 10):
        direct.partial_fit(X[start : start + 10], y[start : start + 10])
    assert (private.stream.coef_ == direct.coef_).all()
    assert private.predict_one(named(X)[0]) == pytest.approx(direct.predict(X[:1])[0])
    assert score.get() < 3.0


def test_the_model_that_was_given_stays_as_it_was():
    model = classifier()
    private = RiverClassifier(model, NAMES)
    for x, y in zip(named(rows(10)[0]), rows(10)[1].tolist(), strict=True):
        private.learn_one(x, y)
    assert private.n_steps == 1
    assert not hasattr(model, "coef_")
    assert private.clone().n_steps == 0


def test_models_that_are_refitted_predict_before_the_first_step():
    classifier = IncrementalERM(
        LogisticRegression(classes=["no", "yes"], x_norm=1.0), horizon=3
    )
    private = RiverClassifier(classifier, ["a"])
    assert private.predict_proba_one({"a": 1.0}) == {"no": 0.5, "yes": 0.5}
    assert private.predict_one({"a": 1.0}) is None
    assert not private._multiclass
    unknown = RiverClassifier(
        IncrementalERM(LogisticRegression(x_norm=1.0), horizon=3), ["a"]
    )
    assert unknown.predict_proba_one({"a": 1.0}) == {}
    regressor = IncrementalERM(
        LinearRegression(y_range=(2.0, 10.0), x_norm=1.0), horizon=3
    )
    assert RiverRegressor(regressor, ["a"]).predict_one({"a": 1.0}) == 6.0


def test_there_is_a_prediction_before_the_first_step():
    x = named(rows(1)[0])[0]
    assert RiverClassifier(classifier(), NAMES).predict_one(x) is None
    equal = {False: 0.5, True: 0.5}
    assert RiverClassifier(classifier(), NAMES).predict_proba_one(x) == equal
    unknown = RiverClassifier(classifier(classes=None), NAMES)
    assert unknown.predict_proba_one(x) == {}
    assert RiverRegressor(regressor(), NAMES).predict_one(x) == 5.0


def test_pipelines_of_river_take_the_model():
    X, y, _ = rows(200)
    pipeline = preprocessing.StandardScaler() | RiverClassifier(
        classifier(x_norm=3.0), NAMES
    )
    assert isinstance(pipeline, compose.Pipeline)
    score = evaluate.progressive_val_score(
        zip(named(X), y.tolist(), strict=True), pipeline, metrics.ROCAUC()
    )
    assert score.get() > 0.7


STRANGE = [
    {},
    {"a": 0.1},
    {"a": 0.1, "b": None, "c": 0.2},
    {"a": "text", "b": 0.1, "c": 0.2},
    {"a": "0.5", "b": 0.1, "c": 0.2},
    {"a": float("nan"), "b": 0.1, "c": 0.2},
    {"a": float("inf"), "b": 0.1, "c": 0.2},
    {"a": 10**400, "b": 0.1, "c": 0.2},
    {"a": [1], "b": {}, "c": 0.2},
    {"a": 1j, "b": 0.1, "c": 0.2},
]


@pytest.mark.parametrize("x", STRANGE, ids=str)
def test_rows_that_cannot_be_used_count_as_zero_rows(x):
    # the same as a row of zeros with no label, at the first step and later
    def coefficients(odd, label):
        private = RiverClassifier(classifier(rows_per_step=2, horizon=3), NAMES)
        for position, good in enumerate(named(rows(3)[0])):
            private.learn_one(good, position % 2 == 0)
            private.learn_one(odd, label)
        private.predict_one(odd)
        return private.stream.coef_

    nothing = dict.fromkeys(NAMES)
    assert (coefficients(x, True) == coefficients(nothing, None)).all()


@pytest.mark.parametrize(
    "y", ["text", None, [1], {}, (1, 2), (1, (2, 3)), ([],), np.array([1]), 1j]
)
def test_labels_that_cannot_be_used_count_as_zero_rows(y):
    x = {"a": 0.1, "b": 0.2, "c": 0.3}

    def coefficients(odd):
        private = RiverClassifier(classifier(rows_per_step=2, horizon=2), NAMES)
        for label in (True, False):
            private.learn_one(x, label)
            private.learn_one(x, odd)
        return private.stream.coef_

    assert (coefficients(y) == coefficients(None)).all()
    private = RiverRegressor(regressor(rows_per_step=1), NAMES)
    for target in (1.0, y, Fraction(1, 3)):
        private.learn_one(x, target)
    assert np.isfinite(private.stream.coef_).all()


def test_a_row_that_is_none_counts_as_a_row_without_features():
    def coefficients(odd):
        private = RiverClassifier(classifier(rows_per_step=2, horizon=2), NAMES)
        for x in (named(rows(1)[0])[0], odd, {}, odd):
            private.learn_one(x, True)
        return private.stream.coef_

    assert (coefficients(None) == coefficients({})).all()
    assert (coefficients([("a", 1)]) == coefficients({})).all()


def test_a_row_comes_from_one_thread_at_a_time():
    private = RiverClassifier(classifier(rows_per_step=2, horizon=2), NAMES)
    with (
        exclusive_step(private),
        pytest.raises(ValueError, match="in the middle of a step"),
    ):
        private.learn_one({"a": 0.1}, True)
    assert private._private_rows == []


def test_a_feature_that_no_first_row_has_is_refused_before_the_charge():
    ledger = Ledger(Budget(30.0, 1e-5))
    names = ["a", "bee", "c"]
    private = RiverClassifier(classifier(rows_per_step=2), names, ledger=ledger)
    X, y, _ = rows(4)
    stream = list(zip(named(X), y.tolist(), strict=True))
    private.learn_one(*stream[0])
    for x, label in stream[1:3]:
        with pytest.raises(ValueError, match="no row of the first step has 'bee'"):
            private.learn_one(x, label)
    assert private.n_steps == ledger.spent() == 0
    private.learn_one({"a": 0.1, "bee": 0.1, "c": 0.1}, True)
    assert private.n_steps == 1
    assert ledger.spent() > 0
    for x, label in stream:  # later rows may lack it
        private.learn_one(x, label)
    assert private.n_steps == 3


def test_other_features_are_not_read():
    X, y, _ = rows(20)

    plain, more = (RiverClassifier(classifier(), NAMES) for _ in range(2))
    for x, label in zip(named(X), y.tolist(), strict=True):
        plain.learn_one(x, label)
        more.learn_one({"z": "name", **x}, label)
    assert (plain.stream.coef_ == more.stream.coef_).all()


@pytest.mark.parametrize("after", ["raise", "stop"])
def test_the_horizon_ends_learning(after):
    X, y, _ = rows(7)
    private = RiverClassifier(
        classifier(horizon=2, rows_per_step=2), NAMES, after_horizon=after
    )
    stream = list(zip(named(X), y.tolist(), strict=True))
    for x, label in stream[:4]:
        private.learn_one(x, label)
    before = private.stream.coef_.copy()
    for x, label in stream[4:]:
        if after == "raise":
            with pytest.raises(ValueError, match="horizon=2"):
                private.learn_one(x, label)
        else:
            private.learn_one(x, label)
    assert (private.stream.coef_ == before).all()
    assert private._private_rows == []
    assert private.n_steps == 2


def test_a_ledger_is_charged_once_and_a_refused_row_was_never_there():
    X, y, _ = rows(8)
    stream = list(zip(named(X), y.tolist(), strict=True))
    ledger = Ledger(Budget(30.0, 1e-5))
    settings = {"horizon": 2, "rows_per_step": 2}
    private = RiverClassifier(classifier(**settings), NAMES, ledger=ledger)
    for x, label in stream[:4]:
        private.learn_one(x, label)
    assert len(ledger.report().entries) == 1
    poor = RiverClassifier(classifier(**settings), NAMES, ledger=ledger)
    poor.learn_one(*stream[0])
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            poor.learn_one(*stream[1])
        assert len(poor._private_rows) == 1
    with pytest.raises(TypeError, match="Ledger"):
        private.clone()


def test_copies_hold_no_rows_and_cannot_go_on():
    X, y, _ = rows(15)
    private = RiverClassifier(classifier(), NAMES)
    for x, label in zip(named(X), y.tolist(), strict=True):
        private.learn_one(x, label)
    assert len(private._private_rows) == 5
    for other in (copy.deepcopy(private), pickle.loads(pickle.dumps(private))):
        assert other._private_rows == []
        assert other.predict_one(named(X)[0]) == private.predict_one(named(X)[0])
        for x in named(X[:9]):
            other.learn_one(x, True)
        with pytest.raises(ValueError, match="cannot continue"):
            other.learn_one(named(X)[9], True)
    assert "_private" not in repr(private)


def test_steps_by_the_count_of_rows_need_a_public_count():
    with pytest.raises(ValueError, match="replace_one"):
        RiverClassifier(classifier(neighbors="add_or_remove_one"), NAMES)
    for wrong in ("abc", [], ["a", "a"]):
        with pytest.raises(ValueError, match="features"):
            RiverClassifier(classifier(), wrong)
    with pytest.raises(ValueError, match="after_horizon"):
        RiverClassifier(classifier(), NAMES, after_horizon="wait")
    with pytest.raises(ValueError, match="rows_per_step"):
        RiverClassifier(classifier(rows_per_step=0), NAMES)


def test_more_labels_than_two_and_models_without_probabilities():
    several = RiverClassifier(classifier(classes=["x", "y", "z"]), NAMES)
    assert several._multiclass
    assert not RiverClassifier(classifier(), NAMES)._multiclass
    experts = HedgeAggregator(1.0, 1e-6, horizon=3)
    private = RiverClassifier(experts, NAMES)
    private.learn_one({"a": 1, "b": 0, "c": 1}, 1)
    assert private.predict_one({"a": 1, "b": 1, "c": 1}) == 1
    with pytest.raises(NotImplementedError):
        private.predict_proba_one({})


PHISHING = [
    "empty_server_form_handler",
    "popup_window",
    "https",
    "request_from_other_domain",
    "anchor_from_other_domain",
    "is_popular",
    "long_url",
    "age_of_domain",
    "ip_in_url",
]
TRUMP = [
    "ordinal_date",
    "gallup",
    "ipsos",
    "morning_consult",
    "rasmussen",
    "you_gov",
]


def river_checks():
    subjects = [
        RiverClassifier(
            classifier(horizon=1000, rows_per_step=20, x_norm=3.0), PHISHING
        ),
        RiverRegressor(
            regressor(horizon=1000, rows_per_step=20, y_range=(30, 60)), TRUMP
        ),
    ]
    for subject in subjects:
        for check in checks.yield_checks(subject):
            yield pytest.param(
                subject, check, id=f"{type(subject).__name__}-{check.__name__}"
            )


@pytest.mark.parametrize(("subject", "check"), list(river_checks()))
def test_river_accepts_the_adapter(subject, check):
    assert isinstance(subject, Classifier | Regressor)
    check(subject.clone())


def test_without_river_there_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    with pytest.raises(ImportError, match=r"pip install 'tacit\[river\]'"):
        runpy.run_path(tacit.streaming.river.__file__)
