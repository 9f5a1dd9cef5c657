"""What earlier versions wrote by the command line is read as it was.

``format_1`` was written by ``format_1/make.py``, with what the version of then made of
it in ``expected``: a model with a certificate and an audit, models of selected columns,
of a stream, of teachers and of items, a schema, and a ledger with all kinds of records.
`test_golden` has the models of every kind.
"""

import csv
import json
import shutil
from pathlib import Path

import pytest

from tacit.cli import main
from tacit.persistence import read, read_side
from tacit.privacy import Ledger
from tacit.tables import Schema

FOLDER = Path(__file__).parent / "format_1"
RECORDS = {"open", "charge", "reserve", "cancel", "void", "allow", "note"}
MODELS = ["income", "hours", "last", "student"]
ROUNDING = 1e-12  # of sums that another BLAS adds in another order


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A copy of what was written, in which commands run."""
    monkeypatch.chdir(shutil.copytree(FOLDER, tmp_path / "format_1"))
    for name in ("TACIT_LEDGER", "TACIT_DATASET"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tacit(work, capsys):
    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        printed = capsys.readouterr()
        assert end.value.code == 0, printed.err
        return printed.out

    return run


def expected(name):
    return json.loads((FOLDER / "expected" / name).read_text("utf-8"))


def cells(path, convert):
    with path.open(newline="", encoding="utf-8") as file:
        return [[convert(cell) for cell in row] for row in csv.reader(file)]


def number(cell):
    try:
        return float(cell)
    except ValueError:
        return cell


def near(cell):
    """Return what equals a cell: its number but for rounding, or its word."""
    found = number(cell)
    return found if isinstance(found, str) else pytest.approx(found, rel=ROUNDING)


def assert_same_table(name):
    assert cells(Path("out.csv"), number) == cells(FOLDER / "expected" / name, near)


@pytest.mark.parametrize("name", MODELS)
def test_models_predict_as_they_did(tacit, name):
    more = () if name == "hours" else ("--probabilities",)
    tacit("predict", name, "rows.csv", "--out", "out.csv", *more)
    assert_same_table(f"{name}.csv")


def test_an_item_side_completes_a_row_as_it_did(tacit):
    tacit("recommend", "row", "side", "mine.csv", "--out", "out.csv")
    assert_same_table("side.csv")


@pytest.mark.parametrize("name", [*MODELS, "side"])
def test_privacy_reports_are_those_that_were_written(name):
    saved = read_side(FOLDER / name) if name == "side" else read(FOLDER / name)
    written = json.loads((FOLDER / name / "privacy.json").read_text("utf-8"))
    assert saved.privacy.to_dict() == written


def test_certificate_and_audit_are_on_the_pages_of_their_model(tacit):
    before = Path("income/attachments.json").read_bytes()
    tacit("report", "income", "--ledger", "sqlite:///budget.db")
    assert Path("income/attachments.json").read_bytes() == before
    attached = json.loads(before)
    page = Path("income/report.html").read_text("utf-8")
    assert attached["audits"][0]["attacked"]["sha256"][:12] in page
    for group in attached["fairness"][0]["certificate"]["groups"]:
        assert group["sensitive"] in page


@pytest.mark.parametrize("name", ["hours", "student"])
def test_pages_can_be_written_again(tacit, name):
    tacit("report", name, "--ledger", "sqlite:///budget.db")
    assert Path(name, "report.html").exists()


def test_a_ledger_has_the_records_that_it_had(tacit):
    url = ("--ledger", "sqlite:///budget.db")
    history = json.loads(tacit("ledger", "history", *url, "--json"))
    assert history == expected("history.json")
    assert {record["kind"] for record in history["records"]} == RECORDS
    models = [part for name in ("income", "hours") for part in ("--model", name)]
    verified = json.loads(tacit("ledger", "verify", *url, *models, "--json"))
    assert verified == expected("verify.json")


def test_a_ledger_takes_further_charges(work):
    ledger = Ledger.open("sqlite:///budget.db", dataset="census")
    (reserved,) = ledger.reservations()
    before = ledger.spent()
    ledger.cancel(reserved.seq)
    assert ledger.spent() < before
    ledger.note("read by a later version")
    assert ledger.verify().ok
    ledger.close()


def test_an_export_is_checked_as_it_was(tacit):
    found = json.loads(tacit("ledger", "verify", "--export", "ledger.jsonl", "--json"))
    assert found == expected("verify.json")


def test_a_schema_means_what_it_did(tacit):
    found = json.loads(tacit("schema", "check", "schema.toml", "rows.csv", "--json"))
    assert found == expected("schema.json")
    Schema.load("schema.toml").require_confirmed()
