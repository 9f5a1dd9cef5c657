"""Labels are read one by one: an odd one of one user changes nobody else's."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.recommend.doubles import MeansSolver

from tacit._release import recording, replaying
from tacit.recommend import MatrixCompletion
from tacit.recommend.ratings.columns import as_numbers, distinct_cells
from tacit.recommend.ratings.reading import read_ratings

DAY = dt.date(2020, 1, 1)
HOURS = [dt.datetime(2020, 1, 1, hour) for hour in range(3)]
BIG = 2**53 + 1


def objects(cells):
    return pd.Series(cells, dtype=object)


def categories(cells):
    kinds = objects(list(dict.fromkeys(cells)))
    positions = [kinds.tolist().index(cell) for cell in cells]
    return pd.Series(
        pd.Categorical.from_codes(positions, pd.Index(kinds, dtype=object))
    )


def sources(users, items, ratings):
    """Return the same rows in each of the forms whose cells have no common type."""
    rows = list(zip(users, items, ratings, strict=True))
    array = np.empty((len(rows), 3), dtype=object)
    for k, row in enumerate(rows):
        array[k] = row
    yield rows
    yield array
    for made in (objects, categories):
        yield pd.DataFrame(
            {"user": made(users), "item": made(items), "rating": objects(ratings)}
        )


def read(source, items=2):
    return read_ratings(source, items=items, rating_range=(0, 5))


@pytest.mark.parametrize(
    ("labels", "items"),
    [
        (["x", "y", b"x"], ["x", "y"]),
        ([0, 1, Decimal("0.5")], 2),
        ([0, 1, 0.5], 2),
        ([0, 1, "1"], 2),
        ([0, 1, DAY], 2),
        ([0, 1, 2**63], 2),
        ([0, 1, -(2**70)], 2),
        ([0, 1, 10**5000], 2),
        ([0, 1, np.inf], 2),
        ([0, 1, Decimal("Infinity")], 2),
        ([0, 1, Decimal("1E+999999999")], 2),
        ([BIG, 0, 0.5], [BIG, 0]),
    ],
)
def test_an_odd_item_is_dropped_and_those_of_others_are_kept(labels, items):
    for source in sources(["a", "b", "c"], labels, [1, 2, 3]):
        table = read(source, items)
        assert table.n_users == 3
        assert table.items.tolist() == [0, 1]
        assert table.values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("one", [Decimal(1), 1.0, True, np.True_, np.int8(1)])
@pytest.mark.parametrize("items", [2, [0, 1]])
def test_an_integer_of_any_type_is_the_item_it_stands_for(one, items):
    for source in sources(["a", "b", "c"], [0, 1, one], [1, 2, 3]):
        assert read(source, items).items.tolist() == [0, 1, 1]


def test_a_category_that_no_row_has_changes_nothing():
    cells = pd.Categorical(["x", "y", "x"], categories=["x", "y", b"z"])
    frame = pd.DataFrame({"user": ["a", "b", "c"], "item": cells, "rating": 3.0})
    assert read(frame, ["x", "y"]).items.tolist() == [0, 1, 0]


def test_a_missing_item_does_not_make_floats_of_the_categories():
    cells = pd.Categorical.from_codes([0, 1, -1], pd.Index([BIG, BIG + 1]))
    frame = pd.DataFrame({"user": ["a", "b", "c"], "item": cells, "rating": 3.0})
    assert read(frame, [BIG, BIG + 1]).items.tolist() == [0, 1]


@pytest.mark.parametrize(
    "users",
    [
        ["a", "b", b"a"],
        [*HOURS, DAY],
        [DAY, *HOURS],
        [BIG, BIG - 1, 0.5],
        [1, 2, 2**63, -(2**80)],
        [1, "1", Decimal("1.5")],
        [(1, 2), (3, 4)],
        [(1,), "a", 3.5],
    ],
)
def test_users_of_several_kinds_are_distinguished(users):
    for source in sources(users, [0] * len(users), [3.0] * len(users)):
        if any(isinstance(user, tuple) for user in users) and hasattr(source, "iloc"):
            continue  # categories are not made of tuples
        assert read(source)._private_users == users


def test_an_odd_rating_leaves_the_bits_of_others():
    rows = [Decimal("4.1"), Decimal("1E-30"), Decimal("1E300"), 3, True]
    for source in sources(list(range(5)), [0] * 5, rows):
        values = read(source).values
        assert values.tolist() == [np.float32(4.1), np.float32(1e-30), 5.0, 3.0, 1.0]


def test_a_decimal_has_the_same_bits_in_columns_of_any_digits():
    values = [Decimal(k) / 1000 for k in range(1, 5000, 7)]
    plain = [float(value) for value in values]
    for kind in (pa.decimal128(10, 3), pa.decimal128(38, 25), pa.decimal256(60, 40)):
        assert as_numbers(pa.array(values, kind)).tolist() == plain
    by_arrow = pa.array(values, pa.decimal128(38, 25)).cast(pa.float64(), safe=False)
    assert by_arrow.to_pylist() != plain


def test_files_of_a_folder_have_types_of_their_own(tmp_path):
    columns = {
        "a": pa.array([0, 1, BIG]),
        "b": pa.array(["0", "1", "x"]),
        "c": pa.array([0.0, 1.0, 0.5]),
        "d": pa.array([b"0", b"1", None]),
        "e": pa.array([0, 1, 1]).dictionary_encode(),
    }
    for name, column in columns.items():
        part = {"user": [name] * 3, "item": column, "rating": [1.0, 2.0, 3.0]}
        parquet.write_table(pa.table(part), tmp_path / f"{name}.parquet")
    table = read(tmp_path)
    found = {u: table.row(k)[0].tolist() for k, u in enumerate(table._private_users)}
    assert found == {"a": [0, 1], "b": [], "c": [0, 1], "d": [], "e": [0, 1]}


@pytest.mark.parametrize(
    "column",
    [
        pa.RunEndEncodedArray.from_arrays([2, 3], [0, 1]),
        pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([0, 1]).dictionary_encode()),
        pa.RunEndEncodedArray.from_arrays([1, 3, 4], [7, 0, 1]).slice(1),
        pa.array([0, 0, 1]).dictionary_encode(),
        pa.array([0, 0, 1], pa.float16()),
        pa.array([0, 0, 1], pa.uint64()),
        pa.array([Decimal(0), Decimal(0), Decimal(1)]),
        np.array([0, 0, 1], np.longdouble),
        pd.Series([0, 0, 1], dtype="Int64"),
        pd.Series([0, 0, 1], dtype="Sparse[int64]"),
        pd.Series([0, 0, 1], dtype=np.longdouble),
    ],
)
def test_columns_of_any_declared_type_are_read(column):
    if isinstance(column, pa.Array):
        frame = pa.table({"user": [7, 8, 9], "item": column, "rating": [1, 2, 3]})
    else:
        frame = pd.DataFrame({"user": [7, 8, 9], "item": column, "rating": [1, 2, 3]})
    assert read(frame).items.tolist() == [0, 0, 1]


def test_what_python_has_no_value_for_is_no_label_and_leaves_the_others():
    strings = pa.array([b"x", b"\xff", b"y"]).view(pa.string())
    labels, codes = distinct_cells(strings)
    assert [labels[code] for code in codes] == ["x", None, "y"]
    frame = pa.table({"user": strings, "item": [0, 1, 1], "rating": [1, 2, 3]})
    with pytest.raises(ValueError, match=r"^ratings must have a user in each row"):
        read(frame)
    assert read(frame.rename_columns(["item", "user", "rating"]), ["x"]).n_ratings == 1


@pytest.mark.parametrize("cell", [[0], {"a": 0}, np.array([0])])
def test_a_list_is_no_label(cell):
    frame = pd.DataFrame({"user": objects(["a", cell]), "item": 0, "rating": 3.0})
    with pytest.raises(ValueError, match=r"^ratings must have a user in each row"):
        read(frame)
    assert read(frame.rename(columns={"user": "item", "item": "user"})).n_ratings == 0
    if not isinstance(cell, np.ndarray):
        nested = pa.table({"user": [cell], "item": [cell], "rating": [3.0]})
        with pytest.raises(ValueError, match=r"^ratings must have a user in each row"):
            read(nested)
        assert read(nested.set_column(0, "user", pa.array([1]))).n_ratings == 0


def test_an_odd_label_moves_a_release_by_no_more_than_its_user():
    users, names = np.repeat(np.arange(100), 3), ["i0", "i1", "i2"]
    frame = pd.DataFrame({"user": users, "item": objects(names * 100), "rating": 5.0})
    odd = frame.copy()
    odd.loc[7, "item"] = b"i1"

    def fit(ratings):
        MatrixCompletion(
            MeansSolver(), 1.0, 1e-6, items=names, rating_range=(1, 5), random_state=0
        ).fit(ratings)

    with recording() as one:
        fit(frame)
    with replaying(one) as two:
        fit(odd)
    first, other = one.releases[0], two.releases[0]
    moved = np.linalg.norm((first.value - other.value).astype(float))
    assert 0 < moved <= first.sensitivity
