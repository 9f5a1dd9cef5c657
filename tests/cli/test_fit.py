"""From a file to a model folder: charged first, refused early, written whole."""

import json

import numpy as np
import pyarrow.csv
import pytest
from tests.cli.story import fit_arguments, ledger_of, spent
from tests.public import public

import tacit.additive
import tacit.linear_model
from tacit._discovery import classes_with
from tacit.cli._options import MODELS, models
from tacit.exceptions import LedgerUnavailable
from tacit.persistence import read


def test_a_fit_is_charged_written_and_reported(census, run):
    answer = run(*fit_arguments(census, "--label", "income", "--json"))
    assert answer.code == 0, answer.err
    data = answer.data
    assert data["ledger"]["dataset"] == "census"
    assert data["rows"] == 3000
    assert data["score"] is None
    model = read(census / "model")
    assert model.privacy.guarantee.epsilon == 1
    assert model.estimator.classes_.tolist() == ["no", "yes"]
    assert len(model.facts["features"]) == model.estimator.coef_.shape[1]
    assert (census / "model" / "report.html").stat().st_size > 10_000
    assert "income" in (census / "model" / "card.md").read_text("utf-8")
    charge, note = ledger_of(census).history()[-2:]
    assert charge.kind == "charge"
    assert "income" in charge.label
    assert data["digest"] in note.reason + note.label
    # at the ledger's delta, which is larger, the charge alone needs a little less
    assert 0.8 < spent(census) <= 1.0


def test_a_fit_for_people_prints_the_promise_and_where_things_are(census, run):
    answer = run(*fit_arguments(census))
    assert answer.code == 0, answer.err
    assert "guarantee    epsilon 1" in answer.out
    assert "report.html" in answer.out


def test_a_fit_over_budget_is_refused_and_leaves_nothing(census, run):
    assert run(*fit_arguments(census, epsilon=2.9)).code == 0
    before = ledger_of(census).head
    answer = run(*fit_arguments(census, epsilon=2, out="second"))
    assert answer.code == 3
    assert "would exceed the budget" in answer.err
    assert ledger_of(census).head == before
    assert not (census / "second").exists()
    assert sorted(path.name for path in census.iterdir() if path.is_dir()) == ["model"]


def test_accuracy_can_be_paid_for(census, run):
    answer = run(*fit_arguments(census, "--measure", 0.5, "--json"))
    assert answer.code == 0, answer.err
    score = answer.data["score"]
    assert score["measure"] == "accuracy"
    assert score["low"] <= score["value"] <= score["high"]
    assert answer.data["rows"] == 2400
    assert 1.3 < spent(census) <= 1.5


def test_parts_that_do_not_fit_together_are_refused_before_the_first(census, run):
    answer = run(*fit_arguments(census, "--measure", 1.0, epsilon=2.9))
    assert answer.code == 3
    assert spent(census) == 0
    assert not (census / "model").exists()


def test_intervals_can_be_paid_for(census, run):
    more = ("--intervals", 1.0, "--solver", "output_perturbation", "--json")
    answer = run(*fit_arguments(census, *more))
    assert answer.code == 0, answer.err
    intervals = answer.data["intervals"]
    assert np.all(np.array(intervals["low"]) < np.array(intervals["high"]))


def test_intervals_that_no_theory_gives_are_refused_before_the_charge(census, run):
    answer = run(*fit_arguments(census, "--intervals", 0.5))
    assert answer.code == 2
    assert spent(census) == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--model", "forest"), "--model"),
        (("--model", "ridge"), "predicts a number"),
        (("--set", "epsilon=3"), "use --epsilon"),
        (("--set", "depth=3"), "no parameter 'depth'"),
        (("--set", "ridge"), "NAME=VALUE"),
        (("--set", "ridge=1", "--set", "ridge=2"), "twice"),
        (("--set", "ridge=-1"), "ridge"),
        (("--solver", "magic"), "solver"),
        (("--target", "wealth"), "wealth"),
        (("--neighbors", "friends"), "neighbors"),
        (("--analyst", ""), "analyst"),
    ],
)
def test_bad_parameters_are_named_and_charge_nothing(census, run, more, words):
    answer = run(*fit_arguments(census, *more))
    assert answer.code == 2, answer.out
    assert words in answer.err
    assert answer.err.count("\n") == 1
    assert spent(census) == 0
    assert not (census / "model").exists()


def test_a_fit_needs_a_ledger_or_a_word_that_there_is_none(census, run):
    most = fit_arguments(census)
    at = most.index("--ledger")
    without = (*most[:at], *most[at + 2 :])
    answer = run(*without)
    assert answer.code == 2
    assert "--no-ledger" in answer.err
    answer = run(*without, "--no-ledger", "--json")
    assert answer.code == 0
    assert answer.data["ledger"] is None


