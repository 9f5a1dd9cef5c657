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
    assert drafted.unconfirmed() == ["patient_id", "age", "sex", "ill"]
    assert drafted.column("age").range == (20, 80)
    assert drafted.column("patient_id").kind == "ignore"


def test_a_draft_is_shown_to_people_and_to_programs(table, tmp_path, run):
    path = tmp_path / "s.toml"
    answer = run("schema", "init", table, "--out", path, "--target", "ill")
    assert "20 to 80" in answer.out
    assert "not public yet" in answer.out
    answer = run("schema", "init", table, "--out", path, "--force", "--json")
    assert answer.data["path"] == str(path)
    assert answer.data["unconfirmed"] == ["patient_id", "age", "sex", "ill"]
    assert answer.data["schema"]["columns"]["age"]["range"] == [20, 80]


def test_a_schema_that_is_there_is_not_replaced(table, schema, run):
    before = schema.read_bytes()
    answer = run("schema", "init", table)
    assert answer.code == 2
    assert "already exists" in answer.err
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
    assert "still to confirm: patient_id, sex, ill" in answer.out
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
        ((), "Either COLUMNS or --all"),
        (("age", "--all"), "Either COLUMNS or --all"),
        (("age", "sex", "--range", "0", "1"), "one column"),
        (("--all", "--categories", "a,b"), "one column"),
        (("sex", "--range", "0", "1"), "needs a column of kind 'number'"),
        (("age", "--categories", "a,b"), "needs a column of kind 'category'"),
        (("age", "--range", "1", "0"), "range of column 'age'"),
        (("sex", "--categories", "=1+1"), "formula"),
        (("weight",), "no column 'weight'"),
        (("age", "sex", "--target"), "one column"),
        (("--all", "--kind", "ignore"), "one column"),
        (("sex", "--missing", "0"), "needs a column of kind 'number'"),
        (("age", "--unseen", "other"), "needs a column of kind 'category'"),
        (("age", "--missing", "few"), "--missing must be a number, or refuse"),
        (("age", "--missing", "nan"), "missing of column 'age'"),
        (("age", "--kind", "category"), "categories of column 'age' must be filled"),
        (("patient_id", "--target"), "'patient_id' is ignored"),
        (("ill", "--kind", "ignore"), "The target 'ill' must be"),
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
    assert "still to confirm: patient_id, age, sex, ill" in answer.out
    assert "agrees with the schema" in answer.out
    answer = run("schema", "check", schema, "--json")
    assert answer.data["features"] == ["age", "sex=f", "sex=m"]
    table.write_text(TABLE + "1,secret,f,no\n")
    answer = run("schema", "check", schema, table)
    assert answer.code == 2
    assert "column 'age' holds text" in answer.err
    assert "secret" not in answer.err + answer.out


def test_nothing_needs_to_be_edited_by_hand(schema, run):
    def confirm(*arguments):
        assert run("schema", "confirm", schema, *arguments).code == 0
        return Schema.load(schema)

    assert confirm("age", "--missing", 40).column("age").missing == 40
    assert confirm("age", "--missing", "refuse").column("age").missing is None
    assert confirm("sex", "--unseen", "other").column("sex").unseen == "other"
    found = confirm("patient_id", "--kind", "number", "--range", 0, 400)
    assert found.column("patient_id").range == (0, 400)
    found = confirm("age", "--kind", "category", "--categories", "20,23", "--target")
    assert found.target.categories == ("20", "23")
    assert found.column("ill").kind == "ignore"
    assert found.unconfirmed() == []


def test_who_changes_a_fact_stands_behind_it(schema, run):
    run("schema", "confirm", schema, "--all", "--by", "Ada")
    run("schema", "confirm", schema, "age", "--range", 0, 99, "--by", "Ben")
    assert Schema.load(schema).column("age").confirmed_by == "Ben"
    assert Schema.load(schema).column("sex").confirmed_by == "Ada"


def test_a_schema_without_a_target_says_how_to_set_it(table, run):
    path = table.with_suffix(".toml")
    for step in (("init", table), ("confirm", path, "--all")):
        answer = run("schema", *step)
        assert "The schema has no target" in answer.out
        assert f"tacit schema confirm {path} COLUMN --target" in answer.out
    answer = run("schema", "confirm", path, "ill", "--target")
    assert answer.code == 0
    assert "No target" not in answer.out
    assert Schema.load(path).target.categories == ("no", "yes")


def test_a_draft_shows_what_is_missing_and_what_becomes_of_it(tmp_path, run):
    path = tmp_path / "t.csv"
    rows = "".join(f"{i}.5,{'ab'[i % 2]},{'cd'[i % 2]}\n" for i in range(60))
    path.write_text(f"kg,mood,ill\n{rows},,c\n")
    answer = run("schema", "init", path, "--target", "ill")
    lines = [line.split() for line in answer.out.splitlines()]
    assert ["kg", "number", "0", "to", "60", "refuse", "data"] in lines
    assert ["mood", "category", "a,", "b", "other", "data"] in lines
    assert "kg: Some values are missing: set missing to a public number" in answer.out
    assert "mood: Some values are missing: they count as other" in answer.out


def test_a_check_names_all_columns_that_do_not_agree(table, schema, run):
    table.write_text(TABLE + "1,secret,zzz,no\n")
    answer = run("schema", "check", schema, table)
    assert answer.code == 2
    assert "column 'age' holds text" in answer.err
    assert "column 'sex' has values outside" in answer.err
    assert "secret" not in answer.err


def test_encoding_and_delimiter_can_be_given(tmp_path, run):
    path = tmp_path / "t.csv"
    path.write_bytes("é|y\n".encode("utf-16") + "1|a\n2|b\n".encode("utf-16-le") * 9)
    how = ("--encoding", "utf-16", "--delimiter", "|")
    assert run("schema", "init", path, "--target", "y", *how).code == 0
    schema = path.with_suffix(".toml")
    assert Schema.load(schema).target.categories == ("a", "b")
    assert run("schema", "check", schema, path, *how).code == 0


def test_names_do_not_steer_the_terminal(tmp_path, run):
    path = tmp_path / "t.csv"
    path.write_text("a\x1b[2Jb,y\n1,0\n2,1\n")
    answer = run("schema", "init", path, "--target", "y")
    assert answer.code == 0
    assert "\x1b" not in answer.out
    answer = run("schema", "check", path.with_suffix(".toml"), path)
    assert "still to confirm" in answer.out
    assert "\x1b" not in answer.out


def test_files_that_are_not_there_are_refused(tmp_path, run):
    for step in ("init", "check"):
        answer = run("schema", step, tmp_path / "none.csv")
        assert answer.code == 2
        assert "o such file" in answer.err
