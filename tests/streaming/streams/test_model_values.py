"""What rows hold raises nothing after the first step, and bad rows count as none."""

import warnings
from collections import deque
from numbers import Real

import numpy as np
import pytest
from scipy import sparse

from tacit._random import as_generator
from tacit.streaming import (
    IncrementalLinearRegression,
    OnlineLinearRegression,
    OnlineLogisticRegression,
)

WIDTH = 3


def good(n_rows=6, seed=0):
    rng = as_generator(seed)
    return rng.uniform(-0.5, 0.5, (n_rows, WIDTH)), rng.integers(0, 2, n_rows)


def started(kind="labels", **parameters):
    parameters = {"horizon": 5, "rows_per_step": 6, "random_state": 1, **parameters}
    if kind == "labels":
        model = OnlineLogisticRegression(
            1.0, 1e-6, classes=(0, 1), **{"x_norm": 1.0, **parameters}
        )
    else:
        model = OnlineLinearRegression(
            1.0, 1e-6, y_range=(0, 1), **{"x_norm": 1.0, **parameters}
        )
    return model.partial_fit(*good())


def leaf(model, X, y):
    y = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
    return model._private_stream.planned.reader.read(X, y, first=False)


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
    model = OnlineLogisticRegression(1.0, 1e-6, classes=(0, 1), horizon=5, x_norm=1.0)
    cells = X.astype(object)
    cells[0, 0] = "secret word"
    with pytest.raises(TypeError, match="numbers only") as caught:
        model.partial_fit(cells, y)
    assert "secret" not in str(caught.value)
    assert not hasattr(model, "privacy_")
    numbers = OnlineLinearRegression(1.0, 1e-6, horizon=5, y_range=(0, 1), x_norm=1.0)
    with pytest.raises(ValueError, match="y must hold numbers"):
        numbers.partial_fit(X, np.array(list("abcdef")))


KINDS = {
    "texts": lambda X: X.astype(str),
    "bytes": lambda X: X.astype("S"),
    "dates": lambda X: X.astype("M8[s]"),
    "spans of time": lambda X: X.astype("m8[ns]"),
    "complex numbers": lambda X: X + 1j,
    "sparse complex numbers": lambda X: sparse.csr_array(X + 1j),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_columns_are_refused_at_the_first_step_alone(kind):
    X, y = good(seed=1)
    model = OnlineLogisticRegression(1.0, 1e-6, classes=(0, 1), horizon=5, x_norm=1.0)
    with pytest.raises(ValueError, match="numbers"):
        model.partial_fit(KINDS[kind](X), y)
    assert not hasattr(model, "privacy_")
    # later it would tell of rows: all of them are missing
    missing = started().partial_fit(np.full(X.shape, np.nan), y)
    later = started().partial_fit(KINDS[kind](X), y)
    np.testing.assert_array_equal(later.coef_, missing.coef_)


def test_columns_of_a_table_count_by_themselves():
    pandas = pytest.importorskip("pandas", reason="tables come from pandas")
    X, y = good(seed=1)
    odd = {
        "text": ["x"] * 6,
        "date": pandas.to_datetime(["2020"] * 6),
        "zone": pandas.to_datetime(["2020"] * 6, utc=True),
        "span": pandas.to_timedelta(["1s"] * 6),
        "complex": [1j] * 6,
        "period": pandas.period_range("2020", periods=6),
        "category": pandas.Categorical(list("abcabc")),
    }
    for column in odd.values():
        model = OnlineLogisticRegression(
            1.0, 1e-6, classes=(0, 1), horizon=5, x_norm=1.0
        )
        frame = pandas.DataFrame(X, columns=list("uvw"))
        model.partial_fit(frame, y)
        found, _ = leaf(model, frame.assign(v=column), y)
        assert (found == 0).all()
    whole = pandas.array([1, 0, None, 0, 1, 0], dtype="Int64")
    found, _ = leaf(model, frame.assign(v=whole), y)
    assert (found[:, -1] != 0).tolist() == [True, True, False, True, True, True]
    expected, _ = leaf(model, frame.assign(v=[1.0, 0, np.nan, 0, 1, 0]), y)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["labels", "numbers"])
