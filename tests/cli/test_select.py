"""Columns selected privately before the fit, from a file to a report and back."""

import io
import json

import pytest
from rich.console import Console
from tests.cli.story import fit_arguments, spent

from tacit._random import as_generator
from tacit.cli._options import estimator_for
from tacit.cli.commands.plan import _show
from tacit.evaluation._forecast_scores import Forecast
from tacit.feature_selection import PeelingSelector
from tacit.linear_model import SparseLinearRegression
from tacit.mechanisms import NO_ANSWER
from tacit.model_selection import PrivateSearchCV
from tacit.persistence import read, save_model
from tacit.tables import Column, Schema

HOURS = ("--target", "hours_per_week")


def test_columns_are_selected_fitted_reported_and_predicted(census, run):
    answer = run(*fit_arguments(census, *HOURS, "--select", 2, "--json"))
    assert answer.code == 0, answer.err
    model = read(census / "model").estimator
    assert type(model).__name__ == "SparseLinearRegression"
    assert model.n_features_to_select == 2
    names = [answer.data["features"][j] for j in model.selection_]
    assert answer.data["selected"] == names
    assert len(names) == 2
    how = answer.data["selection"]
    assert how == {"asked": 2, "answered": True, "epsilon": model.selection_spent_}
    assert 0 < how["epsilon"] < 1
    assert spent(census) <= 1.0
    for page in ("report.html", "card.md", "card.html"):
        text = (census / "model" / page).read_text("utf-8")
        assert f"2 of {len(answer.data['features'])} columns" in text
        assert "selected privately before the fit" in text
        assert "is itself noisy" in text
    out = census / "out.csv"
    answer = run("predict", census / "model", census / "census.csv", "--out", out)
    assert answer.code == 0, answer.err
    assert len(out.read_text().splitlines()) == 3001
    page = census / "model" / "report.html"
    page.unlink()
    assert run("report", census / "model").code == 0
    assert "selected privately before the fit" in page.read_text("utf-8")


def test_the_console_names_the_columns_and_what_they_cost(census, run):
    answer = run(*fit_arguments(census, *HOURS, "--select", 2))
    assert answer.code == 0, answer.err
    told = next(x for x in answer.out.splitlines() if x.startswith("selected"))
    model = read(census / "model")
    for j in model.estimator.selection_:
        assert model.facts["features"][j] in told
    assert "the selection is private, and cost epsilon" in told


def test_as_many_columns_as_there_are_need_no_choice(census, run):
    answer = run(*fit_arguments(census, *HOURS, "--select", 500))
    assert answer.code == 0, answer.err
    model = read(census / "model")
    n = len(model.facts["features"])
    assert f"selected     all {n} columns, as no fewer were requested" in answer.out
    assert "the selection is private" not in answer.out
    for page in ("report.html", "card.md", "card.html"):
        text = (census / "model" / page).read_text("utf-8")
        assert "All columns are used: up to 500 were requested" in text
        assert "is itself noisy" not in text


def test_a_model_that_a_search_chose_is_reported_with_its_total(tmp_path, run):
    X = as_generator(0).uniform(-1, 1, (300, 4))
    model = SparseLinearRegression(
        n_features_to_select=2, feature_bounds=1.0, y_range=(-1, 1)
    )
    grid = {"fit_intercept": [True, False]}
    search = PrivateSearchCV(model, grid, 3.25, 1e-6, mean_repeats=3).fit(X, X[:, 0])
    folder = save_model(search.best_estimator_, tmp_path / "model")
    answer = run("report", folder)
    assert answer.code == 0, answer.err
    text = (folder / "report.html").read_text("utf-8")
    assert "its total of epsilon 3.25 covers the selection too" in text


def test_no_answer_is_told_in_words(census, run, monkeypatch):
    monkeypatch.setattr(PeelingSelector, "select", lambda *_: NO_ANSWER)
    answer = run(*fit_arguments(census, *HOURS, "--select", 2, "--force"))
    assert answer.code == 0, answer.err
    assert "selected     no selection was released, at a cost of epsilon" in answer.out
    assert "the model is a private mean" in answer.out
    assert read(census / "model").estimator.selection_ == NO_ANSWER
    for page in ("report.html", "card.md", "card.html"):
        text = (census / "model" / page).read_text("utf-8")
        assert "no selection was released" in text
        assert "private mean" in text
    answer = run(*fit_arguments(census, *HOURS, "--select", 2, "--force", "--json"))
    assert answer.data["selected"] == []
    assert answer.data["selection"]["answered"] is False


def test_an_answer_without_columns_is_told_in_words(census, run, monkeypatch):
    monkeypatch.setattr(PeelingSelector, "select", lambda *_: ())
    answer = run(*fit_arguments(census, *HOURS, "--select", 2))
    assert answer.code == 0, answer.err
    assert "selected     no column, at a cost of epsilon" in answer.out
    assert "the model is a private mean" in answer.out


def test_the_model_can_be_named_and_its_selector_set(census, run):
    named = ("--model", "sparse-linear", "--select", 3, "--set", "selection_share=0.3")
    peel = json.dumps(
        {
            "type": "PeelingSelector",
            "n_features_to_select": 1,
            "method": "correlation",
        }
    )
    answer = run(*fit_arguments(census, *HOURS, *named, "--set", f"selector={peel}"))
    assert answer.code == 0, answer.err
    model = read(census / "model").estimator
    assert model.selection_share == 0.3
    assert type(model.selector) is PeelingSelector
    assert model.selector.method == "correlation"
    assert len(model.selection_) == 3


def test_a_score_can_be_paid_for(census, run):
    more = (*HOURS, "--select", 2, "--measure", 0.5, "--json")
    answer = run(*fit_arguments(census, *more))
    assert answer.code == 0, answer.err
    assert answer.data["score"]["measure"] == "mean absolute error"


