"""One cell never changes how another is read, whatever the container."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.additive import AdditiveClassifier
from tacit.additive._columns import CELLS, Column, codes_of
from tacit.preprocessing._public import _as_table

NUMBER = Column("n", 0.0, 8.0)
MIXED = Column("c", categories=(1, "1", "a", 2.5, False, (1, 2)))
COLUMNS = [NUMBER, MIXED]
OTHER, MISSING = len(MIXED.categories), len(MIXED.categories) + 1

NUMBERS = [0, 1, 2.5, True, 8, -1e300, float("inf"), decimal.Decimal("2.5"), 2**70]
NUMBERS += [None, float("nan"), np.float32(0.1), np.int8(3), np.bool_(True), pd.NA]
CELLS_OF_ALL_KINDS = [1, True, 1.0, "1", "a", "A", 0, 0.0, False, 2.5, 2, None, pd.NA]
CELLS_OF_ALL_KINDS += [float("nan"), pd.NaT, b"a", [1], {}, (1, 2), np.str_("a"), 1j]
CELLS_OF_ALL_KINDS += [np.float64(2.5), np.int64(1), decimal.Decimal(1), 10**400, ""]
CELLS_OF_ALL_KINDS += [datetime.date(2020, 1, 1), np.datetime64("2020", "ns"), object()]


class Hostile:
    """A cell whose own code fails."""

    def __hash__(self):
        raise RuntimeError("a secret")

    def __eq__(self, other):
        raise RuntimeError("a secret")


CELLS_OF_ALL_KINDS.append(Hostile())


def objects(rows):
    table = np.empty((len(rows), 2), dtype=object)
    for i, row in enumerate(rows):
        table[i, 0], table[i, 1] = row
    return table


def framed(rows):
    table = objects(rows)
    return pd.DataFrame({"n": table[:, 0], "c": table[:, 1]}, dtype=object)


def lists(rows):
    return _as_table([list(row) for row in rows])


CONTAINERS = {"array": objects, "frame": framed, "lists": lists}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
@settings(max_examples=150, derandomize=True)
@given(data=st.data())
def test_a_changed_cell_changes_no_other_code(make, data):
    # by position, as a cell's own code may fail
    kinds = (NUMBERS, CELLS_OF_ALL_KINDS)
    drawn = [st.integers(0, len(kind) - 1) for kind in kinds]
    table = [
        [kind[k] for kind, k in zip(kinds, row, strict=True)]
        for row in data.draw(st.lists(st.tuples(*drawn), min_size=2, max_size=5))
    ]
    before = codes_of(make(table), COLUMNS)
    i, j = data.draw(st.integers(0, len(table) - 1)), data.draw(st.integers(0, 1))
    cell = kinds[j][data.draw(drawn[j])]
    changed = [list(row) for row in table]
    changed[i][j] = cell
    after = codes_of(make(changed), COLUMNS)
    others = np.ones(before.shape, dtype=bool)
    others[i, j] = False
    assert (before == after)[others].all()
    # and each is what it is without the others
    assert codes_of(make(changed[i : i + 1]), COLUMNS).tolist() == [after[i].tolist()]


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        (1, 0),
        (True, 0),
        (1.0, 0),
        (np.int64(1), 0),
        ("1", 1),
        (np.str_("a"), 2),
        ("A", OTHER),
        (b"a", OTHER),
        (np.float32(2.5), 3),
        (0, 4),
        (False, 4),
        ((1, 2), 5),
        ([1, 2], OTHER),
        (Hostile(), OTHER),
        (None, MISSING),
        (float("nan"), MISSING),
        (pd.NA, MISSING),
        (pd.NaT, MISSING),
        ("", OTHER),
        ("nan", OTHER),
    ],
)
def test_categories_are_found_by_equality(cell, code):
    for make in CONTAINERS.values():
        assert codes_of(make([(0, cell)]), COLUMNS)[0, 1] == code


def test_numbers_are_found_by_value_and_clipped():
    cells = [0, 8, 9, -1, float("inf"), None, 4, np.nan, True, pd.NA, pd.NaT]
    expected = [0, CELLS - 1, CELLS - 1, 0, CELLS - 1, CELLS, CELLS // 2, CELLS]
    expected += [CELLS // 8, CELLS, CELLS]
    for make in CONTAINERS.values():
        found = codes_of(make([(cell, 1) for cell in cells]), COLUMNS)
        assert found[:, 0].tolist() == expected


TYPES = ["Int64", "Float64", "int64[pyarrow]", "double[pyarrow]", "object", "category"]


@pytest.mark.parametrize("dtype", [*TYPES, "boolean", "bool[pyarrow]"])
def test_a_missing_cell_changes_no_other_of_a_nullable_type(dtype):
    first = [True, False] if "bool" in dtype else [1, 2]
    columns = [NUMBER, Column("c", categories=(0, 1, 3))]
    whole, missing = (
        pd.Series([*first, last], dtype=dtype) for last in (first[0], None)
    )
    codes = [
        codes_of(pd.DataFrame({"n": s, "c": s}), columns) for s in (whole, missing)
    ]
    assert codes[0][:2].tolist() == codes[1][:2].tolist()
    assert codes[1][2].tolist() == [NUMBER.missing, columns[1].missing]


@pytest.mark.parametrize("dtype", ["object", "str", "string[pyarrow]", "category"])
def test_strings_are_the_same_in_every_type(dtype):
    column = [Column("c", categories=("a", "b"))]
    found = pd.DataFrame({"c": pd.Series(["b", "z", None, "a"], dtype=dtype)})
    assert codes_of(found, column)[:, 0].tolist() == [1, 2, 3, 0]
    table = pa.table({"c": pa.array(["b", "z", None, "a"])})
    assert codes_of(table, column)[:, 0].tolist() == [1, 2, 3, 0]


def test_unused_and_reordered_categories_of_pandas_change_nothing():
    column = [Column("c", categories=("a", "b"))]
    for known in (["a", "b", "z"], ["z", "b", "a", "unused"]):
        cells = pd.Categorical(["b", "z", None, "a"], categories=known)
        found = codes_of(pd.DataFrame({"c": cells}), column)
        assert found[:, 0].tolist() == [1, 2, 3, 0]


def test_one_cell_of_another_kind_changes_no_prediction():
    rows = [[k / 100 * 8, [1, "1", "a", 2.5][k % 4]] for k in range(100)]
    y = [k % 2 for k in range(100)]
    given = {"ranges": {0: (0, 8)}, "categories": {1: [1, "1", "a", 2.5]}}
    model = AdditiveClassifier(8.0, classes=[0, 1], **given).fit(rows, y)
    before = model.decision_function(rows)
    for cell in ("text", None, 1j, [1], True, b"a"):
        changed = [[*rows[0][:1], cell], *rows[1:]]
        assert (model.decision_function(changed)[1:] == before[1:]).all()
