"""Sparse models from a file to a report, by every solver they have."""

import pytest
from tests.cli.story import fit_arguments, spent

from tacit.cli._options import estimator_for
from tacit.persistence import read
from tacit.tables import Column, Schema

LOGISTIC = ("--model", "sparse-logistic", "--alpha", 0.003)


@pytest.mark.parametrize(
    "more",
    [
        ("--solver", "cd"),
        ("--solver", "gcd"),
        ("--solver", "frank_wolfe", "--set", "l1_radius=5"),
    ],
    ids=lambda more: more[1],
)
def test_a_sparse_model_is_fitted_reported_and_predicts(census, run, more):
    answer = run(*fit_arguments(census, *LOGISTIC, *more, "--json"))
    assert answer.code == 0, answer.err
    model = read(census / "model").estimator
    names = [answer.data["features"][j] for j in model.selected_features_]
    assert answer.data["selected"] == names
    assert len(names) > 0
    told = f"{len(names)} of {len(answer.data['features'])} columns"
    for page in ("report.html", "card.md", "card.html"):
        text = (census / "model" / page).read_text("utf-8")
        assert told in text
        assert "is itself noisy" in text
    out = census / "out.csv"
    table = census / "census.csv"
    wanted = ("--out", out, "--probabilities")
    answer = run("predict", census / "model", table, *wanted)
    assert answer.code == 0, answer.err
    assert len(out.read_text().splitlines()) == 3001
    # and the report can be written again
    page = census / "model" / "report.html"
    before = page.read_text("utf-8").count("Selected columns")
    assert run("report", census / "model").code == 0
    assert page.read_text("utf-8").count("Selected columns") == before == 1


@pytest.mark.parametrize("model", ["lasso", "elastic-net"])
def test_a_sparse_regression_takes_its_bounds_from_the_schema(census, run, model):
    target = ("--target", "hours_per_week", "--model", model, "--alpha", 0.5)
    answer = run(*fit_arguments(census, *target))
    assert answer.code == 0, answer.err
    assert "selected     " in answer.out
    fitted = read(census / "model").estimator
    schema = Schema.load(census / "census.toml").with_target("hours_per_week")
    # flags and indicators from 0 to 1, numbers from -1 to 1
    assert fitted.feature_bounds.tolist() == list(map(list, schema.feature_ranges))
    assert {(0.0, 1.0), (-1.0, 1.0)} == set(schema.feature_ranges)
    assert list(fitted.bounds_.low) == [low for low, _ in schema.feature_ranges]
    assert fitted.bounds_.centered
    assert fitted.y_range == (0.0, 80.0)
    assert fitted.alpha == 0.5


@pytest.mark.parametrize("name", ["lasso", "elastic-net", "sparse-logistic"])
def test_flags_and_indicators_are_ranges_from_zero_to_one(name):
    columns = (
        Column("smokes", "number", range=(0, 1), zero=0),
        Column("age", "number", range=(18, 98)),
        Column("sex", "category", categories=("f", "m")),
    )
    target = Column("ill", "category", categories=("0", "1"))
    if name != "sparse-logistic":
        target = Column("visits", "number", range=(0, 20))
    schema = Schema(columns, target)
    model = estimator_for(schema, model_name=name, settings={}, epsilon=1.0)
    assert model.feature_bounds.tolist() == [[0, 1], [-1, 1], [0, 1], [0, 1]]


def test_a_score_can_be_paid_for(census, run):
    answer = run(*fit_arguments(census, *LOGISTIC, "--measure", 0.5, "--json"))
    assert answer.code == 0, answer.err
    assert answer.data["score"]["value"] > 0.5


def test_a_plan_names_the_solver_and_the_scores_to_expect(census, run):
    schema = ("--schema", census / "census.toml", "--rows", 3000)
    answer = run("plan", *schema, "--epsilon", 1, *LOGISTIC, "--json", "--quiet")
    assert answer.code == 0, answer.err
    assert answer.data["estimator"] == "SparseLogisticRegression"
    assert answer.data["solver"].endswith("CoordinateDescent")
    told = "features are clipped to a range each (chosen without looking at the data)"
    assert told in answer.data["assumptions"]
    assert len(answer.data["expected"]) == 3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--model", "lasso"), "predicts a number"),
        (("--alpha", -1), "alpha must be"),
        (("--alpha", 1, "--set", "alpha=1"), "give only one"),
        (("--set", "feature_bounds=2"), "ranges in the schema"),
        (("--solver", "amp"), "solver must be"),
        (("--solver", "frank_wolfe"), "l1_radius must be given"),
        (("--set", "l1_radius=3"), "l1_radius is for"),
        (("--set", "l1_ratio=2"), "l1_ratio must be"),
        (("--model", "logistic", "--alpha", 1), "no parameter 'alpha'"),
        (("--intervals", 1), "--intervals are not available for sparse models"),
        (
            ("--intervals", 1, "--solver", "frank_wolfe", "--set", "l1_radius=3"),
            "--intervals are not available for sparse models",
        ),
    ],
)
def test_what_a_sparse_model_cannot_do_is_refused_first(census, run, more, words):
    chosen = more if "--model" in more else ("--model", "sparse-logistic", *more)
    answer = run(*fit_arguments(census, *chosen))
    assert answer.code == 2, answer.out
    assert words in answer.err
    assert spent(census) == 0
    assert not (census / "model").exists()


def test_a_sparse_model_can_be_audited(run):
    few = ("--epsilon", 2, "--runs", 80, "--rows", 4, "--jobs", 1, "--quiet")
    answer = run("audit", "tacit.linear_model:Lasso", *few, "--seed", 0)
    assert answer.code == 0, answer.err
    assert "Not refuted: Lasso" in answer.out
