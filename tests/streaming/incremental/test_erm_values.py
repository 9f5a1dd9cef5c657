"""Rows that cannot be used: the same whatever they hold, and never an error."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import is_classifier
from tests.streaming.incremental.test_erm import TWO, Y, steps, watched

from tacit.linear_model import LinearRegression, LogisticRegression, SimplexRegressor
from tacit.streaming import IncrementalERM

BAD_X = [np.nan, np.inf, -np.inf]
BAD_LABELS = ["maybe", None, np.nan, 3, ("no",), ["yes"]]


def begun(estimator, rng, **changes):
    X, y = next(steps(rng, 1))
    if is_classifier(estimator):
        y = np.where(y > 0, "yes", "no")
    return IncrementalERM(estimator, horizon=8, **changes).partial_fit(X, y), X, y


def read(model, X, y):
    return model._private_stream.planned.reader.read(X, y, first=False)


@pytest.mark.parametrize("bad", BAD_X, ids=str)
def test_an_unusable_row_is_the_same_whatever_it_holds(bad, rng):
    model, X, y = begun(LogisticRegression(classes=TWO, x_norm=1.0), rng)
    broken = X.copy()
    broken[2, 1] = bad
    seen, codes = read(model, broken, y)
    assert_array_equal(seen[2], 0.0)
    assert codes[2] == -1
    assert_array_equal(np.delete(seen, 2, axis=0), np.delete(X, 2, axis=0))
    model.partial_fit(broken, y)


def test_unknown_labels_are_unusable_rows(rng):
    model, X, _ = begun(LogisticRegression(classes=TWO, x_norm=1.0), rng)
    y = np.empty(len(BAD_LABELS), dtype=object)
    y[:] = BAD_LABELS
    X = rng.uniform(size=(len(y), 2))
    seen, codes = read(model, X, y)
    assert not seen.any()
    assert (codes == -1).all()
    model.partial_fit(X, y)
    # all kinds of values that only a later step may hold
    model.partial_fit([["a", 1.0], [None, 2.0]], ["no", 7])
    model.partial_fit(pd.DataFrame({"0": ["?", 1.0], "1": [1, 2]}).to_numpy(), TWO)


def test_unusable_targets_are_the_middle(rng):
    model, X, y = begun(LinearRegression(y_range=(90, 110), x_norm=1.0), rng)
    y = y + 100
    y[3] = np.nan
    seen, values = read(model, X, y)
    assert_array_equal(seen[3], 0.0)
    assert values[3] == 100.0
    without = begun(
        LinearRegression(y_range=(90, 110), fit_intercept=False, x_norm=1.0), rng
    )[0]
    assert read(without, X, y)[1][3] == 0.0
    simplex = begun(SimplexRegressor(y_range=(90, 110), x_max=1.0), rng)[0]
    assert read(simplex, X, y)[1][3] == 90.0


def test_unusable_rows_are_left_out_where_numbers_of_rows_are_private(rng):
    model, X, y = begun(
        LinearRegression(y_range=Y, x_norm=1.0),
        rng,
        delta=1e-6,
        neighbors="add_or_remove_one",
    )
    broken = X.copy()
    broken[1, 0] = np.nan
    seen, values = read(model, broken, y)
    assert_array_equal(seen, np.delete(X, 1, axis=0))
    assert_array_equal(values, np.delete(y, 1))


def test_unusable_rows_have_labels_of_all_classes():
    solver, seen = watched(lambda rows: rows.arrays()[1].tolist())
    estimator = LogisticRegression(classes=TWO, solver=solver, x_norm=1.0)
    model = IncrementalERM(estimator, horizon=2, update_every=2)
    model.partial_fit(np.full((3, 2), np.nan), ["no", "yes", "no"])
    model.partial_fit(np.zeros((1, 2)), ["no"])
    assert seen == [[-1.0, 1.0, -1.0, -1.0]]


@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
@pytest.mark.parametrize("n_rows", [0, 1])
def test_hardly_any_rows_are_enough(neighbors, n_rows, rng):
    for estimator in (
        LogisticRegression(classes=TWO, x_norm=1.0),
        LinearRegression(y_range=Y, x_norm=1.0),
    ):
        model = IncrementalERM(estimator, 1.0, 1e-6, horizon=2, neighbors=neighbors)
        for X, y in steps(rng, 2, n_rows=n_rows):
            labels = np.where(y > 0, "yes", "no")
            model.partial_fit(X, labels if is_classifier(estimator) else y)
        assert np.isfinite(model.coef_).all()