@pytest.fixture
def quick(monkeypatch):
    """Forecasts by synthetic rows have tests of their own, and take their time."""
    found = Forecast("R2", ())
    monkeypatch.setattr("tacit.evaluation.expected_score", lambda *_, **__: found)
    monkeypatch.setattr(
        "tacit.evaluation._forecast_scores.least_rows", lambda *_, **__: None
    )


@pytest.mark.usefixtures("quick")
def test_a_plan_answers_without_a_row(census, run):
    schema = ("--schema", census / "census.toml", *HOURS, "--rows", 3000)
    more = ("--epsilon", 1, "--select", 2, "--quiet")
    answer = run("plan", *schema, *more, "--json")
    assert answer.code == 0, answer.err
    assert answer.data["estimator"] == "SparseLinearRegression"
    assert answer.data["solver"].startswith("PeelingSelector, then ")
    assert answer.data["measure"] == "R2"
    found = answer.data["selection"]
    assert found["columns"] == 2
    assert 0 < found["share"] < 1
    assert 0 < found["epsilon"] < 1
    assert found["least_rows"] is None or found["least_rows"] > 1
    shown = io.StringIO()
    _show(Console(file=shown, width=200), answer.data)
    assert "selection    2 of " in shown.getvalue()
    assert (
        "enough to find all relevant columns with probability 0.9" in shown.getvalue()
    )
    assert "synthetic rows, with signal in 2 columns" in (shown.getvalue())


@pytest.mark.usefixtures("quick")
def test_a_plan_says_where_all_columns_are_kept(census, run):
    schema = ("--schema", census / "census.toml", *HOURS, "--rows", 3000)
    answer = run("plan", *schema, "--epsilon", 1, "--select", 1000, "--quiet")
    assert answer.code == 0, answer.err
    assert "columns are kept: no smaller number was given" in answer.out
    assert "tell something" not in answer.out


@pytest.mark.slow
def test_a_plan_for_a_selector_that_refuses_few_rows_is_made(census, run):
    schema = ("--schema", census / "census.toml", *HOURS, "--rows", 5000)
    more = ("--epsilon", 1, "--select", 5, "--set", "selector=lasso", "--quiet")
    answer = run("plan", *schema, *more)
    assert answer.code == 0, answer.err
    assert "LassoStabilitySelector, then " in answer.out


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("solver", ["auto", "ada_ssp"])
def test_a_plan_tells_the_error_that_privacy_adds_where_it_is_known(
    census, run, solver
):
    schema = ("--schema", census / "census.toml", *HOURS, "--rows", 3000)
    errors = []
    for epsilon in (1, 2):
        more = ("--epsilon", epsilon, "--solver", solver, "--quiet", "--json")
        answer = run("plan", *schema, *more)
        assert answer.code == 0, answer.err
        errors.append(answer.data["added_error"])
    assert answer.data["selection"] is None
    if solver == "auto":
        assert errors == [None, None]
        return
    assert [error["solver"] for error in errors] == ["ada_ssp"] * 2
    assert 0 < errors[1]["squared"] < errors[0]["squared"] < 80**2
    shown = io.StringIO()
    _show(Console(file=shown, width=200), answer.data)
    assert "added error  about" in shown.getvalue()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--select", 2), "LogisticRegression does not select columns"),
        ((*HOURS, "--model", "ridge", "--select", 2), "Ridge does not select columns"),
        ((*HOURS, "--model", "lasso", "--select", 2), "Lasso does not select columns"),
        (
            (*HOURS, "--model", "sparse-linear"),
            "selects columns; give their number with --select",
        ),
        ((*HOURS, "--select", 0), "'--select'"),
        ((*HOURS, "--select", 2, "--alpha", 1), "no parameter 'alpha'"),
        (
            (*HOURS, "--select", 2, "--set", "n_features_to_select=3"),
            "cannot set n_features_to_select; use --select",
        ),
        ((*HOURS, "--select", 2, "--set", "selector=best"), "selector must be"),
        ((*HOURS, "--select", 2, "--set", "selection_share=2"), "selection_share must"),
        ((*HOURS, "--select", 2, "--solver", "cd"), "solver must be"),
        (
            (*HOURS, "--select", 2, "--intervals", 1),
            "--intervals are not available for sparse models",
        ),
    ],
)
def test_what_cannot_be_selected_is_refused_first(census, run, more, words):
    answer = run(*fit_arguments(census, *more))
    assert answer.code == 2, answer.out
    assert words in answer.err
    assert spent(census) == 0
    assert not (census / "model").exists()


def test_ranges_come_from_the_schema():
    columns = (
        Column("smokes", "number", range=(0, 1), zero=0),
        Column("age", "number", range=(18, 98)),
        Column("sex", "category", categories=("f", "m")),
    )
    schema = Schema(columns, Column("visits", "number", range=(0, 20)))
    for name in ("linear", "sparse-linear"):
        model = estimator_for(
            schema, model_name=name, settings={}, epsilon=1.0, select=1
        )
        assert model.feature_bounds.tolist() == [[0, 1], [-1, 1], [0, 1], [0, 1]]
        assert model.y_range == (0.0, 20.0)
        assert model.n_features_to_select == 1


@pytest.mark.slow
def test_it_can_be_audited(run):
    few = ("--epsilon", 1, "--runs", 40, "--rows", 4, "--jobs", 1, "--quiet")
    kept = ("--set", "n_features_to_select=1")
    answer = run("audit", "tacit.linear_model:SparseLinearRegression", *few, *kept)
    assert answer.code == 0, answer.err
    assert "Not refuted: SparseLinearRegression" in answer.out