@pytest.mark.parametrize(
    "row", [[0.1], [0.1] * 4, [], 7, None, "abc", [[1], [2], [3]], {}, [0.1, 1j, 0.2]]
)
def test_a_row_of_a_list_that_is_no_row_costs_itself_alone(kind, row):
    X, y = good(seed=1)
    nothing, listed = X.copy(), X.tolist()
    nothing[2], listed[2] = np.nan, row
    expected = started(kind).partial_fit(nothing, y)
    found = started(kind).partial_fit(listed, y.tolist())
    np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize("target", [[1, 1], (1, (2, 3)), np.ones(2), 1j, {}])
def test_a_target_of_a_list_that_is_none_costs_its_row_alone(target):
    X, y = good(seed=1)
    nothing, listed = X.copy(), [[value] for value in y.tolist()]
    nothing[2], listed[2] = np.nan, target
    expected = started("numbers").partial_fit(nothing, y)
    found = started("numbers").partial_fit(X, listed)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize(
    "kind", [list, deque, lambda rows: np.array(rows, dtype=object)]
)
@pytest.mark.parametrize("n_rows", [1, 2, 6])
@pytest.mark.parametrize("row", [[0.1], [0.1] * 4, [], 7, None])
def test_a_step_of_rows_of_another_width_is_a_step_of_missing_rows(kind, n_rows, row):
    # were it an error where all rows are such, the last of them would decide
    found = started().partial_fit(kind([row] * n_rows), [0] * n_rows)
    missing = np.full((n_rows, WIDTH), np.nan)
    expected = started().partial_fit(missing, [0] * n_rows)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_an_array_of_objects_with_a_row_of_another_width_costs_that_row_alone():
    X, y = good(seed=1)
    rows = np.empty(6, dtype=object)
    rows[:] = [
        [0.1] if position == 2 else row for position, row in enumerate(X.tolist())
    ]
    X[2] = np.nan
    expected = started().partial_fit(X, y)
    np.testing.assert_array_equal(started().partial_fit(rows, y).coef_, expected.coef_)


def test_arrays_of_another_width_are_refused_and_change_nothing():
    model = started()
    for X in (np.full((6, 2), 0.1), np.full(6, 0.1), "abcdef"):
        with pytest.raises(ValueError, match=r"features|dimensions"):
            model.partial_fit(X, [0] * 6)
    assert model.n_steps_ == 1
    assert model.partial_fit([], []).n_steps_ == 2


def test_numbers_beyond_float64_do_not_warn():
    huge = np.full(6, np.longdouble("1e4000"))
    X, y = good(seed=1)
    model = started("numbers")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X, huge)
        model.partial_fit(X, huge.astype(object))
        model.partial_fit(np.column_stack([huge] * WIDTH), y)
    assert model.n_steps_ == 4


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_is_a_table():
    X, y = good(seed=1)
    found = started().partial_fit(np.matrix(X), y)
    np.testing.assert_array_equal(found.coef_, started().partial_fit(X, y).coef_)


class Hostile:
    """A cell that raises whatever is done with it."""

    def __hash__(self):
        raise RuntimeError("secret")

    def __eq__(self, other):
        raise RuntimeError("secret")

    def __float__(self):
        raise RuntimeError("secret")


def test_a_cell_that_raises_by_itself_is_missing():
    Real.register(Hostile)
    X, y = good(seed=1)
    table, labels = X.astype(object), y.astype(object)
    table[2, 0] = labels[3] = Hostile()
    assert started().partial_fit(table, labels).n_steps_ == 2
    assert started("numbers").partial_fit(table, labels).n_steps_ == 2


@pytest.mark.parametrize(
    "shape", [(6, 2), (5,), (), (6, 1, 1)], ids=lambda shape: f"{len(shape)}d"
)
def test_targets_of_another_shape_are_refused_and_change_nothing(shape):
    model = started("numbers")
    X, _ = good()
    with pytest.raises(ValueError, match=r"y should be|same number of rows"):
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
    model = OnlineLogisticRegression(
        1.0, 1e-6, classes=("a", "b", "c"), horizon=3, x_norm=1.0
    )
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
    model = OnlineLogisticRegression(1.0, 1e-6, classes=(0, 1), horizon=5, x_norm=1.0)
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


@pytest.mark.parametrize("kind", ["labels", "numbers"])
@pytest.mark.parametrize("width", [1, 2, 7, 100])
def test_a_row_has_the_same_bits_alone_and_among_others(kind, width):
    rng = as_generator(3)
    X, y = rng.normal(size=(40, width)), rng.integers(0, 2, 40)
    X[::5] *= 1e200  # with squares that overflow
    model = started(kind)
    for order in "CF":
        together, targets = leaf(model, np.array(X, order=order), y)
        for n in (1, 2, 3, 17):
            alone, same = leaf(model, np.array(X[:n], order=order), y[:n])
            assert alone.tobytes() == together[:n].tobytes()
            assert same.tobytes() == targets[:n].tobytes()


