"""How labels are read: each by itself, none through the kind of another."""

import numpy as np
import pytest

from tacit.data import RowBounds
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.preprocessing import PrivateStandardScaler
from tacit.privacy import Budget, Ledger

X = np.linspace(-1, 1, 60).reshape(20, 3)
LABELS = np.resize([0, 1], 20)
BIG = 2**53


@pytest.mark.parametrize("odd", ["unknown", None, np.nan])
@pytest.mark.parametrize("form", [list, lambda y: np.array(y, dtype=object)])
def test_labels_outside_the_classes_are_refused_before_the_charge(odd, form):
    ledger = Ledger(Budget(2.0, 1e-5))
    model = LogisticRegression(1.0, 1e-6, classes=[0, 1], x_norm=1.0)
    with pytest.raises(ValueError, match="labels outside the public classes"):
        model.fit(X, form([odd, *LABELS[1:].tolist()]), ledger=ledger)
    assert ledger.spent() == 0
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("odd", [0.0, False])
@pytest.mark.parametrize("form", [list, lambda y: np.array(y, dtype=object)])
def test_a_label_of_another_kind_is_the_class_that_it_equals(odd, form):
    first, second = (
        LogisticRegression(1.0, 1e-6, classes=[0, 1], random_state=0, x_norm=1.0)
        .fit(X, y)
        .coef_
        for y in (LABELS, form([odd, *LABELS[1:].tolist()]))
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("labels", [[0, 1], ["a", "b"], [False, True], [0.0, 2.0]])
@pytest.mark.parametrize(
    "form", [list, lambda y: np.array(y, dtype=object)], ids=["list", "objects"]
)
def test_lists_and_objects_of_one_kind_are_read_like_arrays(labels, form):
    y = [labels[code] for code in LABELS]
    models = [
        LogisticRegression(1.0, 1e-6, classes=labels, random_state=0, x_norm=1.0).fit(
            X, given
        )
        for given in (np.array(y), form(y))
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize(
    ("classes", "y", "codes"),
    [
        ((BIG, BIG + 1), np.array([BIG + 1, BIG]), [1, 0]),
        ((BIG, BIG + 1), np.array([float(BIG)]), [0]),
        ((0, 1), np.array([True, False]), [1, 0]),
        ((0.0, 1.0), np.array([1, 0]), [1, 0]),
        (("a", "bb"), np.array(["bb", "a"], dtype=object), [1, 0]),
        ((2**63, 1), np.array([1, 2**63], dtype=np.uint64), [1, 0]),
    ],
)
def test_codes_are_found_without_rounding(classes, y, codes):
    assert RowBounds(classes=classes).codes(y).tolist() == codes


@pytest.mark.parametrize(
    ("classes", "y"),
    [
        ((float(BIG), 0.5), np.array([BIG + 1])),
        ((1, 2), np.array([1.5])),
        ((1, 2), np.array(["1"])),
    ],
)
def test_labels_that_only_round_to_a_class_are_refused(classes, y):
    with pytest.raises(ValueError, match="outside the public classes"):
        RowBounds(classes=classes).codes(y)


def test_targets_may_be_integers_and_floats():
    y = [1, *LABELS[1:].astype(float)]
    model = LinearRegression(1.0, 1e-6, y_range=(0, 1), x_norm=1.0).fit(X, y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(classes=[0, 1], x_norm=1.0),
        LinearRegression(y_range=(0, 1), x_norm=1.0),
    ],
)
def test_any_number_of_rows_is_fitted_where_it_is_private(model, n):
    model.set_params(delta=1e-6, neighbors="add_or_remove_one")
    assert model.plan(n, 3).event == model.plan(1000, 3).event
    assert np.isfinite(model.fit(X[:n], LABELS[:n]).coef_).all()


def test_a_private_number_of_rows_is_in_no_message():
    private = {"delta": 1e-6, "neighbors": "add_or_remove_one"}
    model = LogisticRegression(classes=[0, 1], **private, x_norm=1.0)
    with pytest.raises(ValueError, match="0 feature") as rejected:
        model.fit(X[:, :0], LABELS)
    assert "20" not in str(rejected.value)
    scaler = PrivateStandardScaler(ranges=(0, 1), **private)
    for n in (0, 1):  # a refusal would tell that there are none
        assert np.isfinite(scaler.fit(X[:n]).mean_).all()


@pytest.mark.parametrize(
    ("y_range", "x_norm"), [((-1e250, 1e250), 1e-80), ((0, 1e300), 1.0)]
)
def test_ranges_that_make_infinite_weights_are_refused_by_the_plan(y_range, x_norm):
    model = LinearRegression(1.0, 1e-6, y_range=y_range, x_norm=x_norm)
    with pytest.raises(ValueError, match="y_range is too wide for x_norm"):
        model.plan(100, 3)
