"""Cells that are objects: distinguished by all that they hold, or rejected."""

import datetime
import decimal
import fractions
import uuid
import zoneinfo
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tacit.ensemble._chunks import (
    UnknownCellType,
    cell_bytes,
    chunk_members,
    hasher,
    row_digests,
)

KEY = bytes(range(16))
PEOPLE = {"key": KEY, "neighbors": "add_or_remove_one"}
HASH = hasher(KEY, b"test")
N = 40


def column(cells):
    made = np.empty(len(cells), dtype=object)
    for position, cell in enumerate(cells):
        made[position] = cell
    return made


def images(position):
    image = np.zeros((40, 40))
    image[20, 20] = position
    return image


KINDS = {
    "images": images,
    "vectors that print alike": lambda i: np.array([0.5 + 1e-10 * i, 1.0]),
    "lists of vectors": lambda i: [np.array([0.5 + 1e-10 * i])],
    "arrays of objects": lambda i: np.array([10**5000 + i, None], dtype=object),
    "long numbers": lambda i: 10**5000 + i,
    "numbers in a dict": lambda i: {"a": (10**5000 + i,)},
    "extended floats": lambda i: np.longdouble(1) + i * np.finfo(np.longdouble).eps,
    "nanoseconds": lambda i: pd.Timestamp(i),
}


def moved(cells, gone):
    """How many chunks change when a row is removed, other than by losing it."""

    def contents(rows):
        table = column([cells[row] for row in rows])[:, None]
        chunks = chunk_members(table, np.zeros(len(rows)), 10, **PEOPLE)
        return [[rows[position] for position in chunk] for chunk in chunks]

    before = contents(range(N))
    after = contents([row for row in range(N) if row != gone])
    return sum(
        [row for row in one if row != gone] != other
        for one, other in zip(before, after, strict=True)
    )


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_row_of_objects_that_is_gone_moves_no_other(kind):
    cells = [kind(position) for position in range(N)]
    assert moved(cells, 0) == moved(cells, N // 2) == 0
    table = column(cells)[:, None]
    assert len(set(row_digests(table, np.zeros(N), KEY))) == N


def test_cells_that_print_alike_would_be_moved(monkeypatch):
    shown = "tacit.ensemble._chunks.cell_bytes"
    monkeypatch.setattr(shown, lambda cell, digest: repr(cell).encode())
    assert moved([images(position) for position in range(N)], 0) > 0


def day(*parts, **options):
    return datetime.datetime(2020, 10, 25, 2, 30, *parts, **options)


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
CELLS = [
    *(None, True, 1, 1.0, np.int64(1), np.int8(1), np.float32(1), np.True_, 1j, "1"),
    *(b"1", np.str_("1"), np.bytes_(b"1"), decimal.Decimal(1), fractions.Fraction(1)),
    *(0.0, -0.0, np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), 2**70, "\udcff", "a\0"),
    *([1], (1,), [1.0], [[1]], [[], []], [[]], {}, {1: 2}, {2: 1}, {1: 2, 2: 1}),
    *(np.array(1), np.array([1]), np.array([[1]]), np.array([1.0]), np.array([True])),
    *(np.array([1], dtype=object), np.array(["1"]), np.array([1], dtype=">i8")),
    *(np.ones((2, 2)), np.ones((2, 2), order="F"), np.ones(4), np.ones(1, "g")),
    *(np.array([(1, 2.0)], "i8,f8"), np.array([(1, 2.0)], "f8,f8"), np.void(b"1")),
    *(day().date(), day(), day(1), day(tzinfo=BERLIN), day(fold=1, tzinfo=BERLIN)),
    *(day(tzinfo=datetime.UTC), day().time(), datetime.timedelta(1), uuid.UUID(int=1)),
    *(pd.Timestamp(1), pd.Timestamp(1, tz=BERLIN), pd.Timestamp(0).as_unit("s")),
    *(pd.Timestamp(0), pd.Timedelta(1), pd.Period("2020"), pd.Period("2020-01")),
    *(pd.Interval(0, 1), pd.Interval(0, 1, closed="left"), pd.Interval(0.0, 1.0)),
]


def test_cells_of_all_known_types_are_distinguished_by_what_they_hold():
    found = [cell_bytes(cell, HASH) for cell in CELLS]
    for one, other in combinations(range(len(CELLS)), 2):
        assert found[one] != found[other], (CELLS[one], CELLS[other])
    again = [cell_bytes(cell, HASH) for cell in pd.Series(CELLS, dtype=object).tolist()]
    assert again == found


class Text(str):
    pass


class Zone(datetime.tzinfo):
    def utcoffset(self, _):
        return datetime.timedelta()


ODD = {
    "object": object(),
    "function": print,
    "set": {1},
    "subclass": Text("a"),
    "masked": np.ma.array([1.0]),
    "column": pd.Series([1]),
    "in a list": [1, object()],
    "in an array": np.array([object()]),
    "zone": day(tzinfo=Zone()),
}