@pytest.mark.parametrize("high", [1.7e308, 1e200, 1e121])
def test_ranges_whose_squares_are_not_finite_are_refused_in_the_plan(high):
    for kind in (OnlineLinearRegression, IncrementalLinearRegression):
        model = kind(1.0, 1e-6, horizon=3, y_range=(0, high), x_norm=1.0)
        for planned in (
            lambda model=model: model.plan(2),
            lambda model=model: model.fit(*good()),
        ):
            with pytest.raises(ValueError, match="y_range is too wide for x_norm=1"):
                planned()
        assert not hasattr(model, "privacy_")
    widest = IncrementalLinearRegression(
        1.0, 1e-6, horizon=3, y_range=(0, 1e120), x_norm=1.0
    )
    assert np.isfinite(widest.partial_fit(*good()).expected_excess_risk_)


@pytest.mark.parametrize(
    ("epsilon", "delta", "stated"),
    [(1.0, 1e-6, False), (1.0, 1e-31, True), (1.0, 1e-300, True), (80.0, 1e-6, True)],
)
def test_a_delta_that_draws_are_not_exact_enough_for_is_stated(epsilon, delta, stated):
    model = OnlineLinearRegression(
        epsilon, delta, horizon=5, y_range=(0, 1), x_norm=1.0
    )
    words = model.partial_fit(*good()).privacy_.assumptions
    found = [line for line in words if "sampling error of the noise adds" in line]
    assert len(found) == stated
    if delta == 1e-31:
        # five steps of four weights
        added = (1 + np.e) * 2 * 5 * 25 * 2.0**-120
        assert found[0].endswith(f"adds {added:.1g} to delta")


def objects(cells):
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


@pytest.mark.parametrize("kind", [deque, objects, lambda v: np.array(v, dtype=object)])
@pytest.mark.parametrize("odd", [[1, 2], [], 1, None])
def test_a_target_of_any_container_costs_its_row_alone(kind, odd):
    X, y = good(seed=1)
    nothing, cells = X.copy(), [[value] for value in y.tolist()]
    nothing[2], cells[2] = np.nan, odd
    if odd == 1:
        nothing[2], y[2] = X[2], 1
    expected = started("numbers").partial_fit(nothing, y)
    found = started("numbers").partial_fit(X, kind(cells))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    # a step of such targets alone is no error either, as it would tell of the last one
    assert started().partial_fit(X, kind([[1, 2]] * 6)).n_steps_ == 2


@pytest.mark.parametrize("row", [[0.1], [0.1] * 4, [], 7, None])
@pytest.mark.parametrize("kind", ["deque", "column"])
def test_a_row_of_any_container_costs_itself_alone(kind, row):
    pandas = pytest.importorskip("pandas", reason="tables come from pandas")
    X, y = good(seed=1)
    rows = X.tolist()
    rows[2], X[2] = row, np.nan
    made = deque(rows) if kind == "deque" else pandas.Series(objects(rows))
    found = started().partial_fit(made, y)
    np.testing.assert_array_equal(found.coef_, started().partial_fit(X, y).coef_)


def test_cells_that_python_cannot_read_are_missing_at_later_steps():
    pandas = pytest.importorskip("pandas", reason="tables come from pandas")
    pa = pytest.importorskip("pyarrow", reason="texts of Arrow")
    X, y = good(seed=1)
    text = pa.array([b"1", b"\xff"] * 3, pa.binary()).view(pa.string())
    day = pa.array([1, 10**8] * 3, pa.int32()).cast(pa.date32())
    for cells in (text, day):
        column = pandas.Series(pandas.arrays.ArrowExtensionArray(cells))
        for kind in ("labels", "numbers"):
            model = started(kind).partial_fit(X, column).partial_fit(X, cells)
            # names that the first step did not have are warned of
            table = pa.table([cells] * WIDTH, names=[*"uvw"])
            frame = table.to_pandas(types_mapper=pandas.ArrowDtype)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert model.partial_fit(table, y).n_steps_ == 4
                assert model.partial_fit(frame, y).n_steps_ == 5
