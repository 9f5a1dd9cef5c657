"""Tables are encoded the same, whatever the file, its blocks and its types."""

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather, ipc, parquet

from tacit.data._files import csv_file
from tacit.preprocessing import PublicOneHot, PublicScaler
from tacit.tables import (
    Column,
    Schema,
    TableError,
    _encode,
    _read,
    batches,
    check,
    read_rows,
)

SCHEMA = Schema(
    (
        Column("age", "number", (0, 100)),
        Column("sex", "category", categories=("f", "m")),
        Column("a.b", "number", (-1, 3), missing=0.5),
        Column("town", "category", categories=("x", "ü, y"), unseen="other"),
        Column("id", "ignore"),
    ),
    Column("ill", "category", categories=("no", "yes")),
)
TABLE = {
    "id": [1, 2, 3, 4],
    "age": [10, 50, 120, -3],
    "sex": ["f", "m", "m", "f"],
    "a.b": [None, 0.25, 3.0, -1.0],
    "town": ["x", None, "z", "ü, y"],
    "ill": ["no", "yes", "yes", "no"],
}
KINDS = ("csv", "parquet", "arrow")


def write(table, path, **options):
    table = pa.table(table) if isinstance(table, dict) else table
    kind = path.suffix
    if kind == ".csv":
        csv.write_csv(table, path)
    elif kind == ".parquet":
        parquet.write_table(table, path, **options)
    else:
        feather.write_feather(table, path, **options)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_scaled_and_encoded(tmp_path, kind):
    X, y = read_rows(write(TABLE, tmp_path / f"t.{kind}"), SCHEMA)
    names = ["age", "sex=f", "sex=m", "a.b", "town=x", "town=ü, y", "town=other"]
    assert SCHEMA.feature_names == names
    assert X.tolist() == [
        [-0.8, 1, 0, -0.25, 1, 0, 0],
        [0.0, 0, 1, -0.375, 0, 0, 1],
        [1.0, 0, 1, 1.0, 0, 0, 1],
        [-1.0, 1, 0, -1.0, 0, 1, 0],
    ]
    assert y.tolist() == ["no", "yes", "yes", "no"]
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    check(tmp_path / f"t.{kind}", SCHEMA)


floats = st.none() | st.floats(-1e6, 1e6) | st.floats(-100, 100)
words = st.none() | st.sampled_from(["f", "m", "x y", "é", '"', "a,b", "other"])


@st.composite
def tables(draw):
    n = draw(st.integers(1, 12))
    column = lambda values: draw(st.lists(values, min_size=n, max_size=n))  # noqa: E731
    return {
        "u": pa.array(column(floats), pa.float64()),
        "k": pa.array(column(st.integers(-5, 5)), pa.int16()),
        "w": pa.array(column(words), pa.string()),
        "v": pa.array(column(floats), pa.float64()),
        "c": pa.array(column(st.none() | st.integers(0, 3)), pa.int64()),
        "b": pa.array(column(st.none() | st.booleans()), pa.bool_()),
        "y": pa.array(column(st.floats(-10, 10)), pa.float64()),
    }


MIXED = Schema(
    (
        Column("w", "category", categories=("m", "f", "é"), unseen="other"),
        Column("u", "number", (-50, 30), missing=1.25),
        Column("v", "number", (0, 0.7), missing=-3),
        Column("c", "category", categories=("2", "0"), unseen="other"),
        Column("k", "number", (-2, 4)),
        Column("b", "category", categories=("True", "False"), unseen="other"),
    ),
    Column("y", "number", (-1, 1)),
)


