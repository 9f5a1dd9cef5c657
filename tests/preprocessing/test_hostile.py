"""Input that is almost right: rejected by name before any charge, or made plain."""

import re
import warnings
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from tacit.preprocessing import (
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PublicOneHot,
    PublicScaler,
)
from tacit.preprocessing._parameters import checked_integer, number, shown
from tacit.preprocessing._quantiles import apart
from tacit.privacy import Budget, Ledger

X = np.sin(np.arange(60.0)).reshape(30, 2)
HUGE = 10**400
UNPRINTABLE = 10**5000
DELTA = 1e-4


def assert_refused(fit, match):
    """Check for one sentence that holds ``match``, no charge and no warning."""
    ledger = Ledger(Budget(1e3, 1e-2))
    with pytest.raises((ValueError, TypeError), match=re.escape(match)) as rejection:
        fit(ledger)
    assert type(rejection.value) in (ValueError, TypeError)
    assert "\n" not in str(rejection.value)
    assert len(str(rejection.value)) < 300
    assert rejection.value.__context__ is None
    assert ledger.report().entries == ()


PLAIN = [
    (PrivateQuantileBounds, "n_cells", np.uint8(255), 255),
    (PrivateQuantileBounds, "n_cells", np.int16(32767), 32767),
    (PrivateQuantileBounds, "quantiles", np.array([0.25, 0.75], np.float16), None),
    (PrivateQuantileBounds, "quantiles", (Fraction(1, 4), Fraction(3, 4)), None),
    (PrivateQuantileBounds, "least_width", Fraction(1, 8), 0.125),
    (PrivateQuantileBounds, "target", np.array([-8, 8], np.int8), (-8.0, 8.0)),
    (PrivateQuantileBounds, "target", (Decimal(0), Decimal(2)), (0.0, 2.0)),
    (PrivateStandardScaler, "least_scale", Fraction(1, 2), 0.5),
    (PrivateStandardScaler, "least_scale", np.float16(0.5), 0.5),
    (PrivateStandardScaler, "least_scale", Decimal("0.5"), 0.5),
    (PrivateStandardScaler, "limit", np.uint8(200), 200.0),
    (PrivateStandardScaler, "limit", Fraction(5, 2), 2.5),
    (PrivateStandardScaler, "epsilon", np.float32(0.5), 0.5),
    (PrivateStandardScaler, "epsilon", Fraction(1, 2), 0.5),
    (PrivateStandardScaler, "delta", Fraction(1, 1024), 1 / 1024),
    (PrivateStandardScaler, "ranges", np.array([-128, 127], np.int8), (-128, 127)),
    (PrivateStandardScaler, "ranges", [np.array([-1, 1], np.float16)] * 2, (-1, 1)),
    (PublicScaler, "missing", Fraction(1, 2), 0.5),
    (PublicScaler, "missing", np.array([100, 100], np.uint8), 100.0),
    (PublicScaler, "target", (np.float16(-1), np.uint8(2)), (-1.0, 2.0)),
]


@pytest.mark.parametrize(("kind", "name", "given", "plain"), PLAIN, ids=str)
def test_numbers_of_any_kind_act_as_plain_ones(kind, name, given, plain):
    if plain is None:
        plain = (0.25, 0.75)
    rows = np.vstack([X, [[0.5, 0.5]]])  # the top of the data is inside the range
    common = {"ranges": (-1, 1)}
    if kind is not PublicScaler:
        common |= {"delta": DELTA, "random_state": 0}
    found, known = (
        kind(**{**common, name: value}).fit_transform(rows) for value in (given, plain)
    )
    assert_array_equal(found, known)
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("kind", "parameters", "match"),
    [
        (PrivateQuantileBounds, {"ranges": (1e16, 1e16 + 100)}, "ranges must be two"),
        (PrivateStandardScaler, {"ranges": (1e16, 1e16 + 100)}, "ranges must be two"),
        (PublicScaler, {"ranges": [(0, 1), (1, 1 + 1e-10)]}, "ranges of column 1"),
        (PublicScaler, {"ranges": (0, 1e-145)}, "ranges must be two"),
        (PublicScaler, {"target": (1, 1 + 1e-10)}, "target must be two"),
        (PrivateQuantileBounds, {"least_width": 1e-17}, "least_width must be a"),
        (PrivateStandardScaler, {"least_scale": 1e-10}, "least_scale must be a"),
        (PrivateStandardScaler, {"limit": 1e200}, "limit must be a"),
    ],
    ids=str,
)
def test_an_interval_too_narrow_for_its_digits_is_refused(kind, parameters, match):
    model = kind(**{"ranges": (-1, 1), **parameters})
    private = kind is not PublicScaler
    assert_refused(
        lambda ledger: model.fit(X, **({"ledger": ledger} if private else {})), match
    )


