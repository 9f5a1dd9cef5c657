"""Additive models from a file to a report, with columns as they are in the file."""

import csv

import numpy as np
import pandas as pd
import pytest
from tests.cli.story import fit_arguments, spent

from tacit._random import as_generator
from tacit.cli._options import estimator_for, models
from tacit.persistence import read
from tacit.tables import Column, Schema, TableError, cell_batches, read_cells

ADDITIVE = ("--model", "additive")
PAGES = ("report.html", "card.md", "card.html")


def test_a_classifier_is_fitted_reported_and_predicts(census, run):
    seed = ("--set", "random_state=3")
    more = (*ADDITIVE, "--interactions", 2, "--json", *seed)
    answer = run(*fit_arguments(census, *more, epsilon=3))
    assert answer.code == 0, answer.err
    assert 2 < spent(census) <= 3
    saved = read(census / "model")
    model = saved.estimator
    assert type(model).__name__ == "AdditiveClassifier"
    assert model.ranges["age"] == (0, 100)
    assert model.categories["female"] == ["no", "yes"]
    assert model.categories["household_size"] == list(range(1, 9))
    assert model.interactions == 2
    columns = [column.name for column in Schema.load(census / "census.toml").columns]
    assert answer.data["features"] == columns == list(model.feature_names_in_)
    assert answer.data["additive"]["columns"] == columns
    for page in PAGES:
        text = (census / "model" / page).read_text("utf-8")
        assert "additive model" in text or page == "report.html"
        assert all(name in text for name in columns)
        assert "oefficient" not in text
    out = census / "out.csv"
    table = census / "census.csv"
    wanted = ("--out", out, "--probabilities", "--keep", "age")
    answer = run("predict", census / "model", table, *wanted)
    assert answer.code == 0, answer.err
    found = pd.read_csv(out)
    # what the file says is what a data frame with these columns says
    frame = pd.read_csv(table, keep_default_na=False)
    assert found["high_income"].tolist() == model.predict(frame[columns]).tolist()
    assert np.allclose(
        found["high_income=yes"], model.predict_proba(frame[columns])[:, 1]
    )
    # and the report can be written again
    before = {page: (census / "model" / page).read_text("utf-8") for page in PAGES}
    assert run("report", census / "model").code == 0
    for page in PAGES:
        after = (census / "model" / page).read_text("utf-8")
        assert after.count("Shapes") == before[page].count("Shapes") > 0


def test_monotone_is_set_as_plain_json(census, run):
    settings = ("--set", "random_state=3", "--set", 'monotone={"age": -1}')
    answer = run(*fit_arguments(census, *ADDITIVE, *settings, epsilon=3))
    assert answer.code == 0, answer.err
    model = read(census / "model").estimator
    assert model.monotone == {"age": -1}
    ages = model.shape_table("age")["value"][:-1]
    assert (np.diff(ages) <= 0).all()


def test_a_regression_takes_its_ranges_from_the_schema(census, run):
    target = ("--target", "hours_per_week", *ADDITIVE)
    answer = run(*fit_arguments(census, *target))
    assert answer.code == 0, answer.err
    assert "pairs " not in answer.out
    model = read(census / "model").estimator
    assert type(model).__name__ == "AdditiveRegressor"
    assert model.y_range == (0.0, 80.0)
    assert "hours_per_week" not in model.ranges
    out = census / "out.parquet"
    answer = run("predict", census / "model", census / "census.csv", "--out", out)
    assert answer.code == 0, answer.err
    assert pd.read_parquet(out)["hours_per_week"].between(0, 80).all()


def test_pairs_that_are_found_are_printed_and_reported(tmp_path, run):
    rng = as_generator(0)
    a, b = rng.integers(2, size=(2, 4000))
    frame = pd.DataFrame({"a": a, "b": b, "noise": rng.random(4000), "y": a ^ b})
    frame.to_csv(tmp_path / "t.csv", index=False)
    flag = {"kind": "category", "categories": ("0", "1")}
    noise = Column("noise", "number", range=(0, 1))
    columns = (Column("a", **flag), Column("b", **flag), noise)
    Schema(columns, Column("y", **flag)).save(tmp_path / "t.toml")
    files = (tmp_path / "t.csv", "--schema", tmp_path / "t.toml", "--no-ledger")
    more = ("--out", tmp_path / "m", "--interactions", 1, "--measure", 1, *ADDITIVE)
    answer = run("fit", *files, "--epsilon", 8, *more, "--quiet")
    assert answer.code == 0, answer.err
    assert "pairs        a and b\n" in answer.out
    assert "measured     accuracy" in answer.out
    assert "a and b" in (tmp_path / "m" / "report.html").read_text("utf-8")
    assert "of 1 pair" in (tmp_path / "m" / "card.md").read_text("utf-8")
    model = read(tmp_path / "m").estimator
    assert model.classes_.tolist() == [0, 1]
    assert model.score(frame[["a", "b", "noise"]], frame["y"]) > 0.9


