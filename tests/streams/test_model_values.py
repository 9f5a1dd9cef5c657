"""What rows hold raises nothing after the first step, and bad rows count as none."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from tacit._random import as_generator
from tacit.online import OnlineLinearRegression, OnlineLogisticRegression

WIDTH = 3


def good(n_rows=6, seed=0):
    rng = as_generator(seed)
    return rng.uniform(-0.5, 0.5, (n_rows, WIDTH)), rng.integers(0, 2, n_rows)


def started(kind="labels", **parameters):
    parameters = {"horizon": 5, "rows_per_step": 6, "random_state": 1, **parameters}
    if kind == "labels":
        model = OnlineLogisticRegression(1.0, 1e-6, classes=(0, 1), **parameters)
    else:
        model = OnlineLinearRegression(1.0, 1e-6, y_range=(0, 1), **parameters)
    return model.partial_fit(*good())


def leaf(model, X, y):
    return model._leaf(X, np.asarray(y, dtype=None if hasattr(y, "dtype") else object))


BAD_ROWS = {
    "missing": [0.1, np.nan, 0.2],
    "infinite": [0.1, 0.2, -np.inf],
    "too long to square": [1e308, 1e308, 1e308],
}


@pytest.mark.parametrize("kind", ["labels", "numbers"])
@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS)
def test_no_number_in_a_row_raises_or_warns(kind, bad):
    model = started(kind)
    X, y = good(seed=1)
    X[2] = bad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X, y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_a_row_that_cannot_be_used_is_zero_and_moves_no_other(kind):
    model = started(kind)
    X, y = good(seed=1)
    clean, targets = leaf(model, X, y)
    X[2] = np.nan
    dirty, same = leaf(model, X, y)
    assert (dirty[2] == 0).all()
    assert same[2] == 0
    others = np.arange(len(X)) != 2
    np.testing.assert_array_equal(dirty[others], clean[others])
    np.testing.assert_array_equal(same[others], targets[others])


@pytest.mark.parametrize(
    "label",
    [7, "0", None, np.nan, 0.5, [1], {}, pytest.param(object(), id="object")],
    ids=repr,
)
def test_unknown_labels_count_as_rows_that_are_not_there(label):
    model = started()
    X, y = good(seed=1)
    labels = np.array(y, dtype=object)
    labels[3] = label
    assert (leaf(model, X, labels)[0][3] == 0).all()
    assert model.partial_fit(X, labels).n_steps_ == 2


@pytest.mark.parametrize("target", ["1", None, np.inf, 10**400, [1]], ids=repr)
def test_targets_that_are_no_numbers_count_as_rows_that_are_not_there(target):
    model = started("numbers")
    X, y = good(seed=1)
    targets = np.array(y, dtype=object)
    targets[3] = target
    assert (leaf(model, X, targets)[0][3] == 0).all()
    assert model.partial_fit(X, targets).n_steps_ == 2


def test_a_text_in_one_cell_of_a_list_costs_that_row_alone():
    model = started()
    X, y = good(seed=1)
    table = X.tolist()
    table[1][0] = "tall"
    cells = np.asarray(table, dtype=object)
    found, _ = leaf(model, cells, y)
    assert (found[1] == 0).all()
    assert (np.delete(found, 1, axis=0)[:, -1] != 0).all()
    labels = y.tolist()
    labels[2] = "x"
    assert model.partial_fit(table, labels).n_steps_ == 2


def test_texts_are_refused_at_the_first_step_before_the_charge():
    X, y = good()
    model = OnlineLogisticRegression(1.0, 1e-6, classes=(0, 1), horizon=5)
    cells = X.astype(object)
    cells[0, 0] = "secret word"
    with pytest.raises(TypeError, match="numbers only") as caught:
        model.partial_fit(cells, y)
    assert "secret" not in str(caught.value)
    assert not hasattr(model, "privacy_")
    numbers = OnlineLinearRegression(1.0, 1e-6, horizon=5, y_range=(0, 1))
    with pytest.raises(ValueError, match="y must hold numbers"):
        numbers.partial_fit(X, np.array(list("abcdef")))


def test_kinds_of_columns_are_refused_without_a_value():
    model = started()
    X, y = good(seed=1)
    for bad in (X.astype(str), X.astype("M8[s]"), X + 1j):
        with pytest.raises(ValueError, match="numbers"):
            model.partial_fit(bad, y)
    assert model.n_steps_ == 1


@pytest.mark.parametrize(
    "shape", [(6, 2), (5,), (), (6, 1, 1)], ids=lambda shape: f"{len(shape)}d"
)
def test_targets_of_another_shape_are_refused_and_change_nothing(shape):
    model = started("numbers")
    X, _ = good()
    with pytest.raises(ValueError, match=r"y should be|as many rows"):
        model.partial_fit(X, np.zeros(shape))
    assert model.n_steps_ == 1


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_an_empty_step_is_a_step(kind):
    model = started(kind, neighbors="add_or_remove_one")
    before = model.coef_.copy()
    model.partial_fit(np.empty((0, WIDTH)), np.empty(0))
    assert model.n_steps_ == 2
    assert not np.array_equal(model.coef_, before)


def test_empty_steps_from_the_first_on_are_fine():
    model = OnlineLogisticRegression(1.0, 1e-6, classes=("a", "b", "c"), horizon=3)
    for _ in range(3):
        model.partial_fit(np.empty((0, WIDTH)), [])
    assert model.predict(np.zeros((1, WIDTH)))[0] in ("a", "b", "c")


def test_sparse_rows_and_tables_are_the_same_rows():
    pandas = pytest.importorskip("pandas", reason="tables come from pandas")
    X, y = good(seed=1)
    X[X < 0] = 0.0
    names = list("uvw")
    kinds = [X, sparse.csr_array(X), sparse.coo_matrix(X), X.tolist()]
    found = [started().partial_fit(rows, y).coef_ for rows in kinds]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    frame = pandas.DataFrame(X, columns=names)
    model = OnlineLogisticRegression(1.0, 1e-6, classes=(0, 1), horizon=5)
    model.partial_fit(frame, pandas.Series(y)).partial_fit(frame, pandas.Series(y))
    assert list(model.feature_names_in_) == names
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[names[::-1]], y)


def test_stray_entries_of_a_sparse_matrix_are_refused():
    X = sparse.csr_array(np.eye(WIDTH))
    X.indices = np.array([0, 1, 99], dtype=X.indices.dtype)
    with pytest.raises(ValueError, match="build the sparse matrix anew"):
        started().partial_fit(X, [0, 1, 0])


def test_rows_are_shortened_and_targets_cut_to_their_bounds():
    model = started("numbers", x_norm=2.0, fit_intercept=False)
    X, y = leaf(model, 1e9 * np.ones((2, WIDTH)), np.array([5.0, -5.0]))
    assert (np.linalg.norm(X, axis=1) <= 2.0).all()
    np.testing.assert_array_equal(y, [1.0, 0.0])


def test_predictions_still_refuse_what_they_cannot_use():
    model = started()
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((1, WIDTH), np.nan))
    with pytest.raises(ValueError, match="features"):
        model.predict(np.zeros((1, WIDTH + 1)))
