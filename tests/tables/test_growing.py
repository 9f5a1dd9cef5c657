"""Tables that grow: every line is a row, none is refused, none is taken twice."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tacit.tables import Column, GrowingTable, Schema, TableError, read_rows

AGE = Column("age", "number", range=(0, 100))
PAY = Column("pay", "number", range=(0, 10), zero=0.0, missing=1.0)
SEX = Column("sex", "category", categories=("f", "m"))
JOB = Column("job", "category", categories=("cook", "1"), unseen="other")
ILL = Column("ill", "category", categories=("no", "yes"))
SCHEMA = Schema((AGE, PAY, SEX, Column("id", "ignore"), JOB), target=ILL)
NUMBERS = Schema((AGE,), target=Column("pay", "number", range=(0, 10)))

HEADER = "id,age,pay,sex,job,ill"
GOOD = [
    "1,30,2.5,f,cook,no",
    '2,"40.5",,m,1.0,yes',
    "3, 1e1 ,NA,f,,no",
    "4,120,3,m,pilot,yes",
]
BAD = [
    "",
    "nonsense",
    "5,30,2,f,cook",
    "5,30,2,f,cook,no,",
    "5,thirty,2,f,cook,no",
    "5,,2,f,cook,no",
    "5,inf,2,f,cook,no",
    "5,1_0,2,f,cook,no",
    "5,0x10,2,f,cook,no",
    "5,1e999,2,f,cook,no",
    "5,30,2,x,cook,no",
    "5,30,2,,cook,no",
    "5,30,2,f,cook,maybe",
    "5,30,2,f,cook,",
    '5,"30,2,f,cook,no',
    '5,"30"1,2,f,cook,no',
    "5,30\r,2,f,cook,no",
    "5,3\x000,2,f,cook,no",
    '"',
    "," * 10_000,
]


def lines(*texts):
    return "".join(f"{text}\n" for text in texts)


def csv_of(folder, *rows, name="t.csv"):
    path = folder / name
    path.write_text(lines(HEADER, *rows), "utf-8", newline="")
    return path


def as_json(row):
    names = HEADER.split(",")
    return json.dumps(dict(zip(names, row, strict=True)))


def test_usable_rows_are_encoded_as_a_fit_reads_them(tmp_path):
    path = csv_of(tmp_path, *GOOD)
    expected = read_rows(path, SCHEMA)
    taken = GrowingTable(path, SCHEMA).take(None, len(GOOD))
    np.testing.assert_array_equal(taken.X, expected.X)
    assert taken.y.tolist() == expected.y.tolist() == ["no", "yes", "no", "yes"]


@pytest.mark.parametrize("bad", BAD)
def test_a_line_that_cannot_be_used_is_a_row_of_its_own(tmp_path, bad):
    table = GrowingTable(csv_of(tmp_path, GOOD[0], bad, GOOD[1]), SCHEMA)
    alone = GrowingTable(csv_of(tmp_path, *GOOD, name="good.csv"), SCHEMA)
    taken, good = table.take(None, 3), alone.take(None, 2)
    assert np.isnan(taken.X).all(axis=1).tolist() == [False, True, False]
    np.testing.assert_array_equal(taken.X[[0, 2]], good.X)
    assert taken.y[[0, 2]].tolist() == good.y.tolist()
    assert table.take(taken.position, 1).n_rows == 0


def test_bytes_in_another_encoding_spoil_their_row_alone(tmp_path):
    path = csv_of(tmp_path, *GOOD)
    path.write_bytes(path.read_bytes().replace(b"cook", b"c\xff\xfek", 1))
    taken = GrowingTable(path, SCHEMA).take(None, 4)
    assert np.isnan(taken.X).all(axis=1).tolist() == [True, False, False, False]


def test_a_very_long_line_is_one_row(tmp_path):
    path = csv_of(tmp_path, GOOD[0], "x" * (3 * 2**20), GOOD[1])
    taken = GrowingTable(path, SCHEMA).take(None, 3)
    assert np.isnan(taken.X).all(axis=1).tolist() == [False, True, False]


def test_a_line_without_an_end_waits_and_so_do_too_few_rows(tmp_path):
    path = csv_of(tmp_path, *GOOD[:3])
    table = GrowingTable(path, SCHEMA)
    taken = table.take(None, 2)
    assert taken.n_rows == 2
    with open(path, "a") as file:
        file.write(GOOD[3][:-2])
    rest = table.take(taken.position, 2)
    assert (rest.n_rows, rest.X, rest.position) == (1, None, taken.position)
    with open(path, "a") as file:
        file.write(GOOD[3][-2:] + "\n")
    rest = table.take(taken.position, 2)
    assert rest.n_rows == 2
    assert rest.y.tolist() == ["no", "yes"]


def test_line_ends_marks_and_delimiters_of_other_systems_are_read(tmp_path):
    text = "\ufeff" + lines(HEADER, *GOOD).replace(",", ";").replace("\n", "\r\n")
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    expected = GrowingTable(csv_of(tmp_path, *GOOD, name="b.csv"), SCHEMA).take(None, 4)
    taken = GrowingTable(path, SCHEMA).take(None, 4)
    np.testing.assert_array_equal(taken.X, expected.X)
    assert taken.y.tolist() == expected.y.tolist()


def test_columns_may_come_in_any_order_and_with_numbers_as_targets(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("pay\tage\n3\t50\n\t10\nx\t10\n11\t10\n")
    taken = GrowingTable(path, NUMBERS).take(None, 4)
    assert np.isnan(taken.X[:, 0]).tolist() == [False, True, True, False]
    assert taken.y[[0, 3]].tolist() == [3.0, 11.0]


GOOD_OBJECTS = [
    as_json([1, 30, 2.5, "f", "cook", "no"]),
    as_json([2, "40.5", None, "m", 1, "yes"]),
    as_json([3, 10, "NA", "f", "", "no"]),
    as_json([4, 120, 3, "m", "pilot", "yes"]),
]
BAD_OBJECTS = [
    "",
    "null",
    "[1, 2]",
    "{",
    GOOD_OBJECTS[0][:-1],
    "[" * 100_000,
    "1" * 10_000,
    '{"age": ' + "1" * 5_000 + "}",
    '{"age": "\\ud800"}',
    as_json([5, True, 2, "\ud800", "cook", "no"]),
    as_json([5, [30], 2, "f", "cook", "no"]),
    as_json([5, {"a": 1}, 2, "f", "cook", "no"]),
    as_json([5, 30, 2, ["f"], "cook", "no"]),
    as_json([5, 30, 2, "f", "cook", None]),
    as_json([5, 10**400, 2, "f", "cook", "no"]),
    as_json([5, float("nan"), 2, "f", "cook", "no"]),
    as_json([5, float("inf"), 2, "f", "cook", "no"]),
]


def test_json_lines_are_the_same_rows(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(lines(*GOOD_OBJECTS))
    expected = GrowingTable(csv_of(tmp_path, *GOOD), SCHEMA).take(None, 4)
    taken = GrowingTable(path, SCHEMA).take(None, 4)
    np.testing.assert_array_equal(taken.X, expected.X)
    assert taken.y.tolist() == expected.y.tolist()


@pytest.mark.parametrize("bad", BAD_OBJECTS, ids=range(len(BAD_OBJECTS)))
def test_an_object_that_cannot_be_used_is_a_row_of_its_own(tmp_path, bad):
    path = tmp_path / "t.ndjson"
    path.write_text(lines(GOOD_OBJECTS[0], bad, GOOD_OBJECTS[1]))
    taken = GrowingTable(path, SCHEMA).take(None, 3)
    assert np.isnan(taken.X).all(axis=1).tolist() == [False, True, False]


def test_texts_that_are_no_unicode_go_where_all_others_go(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(lines(as_json([1, 30, 2, "f", "\ud800", "no"]), GOOD_OBJECTS[3]))
    taken = GrowingTable(path, SCHEMA).take(None, 2)
    np.testing.assert_array_equal(taken.X[0, -3:], [0, 0, 1])


def parquet_file(folder, name, ages, row_group_size=None, **columns):
    folder.mkdir(exist_ok=True)
    n = len(ages)
    table = pa.table(
        {
            "age": ages,
            "pay": [2.5] * n,
            "sex": ["f"] * n,
            "job": ["cook"] * n,
            "ill": ["no"] * n,
            **columns,
        }
    )
    pyarrow.parquet.write_table(table, folder / name, row_group_size=row_group_size)


def ages_of(taken):
    return ((taken.X[:, 0] + 1) * 50).round(9).tolist()


def texts(third):
    return pa.array([b"m", b"f", third, b"m"], pa.binary()).view(pa.string())


def moments(kind, far):
    whole = pa.int32() if kind == pa.date32() else pa.int64()
    return pa.array([0, 1, far, 2], whole).view(kind)


CELLS = {
    "text": ("sex", texts, b"m", b"HIV \xff"),
    "other text": ("job", texts, b"m", b"\xff"),
    "label": ("ill", texts, b"m", b"\xff"),
    **{
        f"{kind} in {name}": (name, lambda far, k=kind: moments(k, far), 0, far)
        for name in ("age", "sex", "job")
        for kind, far in (
            (pa.timestamp("us"), 2**62),
            (pa.timestamp("ms"), -(2**62)),
            (pa.date32(), 2**31 - 1),
            (pa.duration("s"), 2**62),
        )
    },
}


@pytest.mark.parametrize("case", CELLS)
def test_a_cell_that_has_no_value_spoils_its_row_alone(tmp_path, case):
    name, column, good, bad = CELLS[case]
    found = []
    for position, third in (("good", good), ("bad", bad)):
        given = {"ages": [1, 2, 3, 4], name: column(third)}
        parquet_file(tmp_path / position, "a.parquet", **given)
        found.append(GrowingTable(tmp_path / position, SCHEMA).take(None, 4))
    whole, spoiled = found
    assert np.isnan(spoiled.X[2]).all()
    others = [0, 1, 3]
    np.testing.assert_array_equal(spoiled.X[others], whole.X[others])
    assert (spoiled.y[others] == whole.y[others]).all()


def test_a_folder_is_taken_in_the_order_of_names_across_files(tmp_path):
    folder = tmp_path / "p"
    parquet_file(folder, "a.parquet", list(range(5)), row_group_size=2)
    parquet_file(folder, "b.parquet", [])
    parquet_file(folder, "_c.parquet", [99])
    table = GrowingTable(folder, SCHEMA)
    first = table.take(None, 3)
    assert ages_of(first) == [0, 1, 2]
    assert table.take(first.position, 3).n_rows == 2
    parquet_file(folder, "c.parquet", [5, 6, 7, 8])
    for source in (table, GrowingTable(folder, SCHEMA)):
        second = source.take(first.position, 3)
        assert ages_of(second) == [3, 4, 5]
        third = source.take(second.position, 3)
        assert ages_of(third) == [6, 7, 8]
        assert source.take(third.position, 1).n_rows == 0


def test_types_that_files_of_a_folder_differ_in_stop_nothing(tmp_path):
    folder = tmp_path / "p"
    parquet_file(folder, "a.parquet", [1, 2])
    parquet_file(folder, "b.parquet", [None, 3.5, float("inf")])
    parquet_file(folder, "c.parquet", ["4", "five"])
    parquet_file(folder, "d.parquet", [[6], [7]], sex=[1, 2])
    parquet_file(folder, "e.parquet", pa.array([None], pa.null()))
    taken = GrowingTable(folder, SCHEMA).take(None, 10)
    usable = ~np.isnan(taken.X[:, 0])
    assert usable.tolist() == [
        *(True, True),
        *(False, True, False),
        *(True, False),
        *(False, False),
        False,
    ]
    np.testing.assert_allclose((taken.X[usable, 0] + 1) * 50, [1, 2, 3.5, 4])


def test_an_empty_folder_waits(tmp_path):
    (tmp_path / "p").mkdir()
    table = GrowingTable(tmp_path / "p", SCHEMA)
    assert table.take(None, 2).n_rows == 0
    parquet_file(tmp_path / "p", "a.parquet", [1, 2])
    assert table.take(None, 2).n_rows == 2


def after_two(path, schema=SCHEMA):
    return GrowingTable(path, schema).take(None, 2).position


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p.write_text(p.read_text()[:40]), "shorter"),
        (lambda p: p.write_text(p.read_text().replace("30", "31")), "have changed"),
        (lambda p: p.write_text(p.read_text().replace("id", "no", 1)), "no"),
        (lambda p: p.write_text(p.read_text().replace("id,", '"id",', 1)), "header"),
        (os.unlink, "no such file"),
    ],
)
def test_a_file_that_is_not_the_same_is_refused_in_one_sentence(
    tmp_path, change, words
):
    path = csv_of(tmp_path, *GOOD)
    table = GrowingTable(path, SCHEMA)
    position = after_two(path)
    change(path)
    with pytest.raises(TableError, match=words) as error:
        table.take(position, 1)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("change", ["changed", "gone", "before", "cut"])
def test_a_folder_that_is_not_the_same_is_refused(tmp_path, change):
    folder = tmp_path / "p"
    parquet_file(folder, "b.parquet", [1, 2])
    parquet_file(folder, "c.parquet", [3, 4])
    table = GrowingTable(folder, SCHEMA)
    position = table.take(None, 3).position
    assert GrowingTable(folder, SCHEMA).take(position, 1).n_rows == 1
    if change == "changed":
        parquet_file(folder, "b.parquet", [1, 3])
    elif change == "gone":
        (folder / "b.parquet").unlink()
    elif change == "before":
        parquet_file(folder, "a.parquet", [9])
    else:
        whole = (folder / "c.parquet").read_bytes()
        (folder / "c.parquet").write_bytes(whole[:-10])
    for source in (table, GrowingTable(folder, SCHEMA) if change != "cut" else table):
        with pytest.raises(TableError, match="restore the original"):
            source.take(position, 1)


def test_a_folder_with_a_file_of_something_else_is_refused(tmp_path):
    folder = tmp_path / "p"
    parquet_file(folder, "a.parquet", [1, 2])
    table = GrowingTable(folder, SCHEMA)
    position = table.take(None, 2).position
    (folder / "b.parquet").write_text("no parquet")
    with pytest.raises(TableError, match=r"b\.parquet.*Parquet"):
        table.take(position, 1)
    parquet_file(folder, "b.parquet", [1], extra=[1])
    with pytest.raises(TableError, match="extra"):
        table.take(position, 1)


def test_other_facts_and_other_sources_are_refused(tmp_path):
    path = csv_of(tmp_path, *GOOD)
    position = after_two(path)
    wider = SCHEMA.with_column(Column("age", "number", range=(0, 200)))
    with pytest.raises(TableError, match="schema is not the one"):
        GrowingTable(path, wider).take(position, 1)
    other = tmp_path / "t.jsonl"
    other.write_text(lines(*GOOD_OBJECTS))
    with pytest.raises(TableError, match="another source"):
        GrowingTable(other, SCHEMA).take(position, 1)
    noted = Schema(SCHEMA.columns, SCHEMA.target, note="a remark")
    assert GrowingTable(path, noted).take(position, 1).n_rows == 1


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "no header"),
        ("t.csv", b"id,age", "no header"),
        ("t.csv", b"age,pay,sex,job,ill\xff\n", "not text in utf8"),
        ("t.csv", b"age,pay,sex,job\n", "no column 'ill'"),
        ("t.csv", b"age,age,pay,sex,job,ill\n", "twice"),
        ("t.csv", b"age,pay,sex,job,ill,more\n", "more"),
        ("t.parquet", b"", "stream must be"),
        ("nowhere", None, "stream must be"),
        ("nowhere.csv", None, "no such file"),
        ("nowhere.jsonl", None, "no such file"),
    ],
)
def test_what_is_no_growing_table_is_refused_at_once(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=words):
        GrowingTable(tmp_path / name, SCHEMA)


def test_wide_encodings_and_unconfirmed_schemas_are_refused(tmp_path):
    path = csv_of(tmp_path, *GOOD)
    with pytest.raises(TableError, match=r"line feed of one byte|not text"):
        GrowingTable(path, SCHEMA, encoding="utf-16")
    draft = SCHEMA.with_column(Column("age", "number", range=(0, 90), source="data"))
    with pytest.raises(TableError, match="not confirmed"):
        GrowingTable(path, draft)
    with pytest.raises(TableError, match="target"):
        GrowingTable(path, Schema((AGE,)))