def test_a_plan_forecasts_the_score_of_an_additive_model(census, run):
    schema = ("--schema", census / "census.toml")
    size = ("--epsilon", 1, "--rows", 2000, "--json")
    answer = run("plan", *schema, *size, *ADDITIVE, "--interactions", 1)
    assert answer.code == 0, answer.err
    assert answer.data["estimator"] == "AdditiveClassifier"
    assert answer.data["solver"] == "PreconditionedGD"
    assert answer.data["columns"] == 11
    assert [each["signal"] for each in answer.data["expected"]] == [
        "weak",
        "medium",
        "strong",
    ]
    assert all(0.4 < each["low"] <= each["high"] for each in answer.data["expected"])
    words = run("plan", *schema, *size[:-1], "--quiet", *ADDITIVE)
    assert "2000 rows of 11 columns, row norm" in words.out
    target = ("--target", "age")
    answer = run("plan", *schema, *size, *ADDITIVE, *target)
    assert answer.data["estimator"] == "AdditiveRegressor"
    assert answer.data["measure"] == "R2"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--solver", "noisy_gd"), "has no --solver, got 'noisy_gd'; leave it out."),
        (("--alpha", 1), "AdditiveClassifier has no parameter 'alpha'."),
        (("--select", 2), "does not select columns"),
        (("--set", "interactions=2"), "use --interactions."),
        (("--set", "ranges=[0,1]"), "use ranges in the schema."),
        (("--set", "categories=[]"), "use categories in the schema."),
        (("--intervals", 1), "--intervals are not available for additive models"),
        (("--interactions", 99), "interactions must be a number from 0 to 55"),
        (("--interactions", -1), "--interactions"),
        (("--interactions", "age"), "or a JSON list of pairs"),
        (("--interactions", '["age"]'), "or a list of pairs of names"),
        (("--interactions", '[["age", "nothing"]]'), "different columns of X"),
    ],
)
def test_options_of_other_models_are_rejected_before_the_charge(
    more, words, census, run
):
    answer = run(*fit_arguments(census, *ADDITIVE, *more))
    assert answer.code not in (0, 1)
    assert words in answer.err
    assert spent(census) == 0
    assert not (census / "model").exists()


def test_pairs_are_given_as_json(census, run):
    pairs = ("--interactions", '[["age", "female"]]')
    answer = run(*fit_arguments(census, *ADDITIVE, *pairs, "--json"))
    assert answer.code == 0, answer.err
    assert answer.data["additive"]["pairs"] == [["age", "female"]]
    assert read(census / "model").estimator.pairs_[0].columns == ("age", "female")


def test_a_linear_model_has_no_pairs(census, run):
    answer = run(*fit_arguments(census, "--interactions", 2))
    assert answer.code == 2
    assert (
        "LogisticRegression has no --interactions, got 2; leave it out." in answer.err
    )
    assert spent(census) == 0


def test_a_classifier_and_a_regressor_share_the_name():
    assert models().count("additive") == 1
    column = (Column("a", "number", range=(0, 1)),)
    for target in (
        Column("y", "number", range=(0, 1)),
        Column("y", "category", None, ("a", "b")),
    ):
        schema = Schema(column, target)
        for name in models():
            if name == "additive":
                model = estimator_for(schema, model_name=name, settings={}, epsilon=1.0)
                assert type(model).__name__.startswith("Additive")


ROWS = [
    ["1", "x", "1", "true"],
    ["", "y", "2.0", "False"],
    ["2.5", "", "", ""],
    ["1e9", "z", "3", "true"],
]
SCHEMA = Schema(
    (
        Column("n", "number", range=(0, 3)),
        Column("text", "category", categories=("x", "y"), unseen="other"),
        Column("code", "category", categories=("1", "2", "3")),
        Column("flag", "category", categories=("true", "false")),
    ),
)


