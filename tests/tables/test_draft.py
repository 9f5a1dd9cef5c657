"""Drafts describe the rows, and say that they come from them."""

import datetime
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from tacit.data._files import csv_file as csv_module
from tacit.tables import Schema, TableError, draft, read_rows
from tacit.tables._draft import nice_range

N = 60
TABLE = {
    "patient_id": [17 * i for i in range(N)],
    "row": list(range(100, 100 + N)),
    "age": [18 + 7 * i % 75 for i in range(N)],
    "dose": [0.013 * i for i in range(N)],
    "sex": ["fm"[i % 2] for i in range(N)],
    "smoker": [i % 3 == 0 for i in range(N)],
    "children": [i % 4 for i in range(N)],
    "town": [f"0{1000 + i % 9}" for i in range(N)],
    "name": [f"person {i}" for i in range(N)],
    "born": [datetime.date(1950 + i, 1, 2) for i in range(N)],
    "unit": ["mg"] * N,
    "nothing": pa.array([None] * N, pa.string()),
    "paid": [None if i % 7 == 0 else 2.5 * i for i in range(N)],
    "mood": [None if i == 3 else ["good", "bad"][i % 2] for i in range(N)],
    "danger": [["=1+1", "fine", "well"][i % 3] for i in range(N)],
    "ill": ["no" if i % 5 else "yes" for i in range(N)],
}


@pytest.fixture(params=["csv", "parquet"])
def path(request, tmp_path):
    path = tmp_path / f"t.{request.param}"
    write = csv.write_csv if request.param == "csv" else parquet.write_table
    write(pa.table(TABLE), path)
    return path


@pytest.mark.parametrize("block", [600, 2**20])
def test_a_draft_names_what_it_saw(path, monkeypatch, block):
    monkeypatch.setattr(csv_module, "BLOCK", block)
    schema = draft(path, "ill")
    kinds = {column.name: column.kind for column in schema.columns}
    ignored = ["patient_id", "row", "name", "born", "unit", "nothing"]
    assert [name for name, kind in kinds.items() if kind == "ignore"] == ignored
    assert all(schema.column(name).remark for name in ignored)
    assert schema.column("age").range == (0, 100)
    assert schema.column("dose").range == (0, 0.8)
    assert schema.column("sex").categories == ("f", "m")
    assert schema.column("smoker").categories == ("false", "true")
    assert schema.column("children").categories == ("0", "1", "2", "3")
    assert schema.column("town").categories == tuple(f"0{1000 + i}" for i in range(9))
    assert schema.column("paid").range == (0, 150)
    assert "missing" in schema.column("paid").remark
    assert schema.column("mood").unseen == "other"
    assert "missing" in schema.column("mood").remark
    assert schema.column("danger").categories == ("fine", "well")
    assert schema.column("danger").unseen == "other"
    assert schema.target.categories == ("no", "yes")


def test_what_was_read_off_the_rows_is_not_public(path):
    for names_only in (False, True):
        schema = draft(path, "ill", names_only=names_only)
        assert schema.unconfirmed() == [*(c.name for c in schema.columns), "ill"]
        assert {c.source for c in schema.every_column} == {"data"}


