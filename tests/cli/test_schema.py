"""``tacit schema``: drafts, checks and confirmations."""

import pytest

from tacit.tables import Schema

TABLE = "patient_id,age,sex,ill\n" + "".join(
    f"{7 * i},{20 + 3 * i % 61},{'fm'[i % 2]},{'no' if i % 3 else 'yes'}\n"
    for i in range(50)
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "patients.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def schema(table, run):
    assert run("schema", "init", table, "--target", "ill").code == 0
    return table.with_suffix(".toml")


def test_a_draft_is_written_beside_the_table(schema):
    drafted = Schema.load(schema)
    assert drafted.unconfirmed() == ["age", "sex", "ill"]
    assert drafted.column("age").range == (20, 80)
    assert drafted.column("patient_id").kind == "ignore"


def test_a_draft_is_shown_to_people_and_to_programs(table, tmp_path, run):
    path = tmp_path / "s.toml"
    answer = run("schema", "init", table, "--out", path, "--target", "ill")
    assert "20 to 80" in answer.out
    assert "not public yet" in answer.out
    answer = run("schema", "init", table, "--out", path, "--force", "--json")
    assert answer.data["path"] == str(path)
    assert answer.data["unconfirmed"] == ["age", "sex", "ill"]
    assert answer.data["schema"]["columns"]["age"]["range"] == [20, 80]


def test_a_schema_that_is_there_is_not_replaced(table, schema, run):
    before = schema.read_bytes()
    answer = run("schema", "init", table)
    assert answer.code == 2
    assert "is there already" in answer.err
    assert schema.read_bytes() == before
    assert run("schema", "init", table, "--force").code == 0
    assert Schema.load(schema).target is None


def test_names_only_leaves_the_facts_open(table, tmp_path, run):
    path = tmp_path / "s.toml"
    answer = run("schema", "init", table, "--names-only", "--out", path)
    assert answer.code == 0
    assert "to be filled in" in answer.out
    assert "range = []  # fill in" in path.read_text()
    answer = run("schema", "confirm", path, "--all")
    assert answer.code == 2
    assert "must be filled in" in answer.err


def test_confirming_makes_public_what_a_person_stands_behind(schema, run):
    answer = run("schema", "confirm", schema, "age", "--range", 0, 120, "--by", "Ada")
    assert answer.code == 0
    assert "still to confirm: sex, ill" in answer.out
    age = Schema.load(schema).column("age")
    assert (age.range, age.source, age.confirmed_by) == ((0, 120), "public", "Ada")
    answer = run("schema", "confirm", schema, "sex", "--categories", "f, m, x")
    assert Schema.load(schema).column("sex").categories == ("f", "m", "x")
    answer = run("schema", "confirm", schema, "--all", "--json")
    assert answer.data["unconfirmed"] == []
    Schema.load(schema).require_confirmed()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Name the COLUMNS"),
        (("age", "--all"), "Name the COLUMNS"),
        (("age", "sex", "--range", "0", "1"), "one column"),
        (("--all", "--categories", "a,b"), "one column"),
        (("sex", "--range", "0", "1"), "is for a column of kind 'number'"),
        (("age", "--categories", "a,b"), "is for a column of kind 'category'"),
        (("age", "--range", "1", "0"), "range of column 'age'"),
        (("sex", "--categories", "=1+1"), "formula"),
        (("weight",), "no column 'weight'"),
    ],
)
def test_wrong_confirmations_change_nothing(schema, run, arguments, words):
    before = schema.read_bytes()
    answer = run("schema", "confirm", schema, *arguments)
    assert answer.code == 2
    assert words in answer.err
    assert schema.read_bytes() == before


def test_a_table_is_checked_by_its_schema(table, schema, run):
    answer = run("schema", "check", schema, table)
    assert answer.code == 0
    assert "still to confirm: age, sex, ill" in answer.out
    assert "agrees with the schema" in answer.out
    answer = run("schema", "check", schema, "--json")
    assert answer.data["features"] == ["age", "sex=f", "sex=m"]
    table.write_text(TABLE + "1,secret,f,no\n")
    answer = run("schema", "check", schema, table)
    assert answer.code == 2
    assert "column 'age' holds text" in answer.err
    assert "secret" not in answer.err + answer.out


def test_files_that_are_not_there_are_refused(tmp_path, run):
    for step in ("init", "check"):
        answer = run("schema", step, tmp_path / "none.csv")
        assert answer.code == 2
        assert "o such file" in answer.err