@pytest.mark.parametrize("cell", ODD.values(), ids=ODD)
def test_cells_of_other_types_are_rejected_where_chunks_are_by_contents(cell):
    with pytest.raises(UnknownCellType):
        cell_bytes(cell, HASH)
    X = column([cell, 1, 2])[:, None]
    targets = np.zeros(3)
    with pytest.raises(
        ValueError, match="rows are distinguished by their"
    ) as rejection:
        chunk_members(X, targets, 3, **PEOPLE)
    assert rejection.value.__suppress_context__
    counted = chunk_members(X, targets, 3, key=KEY, neighbors="replace_one")
    people = chunk_members(X, targets, 3, ids=[1, 2, 3], **PEOPLE)
    for chunks in (counted, people):
        assert sum(map(len, chunks)) == 3


def test_a_list_within_itself_is_rejected():
    cell = [1]
    cell.append(cell)
    with pytest.raises(UnknownCellType):
        cell_bytes(cell, HASH)


def test_odd_cells_never_fail_where_contents_decide_nothing():
    class Odd:
        def __repr__(self):
            raise RuntimeError

    X = np.array([[Odd(), [1]], [{}, print], [None, 10**5000]], dtype=object)
    y = np.array([None, Odd(), "a"], dtype=object)
    assert len(list(row_digests(X, y, KEY))) == 3
    with pytest.raises(ValueError, match="distinguished by their content"):
        list(row_digests(X, y, KEY, exact=True))


WHOLE = [0, 1, 2, 3, 2, 1, 7, 7] * 5


@pytest.mark.parametrize(
    ("made", "one_more"),
    [
        (pd.Categorical, 2.5),
        (pd.Categorical, "text"),
        (pd.Categorical, True),
        (lambda v: pd.array(v, dtype="Int64"), 2.5),
        (lambda v: pd.array(v, dtype="int64[pyarrow]"), 2.5),
    ],
    ids=["fraction", "text", "truth", "nullable", "arrow"],
)
def test_a_cell_of_another_type_changes_no_other_in_its_column(made, one_more):
    def digests(cells, make):
        table = pd.DataFrame({"c": make(cells)})
        return list(row_digests(table, np.zeros(len(cells)), KEY))

    wider = {"Int64": "Float64", "int64[pyarrow]": "double[pyarrow]"}

    def widened(cells):
        kind = str(made(WHOLE).dtype)
        return pd.array(cells, dtype=wider[kind]) if kind in wider else made(cells)

    before = digests(WHOLE, made)
    assert digests([*WHOLE, one_more], widened)[:-1] == before
    assert len(set(before)) == len(set(WHOLE))


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean", "double[pyarrow]"])
def test_missing_numbers_are_distinguished_from_zeros(kind):
    table = pd.DataFrame({"c": pd.array([0, None, 1, None, 0], dtype=kind)})
    zero, missing, one, again, last = row_digests(table, np.zeros(5), KEY)
    assert len({zero, missing, one}) == 3
    assert (again, last) == (missing, zero)


def test_integers_that_floats_round_are_distinguished_but_among_categories():
    values = [2**60, 2**60 + 1, 2**60 + 2]
    table = pd.DataFrame({"c": pd.array(values, dtype="Int64")})
    assert len(set(row_digests(table, np.zeros(3), KEY))) == 3
    # a category of 2.5 makes floats of all others, so that they always count as such
    whole, other = (
        list(row_digests(pd.DataFrame({"c": pd.Categorical(v)}), np.zeros(len(v)), KEY))
        for v in (values, [*values, 2.5])
    )
    assert whole == other[:3]
    distinct = pd.DataFrame({"c": pd.Categorical([2**60, 10**400])})
    assert len(set(row_digests(distinct, np.zeros(2), KEY))) == 2


def test_columns_of_other_libraries_are_read():
    stored = pa.array([{"a": 1, "b": ["x"]}, {"a": 2, "b": ["x"]}] * 2)
    zone = pd.date_range("2020", periods=4, tz="Europe/Berlin")
    table = pd.DataFrame(
        {
            "struct": pd.Series(pd.arrays.ArrowExtensionArray(stored)),
            "word": pd.Series(pa.array(list("abab")).dictionary_encode().to_pandas()),
            "when": zone[[0, 1, 0, 1]],
            "span": pd.cut([0.1, 0.9, 0.1, 0.9], 2),
            "period": pd.period_range("2020", periods=4, freq="D")[[0, 1, 0, 1]],
        }
    )
    first, second, third, last = row_digests(table, np.zeros(4), KEY, exact=True)
    assert (first, second) == (third, last)
    assert first != second


def test_cells_that_python_calls_equal_are_distinguished_in_any_order():
    cells = [1, True, 1.0, 0, False, "1", b"1"]
    found = list(row_digests(column(cells)[:, None], np.zeros(len(cells)), KEY))
    assert len(set(found)) == len(cells)
    # and a digest does not depend on the cells that came before
    turned = list(row_digests(column(cells[::-1])[:, None], np.zeros(len(cells)), KEY))
    assert turned == found[::-1]
