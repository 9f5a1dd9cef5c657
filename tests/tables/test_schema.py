"""Schemas say what is public, keep their order, and refuse what they do not mean."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.tables import Column, Schema, TableError
from tacit.tables._text import canonical, labels, runs_as_formula

AGE = Column("age", "number", range=(0, 100))
SEX = Column("sex", "category", categories=("f", "m"))
ILL = Column("ill", "category", categories=("no", "yes"))
SCHEMA = Schema((AGE, SEX, Column("patient_id", "ignore")), ILL)

TEXT = """
version = 1
row_norm = 2.1
[target]
name = "ill"
kind = "category"
categories = ["no", "yes"]
source = "data"
[columns.age]
kind = "number"
range = [0, 100]
source = "data"
missing = "refuse"
[columns.sex]
kind = "category"
categories = ["f", "m"]
unseen = "refuse"
source = "public"
[columns.patient_id]
kind = "ignore"
"""


def load(tmp_path, text):
    path = tmp_path / "patients.toml"
    path.write_text(text, "utf-8")
    return Schema.load(path)


def test_a_schema_written_by_a_person_is_read(tmp_path):
    schema = load(tmp_path, TEXT)
    assert [column.name for column in schema.columns] == ["age", "sex", "patient_id"]
    assert schema.target == replace(ILL, source="data")
    assert schema.columns[0] == replace(AGE, source="data")
    assert schema.row_norm == 2.1
    assert schema.unconfirmed() == ["age", "ill"]
    assert schema.feature_names == ["age", "sex=f", "sex=m"]
    assert schema.widths == [1, 2]


def test_a_number_or_category_without_a_source_is_not_public(tmp_path):
    text = TEXT.replace('source = "data"\n', "").replace('source = "public"\n', "")
    schema = load(tmp_path, text)
    assert schema.unconfirmed() == ["age", "sex", "ill"]
    assert schema.column("patient_id").is_confirmed


names = st.text(min_size=1).filter(lambda name: not runs_as_formula(name))
pairs = st.tuples(st.floats(-1e9, 1e9), st.floats(1e-2, 1e9), st.booleans()).map(
    lambda ends: (ends[0], ends[0] + ends[1] + abs(ends[0]) * 1e-6)
)
notes = st.text(max_size=20)
sources = st.sampled_from(["data", "public"])


@st.composite
def columns(draw, name):
    kind = draw(st.sampled_from(["number", "category", "ignore"]))
    note = draw(notes)
    facts = {"source": draw(sources), "note": note, "confirmed_by": draw(notes)}
    facts["remark"] = draw(notes)
    if kind == "ignore":
        return Column(name, kind, **facts)
    if kind == "number":
        missing = draw(st.none() | st.floats(-1e9, 1e9))
        return Column(name, kind, draw(st.none() | pairs), missing=missing, **facts)
    found = draw(st.lists(names, max_size=4, unique_by=canonical))
    unseen = draw(st.sampled_from(["refuse", "other"]))
    return Column(name, kind, categories=tuple(found), unseen=unseen, **facts)


@st.composite
def schemas(draw):
    found = draw(st.lists(names, min_size=2, max_size=6, unique=True))
    goal, *others = found
    columns_ = [draw(columns(name)) for name in others]
    columns_.append(Column("\n[columns]'\"\\", "number", (0, 1)))
    target = draw(st.none() | columns(goal).filter(lambda c: c.kind != "ignore"))
    if target is not None:
        target = replace(target, missing=None, unseen="refuse")
        if len(target.categories) == 1:
            target = None
    norm = draw(st.none() | st.floats(1e-3, 1e3))
    try:
        return Schema(tuple(columns_), target, norm, draw(notes))
    except TableError:  # two features of one name
        return SCHEMA


NEGATIVE_ZEROS = Schema(
    (
        Column("a", "number", (-0.0, 1), zero=-0.0, missing=-0.0, confirmed_by="Ada"),
        Column("b", "number", (-1, -0.0), missing=np.float64(0.5), confirmed_by="Ada"),
    )
)


@settings(max_examples=40)
@given(schemas())
@example(NEGATIVE_ZEROS)
def test_a_schema_comes_back_from_its_file(tmp_path_factory, schema):
    path = tmp_path_factory.mktemp("schema") / "schema.toml"
    schema.save(path)
    assert Schema.load(path) == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert list(schema.to_dict()["columns"]) == [c.name for c in schema.columns]


WRONG = {
    'version = 1\n[columns.age]\nkind = "number"\nrnage = [0, 1]': "'rnage'",
    'version = 1\nrow_nrom = 1\n[columns.age]\nkind = "number"': "'row_nrom'",
    'version = 2\n[columns.age]\nkind = "number"': "version is that of a later",
    'version = "1"\n[columns.age]\nkind = "number"': "version must be 1",
    '[columns.age]\nkind = "number"': "version must be 1",
    "version = 1": "no columns to learn from",
    'version = 1\n[columns.id]\nkind = "ignore"': "no columns to learn from",
    "version = 1\ncolumns = 3": "columns must be tables",
    "version = 1\n[columns]\nage = 3": "[columns.age] must be a table",
    'version = 1\n[columns.age]\nkind = "integer"': "[columns.age] kind must be",
    'version = 1\n[columns.age]\nkind = ["number"]': "[columns.age] kind must be",
    'version = 1\n[columns.age]\nkind = "number"\nrange = [3, 3]': "[columns.age]",
    'version = 1\n[columns.age]\nkind = "number"\nrange = [3, 1]': "[columns.age]",
    'version = 1\n[columns.age]\nkind = "number"\nrange = [0, inf]': "range of column",
    'version = 1\n[columns.age]\nkind = "number"\nrange = ["0", "1"]': "range of",
    'version = 1\n[columns.age]\nkind = "number"\nrange = 3': "range of column 'age'",
    'version = 1\n[columns.age]\nkind = "number"\nrange = [0, 1, 2]': "range of column",
    'version = 1\n[columns.age]\nkind = "number"\nmissing = "skip"': "missing must be",
    'version = 1\n[columns.age]\nkind = "number"\nmissing = nan': "missing of column",
    'version = 1\n[columns.age]\nkind = "number"\nmissing = true': "missing of column",
    'version = 1\n[columns.age]\nkind = "number"\nmissing = 1'
    + "0" * 400: "missing of",
    'version = 1\n[columns.age]\nkind = "number"\ncategories = ["a"]': "'categories'",
    'version = 1\n[columns.age]\nkind = "number"\nsource = "me"': "source of column",
    'version = 1\n[columns.age]\nkind = "number"\nnote = 3': "note of column 'age'",
    'version = 1\n[columns.a]\nkind = "category"\ncategories = "x"': "must be a list",
    'version = 1\n[columns.a]\nkind = "category"\ncategories = ["x", "x"]': "differ",
    'version = 1\n[columns.a]\nkind = "category"\ncategories = ["1", "1.0"]': "differ",
    'version = 1\n[columns.a]\nkind = "category"\ncategories = [""]': "not empty",
    'version = 1\n[columns.a]\nkind = "category"\ncategories = [[1]]': "not empty",
    'version = 1\n[columns.a]\nkind = "category"\ncategories = [1'
    + "0" * 400
    + "]": "not empty",
    'version = 1\n[columns.a]\nkind = "category"\ncategories = ["=1+1"]': "formula",
    'version = 1\n[columns.a]\nkind = "category"\ncategories = ["@x"]': "formula",
    'version = 1\n[columns.a]\nkind = "category"\nunseen = "drop"': "unseen of column",
    'version = 1\n[columns."=a"]\nkind = "number"': "formula",
    'version = 1\n[columns.""]\nkind = "number"': "not empty",
    'version = 1\nrow_norm = 0\n[columns.a]\nkind = "number"': "row_norm must be",
    'version = 1\nrow_norm = "2"\n[columns.a]\nkind = "number"': "row_norm must be",
    'version = 1\ntarget = "y"\n[columns.a]\nkind = "number"': "[target] name",
    'version = 1\n[target]\nname = "a"\nkind = "number"\n'
    '[columns.a]\nkind = "number"': "must not be among the columns",
    'version = 1\n[target]\nname = "y"\nkind = "ignore"\n'
    '[columns.a]\nkind = "number"': "The target 'y' must be of kind",
    'version = 1\n[target]\nname = "y"\nkind = "number"\nmissing = 0\n'
    '[columns.a]\nkind = "number"': "[target] missing is not for targets",
    'version = 1\n[target]\nname = "y"\nkind = "category"\ncategories = ["a"]\n'
    '[columns.a]\nkind = "number"': "at least two",
    'version = 1\n[columns.a]\nkind = "category"\ncategories = ["b"]\n'
    '[columns."a=b"]\nkind = "number"': "the feature 'a=b' twice",
    "version = ": "not valid TOML",
    "version = 1\nnote = " + "[" * 100_000: "not valid TOML",
    "version = " + "1" * 10_000: "not valid TOML",
    "version = 1\nversion = 1": "not valid TOML",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_a_wrong_schema_is_refused_in_one_sentence_that_names_the_place(tmp_path, text):
    with pytest.raises(TableError) as error:
        load(tmp_path, text)
    message = str(error.value)
    assert WRONG[text] in message
    assert message.startswith(str(tmp_path / "patients.toml"))
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize("content", [b"\xff\xfe", "é".encode("latin-1")])
def test_a_schema_that_is_no_text_is_refused(tmp_path, content):
    (tmp_path / "s.toml").write_bytes(content)
    with pytest.raises(TableError, match="UTF-8"):
        Schema.load(tmp_path / "s.toml")


def test_a_schema_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(TableError, match="No such file"):
        Schema.load(tmp_path / "s.toml")


def test_a_schema_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "s.toml"
    SCHEMA.save(path)
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError, match="no"):
        replace(SCHEMA, given_norm=3.0).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["s.toml"]


def test_numbers_and_truth_values_may_stand_for_categories():
    column = Column("a", "category", categories=(0, 1.0, 1e16, True))
    assert column.categories == ("0", "1", "10000000000000000", "true")


def test_nothing_runs_until_all_is_confirmed():
    schema = SCHEMA.with_column(replace(AGE, source="data"))
    schema = schema.with_column(replace(ILL, source="data"))
    with pytest.raises(TableError, match="not confirmed for 'age', 'ill'"):
        schema.require_confirmed()
    half = schema.confirm(["age"], by="Ada")
    assert half.unconfirmed() == ["ill"]
    assert half.column("age").confirmed_by == "Ada"
    done = half.confirm(by="Ada")
    done.require_confirmed()
    assert schema.unconfirmed() == ["age", "ill"]


def test_facts_to_be_filled_in_cannot_be_confirmed():
    schema = Schema((Column("age", "number"), Column("sex", "category")))
    assert schema.unconfirmed() == ["age", "sex"]
    with pytest.raises(TableError, match="range of column 'age' must be filled in"):
        schema.confirm("age")
    with pytest.raises(TableError, match="categories of column 'sex'"):
        schema.confirm("sex")


def test_other_facts_are_not_confirmed_by_who_confirmed_the_old_ones():
    schema = SCHEMA.confirm(["age", "sex"], by="Ada")
    wider = schema.with_column(replace(schema.column("age"), range=(0, 120)))
    assert wider.column("age").confirmed_by == ""
    assert wider.column("sex").confirmed_by == "Ada"
    assert wider.confirm(["age"], by="Ada").column("age").confirmed_by == "Ada"


def test_facts_changed_by_hand_lose_the_name_of_who_confirmed_them(tmp_path):
    SCHEMA.confirm(["age", "sex", "ill"], by="Ada").save(tmp_path / "s.toml")
    text = (tmp_path / "s.toml").read_text()
    schema = load(tmp_path, text.replace("[0, 100]", "[0, 1_000]"))
    assert schema.column("age").range == (0, 1000)
    assert schema.column("age").confirmed_by == ""
    assert schema.column("sex").confirmed_by == schema.target.confirmed_by == "Ada"
    schema = load(tmp_path, text.replace("[0, 100]", "[0.0, 100.0]"))
    assert schema.column("age").confirmed_by == "Ada"


@pytest.mark.parametrize(
    ("column", "change"),
    [
        (AGE, {"range": (0, 90)}),
        (AGE, {"zero": 0.0}),
        (AGE, {"missing": 40.0}),
        (SEX, {"categories": ("m", "f")}),
        (SEX, {"unseen": "other"}),
        (AGE, {"kind": "ignore"}),
    ],
    ids=lambda part: next(iter(part)) if isinstance(part, dict) else part.name,
)
def test_the_seal_covers_every_fact_and_no_remark(column, change):
    assert replace(column, **change).seal != column.seal
    assert replace(column, note="checked", confirmed_by="Ada").seal == column.seal


def test_a_flag_becomes_labels_where_it_is_the_target():
    flag = Column("dead", "number", (0, 1), zero=0, source="data")
    target = replace(SCHEMA, columns=(AGE, flag)).with_target("dead").target
    assert target == Column("dead", "category", None, ("0", "1"), source="data")
    share = Column("share", "number", (0, 1))
    assert replace(SCHEMA, columns=(AGE, share)).with_target("share").target == share


def test_confirming_a_column_that_is_not_there_is_refused():
    with pytest.raises(TableError, match="no column 'weight'"):
        SCHEMA.confirm(["weight"])


def test_the_row_norm_is_that_of_numbers_spread_evenly():
    assert SCHEMA.row_norm == sqrt(1 / 3 + 1)
    assert replace(SCHEMA, given_norm=5).row_norm == 5.0


def test_another_column_can_be_the_target():
    schema = SCHEMA.with_target("sex")
    assert schema.target == SEX
    assert schema.column("ill").kind == "ignore"
    assert schema.feature_names == ["age"]
    assert SCHEMA.with_target("ill") is SCHEMA
    with pytest.raises(TableError, match="'patient_id' is ignored"):
        SCHEMA.with_target("patient_id")


@pytest.mark.parametrize(
    ("categories", "expected"),
    [
        (("no", "yes"), ["no", "yes"]),
        (("True", "FALSE"), [True, False]),
        (("1", "2.0", "-3"), [1, 2, -3]),
        (("0.5", "1"), [0.5, 1.0]),
        (("007", "1"), ["007", "1"]),
        (("1.5", "1.50"), ["1.5", "1.50"]),
        (("9" * 30, "1"), [1e30, 1.0]),
    ],
)
def test_labels_have_the_type_that_all_categories_share(categories, expected):
    found = labels(categories)
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


@pytest.mark.parametrize("text", ["=1", "+a", "-", "@b", "\tx", "\r", "-1+1", "+1_0"])
def test_formulas_are_told(text):
    assert runs_as_formula(text)


@pytest.mark.parametrize("text", ["-1", "+1.5e-3", "-.5", "a=1", "", "50-60"])
def test_numbers_and_other_texts_are_no_formulas(text):
    assert not runs_as_formula(text)