def written(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["n", "text", "code", "flag"], *rows])
    return path


def test_cells_are_read_as_they_are_and_missing_ones_stay_missing(tmp_path):
    path = written(tmp_path / "t.csv", ROWS)
    X, y = read_cells(path, SCHEMA, with_target=False)
    assert y is None
    assert X["n"].fillna(-1).tolist() == [1.0, -1.0, 2.5, 1e9]
    shown = X.astype(object).where(X.notna(), None)
    assert shown["text"].tolist() == ["x", "y", None, "other"]
    assert shown["code"].tolist() == [1, 2, None, 3]
    assert shown["flag"].tolist() == [True, False, None, True]
    assert [type(cell) for cell in shown["code"]] == [int, int, type(None), int]


def test_blocks_of_cells_are_the_cells_of_the_whole(tmp_path):
    path = written(tmp_path / "t.csv", ROWS)
    whole = read_cells(path, SCHEMA, with_target=False).X
    blocks = list(cell_batches(path, SCHEMA, 3, keep=["code"]))
    assert [len(block.X) for block in blocks] == [3, 1]
    pd.testing.assert_frame_equal(
        pd.concat([block.X for block in blocks], ignore_index=True), whole
    )
    assert blocks[1].kept.column("code").to_pylist() == ["3"]


def test_a_category_that_the_schema_rejects_is_rejected(tmp_path):
    path = written(tmp_path / "t.csv", [*ROWS, ["1", "x", "4", "true"]])
    with pytest.raises(TableError, match="'code' has values outside its categories"):
        read_cells(path, SCHEMA, with_target=False)


@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize("column", range(4))
def test_one_cell_changes_no_other(row, column, tmp_path):
    before = read_cells(written(tmp_path / "a.csv", ROWS), SCHEMA, with_target=False).X
    for cell in ("", ["7", "other", "1", "true"][column]):
        rows = [list(each) for each in ROWS]
        rows[row][column] = cell
        after = read_cells(
            written(tmp_path / "b.csv", rows), SCHEMA, with_target=False
        ).X
        for name in set(before) - {before.columns[column]}:
            pd.testing.assert_series_equal(before[name], after[name])
        others = [k for k in range(4) if k != row]
        name = before.columns[column]
        first, second = before[name].iloc[others], after[name].iloc[others]
        pd.testing.assert_series_equal(first, second)


def test_groups_are_compared_and_no_certificate_is_promised(census, run):
    assert run(*fit_arguments(census, *ADDITIVE)).code == 0
    data = (census / "model", census / "census.csv", "--sensitive", "female")
    answer = run("fairness", *data, "--json")
    assert answer.code == 0, answer.err
    assert answer.data["certificate"] is None
    assert answer.data["no_certificate"].endswith(".")
    assert answer.data["measured"] is not None


def test_a_model_of_numbers_is_audited_and_others_say_why_not(tmp_path, census, run):
    assert run(*fit_arguments(census, *ADDITIVE)).code == 0
    answer = run("audit", "--model", census / "model", "--runs", 60)
    assert answer.code == 2
    assert "estimator must have no categories" in answer.err
    rows = as_generator(0).random((200, 2))
    frame = pd.DataFrame(rows, columns=["a", "b"]).assign(y=rows[:, 0])
    frame.to_csv(tmp_path / "t.csv", index=False)
    unit = {"kind": "number", "range": (0, 1)}
    schema = Schema((Column("a", **unit), Column("b", **unit)), Column("y", **unit))
    schema.save(tmp_path / "t.toml")
    files = (tmp_path / "t.csv", "--schema", tmp_path / "t.toml", "--no-ledger")
    more = ("--epsilon", 1, "--out", tmp_path / "m", *ADDITIVE, "--quiet")
    answer = run("fit", *files, *more)
    assert answer.code == 0, answer.err
    answer = run(
        "audit", "--model", tmp_path / "m", "--runs", 60, "--json", "--seed", 0
    )
    assert answer.code == 0, answer.err
    assert not answer.data["refuted"]
    audit = tmp_path / "audit.json"
    audit.write_text(answer.out)
    answer = run("report", tmp_path / "m", "--audit", audit)
    assert answer.code == 0, answer.err
    assert "udit" in (tmp_path / "m" / "report.html").read_text("utf-8")
