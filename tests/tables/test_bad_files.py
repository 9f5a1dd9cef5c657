"""What is wrong with a file is said in one sentence that quotes nothing of it."""

import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from tacit.data._files import table_files
from tacit.tables import (
    Column,
    Schema,
    TableError,
    batches,
    check,
    draft,
    read_rows,
)

SCHEMA = Schema(
    (
        Column("age", "number", (0, 100)),
        Column("sex", "category", categories=("f", "m")),
        Column("id", "ignore"),
    ),
    Column("ill", "category", categories=("0", "1")),
)
HEADER = "id,age,sex,ill\n"
ROW = "1,31337,f,0\n"
SECRET = ("31337", "secret", "zzz")

CSV = {
    "no bytes": ("", "the file is empty"),
    "blank lines": ("\n\n", "no header in its first line"),
    "header alone": (HEADER, "a header and no rows"),
    "header without an end": (HEADER.strip(), "a header and no rows"),
    "a column missing": ("id,sex,ill\n1,f,0\n", "no column 'age'"),
    "the target missing": ("id,age,sex\n1,31337,f\n", "no column 'ill'"),
    "no header": ("1,31337,f,0\n2,31337,m,1\n", "no column 'age'"),
    "a column too many": ("id,age,sex,ill,x\n1,31337,f,0,zzz\n", "name the column 'x'"),
    "a column twice": ("id,age,age,sex,ill\n1,31337,2,f,0\n", "'age' twice"),
    "too few fields": (HEADER + ROW + "2,31337\n", "as many fields as the header"),
    "too many fields": (HEADER + ROW + "2,31337,f,1,zzz\n", "as many fields"),
    "an open quote": (HEADER + ROW + '2,31337,"secret,1\n' + ROW, "quote in it"),
    "text for a number": (HEADER + ROW + "2,secret,f,1\n", "column 'age' holds text"),
    "a formula": (HEADER + "2,=1+1,f,1\n", "column 'age' holds text"),
    "a missing number": (HEADER + ROW + "2,,f,1\n", "'age' has missing values"),
    "NaN": (HEADER + ROW + "2,nan,f,1\n", "'age' has missing values"),
    "infinity": (HEADER + ROW + "2,inf,f,1\n", "'age' contains infinite"),
    "a number beyond floats": (HEADER + "2,1e999,f,1\n", "'age' contains infinite"),
    "an unseen category": (HEADER + ROW + "2,3,secret,1\n", "'sex' has values outside"),
    "a missing category": (HEADER + ROW + "2,3,,1\n", "'sex' has missing values"),
    "an unseen label": (
        HEADER + ROW + "2,3,f,zzz\n",
        "'ill' is the target and has val",
    ),
    "a missing label": (HEADER + ROW + "2,3,f,\n", "'ill' is the target and has miss"),
}


def rejected(path, words, read=read_rows, schema=SCHEMA, **options):
    with pytest.raises(TableError, match=words) as error:
        list(read(path, schema, **options))
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert message.endswith(".")
    assert "\n" not in message
    assert not any(secret in message for secret in SECRET)
    # what pyarrow said quotes cells, and tracebacks show what an error came from
    assert error.value.__cause__ is None
    assert error.value.__context__ is None or error.value.__suppress_context__


@pytest.mark.parametrize("case", CSV)
def test_a_wrong_csv_file_is_refused(tmp_path, case):
    text, words = CSV[case]
    path = tmp_path / "t.csv"
    path.write_text(text, "utf-8")
    rejected(path, words)
    rejected(path, words, check)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le"])
def test_the_wrong_encoding_is_refused(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes((HEADER + ROW + "2,3,é secret,1\n").encode(encoding))
    rejected(path, "not text in utf8; give its encoding")
    path.write_bytes("id,age,é,ill\n".encode(encoding))
    rejected(path, "not text in utf8; give its encoding")


def test_an_encoding_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes((HEADER + "1,2,f,1\n" * 9).encode() + b"\xff secret\n")
    rejected(path, "not text in utf-16", encoding="utf-16")
    for unknown in ("klingon", "hex", "undefined"):
        with pytest.raises(TableError, match="encoding must be one that Python knows"):
            read_rows(path, SCHEMA, encoding=unknown)
    with pytest.raises(TableError, match="delimiter must be one character"):
        read_rows(path, SCHEMA, delimiter="::")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    rejected(tmp_path / "t.csv", "no such file or folder")


def test_a_folder_without_tables_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text(HEADER)
    rejected(tmp_path, "the folder holds no .parquet files")


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.csv.gz"])
def test_other_kinds_of_files_are_refused(tmp_path, name):
    (tmp_path / name).write_text(HEADER + ROW)
    rejected(tmp_path / name, r"read from \.csv")


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather"])
def test_files_that_are_something_else_are_refused(tmp_path, name):
    (tmp_path / name).write_text((HEADER + ROW) * 100)
    rejected(tmp_path / name, "or it is damaged or cut off")
    (tmp_path / name).write_text("")
    rejected(tmp_path / name, "the file is empty")


def written(path, table=None):
    table = pa.table(table or {"id": [1], "age": [31337], "sex": ["f"], "ill": [0]})
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path)
    return path


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_files_that_are_cut_off_are_refused(tmp_path, name, share):
    n = 5000
    table = {"id": range(n), "age": [1.5] * n, "sex": ["f"] * n, "ill": [0] * n}
    path = written(tmp_path / name, {k: list(v) for k, v in table.items()})
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    rejected(path, "or it is damaged or cut off")


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_damage_inside_a_file_is_refused(tmp_path, name):
    n = 2000
    table = {"id": [0] * n, "age": [i / 30 for i in range(n)]}
    path = written(tmp_path / name, {**table, "sex": ["f"] * n, "ill": [0] * n})
    content = bytearray(path.read_bytes())
    content[200:1200] = b"\xff" * 1000
    path.write_bytes(content)
    rejected(path, "damaged|outside|missing|infinite|changed")


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_wrong_columns_of_typed_files_are_refused(tmp_path, name):
    good = {"id": [1], "age": [31337], "sex": ["f"], "ill": [0]}
    path = tmp_path / name
    rejected(written(path, {**good, "age": ["31337"]}), "'age' contains no numbers")
    rejected(written(path, {**good, "age": [[1.0]]}), "'age' contains no numbers")
    rejected(
        written(path, {**good, "sex": [[1.0]]}), "'sex' contains neither strings nor"
    )
    rejected(
        written(path, {**good, "sex": [b"f"]}), "'sex' contains neither strings nor"
    )
    rejected(written(path, {**good, "sex": [None]}), "'sex' has missing values")
    rejected(written(path, {**good, "age": [None]}), "'age' has missing values")
    rejected(written(path, {**good, "age": [float("inf")]}), "'age' contains infinite")
    rejected(written(path, {**good, "sex": ["zzz"]}), "'sex' has values outside")
    rejected(written(path, {**good, "sex": [31337]}), "'sex' has values outside")
    rejected(written(path, {**good, "x": [1]}), "does not name the column 'x'")
    rejected(written(path, {"id": [1]}), "no column 'age'")
    empty = pa.table({n: pa.array([], pa.float64()) for n in good})
    rejected(written(path, empty.to_pydict()), "a header and no rows")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_check_names_every_column_that_is_wrong(tmp_path, name):
    path = tmp_path / name
    if name == "t.csv":
        path.write_text(HEADER + ROW * 9 + "2,secret,zzz,\n")
    else:
        table = {"id": [1], "age": ["secret"], "sex": ["zzz"], "ill": [None]}
        written(path, table)
    rejected(
        path,
        "'age' (holds|contains) .* Also, column 'sex' has .* Also, column 'ill'",
        check,
    )