@settings(max_examples=20)
@given(tables(), st.integers(1, 12), st.integers(1, 8))
def test_encoding_is_that_of_the_transformers_whatever_the_file_and_blocks(
    tmp_path_factory, table, rows, piece
):
    folder = tmp_path_factory.mktemp("tables")
    numbers = np.column_stack(
        [table[name].to_numpy(zero_copy_only=False) for name in "uvk"]
    )
    ranges = [(-50, 30), (0, 0.7), (-2, 4)]
    scaled = PublicScaler(ranges, missing=[1.25, -3, 0]).fit_transform(numbers)
    texts = pd.DataFrame(
        {name: table[name].to_pylist() for name in "wcb"}, dtype=object
    )
    known = [["m", "f", "é"], [2, 0], [True, False]]
    shown = PublicOneHot(known).fit_transform(texts)
    expected = np.column_stack(
        [shown[:, :4], scaled[:, :2], shown[:, 4:7], scaled[:, 2:], shown[:, 7:]]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_encode, "PIECE", piece)
        patch.setattr(_encode, "PART", max(1, piece // 2))
        patch.setattr(_read, "BATCH", rows)
        patch.setattr(csv_file, "BLOCK", 200)
        for kind in KINDS:
            path = write(table, folder / f"t.{kind}")
            X, y = read_rows(path, MIXED)
            assert np.array_equal(X, expected)
            assert np.array_equal(y, table["y"].to_numpy())
            blocks = list(batches(path, MIXED, rows, keep=["w"]))
            assert np.array_equal(np.vstack([block.X for block in blocks]), expected)
            assert max(len(block.X) for block in blocks) <= rows
            kept = [word or None for b in blocks for word in b.kept["w"].to_pylist()]
            assert kept == table["w"].to_pylist()


def test_very_many_values_are_told_from_the_listed_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(_encode, "PIECE", 64)
    categories = tuple(f"v{i}" for i in range(0, 900, 10))
    schema = Schema((Column("w", "category", categories=categories, unseen="other"),))
    table = {"w": [f"v{i % 1000}" for i in range(3000)]}
    position = {category: i for i, category in enumerate(categories)}
    codes = [position.get(word, len(categories)) for word in table["w"]]
    for kind in KINDS:
        path = write(table, tmp_path / f"t.{kind}")
        X, _ = read_rows(path, schema, with_target=False)
        assert np.array_equal(X.argmax(axis=1), codes)
        assert np.array_equal(X.sum(axis=1), np.ones(3000))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0, 1, 2], pa.uint8()),
        pa.array([0, 1, 2], pa.uint64()),
        pa.array([0.0, 1.0, 2.0], pa.float32()),
        pa.array([0.0, 1.0, 2.0], pa.float16()),
        pa.array([decimal.Decimal(i) for i in range(3)], pa.decimal128(5, 2)),
        pa.array([0, 1, 2], pa.int64()).dictionary_encode(),
    ],
    ids=lambda values: str(values.type),
)
def test_numbers_of_all_types_are_numbers_and_categories(tmp_path, values):
    parquet.write_table(pa.table({"a": values, "b": values}), tmp_path / "t.parquet")
    schema = Schema(
        (
            Column("a", "number", (0, 2)),
            Column("b", "category", categories=("0", "1", "2")),
        )
    )
    X, _ = read_rows(tmp_path / "t.parquet", schema, with_target=False)
    assert np.array_equal(X, np.column_stack([[-1, 0, 1], np.eye(3)]))


