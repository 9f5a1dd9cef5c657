"""Sparse models from a file to a report, by every solver they have."""

import pytest
from tests.cli.story import fit_arguments, spent

from tacit.saved import read

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
    assert fitted.feature_bounds == 1.0
    assert fitted.y_range == (0.0, 80.0)
    assert fitted.alpha == 0.5


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
    assert len(answer.data["expected"]) == 3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--model", "lasso"), "predicts a number"),
        (("--alpha", -1), "alpha must be"),
        (("--alpha", 1, "--set", "alpha=1"), "give one of them"),
        (("--set", "feature_bounds=2"), "ranges in the schema"),
        (("--solver", "amp"), "solver must be"),
        (("--solver", "frank_wolfe"), "l1_radius must be given"),
        (("--set", "l1_radius=3"), "l1_radius is for"),
        (("--set", "l1_ratio=2"), "l1_ratio must be"),
        (("--model", "logistic", "--alpha", 1), "no parameter 'alpha'"),
        (("--intervals", 1), "Intervals take no penalty"),
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