def test_a_schema_nobody_confirmed_stops_everything(census, run):
    schema = census / "draft.toml"
    table = census / "census.csv"
    assert run("schema", "init", table, "--target", "female", "--out", schema).code == 0
    answer = run(*fit_arguments(census, "--schema", schema))
    assert answer.code == 2
    assert f"tacit schema confirm {schema} --all" in answer.err
    assert spent(census) == 0


def test_an_output_folder_that_is_there_is_left_alone(census, run):
    (census / "model").mkdir()
    (census / "model" / "thesis.txt").write_text("years of work")
    answer = run(*fit_arguments(census))
    assert answer.code == 2
    assert spent(census) == 0
    answer = run(*fit_arguments(census, "--force"))
    assert answer.code == 2  # not a model, so nothing to overwrite
    assert (census / "model" / "thesis.txt").read_text() == "years of work"
    assert spent(census) == 0


def test_a_model_can_be_overwritten(census, run):
    assert run(*fit_arguments(census)).code == 0
    first = (census / "model" / "weights.npz").read_bytes()
    assert run(*fit_arguments(census, "--force")).code == 0
    assert (census / "model" / "weights.npz").read_bytes() != first


def test_another_target_and_a_penalty(census, run):
    more = ("--target", "age", "--model", "ridge", "--set", "alpha=2", "--json")
    answer = run(*fit_arguments(census, *more))
    assert answer.code == 0, answer.err
    assert read(census / "model").estimator.alpha == 2
    ball = '{"type": "L1Ball", "radius": 5.0}'
    more = ("--set", f"penalty={ball}", "--set", "bound_norm=linf")
    answer = run(*fit_arguments(census, *more, "--solver", "frank_wolfe", out="sparse"))
    assert answer.code == 0, answer.err
    assert read(census / "sparse").estimator.penalty.radius == 5.0


def test_a_model_predicts_files_it_never_saw(census, run):
    assert run(*fit_arguments(census, epsilon=3)).code == 0
    assert run("example", census / "new.csv", "--rows", 500, "--seed", 1).code == 0
    out = census / "predictions.csv"
    model, new = census / "model", census / "new.csv"
    keep = ("--keep", "age", "--probabilities")
    answer = run("predict", model, new, "--out", out, *keep, "--json")
    assert answer.code == 0, answer.err
    assert answer.data["rows"] == 500
    found = pyarrow.csv.read_csv(out)
    assert found.column_names[:2] == ["age", "high_income"]
    truth = pyarrow.csv.read_csv(new)
    assert found["age"] == truth["age"]
    right = np.mean(found["high_income"].to_numpy() == truth["high_income"].to_numpy())
    assert right > 0.75
    total = found["high_income=no"].to_numpy() + found["high_income=yes"].to_numpy()
    np.testing.assert_allclose(total, 1.0)


def test_predictions_are_written_whole_or_not_at_all(census, run):
    assert run(*fit_arguments(census, epsilon=3)).code == 0
    bad = census / "bad.csv"
    lines = (census / "census.csv").read_text("utf-8").splitlines()
    bad.write_text("\n".join([*lines[:50], lines[50].replace(",", ",x", 1)]), "utf-8")
    before = sorted(census.iterdir())
    answer = run("predict", census / "model", bad, "--out", census / "p.csv")
    assert answer.code == 2
    assert sorted(census.iterdir()) == before


def test_a_report_is_written_again_with_the_account_as_it_is(census, run):
    assert run(*fit_arguments(census, "--label", "first")).code == 0
    assert run(*fit_arguments(census, "--label", "later", out="other")).code == 0
    report = census / "model" / "report.html"
    assert "later" not in report.read_text("utf-8")
    url = f"sqlite:///{census / 'budget.db'}"
    answer = run("report", census / "model", "--ledger", url, "--json")
    assert answer.code == 0, answer.err
    assert "later" in report.read_text("utf-8")


def test_a_plan_reads_no_row_and_charges_nothing(census, run):
    (census / "census.csv").unlink()
    url = f"sqlite:///{census / 'budget.db'}"
    arguments = ("plan", "--schema", census / "census.toml", "--epsilon", 1)
    arguments += ("--delta", 1e-7, "--rows", 3000, "--ledger", url)
    answer = run(*arguments, "--json")
    assert answer.code == 0, answer.err
    data = answer.data
    assert data["ledger"]["fits"] is True
    assert 0.8 < data["ledger"]["spent_after"] <= 1.0
    assert len(data["expected"]) == 3
    assert data["least_rows"]["rows"] >= 64
    assert spent(census) == 0
    people = run(*arguments, "--quiet")
    assert "synthetic rows" in people.out
    assert "least rows" in people.out


def test_what_is_planned_is_what_is_charged(census, run):
    schema = ("--schema", census / "census.toml", "--epsilon", 1, "--delta", 1e-7)
    plan = run("plan", *schema, "--rows", 3000, "--json").data
    data = run(*fit_arguments(census, "--json")).data
    report = json.loads((census / "model" / "privacy.json").read_text("utf-8"))
    assert report["promise"]["epsilon"] == plan["epsilon"]
    assert set(plan["assumptions"]) <= set(data["privacy"]["assumptions"])
    assert set(plan["notes"]) <= set(data["privacy"]["notes"])
    assert "another number costs accuracy only" in "".join(plan["notes"])