@pytest.mark.parametrize(
    "ends",
    [(1e9, 1e9 + 2), (-1e9 - 2, -1e9), (0, 1e-139), (-1e150, 1e150), (-1, 1e9)],
    ids=str,
)
def test_bounds_and_scales_never_collapse(ends):
    low, high = map(float, ends)
    spots = low + (high - low) * np.array([[0.0, 0.3, 0.5, 1.0]])
    rows = np.repeat(spots, 40, axis=0)
    for target in ((-1, 1), (-1e150, 1e150)):
        bounds = PrivateQuantileBounds(
            1e3, DELTA, ranges=ends, least_width=1e-9, target=target, random_state=0
        ).fit(rows)
        assert np.all(low <= bounds.lower_)
        assert np.all(bounds.lower_ < bounds.upper_)
        assert np.all(bounds.upper_ <= high)
        assert np.isfinite(bounds.transform(rows)).all()
    scaler = PrivateStandardScaler(
        1e3, DELTA, ranges=ends, least_scale=1e-9, random_state=0
    ).fit(rows)
    assert np.all(scaler.scale_ > 0)
    assert np.isfinite(scaler.transform(rows)).all()


def test_equal_parts_are_moved_apart_anywhere_in_a_narrow_range():
    parts = np.linspace(0, 1, 1001)
    for ends in ((1e9, 1e9 + 1.1), (-1e9 - 1.1, -1e9), (1 - 1e-8, 1.0)):
        low, high = apart(np.stack([parts, parts]), 1e-9, (ends,) * len(parts))
        assert np.all((ends[0] <= low) & (low < high) & (high <= ends[1]))


NO_PAIRS = [("0", "1"), (False, True), (np.False_, np.True_), (0, HUGE), (-HUGE, 0),
            (0, UNPRINTABLE), (0, 1j), (0, None), (0,), (0, [1]), b"\x00\x01", {0, 1},
            np.array(3.0), np.array([0, 5], "m8[s]")]  # fmt: skip
NO_NUMBERS = ["1", True, np.True_, None, 1j, HUGE, UNPRINTABLE, np.array(1.0), [1],
              np.timedelta64(1), np.nan, Decimal("sNaN")]  # fmt: skip


def each(kind, name, values, match):
    return [
        pytest.param(kind, {name: v}, match, id=f"{kind.__name__} {name}={shown(v)}")
        for v in values
    ]


@pytest.mark.parametrize(
    ("kind", "parameters", "match"),
    [
        *each(PublicScaler, "ranges", NO_PAIRS, "ranges"),
        *each(PublicScaler, "ranges", [[p, p] for p in NO_PAIRS], "ranges"),
        *each(PublicScaler, "target", NO_PAIRS, "target must be two"),
        *each(PrivateQuantileBounds, "quantiles", NO_PAIRS, "quantiles must be two"),
        *each(PrivateQuantileBounds, "quantiles", [("0.1", "0.9")], "quantiles must"),
        *each(PrivateQuantileBounds, "n_cells", [*NO_NUMBERS, 8.0], "n_cells must be"),
        *each(PrivateQuantileBounds, "least_width", NO_NUMBERS, "least_width must be"),
        *each(PrivateStandardScaler, "least_scale", NO_NUMBERS, "least_scale must be"),
        *each(PrivateStandardScaler, "limit", NO_NUMBERS, "limit must be"),
        *each(PrivateStandardScaler, "with_mean", ["x", 1, None], "with_mean must be"),
        *each(PrivateStandardScaler, "epsilon", NO_NUMBERS, "epsilon must be"),
        *each(
            PrivateStandardScaler,
            "delta",
            [v for v in NO_NUMBERS if v is not None],
            "delta must be",
        ),
        *each(
            PublicScaler,
            "missing",
            [*(v for v in NO_NUMBERS if v not in (None, [1])), [[1], [2]], ["1", "2"]],
            "missing must be",
        ),
        *each(PublicOneHot, "sparse_output", ["x", 1, None], "sparse_output must be"),
        *each(PublicOneHot, "categories", [np.array("a"), b"ab"], "categories must"),
        *each(
            PublicOneHot,
            "other",
            [[1], {}, np.nan, pd.NA, pd.NaT, np.array(["a"])],
            "other must be",
        ),
    ],
)
def test_what_only_resembles_a_parameter_is_refused_by_name(kind, parameters, match):
    private = kind in (PrivateStandardScaler, PrivateQuantileBounds)
    needed = {"categories": [0, 1]} if kind is PublicOneHot else {"ranges": (-1, 1)}
    assert_refused(
        lambda ledger: kind(**{**needed, **parameters}).fit(
            X, **({"ledger": ledger} if private else {})
        ),
        match,
    )