@pytest.mark.parametrize(
    ("cells", "dtype", "expected"),
    [
        (["0", "1.0", "1"], np.int64, [0, 1, 1]),
        (["TRUE", "false", "True"], np.bool_, [True, False, True]),
        (["0.5", "2", "2.0"], np.float64, [0.5, 2.0, 2.0]),
        (["a", "b", "a"], np.dtype("<U1"), ["a", "b", "a"]),
    ],
)
def test_labels_come_in_the_type_that_the_categories_imply(
    tmp_path, cells, dtype, expected
):
    listed = {"0": ("0", "1"), "T": ("true", "false"), "a": ("a", "b")}
    categories = listed.get(cells[0][0] if cells[0] != "0.5" else "", ("0.5", "2"))
    schema = Schema(
        (Column("x", "number", (0, 1)),), Column("y", "category", None, categories)
    )
    lines = [f"0,{cell}\n" for cell in cells]
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(lines))
    y = read_rows(tmp_path / "t.csv", schema).y
    assert y.dtype == dtype
    assert y.tolist() == expected


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([2**63, 2**63 + 1, 2**64 - 1], pa.uint64()),
        ([1e16, 3e16, 1e22], pa.float64()),
    ],
)
def test_very_large_numbers_can_be_categories(tmp_path, values, kind):
    texts = tuple(str(int(value)) for value in values[::-1])
    schema = Schema((Column("x", "category", categories=texts),))
    for some in (values, values[:2]):
        path = write({"x": pa.array(some, kind)}, tmp_path / "t.parquet")
        X = read_rows(path, schema, with_target=False).X
        assert np.array_equal(X, np.eye(3)[::-1][: len(some)])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_delimiters_line_ends_and_encodings(tmp_path, delimiter, end, encoding):
    lines = ['"x,;"', "y"], ["1", '"é ""q"""'], ["0", '"z"']
    text = "".join(delimiter.join(line) + end for line in lines)
    path = tmp_path / ("t.tsv" if delimiter == "\t" else "t.csv")
    path.write_bytes(text.encode(encoding))
    schema = Schema(
        (
            Column("x,;", "number", (0, 1)),
            Column("y", "category", categories=('é "q"',), unseen="other"),
        )
    )
    X, y = read_rows(path, schema, with_target=False, encoding=encoding)
    assert X.tolist() == [[1, 1, 0], [-1, 0, 1]]
    assert y is None


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    (tmp_path / "t" / "part").mkdir(parents=True)
    for i, where in enumerate(["b", "part/c", "a"]):
        table = {name: values[i : i + 1] for name, values in TABLE.items()}
        schema = pa.schema([("a.b", pa.float64()), ("town", pa.string())])
        types = {f.name: f.type for f in schema}
        arrays = {n: pa.array(v, types.get(n)) for n, v in table.items()}
        write(pa.table(arrays), tmp_path / "t" / f"{where}.parquet")
    (tmp_path / "t" / "_SUCCESS").write_text("")
    X, y = read_rows(tmp_path / "t", SCHEMA)
    assert y.tolist() == ["yes", "no", "yes"]  # a, b, part/c
    assert X[:, 0].tolist() == [1.0, -0.8, 0.0]