def test_every_estimator_has_a_name_at_the_command_line():
    kinds = [
        kind for name in models() for kind in classes_with("model_name", name, *MODELS)
    ]
    assert {kind.__name__ for kind in kinds} == (
        public(tacit.linear_model, "fit") | public(tacit.additive, "fit")
    )


def test_a_schema_without_a_target_is_named(census, run):
    schema = census / "no_target.toml"
    assert run("schema", "init", census / "census.csv", "--out", schema).code == 0
    assert run("schema", "confirm", schema, "--all").code == 0
    answer = run(*fit_arguments(census, "--schema", schema))
    assert answer.code == 2
    assert "has no target" in answer.err


@pytest.mark.parametrize("epsilon", [0, -1, "nan"])
def test_a_budget_that_is_none_is_refused_before_reading(census, run, epsilon):
    (census / "census.csv").unlink()
    answer = run(*fit_arguments(census, epsilon=epsilon))
    assert answer.code == 2
    assert "epsilon must be" in answer.err


@pytest.mark.parametrize("label", ["", "x" * 201, "two\nlines", "\udcff"])
def test_a_label_that_cannot_be_written_is_refused_before_the_charge(
    census, run, label
):
    answer = run(*fit_arguments(census, "--label", label))
    assert answer.code == 2
    assert "--label" in answer.err
    assert spent(census) == 0


def test_what_a_fit_reads_or_charges_is_not_replaced_by_its_model(census, run):
    assert run(*fit_arguments(census)).code == 0
    inside = census / "model" / "budget.db"
    inside.write_bytes((census / "budget.db").read_bytes())
    arguments = fit_arguments(census, "--force", "--ledger", f"sqlite:///{inside}")
    answer = run(*arguments)
    assert answer.code == 2
    assert "is inside --out" in answer.err
    assert inside.exists()


def test_a_ledger_that_goes_away_after_the_charge_does_not_lose_the_fit(
    census, run, monkeypatch
):
    def gone(self, *arguments, **more):
        raise LedgerUnavailable("The database is gone.")

    monkeypatch.setattr("tacit.privacy._store.StoredLedger.note", gone)
    answer = run(*fit_arguments(census, "--json"))
    assert answer.code == 0
    assert "the charge was made" in answer.data["failed"]["ledger"]
    assert read(census / "model").privacy.guarantee.epsilon == 1


def test_the_model_is_noted_beside_its_charge(census, run):
    data = run(*fit_arguments(census, "--json")).data
    charge, note = ledger_of(census).history()[-2:]
    assert note.refers_to == charge.seq == data["charge"]
    assert [release["promise"]["epsilon"] for release in data["releases"]] == [1]


def test_everything_that_was_released_is_in_the_folder(census, run):
    more = ("--solver", "amp", "--intervals", 0.7, "--measure", 0.2)
    assert run(*fit_arguments(census, *more)).code == 0
    releases = read(census / "model").facts["releases"]
    assert [part["promise"]["epsilon"] for part in releases] == [1, 0.7, 0.2]


def test_a_refused_plan_says_why(census, run):
    assert run(*fit_arguments(census, epsilon=2.9)).code == 0
    url = f"sqlite:///{census / 'budget.db'}"
    schema = ("--schema", census / "census.toml", "--epsilon", 2, "--delta", 1e-7)
    answer = run("plan", *schema, "--rows", 3000, "--ledger", url, "--json")
    assert answer.code == 0
    assert answer.data["ledger"]["fits"] is False
    assert "would exceed the budget" in answer.data["ledger"]["why_not"]


def test_fields_may_be_separated_by_anything(census, run):
    path = census / "census.csv"
    path.write_text(path.read_text("utf-8").replace(",", "|"), "utf-8")
    assert run(*fit_arguments(census)).code == 2
    assert run(*fit_arguments(census, "--delimiter", "|")).code == 0


def test_a_private_number_of_rows_is_not_told_by_a_refusal(census, run):
    # of 3,000 rows one in 5,000 is left to fit on: mostly none or one
    lines = (census / "census.csv").read_text("utf-8").splitlines(keepends=True)
    for rows in (1, 3000):
        (census / "census.csv").write_text("".join(lines[: rows + 1]), "utf-8")
        more = ("--measure", 0.1, "--set-aside", 0.9998, "--json")
        more += ("--neighbors", "add_or_remove_one", "--no-ledger")
        arguments = fit_arguments(census, *more, out=f"model{rows}")
        at = arguments.index("--ledger")
        answer = run(*arguments[:at], *arguments[at + 2 :])
        assert answer.code == 0, answer.out
        assert answer.data["failed"] == {}
        assert answer.data["rows"] is None