class ManyLines:
    def __repr__(self):
        return "\n".join(["line"] * 9)


class NoRepr:
    def __repr__(self):
        raise RuntimeError("secret")


@pytest.mark.parametrize(
    ("value", "begin"),
    [
        (np.zeros((30, 30)), "array([[0., 0"),
        (HUGE, "1000000000"),
        (ManyLines(), "line line lin"),
        ("x" * 5000, "'xxxx"),
        (list(range(5000)), "[0, 1, 2"),
        # newer versions of Python shorten what older ones cannot print
        (UNPRINTABLE, ("int that cannot be printed", "<int instance")),
        (NoRepr(), "<NoRepr instance"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_parameter_of_any_kind_is_shown_in_one_line(value, begin):
    line = shown(value)
    assert line.startswith(begin)
    assert "\n" not in line
    assert len(line) < 99


def test_numbers_of_other_kinds_become_those_of_python():
    assert number(np.longdouble("1e4000")) == np.inf
    assert type(checked_integer(np.uint8(3), "n", 2, 9)) is int


@pytest.mark.parametrize(
    ("categories", "other", "match"),
    [
        ([1.0, np.nan], "other", "column 0 must not hold missing values"),
        ([["a"], ["b", None]], "other", "column 1 must not hold missing values"),
        ([["a"], [pd.NA]], "other", "use `other`"),
        ([["a"], [pd.NaT]], None, "use `other`"),
        ([1, "1"], "other", "two would be 'x0=1'"),
        ([1, 2], "1", "two would be 'x0=1'"),
        ([["a"], [1.5, "1.5"]], None, "two would be 'x1=1.5'"),
    ],
    ids=str,
)
def test_missing_and_clashing_categories_are_refused(categories, other, match):
    encoder = PublicOneHot(categories, other)
    assert_refused(lambda _: encoder.fit(X), match)
    assert not hasattr(encoder, "categories_")


def test_names_that_clash_across_columns_are_refused():
    frame = pd.DataFrame({"a": ["b=c"], "a=b": ["c"]})
    encoder = PublicOneHot({"a": ["b=c"], "a=b": ["c"]})
    assert_refused(lambda _: encoder.fit(frame), "two would be 'a=b=c'")


@pytest.mark.parametrize(
    "cell",
    [("a", "b"), ["a"], ("a",), [], {}, np.array(["a"]), ["a", ["b"]], pd.NA],
    ids=str,
)
def test_a_cell_of_any_kind_inside_a_list_is_another_value(cell):
    known = [[1, 0, 1, 0], [0, 1, 0, 1]]
    for rows in ([["a", "a"], [cell, cell]], (("a", "a"), (cell, cell))):
        assert_array_equal(PublicOneHot(["a"]).fit_transform(rows), known)
    assert_array_equal(PublicOneHot(["a"]).fit_transform([[cell]]), [[0, 1]])


@pytest.mark.parametrize(
    "rows",
    [[["a"], ["a", "b"]], [["a"], "b"], ["a", "b"], np.zeros((1, 2, 3))],
    ids=str,
)
def test_rows_that_make_no_table_are_refused(rows):
    assert_refused(lambda _: PublicOneHot(["a"]).fit(rows), "X must have 2 dimensions")


def with_cell(value):
    table = X.astype(object)
    table[3, 1] = value
    return table


def with_column(values):
    return pd.DataFrame({"a": np.arange(4.0), "b": values})


SECRETS = pd.to_datetime(["2020-01-01"] * 4)
NOT_NUMBERS = {
    **{
        type(cell).__name__: with_cell(cell)
        for cell in (
            {"secret": 1}, "secret", b"1", pd.NA, pd.NaT, SECRETS[0], pd.Period("2020"),
            1j, Fraction(HUGE), date(2020, 1, 1), np.datetime64(1, "s"),
            np.timedelta64(1, "s"), (1, 2), Decimal("sNaN"), np.array([1.0]),
        )
    },
    "huge": with_cell(HUGE),
    "numeric text cell": with_cell("1"),
    "huge in a list": with_cell(HUGE).tolist(),
    "dates in a frame": with_column(SECRETS),
    "dates with a zone": with_column(SECRETS.tz_localize("UTC")),
    "spans in a frame": with_column(SECRETS - SECRETS),
    "periods in a frame": with_column(SECRETS.to_period("M")),
    "text in a frame": with_column(list("1234")),
    "text categories": with_column(pd.Categorical(list("1234"))),
    "objects in a frame": with_column(pd.Series([1, 2, 3, {}], dtype=object)),
    "datetime64": X.astype("M8[s]"),
    "timedelta64": X.astype("m8[s]"),
    "structured": np.zeros((4, 2), dtype=[("secret", float)]),
    "void": np.zeros((4, 2), dtype="V8"),
    "numeric text": X.astype(str),
    "numeric bytes": X.astype(bytes),
    "lists of text": X.astype(str).tolist(),
}  # fmt: skip


@pytest.mark.parametrize("table", NOT_NUMBERS.values(), ids=NOT_NUMBERS)
@pytest.mark.parametrize("kind", [PrivateStandardScaler, PublicScaler])
def test_tables_of_anything_but_numbers_are_refused_in_one_sentence(kind, table):
    model = kind(ranges=(-1, 1))

    def fit(ledger):
        if kind is PublicScaler:
            return model.fit_transform(table)
        return model.fit(table, ledger=ledger)

    assert_refused(
        fit,
        "X must hold numbers only; this argument must be free of strings, dates and "
        "other objects, so encode them as numbers before the fit.",
    )


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (np.full((4, 2), np.longdouble("1e4000")), "X contains infinity"),
        (with_cell(np.longdouble("1e4000")), "X contains infinity"),
        (with_cell(None), "X contains NaN"),
        (with_column(pd.array([1, 2, 3, None], "Int64")), "X contains NaN"),
        ((X + 1j).tolist(), "X must hold numbers only"),
        (with_column(np.full(4, 1j)), "Complex data not supported"),
    ],
    ids=["longdouble", "longdouble cell", "None", "Int64", "complex list", "complex"],
)
def test_numbers_that_are_no_finite_floats_are_refused_without_a_warning(table, match):
    model = PrivateStandardScaler(ranges=(-1, 1))
    assert_refused(lambda ledger: model.fit(table, ledger=ledger), match)


@pytest.mark.parametrize(
    "table",
    [
        np.array([[True, False], [False, True]]),
        np.array([[True, False], [False, True]], dtype=object),
        np.array([[np.True_, Fraction(0)], [Decimal(0), 1]], dtype=object),
        pd.DataFrame({"a": pd.array([True, False], "boolean"), "b": [0, 1]}),
        pd.DataFrame({"a": pd.Categorical([1, 0]), "b": pd.array([0, 1], "Int8")}),
        np.array([[1, 0], [0, 1]], dtype=np.float16),
        np.array([[1, 0], [0, 1]], dtype=np.longdouble),
        [[1, 0], [0, True]],
        sparse.eye_array(2, dtype=bool, format="csc"),
    ],
    ids=range(9),
)
def test_truth_values_and_numbers_of_any_kind_are_taken(table):
    found = PublicScaler((-1, 1)).fit_transform(table)
    found = found.toarray() if sparse.issparse(found) else found
    assert_array_equal(found, np.eye(2))


@pytest.mark.parametrize(
    "target",
    [(0, 1e60), (-1e150, 1e150), (1e60, 1e61), (1, 1 + 1e-8), (1e-60, 2e-60)],
    ids=str,
)
def test_single_precision_is_left_where_it_cannot_hold_the_target(target):
    rows = np.array([[-9.0], [0.0], [1.0], [9.0]], dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = PublicScaler((0, 2), target).fit_transform(rows)
    low, high = target
    assert found.dtype == np.float64
    assert_allclose(found[:, 0], [low, low, low + (high - low) / 2, high], rtol=1e-14)


def test_huge_numbers_in_single_precision_do_not_warn():
    largest = float(np.finfo(np.float32).max)
    rows = np.array([[np.nan], [1.0], [3e38]], dtype=np.float32)
    filled = PublicScaler((0, 1e150), missing=1e150).fit_transform(rows)
    assert filled.dtype == np.float32
    assert_array_equal(filled[:, 0], [1, -1, -1])
    full = PublicScaler((0, 1), (-largest, largest)).fit_transform(rows[1:])
    assert full.dtype == np.float32
    assert_array_equal(full[:, 0], np.finfo(np.float32).max)
    wide = PrivateStandardScaler(1.0, ranges=(0, 1), limit=1e100, random_state=0)
    assert np.isfinite(wide.fit_transform(rows[1:])).all()
