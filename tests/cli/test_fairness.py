"""``tacit fairness``: figures for those who may see rows, and a charge for others."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv
from pyarrow.parquet import write_table

from tacit import Seed
from tacit.cli import _certifying
from tacit.cli._console import Rejected
from tacit.cli.commands import fairness as command
from tacit.datasets import make_census_table
from tacit.fairness import certify_model, group_fairness
from tacit.fairness._groups import NOTIONS
from tacit.fairness._models import weight_distance
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.persistence import SavedModel, read, write
from tacit.privacy import Budget, Ledger
from tacit.tables import Column, draft, read_rows

N_ROWS = 2000


def fitted(schema, X, y, solver):
    model = LogisticRegression(
        8.0, 1e-6, x_norm=schema.row_norm, classes=["no", "yes"], solver=solver
    )
    return model.set_params(random_state=Seed(0)).fit(X, y)


@pytest.fixture(scope="module")
def position(tmp_path_factory):
    """A table whose column ``ward`` is no feature, and models fitted to it."""
    folder = tmp_path_factory.mktemp("census")
    table = dict(make_census_table(N_ROWS, 0))
    table["ward"] = np.where(np.arange(N_ROWS) % 3 == 0, "east", "west").astype(object)
    table["ward"][:20] = "north"
    table["ward"][20:23] = "moon"
    write_csv(pa.table(table), folder / "census.csv")
    schema = draft(folder / "census.csv", "high_income")
    schema = schema.with_column(Column("ward", "ignore")).confirm(by="us")
    X, y = read_rows(folder / "census.csv", schema)
    for name, solver in (("model", "output_perturbation"), ("other", "auto")):
        model = fitted(schema, X, y, solver)
        facts = {"label": "income", "rows": N_ROWS, "features": schema.feature_names}
        write(folder / name, SavedModel(model, model.privacy_, schema.to_dict(), facts))
    return folder


@pytest.fixture
def ask(position, run):
    def ask(*more, model="model", by=("female",)):
        sensitive = [part for name in by for part in ("--sensitive", name)]
        return run(
            "fairness", position / model, position / "census.csv", *sensitive, *more
        )

    return ask


@pytest.fixture
def account(tmp_path):
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    ledger = Ledger.open(url, dataset="census", budget=Budget(2.0, 1e-6))
    return ("--ledger", url), ledger


def test_figures_are_those_of_the_library_and_nothing_is_charged(ask, position):
    answer = ask("--json", "--notion", "accuracy_parity")
    assert answer.code == 0, answer.err
    saved = read(position / "model")
    model = saved.estimator
    schema = draft(position / "census.csv", "high_income")
    schema = schema.with_column(Column("ward", "ignore")).confirm(by="us")
    X, y = read_rows(position / "census.csv", schema)
    who = np.array(make_census_table(N_ROWS, 0)["female"])
    terms = {"sensitive_features": who, "notion": "accuracy_parity"}
    figures = group_fairness(y, model.predict(X), **terms)
    moved = weight_distance(model, model.plan(*X.shape))
    certificate = certify_model(model, X, y, distance=moved, **terms)
    assert answer.data["measured"] == figures.to_dict()
    assert answer.data["certificate"] == certificate.to_dict()
    assert answer.data["ledger"] is None
    assert answer.data["certificate"]["charged"] is False


def test_what_is_not_charged_is_called_private_data(ask):
    answer = ask()
    assert answer.code == 0, answer.err
    assert "high_income, groups by female" in answer.out
    assert "private data" in answer.out
    assert "not certified: that either model is fair" in answer.out


def test_a_model_that_does_not_tell_its_noise_is_measured_alone(ask):
    answer = ask(model="other")
    assert answer.code == 0, answer.err
    assert (
        "no certificate: how much noise changed this model is known only" in answer.out
    )
    assert "private data" in answer.out
    given = ask("--distance", 0.01, "--json", model="other")
    assert given.data["certificate"]["distance"] == 0.01
    assert given.data["no_certificate"] is None


def test_a_paid_certificate_is_charged_first_and_may_be_published(ask, account):
    url, ledger = account
    answer = ask("--epsilon", 0.5, *url, "--label", "groups", "--json")
    assert answer.code == 0, answer.err
    assert ledger.spent() == pytest.approx(0.5, rel=1e-4)
    assert answer.data["certificate"]["charged"] is True
    assert answer.data["certificate"]["privacy"]["promise"]["epsilon"] == 0.5
    assert answer.data["measured"] is None
    assert answer.data["ledger"]["spent"] == ledger.spent()
    assert all(group["rows"] is None for group in answer.data["certificate"]["groups"])
    assert any("groups" in record.label for record in ledger.history())


def test_the_words_of_a_paid_certificate_name_the_charge(ask, account):
    url, _ = account
    answer = ask("--epsilon", 0.5, *url)
    assert "guarantee    epsilon 0.5, delta 0" in answer.out
    assert "private data" not in answer.out
    assert "epsilon 0.5 of 2 is spent" in answer.out


def test_what_the_ledger_cannot_pay_is_refused_and_charges_nothing(
    ask, account, tmp_path
):
    url, ledger = account
    page = tmp_path / "page.html"
    answer = ask("--epsilon", 5, *url, "--html", page)
    assert answer.code == 3
    assert ledger.spent() == 0
    assert not page.exists()


def test_a_page_that_cannot_be_written_does_not_lose_what_was_paid_for(
    ask, account, tmp_path, monkeypatch
):
    def full(path, text):
        raise OSError("No space left on device")

    monkeypatch.setattr(_certifying, "write_text", full)
    url, ledger = account
    answer = ask("--epsilon", 0.5, *url, "--html", tmp_path / "page.html", "--json")
    assert answer.code == 0
    assert answer.data["failed"] == {"page": "No space left on device"}
    assert answer.data["certificate"]["charged"] is True
    assert ledger.spent() == pytest.approx(0.5, rel=1e-4)


def test_groups_are_combinations_of_several_columns(ask):
    answer = ask("--notion", "accuracy_parity", "--json", by=("female", "housing"))
    groups = [group["sensitive"] for group in answer.data["measured"]["groups"]]
    assert ["yes", "tenant"] in groups
    assert len(groups) == 6


def test_values_that_are_not_listed_are_taken_together(ask):
    few = ask("--notion", "accuracy_parity", by=("ward",))
    assert few.code == 2
    assert "at least 5 rows" in few.err
    listed = ("--groups", "ward=east,west")
    answer = ask("--notion", "accuracy_parity", *listed, "--json", by=("ward",))
    rows = {g["sensitive"]: g["rows"] for g in answer.data["measured"]["groups"]}
    assert set(rows) == {"east", "west", "other"}
    assert rows["other"] == 23


def test_groups_of_a_paid_certificate_must_be_public(ask, account):
    url, ledger = account
    paid = ("--epsilon", 0.5, *url, "--notion", "accuracy_parity", "--json")
    answer = ask(*paid, by=("ward",))
    assert answer.code == 2
    assert "not public" in json.loads(answer.out)["error"]
    assert ledger.spent() == 0
    listed = ("--groups", 'ward=["east", "west"]')
    answer = ask(*paid, *listed, by=("ward", "female"))
    assert answer.code == 0
    groups = [group["sensitive"] for group in answer.data["certificate"]["groups"]]
    assert len(groups) == 6
    assert ["other", "yes"] in groups


def test_intervals_for_the_population_are_wider(ask):
    answer = ask("--sampling", 0.005, "--json")
    for group in answer.data["certificate"]["groups"]:
        assert group["population_lower"] < group["lower"]
        assert group["population_upper"] > group["upper"]


def test_desirable_labels_are_named_by_their_texts(ask):
    chosen = ("--notion", "equal_opportunity", "--desirable", "no")
    answer = ask(*chosen, "--json")
    assert {g["label"] for g in answer.data["measured"]["groups"]} == {"no"}


@pytest.mark.parametrize("kind", ["truth", "number"])
def test_labels_and_groups_of_parquet_files_are_read_as_the_schema_says(
    kind, tmp_path, run, seed
):
    rng = np.random.Generator(np.random.PCG64(seed))
    x, who = rng.uniform(size=400), rng.integers(0, 2, 400)
    y = x + rng.uniform(size=400) > 1
    label = y if kind == "truth" else y.astype(int)
    write_table(pa.table({"x": x, "who": who, "y": label}), tmp_path / "t.parquet")
    schema = draft(tmp_path / "t.parquet", "y").confirm(by="us")
    X, labels = read_rows(tmp_path / "t.parquet", schema)
    model = LogisticRegression(50.0, 1e-6, x_norm=schema.row_norm, random_state=seed)
    model.set_params(classes=schema.target.labels, solver="output_perturbation")
    model.fit(X, labels)
    facts = {"rows": 400}
    write(tmp_path / "m", SavedModel(model, model.privacy_, schema.to_dict(), facts))
    ask = ("fairness", tmp_path / "m", tmp_path / "t.parquet", "--sensitive", "who")
    answer = run(*ask, "--json")
    assert answer.code == 0, answer.err
    expected = group_fairness(labels, model.predict(X), sensitive_features=who)
    values = [group["value"] for group in answer.data["measured"]["groups"]]
    assert values == pytest.approx(expected.values.tolist())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--epsilon", "1"), "--no-ledger"),
        (("--delta", "1e-6"), "--epsilon"),
        (("--label", "x"), "--epsilon"),
        (("--epsilon", "1", "--no-ledger", "--sampling", "0.001"), "--sampling"),
        (("--epsilon", "1", "--no-ledger", "--label", "\n"), "--label"),
        (("--sampling", "0.02"), "sampling must be less than failure"),
        (("--sensitive", "female"), "twice"),
        (("--sensitive", "high_income"), "the target that is predicted"),
        (("--sensitive", "shoe_size"), "no column 'shoe_size'"),
        (("--groups", "ward=a,b"), "not among --sensitive"),
        (("--groups", "female"), "NAME=VALUE"),
        (("--groups", "female=yes,yes"), "different values"),
        (("--groups", "female=yes,"), "different values"),
        (("--desirable", "maybe"), "--desirable must name"),
        (("--desirable", "yes"), "equal_opportunity"),
        (("--notion", "kindness"), "kindness"),
        (("--html", "nowhere/page.html"), "--html"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else given,
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(more, words, ask):
    answer = ask(*more)
    assert answer.code == 2
    assert words in answer.err
    assert "Traceback" not in answer.err


def test_empty_cells_of_a_group_that_is_not_listed_are_refused(position, tmp_path, run):
    text = (position / "census.csv").read_text()
    (tmp_path / "t.csv").write_text(text.replace('"moon"', ""))
    ask = ("fairness", position / "model", tmp_path / "t.csv", "--sensitive", "ward")
    answer = run(*ask)
    assert answer.code == 2
    assert "must not be empty" in answer.err
    assert run(*ask, "--groups", "ward=east,west,north").code == 2  # three rows left
    parity = ("--notion", "accuracy_parity", "--groups", "ward=east,west")
    assert run(*ask, *parity).code == 0


def test_a_model_of_numbers_is_refused(position, tmp_path, run):
    model = LinearRegression(5.0, 1e-6, y_range=(0, 1), random_state=0, x_norm=1.0)
    model.fit(np.eye(4), np.arange(4) / 4)
    write(tmp_path / "m", SavedModel(model, model.privacy_, None, {}))
    table = position / "census.csv"
    answer = run("fairness", tmp_path / "m", table, "--sensitive", "female")
    assert answer.code == 2
    assert "predicts categories" in answer.err


def test_a_model_without_a_schema_is_refused(position, tmp_path, run):
    saved = read(position / "model")
    write(tmp_path / "m", SavedModel(saved.estimator, saved.privacy, None, {}))
    table = position / "census.csv"
    answer = run("fairness", tmp_path / "m", table, "--sensitive", "female")
    assert answer.code == 2
    assert "has no schema" in answer.err


def test_a_page_says_whether_it_may_be_published(ask, tmp_path):
    page = tmp_path / "page.html"
    assert ask("--html", page).code == 0
    assert "PRIVATE DATA" in page.read_text("utf-8")
    assert ask("--html", page).code == 2  # it is there
    paid = ("--epsilon", 0.5, "--no-ledger", "--force")
    assert ask("--html", page, *paid).code == 0
    assert "PRIVATE DATA" not in page.read_text("utf-8")
    assert "were charged to a budget" in page.read_text("utf-8")


def test_a_page_never_replaces_what_is_read(ask, position):
    table = (position / "census.csv").read_bytes()
    answer = ask("--html", position / "census.csv", "--force")
    assert answer.code == 2
    assert (position / "census.csv").read_bytes() == table


def test_a_paid_certificate_goes_into_the_report_of_its_model(
    ask, account, position, tmp_path, run
):
    url, _ = account
    certificate = tmp_path / "certificate.json"
    certificate.write_text(ask("--epsilon", 0.5, *url, "--json").out)
    shutil.copytree(position / "model", tmp_path / "model")
    answer = run("report", tmp_path / "model", "--fairness", certificate)
    assert answer.code == 0, answer.err
    card = (tmp_path / "model" / "card.md").read_text("utf-8")
    assert "## Fairness" in card
    assert "Epsilon 8.5" in card  # the fit and the certificate together
    other = run("report", position / "other", "--fairness", certificate)
    assert other.code == 2
    assert "about another model" in other.err


def test_a_certificate_that_is_private_data_stays_out_of_reports(
    ask, position, tmp_path, run
):
    outcome = tmp_path / "outcome.json"
    outcome.write_text(ask("--json").out)
    answer = run("report", position / "model", "--fairness", outcome)
    assert answer.code == 2
    assert "private data" in answer.err
    assert not (position / "model" / "report.html").exists()
    for text in ("[]", "no", "{", '{"certificate": {}}'):
        outcome.write_text(text)
        assert run("report", position / "model", "--fairness", outcome).code == 2


def test_the_command_knows_the_notions_of_the_library():
    assert command.NOTIONS == NOTIONS


def test_groups_are_read_as_csv_files_have_them():
    texts = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    listed = pa.array(["x", "y"]).dictionary_encode()
    for column, found in (
        (pa.array([10000000001.0, 1.5, None]), ["10000000001", "1.5", ""]),
        (pa.array([10000000001, 2]), ["10000000001", "2"]),
        (pa.array([True, None]), ["true", ""]),
        (texts, ["a", ""]),
        (listed, ["x", "y"]),
    ):
        assert _certifying._texts(column, "group") == found
    for column in (pa.array([[1]]), pa.array([b"a"])):
        with pytest.raises(Rejected, match="must contain strings or numbers"):
            _certifying._texts(column, "group")