def test_nothing_said_of_the_rows_outlives_confirming(path, tmp_path):
    schema = draft(path, "ill")
    paid = replace(schema.column("paid"), note="in euros", missing=0.0)
    schema = schema.with_column(paid)
    schema.save(tmp_path / "s.toml")
    schema = Schema.load(tmp_path / "s.toml")
    assert schema.column("unit").remark == "It has the same value in all rows."
    facts = schema.confirm(by="Ada").to_dict()
    assert "note" not in facts
    tables = [facts["target"], *facts["columns"].values()]
    assert not any("remark" in table for table in tables)
    assert [table["note"] for table in tables if "note" in table] == ["in euros"]
    # nor where a person says so in the file
    text = (tmp_path / "s.toml").read_text().replace('"data"', '"public"')
    (tmp_path / "s.toml").write_text(text)
    assert Schema.load(tmp_path / "s.toml").column("unit").remark == ""


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_persons_with_several_rows_are_remarked(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(csv_module, "BLOCK", 100)
    ids = [f"p{i}" for i in range(60)]
    table = {"patient_id": ids, "nhs_number": [*ids[:-1], "p0"], "mrn": ids}
    table |= {"patient": ids[::-1], "patient_age": range(60), "x": range(0, 180, 3)}
    table = pa.table({name: list(values) for name, values in table.items()})
    path = tmp_path / f"t.{kind}"
    (csv.write_csv if kind == "csv" else parquet.write_table)(table, path)
    schema = draft(path)
    assert "several rows" in schema.column("nhs_number").remark
    for name in ("patient_id", "mrn", "patient"):
        assert schema.column(name).remark == "By its name it is an identifier."
    assert "identifier" not in schema.column("patient_age").remark


def test_decimal_commas_are_remarked(tmp_path):
    lines = [f"{i},{i};{i % 2};{'1,5' if i % 2 else '2'};a,{i}\n" for i in range(80)]
    (tmp_path / "t.csv").write_text("kg;x;h;w\n" + "".join(lines))
    schema = draft(tmp_path / "t.csv")
    words = "Numbers with decimal commas: export with points."
    assert schema.column("kg").remark == schema.column("h").remark == words
    assert schema.column("w").remark != words
    (tmp_path / "t.csv").write_text("kg;x\n1,5;2,5\n1,75;3,0\n")
    with pytest.raises(TableError, match=words):
        draft(tmp_path / "t.csv")


def test_a_draft_once_confirmed_reads_its_file(path, tmp_path):
    schema = draft(path, "ill")
    paid = schema.column("paid")
    schema = schema.with_column(type(paid)("paid", "number", paid.range, missing=0))
    schema.confirm(by="Ada").save(tmp_path / "s.toml")
    X, y = read_rows(path, Schema.load(tmp_path / "s.toml"))
    assert len(X) == len(y) == N
    assert np.abs(X).max() <= 1


def test_names_only_reads_no_value(path):
    schema = draft(path, "ill", names_only=True)
    assert schema.column("age").range is None
    assert schema.column("sex").categories == ()
    assert schema.column("smoker").categories == ("false", "true")
    assert schema.column("patient_id").kind == "ignore"
    assert schema.column("born").kind == "ignore"
    assert "age" in schema.unconfirmed()
    assert "ill" in schema.unconfirmed()


@pytest.mark.parametrize("target", ["born", "unit", "name", "mood"])
def test_targets_that_cannot_be_are_refused(path, target):
    with pytest.raises(TableError, match=f"column '{target}' cannot be the target"):
        draft(path, target)


def test_a_target_that_is_not_there_is_refused(path):
    with pytest.raises(TableError, match="no column 'death' to be the target"):
        draft(path, "death")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n", "a header and no rows"),
        ("a,a\n1,2\n", "two columns have the same name"),
        ("=a,b\n1,2\n3,4\n", "formula"),
        ("a\n1\n1\n", "no columns to learn from"),
        ("a,b\n1\n", "as many fields"),
    ],
)
def test_files_without_a_draft_are_refused(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TableError, match=words):
        draft(tmp_path / "t.csv")


def test_kinds_that_change_on_the_way_are_the_widest(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_module, "BLOCK", 60)
    cells = [f"{i}" for i in range(40)] + ["0.5"] * 20 + ["NA"] + ["7"] * 20
    words = ["1"] * 40 + ["x"] * 41
    lines = [f"{a},{b}\n" for a, b in zip(cells, words, strict=True)]
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(lines))
    schema = draft(tmp_path / "t.csv")
    assert schema.column("a").range == (0, 40)
    assert schema.column("b").categories == ("1", "x")


reals = st.floats(-1e12, 1e12)


@given(reals, reals, st.booleans())
def test_ranges_are_rounded_outwards_by_little(first, second, whole):
    low, high = sorted((first, second))
    if whole:
        low, high = float(round(low)), float(round(high))
    left, right = nice_range(low, high, integer=whole)
    slack = 1e-12 * max(abs(left), abs(right))
    assert left <= low + slack
    assert high - slack <= right
    assert left < right or low == high
    width = max(high - low, max(abs(low), abs(high)) * 1e-8, 1e-120)
    if whole:
        width = max(width, 2.5)
        assert left == round(left)
    assert right - left <= 2 * width + slack


def test_zeros_and_ones_stay_as_they_are_but_for_the_target(tmp_path):
    path = tmp_path / "flags.csv"
    path.write_text("a,y\n" + "0,1\n1,0\n" * 10, "utf-8")
    schema = draft(path, target="y")
    assert schema.column("a").scaled == (0, 1)
    assert schema.column("a").source == "data"
    assert schema.target.categories == ("0", "1")
