"""Labels are compared with the public classes, one by one and whatever their type."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from tacit._estimators import checked_targets
from tacit.data import RowBounds
from tacit.ensemble import PrivateLabeler
from tacit.evaluation import private_score
from tacit.linear_model import LinearSVC, LogisticRegression
from tacit.model_selection import PrivateSearchCV
from tacit.privacy import Budget, Ledger
from tacit.streaming import OnlineLogisticRegression

CLASSES = [0.0, 0.5, 1.0]
N = 60
X = np.cos(np.arange(2.0 * N)).reshape(N, 2)
SAME = [0, False, np.int8(0), 0.0, Decimal(0), Fraction(0), np.float32(0)]
HALF = [0.5, np.float16(0.5), Fraction(1, 2), Decimal("0.5")]


def models():
    given = {"classes": CLASSES, "random_state": 0}
    inner = LogisticRegression(4.0, 1e-4, classes=CLASSES, x_norm=1.0)
    return [
        LogisticRegression(4.0, 1e-4, **given, x_norm=1.0),
        LinearSVC(4.0, 1e-4, **given, x_norm=1.0),
        OnlineLogisticRegression(
            4.0, 1e-4, horizon=4, rows_per_step=15, **given, x_norm=1.0
        ),
        PrivateSearchCV(inner, {"x_norm": [0.5, 1.0]}, 8.0, 1e-4, random_state=0),
    ]


each_model = pytest.mark.parametrize("model", models(), ids=lambda m: type(m).__name__)


def test_each_label_has_the_place_of_the_class_that_it_equals():
    bounds = RowBounds(classes=tuple(CLASSES))
    labels = np.empty(len(SAME) + len(HALF), dtype=object)
    labels[:] = [*SAME, *HALF]
    assert bounds.codes(labels).tolist() == [0] * len(SAME) + [1] * len(HALF)


@pytest.mark.parametrize("label", ["0.5", 0.25, None, [0.5], np.nan, b"0"])
def test_any_other_label_is_outside(label):
    labels = np.empty(2, dtype=object)
    labels[:] = [0.5, label]
    with pytest.raises(ValueError, match="outside the public classes"):
        RowBounds(classes=tuple(CLASSES)).codes(labels)


@each_model
def test_one_label_between_two_integers_is_taken_where_it_is_public(model):
    y = np.arange(N) % 2 / 1.0
    model.fit(X, y)
    y[-1] = 0.5
    model.fit(X, y)
    assert model.classes_.tolist() == CLASSES


@each_model
def test_labels_of_several_kinds_are_taken_as_the_classes_they_equal(model):
    y = [(SAME[i % 7] if i % 2 else 1) if i % 5 else HALF[i % 4] for i in range(N)]
    kinds = model.fit(X, y)
    answers = kinds.predict(X).tolist()
    assert (
        answers
        == model.fit(X, np.array([float(label) for label in y])).predict(X).tolist()
    )


@each_model
def test_labels_outside_follow_the_rule_and_charge_nothing(model):
    ledger, y = Ledger(Budget(9.0, 1e-2)), [i % 2 for i in range(N)]
    y[3] = "half"
    if isinstance(model, OnlineLogisticRegression):  # such a row counts as absent
        model.fit(X, y, ledger=ledger)
        return
    with pytest.raises(ValueError, match="classes") as rejected:
        model.fit(X, y, ledger=ledger)
    assert "half" not in str(rejected.value)
    assert ledger.spent() == 0


def test_teachers_learn_from_public_labels_of_several_kinds():
    labeler = PrivateLabeler(
        DecisionTreeClassifier(),
        4,
        4.0,
        1e-4,
        classes=CLASSES,
        n_queries=2,
        random_state=0,
    )
    y = [(i % 2, 0.5, True)[i % 3] for i in range(N)]
    assert labeler.fit(X, y).label(X[:2]).values.shape == (2,)


def test_without_public_classes_labels_must_be_of_one_kind():
    y = [i % 2 for i in range(N)]
    with pytest.raises(ValueError, match=r"labels of one kind.*classes="):
        LogisticRegression(1.0, 1e-4, x_norm=1.0).fit(X, [*y[:-1], "1"])


def padded(label):
    return label + "\0"  # as fields of a fixed width are


@pytest.mark.parametrize("odd", [7, b"no", None, 0.5])
def test_strings_of_a_list_keep_zeros_at_their_ends_whatever_another_label_is(odd):
    y = [padded("yes"), padded("no"), "yes", "no"]
    for labels in (y, [*y[:-1], odd]):
        found = checked_targets(labels, 4, labels=True)
        assert found.tolist() == labels
    # a control: an array of strings drops them
    assert np.array(y)[0] == "yes"


def test_one_record_turns_no_label_of_a_score_or_a_stream():
    y = ["yes" if x > 0 else "no" for x in X[:, 0]]
    tree = DecisionTreeClassifier().fit(X, y)
    all_padded = list(map(padded, y))
    scores = [
        private_score(tree, X, labels, epsilon=1e6, random_state=0).value
        for labels in (all_padded, [*all_padded[:-1], 7])
    ]
    assert max(scores) < 0.01
    given = {"classes": ["no", "yes"], "random_state": 0}
    stream = OnlineLogisticRegression(
        4.0, 1e-4, horizon=4, rows_per_step=15, **given, x_norm=1.0
    )
    weights = [
        stream.fit(X, labels).coef_.tolist()
        for labels in (all_padded, [*all_padded[:-1], 7])
    ]
    assert weights[0] == weights[1]


def test_a_long_string_does_not_widen_the_other_labels():
    y = ["a"] * 999 + ["b" * 10**6]
    assert checked_targets(y, 1000, labels=True).nbytes == 8000


@pytest.mark.parametrize("labels", [[2**63, 1], [2**64, 1], [-1, 2**63 + 1]])
def test_labels_of_one_kind_of_number_are_the_same_in_an_array(labels):
    found = checked_targets(labels, 2, labels=True)
    assert found.tolist() == labels


MIXED = [[0, "yes"], [0, b"1"], ("a", None), np.array([0, "yes"], dtype=object)]


@pytest.mark.parametrize("classes", MIXED, ids=str)
@each_model
def test_public_classes_of_two_kinds_are_rejected_before_the_charge(model, classes):
    assert_classes_rejected(model, classes, "one kind, all numbers or all strings, got")


@pytest.mark.parametrize(
    "classes", [[0, 1, 1], [0, 1, 1.0], ["a", "b", "a"], [0, 1, True]], ids=str
)
@each_model
def test_public_classes_that_repeat_are_rejected_before_the_charge(model, classes):
    assert_classes_rejected(model, classes, "classes must be distinct, got")


def assert_classes_rejected(model, classes, match):
    model = clone(model)
    inner = "estimator__classes" if hasattr(model, "estimator") else "classes"
    model.set_params(**{inner: classes})
    ledger = Ledger(Budget(9.0, 1e-3))
    with pytest.raises(ValueError, match=match):
        model.fit(X, np.arange(N) % 2, ledger=ledger)
    assert ledger.spent() == 0


def test_numbers_of_several_types_are_of_one_kind():
    model = LogisticRegression(
        4.0, 1e-4, classes=[np.int8(0), 1.0, Fraction(2)], x_norm=1.0
    )
    assert model.fit(X, np.arange(N) % 3).classes_.tolist() == [0, 1, 2]


def test_the_message_about_other_labels_names_the_usual_mistake():
    with pytest.raises(ValueError, match="the string '1' is not the number 1"):
        RowBounds(classes=(0, 1)).codes(np.array(["0", "1"]))