def test_arrow_streams_are_read_like_files(tmp_path):
    table = pa.table(TABLE)
    with ipc.new_stream(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    X, _ = read_rows(tmp_path / "t.arrow", SCHEMA)
    assert np.array_equal(X, read_rows(write(TABLE, tmp_path / "t.csv"), SCHEMA).X)


def test_rows_to_predict_need_no_target_and_may_keep_columns(tmp_path):
    table = {name: values for name, values in TABLE.items() if name != "ill"}
    for kind in KINDS:
        path = write({**table, "key": ["0a", "0b", "0c", "0d"]}, tmp_path / f"t.{kind}")
        keep = ["key", "age"]
        found = [
            (len(X), kept["key"].to_pylist())
            for X, kept in batches(path, SCHEMA, 3, keep=keep)
        ]
        assert found == [(3, ["0a", "0b", "0c"]), (1, ["0d"])]
        whole = np.vstack([X for X, _ in batches(path, SCHEMA, keep=keep)])
        full = read_rows(write(TABLE, tmp_path / f"full.{kind}"), SCHEMA).X
        assert np.array_equal(whole, full)


def test_kept_columns_are_as_they_are_in_the_file(tmp_path):
    (tmp_path / "t.csv").write_text("x\n0042\nNA\n 1 \n")
    schema = Schema((Column("x", "number", (0, 100), missing=50),))
    ((X, kept),) = batches(tmp_path / "t.csv", schema, keep=["x"])
    assert kept["x"].to_pylist() == ["0042", "NA", " 1 "]
    assert np.array_equal(X[:, 0], np.array([42, 50, 1]) * 0.02 - 1)
    (tmp_path / "t.csv").write_text("x\nsecret\n")
    with pytest.raises(TableError, match="'x' holds text"):
        list(batches(tmp_path / "t.csv", schema, keep=["x"]))


def test_what_is_not_confirmed_is_not_read(tmp_path):
    path = write(TABLE, tmp_path / "t.csv")
    schema = SCHEMA.with_column(Column("age", "number", (0, 100), source="data"))
    for read in (read_rows, batches):
        with pytest.raises(TableError, match="not confirmed for 'age'"):
            read(path, schema)
    check(path, schema)
    with pytest.raises(TableError, match="no range or categories for 'age'"):
        check(path, SCHEMA.with_column(Column("age", "number")))


def test_a_bar_is_shown_to_those_who_look(tmp_path, capsys):
    for kind in KINDS:
        read_rows(write(TABLE, tmp_path / f"t.{kind}"), SCHEMA, progress=True)
    assert "Reading" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ends", "zero", "scaled"),
    [((0, 1), 0, (0, 1)), ((0, 10), 10, (-1, 0)), ((-2, 8), 0, (-0.25, 1))],
)
def test_a_number_may_be_zero_elsewhere_than_in_the_middle(
    tmp_path, ends, zero, scaled
):
    column = Column("x", "number", ends, zero=zero)
    assert column.scaled == scaled
    path = tmp_path / "t.parquet"
    cells = [*ends, zero, ends[0] - 5, ends[1] + 5, (ends[0] + ends[1]) / 2]
    parquet.write_table(pa.table({"x": pa.array(cells, pa.float64())}), path)
    X, _ = read_rows(path, Schema((column,)), with_target=False)
    expected = PublicScaler([ends], target=scaled).fit_transform(
        np.array(cells, dtype=float)[:, None]
    )
    np.testing.assert_array_equal(X, expected)
    assert X[2, 0] == pytest.approx(0.0, abs=1e-15)
    spread = np.linspace(*scaled, 10_001)
    assert column.mean_square == pytest.approx(np.mean(spread**2), rel=1e-3)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_encoded_values_fill_the_public_ranges_of_their_features(
    tmp_path_factory, data
):
    ends = (
        st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
        .filter(lambda pair: abs(pair[0] - pair[1]) > 1e-3)
        .map(sorted)
    )
    low, high = data.draw(ends)
    zero = data.draw(st.none() | st.floats(low, high))
    cells = data.draw(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6))
    cells = [low, high, *cells]
    columns = (
        Column("x", "number", (low, high), zero=zero),
        Column("flag", "number", (0, 1), zero=0),
        Column("id", "ignore"),
        Column("town", "category", categories=("a", "b"), unseen="other"),
    )
    table = {
        "x": cells,
        "flag": [0, 1] * 4,
        "id": range(8),
        "town": ["a", "b", "c", None] * 2,
    }
    table = {name: list(values)[: len(cells)] for name, values in table.items()}
    schema = Schema(columns)
    path = write(table, tmp_path_factory.mktemp("ranges") / "t.parquet")
    X, _ = read_rows(path, schema, with_target=False)
    pairs = np.array(schema.feature_ranges)
    assert pairs.shape == (X.shape[1], 2) == (len(schema.feature_names), 2)
    assert (pairs[:, 0] <= X).all()
    assert (pairs[:, 1] >= X).all()
    # and no wider than that: the ends of the range are those of the feature
    np.testing.assert_allclose(X[:2, 0], pairs[0], rtol=0, atol=1e-9)
    assert pairs[1:].tolist() == [[0, 1]] * 4
    if zero is None:
        assert pairs[0].tolist() == [-1, 1]


@pytest.mark.parametrize("zero", [-1, 11, "0", True, float("nan")])
def test_a_zero_outside_of_the_range_is_refused(zero):
    with pytest.raises(TableError, match="zero of column 'x'"):
        Column("x", "number", (0, 10), zero=zero)


def test_pyarrow_reads_csv_from_memory_of_its_own(tmp_path, monkeypatch):
    # its threads let go of it late, and of Python's they abort a process that ends
    path, read, own = write(TABLE, tmp_path / "t.csv"), csv.read_csv, []

    def spied(source, *options, **more):
        own.append(source.is_mutable)  # bytes of Python never are
        return read(source, *options, **more)

    monkeypatch.setattr(csv_file.csv, "read_csv", spied)
    assert len(read_rows(path, SCHEMA).X) == 4
    assert own == [True, True]
