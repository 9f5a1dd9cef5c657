"""Labels depend on their own cell alone, whatever column it is in."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from tacit.data.bounds import class_positions, label_of, labels_of
from tacit.linear_model import LogisticRegression
from tacit.streaming import HedgeAggregator, IncrementalERM, OnlineLogisticRegression
from tacit.streaming._reader import column_of

LONG = 2**53 + 1  # not a float
DAYS = np.array(["1970-01-01", "2020-01-01"], dtype="M8[ns]")

# a column, and the same with a cell of another kind at its end
CHANGED = {
    "integers": (np.array([5, LONG, -LONG, 1]), lambda y: _with(y, "x")),
    "unsigned": (np.array([5, LONG, 1], dtype=np.uint64), lambda y: _with(y, "x")),
    "floats": (np.array([5.0, 2.0**53, 0.5, 1.0]), lambda y: _with(y, None)),
    "short floats": (np.array([0.1, 5.0, 1.0], np.float32), lambda y: _with(y, None)),
    "to floats": (pd.Series([5, LONG, 1]), lambda y: y.where(y != 1)),
    "booleans": (np.array([True, False, True]), lambda y: _with(y, 2.5)),
    "texts": (np.array(["a", "b", "a"]), lambda y: _with(y, 3)),
    "Int64": (pd.Series([5, LONG, 1], dtype="Int64"), lambda y: y.where(y != 1)),
    "category": (
        pd.Series([5, LONG, 1], dtype="category"),
        lambda y: y.where(y.astype(int) != 1),
    ),
    "dates": (pd.Series(DAYS[[0, 1, 1]]), lambda y: _with(y, "x")),
    "spans of time": (pd.Series(DAYS[[0, 1, 1]] - DAYS[0]), lambda y: _with(y, "x")),
    "days": (DAYS[[0, 1, 1]].astype("M8[D]"), lambda y: _with(y, "x")),
}
changed = pytest.mark.parametrize("kind", CHANGED)


def _with(column, cell):
    column = column.astype(object).copy()
    column[len(column) - 1] = cell
    return column


def seen(column):
    """Labels as they are compared, but for the last; None where there is none."""
    labels = labels_of(column_of(column))[:-1]
    return [None if label != label else label for label in labels]


@changed
def test_a_cell_of_another_kind_changes_no_other_label(kind):
    column, change = CHANGED[kind]
    assert seen(column) == seen(change(column))
    assert len(seen(column)) == len(column) - 1


def test_without_care_other_labels_would_change():
    for kind in ("dates", "Int64", "to floats", "category"):
        column, change = CHANGED[kind]
        first, second = (np.asarray(c).tolist()[:-1] for c in (column, change(column)))
        assert first != second


def test_equal_labels_of_all_kinds_are_equal():
    ones = [1, 1.0, True, np.int8(1), np.float32(1), np.bool_(True), Decimal(1)]
    assert {label_of(one) for one in ones} == {1.0}
    assert label_of(np.str_("a")) == label_of("a") == "a"
    none = [None, np.nan, pd.NA, pd.NaT, LONG, 1e300, DAYS[0], [1], np.inf]
    assert [label_of(cell) for cell in none] == [None] * len(none)


@changed
def test_experts_pay_the_same_for_other_rows(kind):
    truth, change = CHANGED[kind]
    X = np.column_stack([np.asarray(truth)] * 2)
    model = HedgeAggregator(1.0, 1e-6, horizon=3, random_state=0)
    n = len(truth)
    model.partial_fit(np.zeros((n, 2)), np.zeros(n))
    reader = model._private_stream.planned.reader
    both = (column_of(y) for y in (truth, change(truth)))
    costs = [reader.read(X, y, first=False)[0] for y in both]
    np.testing.assert_array_equal(costs[0][:-1], costs[1][:-1])


@pytest.mark.parametrize(
    "classes",
    [DAYS, DAYS - DAYS[0], [LONG, 5], [1e300, 5.0], [2**53, 1]],
    ids=["dates", "spans", "long", "large", "edge"],
)
def test_classes_that_columns_hold_in_several_ways_are_refused(classes):
    X, y = np.zeros((2, 2)), np.asarray(classes)
    online = OnlineLogisticRegression(1.0, 1e-6, classes=classes, x_norm=1.0)
    erm = IncrementalERM(
        LogisticRegression(classes=classes, x_norm=1.0), 1.0, 1e-6, horizon=4
    )
    for model in (online, erm):
        with pytest.raises(ValueError, match="classes must be strings or numbers"):
            model.partial_fit(X, y)
        assert not hasattr(model, "privacy_")


def test_dates_are_no_predictions_of_labels():
    days = np.tile(DAYS, (2, 1))
    model = HedgeAggregator(1.0, 1e-6)
    for X, y in ((days, [0, 1]), (np.zeros((2, 2)), DAYS)):
        with pytest.raises(ValueError, match="no dates"):
            model.partial_fit(X, y)
    assert not hasattr(model, "privacy_")


def test_places_are_those_of_the_classes():
    classes = np.array([0, 1, 7])
    labels = np.array([7, 0.0, True, "1", None, 3], dtype=object)
    assert class_positions(classes, labels).tolist() == [2, 0, 1, -1, -1, -1]
    texts = np.array(["no", "yes"])
    assert class_positions(texts, np.array(["yes", "?", "no"])).tolist() == [1, -1, 0]