def test_every_column_that_is_not_there_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("sex,x,z\nf,1,2\n")
    rejected(tmp_path / "t.csv", "the table has no column 'age', 'ill'; its header")
    schema = Schema((Column("sex", "category", categories=("f",)),))
    rejected(tmp_path / "t.csv", "not name the column 'x', 'z'", batches, schema)
    names = ["x", "z", "key"]
    rejected(tmp_path / "t.csv", "no column 'key' to keep", batches, schema, keep=names)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
@pytest.mark.parametrize("read", [read_rows, batches, check])
def test_texts_that_are_no_unicode_are_refused(tmp_path, name, read):
    odd = pa.Array.from_buffers(
        pa.string(),
        1,
        [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xfe\xff")],
    )
    table = {"id": [1], "age": [31337], "sex": odd, "ill": [0]}
    path = written(tmp_path / name, table)
    rejected(path, "damaged", read)
    with pytest.raises(TableError, match="damaged"):
        draft(path)


def test_columns_twice_in_parquet_are_refused(tmp_path):
    table = pa.Table.from_arrays(
        [pa.array([1.0]), pa.array([2.0]), pa.array(["f"]), pa.array([0])],
        ["age", "age", "sex", "ill"],
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    rejected(tmp_path / "t.parquet", "'age' twice")
    with pytest.raises(TableError, match="two columns have the same name"):
        draft(tmp_path / "t.parquet")


def test_files_of_a_folder_must_have_the_same_columns(tmp_path):
    written(tmp_path / "a.parquet")
    written(tmp_path / "b.parquet", {"age": [1]})
    with pytest.raises(TableError, match=r"b\.parquet: the files of the folder"):
        read_rows(tmp_path, SCHEMA)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow"])
def test_permission_denied_is_said(tmp_path, monkeypatch, name):
    def denied(*_, **__):
        raise PermissionError(13, "secret")

    (tmp_path / name).write_text(HEADER)
    monkeypatch.setattr(table_files.Path, "stat", denied)
    rejected(tmp_path / name, "permission to read it was denied")


def test_a_schema_without_a_target_has_none_to_read(tmp_path):
    path = written(tmp_path / "t.parquet", {"age": [1.0]})
    schema = Schema((Column("age", "number", (0, 100)),))
    with pytest.raises(TableError, match="The schema has no target"):
        read_rows(path, schema)
    assert read_rows(path, schema, with_target=False).X.shape == (1, 1)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_file_that_changes_meanwhile_is_refused(tmp_path, name):
    path = tmp_path / name
    if name == "t.csv":
        path.write_text(HEADER + ROW)
    else:
        written(path)
    blocks = batches(path, SCHEMA)
    next(blocks)
    os.utime(path, ns=(0, 0))
    with pytest.raises(TableError, match="the file changed while it was read"):
        next(blocks)


def test_a_file_with_other_rows_than_it_says_is_refused(tmp_path, monkeypatch):
    path = written(tmp_path / "t.parquet")
    opened = table_files.ParquetFiles.open

    def longer(paths):
        file = opened(paths)
        return table_files.ParquetFiles(file.paths, file.n_rows + 1, file.schema)

    monkeypatch.setattr(table_files.ParquetFiles, "open", longer)
    rejected(path, "the file changed while it was read")


@pytest.mark.parametrize("cell", ["UTF8", "Empty CSV", "Expected", "invalid UTF8 data"])
def test_what_a_cell_says_does_not_choose_the_refusal(tmp_path, cell):
    path = tmp_path / "t.csv"
    schema = Schema((Column("x", "number", range=(0, 1)),))
    path.write_text(f"x\n0.5\n{cell}\n")
    with pytest.raises(TableError, match="column 'x' holds text that is no number"):
        read_rows(path, schema, with_target=False)
