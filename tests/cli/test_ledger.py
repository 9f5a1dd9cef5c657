"""``tacit ledger``: what it prints, what it refuses, and its exit codes."""

import json
import sqlite3

import numpy as np
import pytest

from tacit.linear_model import LinearRegression
from tacit.persistence import SavedModel, digest, write
from tacit.privacy import Budget, Ledger, PureDP


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'budget.db'}"


@pytest.fixture
def ledger(url, monkeypatch, run):  # after run, which clears the variable
    monkeypatch.setenv("TACIT_LEDGER", url)
    return Ledger.open(url, dataset="patients", budget=Budget(1.0, 1e-6))


def test_init_opens_an_account_that_show_finds(run, url):
    given = ("--ledger", url, "--dataset", "patients")
    answer = run("ledger", "init", *given, "--epsilon", "2", "--delta", "1e-6")
    assert answer.code == 0
    assert "epsilon 2, delta 1e-06, neighbors replace_one" in answer.out
    answer = run("ledger", "show", "--ledger", url, "--json")
    assert answer.code == 0
    assert answer.data["budget"]["epsilon"] == 2.0
    assert answer.data["spent"] == 0.0
    assert answer.data["head"][0] == 0


def test_another_budget_is_bad_input(run, url):
    given = ("ledger", "init", "--ledger", url, "--dataset", "x")
    given += ("--delta", 0, "--epsilon")
    assert run(*given, "2").code == 0
    answer = run(*given, "3")
    assert answer.code == 2
    assert "budget must be that of the account" in answer.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("init", "--epsilon", "1", "--delta", "0"), "--ledger and --dataset"),
        (("init", "--epsilon", "1"), "--delta"),
        (("init", "--delta", "0"), "--epsilon"),
        (("show",), "No ledger is given"),
        (("verify", "--head", "x", "--ledger", "sqlite:///x"), "SEQ:HASH"),
        (("verify", "--head", "1:3f5a", "--ledger", "sqlite:///x"), "64 digits"),
        (("show", "--ledger", "sqlite:///no/such.db"), "no ledger at"),
        (("show", "--ledger", "mysql://x"), "url must be like"),
        (("allow", "ann", "--ledger", "sqlite:///x"), "--nothing"),
    ],
)
def test_what_is_left_out_is_named(run, given, said):
    answer = run("ledger", *given)
    assert answer.code == 2
    assert said in answer.err


def test_with_two_accounts_the_data_set_must_be_named(run, ledger, url):
    Ledger.open(url, dataset="other", budget=Budget(1.0))
    answer = run("ledger", "show")
    assert answer.code == 2
    assert "other, patients" in answer.err
    assert run("ledger", "show", "--dataset", "other").code == 0


def test_history_shows_what_was_spent_after_each_record(run, ledger):
    ledger.charge(PureDP(0.25), "mean [red]age[/red]", seeded=True)
    ledger.charge(PureDP(0.25), "mean \x1b[2Jincome")
    ledger.void(2, "never ran")
    answer = run("ledger", "history", "--json")
    assert [r["spent_after"] for r in answer.data["records"]] == pytest.approx(
        [0, 0.25, 0.5, 0.25], rel=1e-4
    )
    text = run("ledger", "history").out
    for word in (
        "mean [red]age[/red]",
        "FIXED SEED",
        r"\x1b[2J",
        "never ran (of 2)",
        "spent",
    ):
        assert word in text
    assert "\x1b" not in text
    last = run("ledger", "history", "--last", "1", "--json").data["records"]
    assert [record["kind"] for record in last] == ["void"]


def test_reservations_are_shown_and_cancelled(run, ledger):
    ledger.reserve(PureDP(0.5), "left standing")
    assert "left standing by" in run("ledger", "show").out
    answer = run("ledger", "cancel", "1", "--reason", "the machine is gone", "--json")
    assert answer.code == 0
    assert answer.data["refers_to"] == 1
    assert answer.data["about"]["epsilon"] == pytest.approx(0.5)
    assert answer.data["spent"] == 0
    assert ledger.spent() == 0
    answer = run("ledger", "cancel", "1")
    assert answer.code == 2
    assert "must be an open reservation" in answer.err


def test_a_charge_is_voided_with_a_reason(run, ledger):
    ledger.charge(PureDP(0.5), "query")
    assert run("ledger", "void", "1").code == 2
    answer = run("ledger", "void", "1", "--reason", "never ran")
    assert answer.code == 0
    assert "charge 1 of epsilon 0.5 for 'query' no longer counts" in answer.out
    assert "epsilon 0 of 1 is spent" in answer.out
    assert "voided charges released nothing" in run("ledger", "show").out


def test_allowances_are_set_and_shown(run, ledger):
    Ledger.open(ledger.url, dataset="patients", analyst="ann").charge(
        PureDP(0.25), "query"
    )
    answer = run("ledger", "allow", "ann", "--epsilon", "0.5")
    assert answer.code == 0
    # the delta of the account: with none at all, no default fit could be paid for
    assert "ann may spend epsilon 0.5, delta 1e-06 in total" in answer.out
    assert "has spent epsilon 0.25 so far" in answer.out
    answer = run("ledger", "allow", "*", "--nothing", "--json")
    assert answer.code == 0
    assert answer.data["spent"] == pytest.approx(0.25, rel=1e-4)
    text = run("ledger", "show").out
    assert "ann: epsilon 0.5, delta 1e-06" in text
    assert "ann: epsilon 0.25" in text
    assert "*: nothing" in text
    data = run("ledger", "show", "--json").data
    assert data["allowances"]["*"] is None
    assert data["spent_by_analyst"]["ann"] == pytest.approx(0.25, rel=1e-4)


def test_a_charge_that_a_note_refers_to_is_voided_only_on_demand(run, ledger):
    ledger.charge(PureDP(0.5), "query")
    ledger.note("a model", refers_to=1)
    given = ("ledger", "void", "1", "--reason", "a mistake")
    assert run(*given).code == 2
    assert ledger.spent() > 0
    assert run(*given, "--even-if-released").code == 0
    assert ledger.spent() == 0


def test_history_in_a_pipe_fits_a_screen_and_keeps_digests_short(run, ledger):
    digest = "0123456789ab" + 52 * "c"
    ledger.charge(PureDP(0.25), "risk")
    ledger.note(f"risk: model.json has sha256 {digest}")
    text = run("ledger", "history").out
    assert "sha256 0123456789ab\n" in text
    assert max(map(len, text.splitlines())) <= 100
    assert digest in run("ledger", "history", "--json").out


def test_an_export_replaces_no_file_unasked(run, ledger, tmp_path):
    path = tmp_path / "ledger.jsonl"
    path.write_text("mine")
    answer = run("ledger", "export", "--out", path)
    assert answer.code == 2
    assert "already exists" in answer.err
    assert path.read_text() == "mine"
    assert run("ledger", "export", "--out", path, "--force").code == 0
    assert run("ledger", "verify", "--export", path).code == 0


@pytest.mark.parametrize("ending", ["", "-journal", "-wal", "-shm"])
def test_an_export_never_replaces_the_ledger(run, ledger, tmp_path, ending):
    own = tmp_path / f"budget.db{ending}"
    link = tmp_path / "link.jsonl"
    link.symlink_to(own)
    for path in (own, link):
        answer = run("ledger", "export", "--out", path, "--force")
        assert answer.code == 2
        assert "the ledger itself" in answer.err
    assert run("ledger", "verify").code == 0


def test_an_export_that_fails_leaves_what_was_there(run, ledger, tmp_path, monkeypatch):
    path = tmp_path / "ledger.jsonl"
    path.write_text("mine")

    def full(self, target, **_):
        target.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tacit.privacy._store.Export.write", full)
    assert run("ledger", "export", "--out", path, "--force").code == 2
    assert path.read_text() == "mine"
    assert not list(tmp_path.glob(".tacit-*"))


def model_folder(folder, dataset, head):
    """Write a small model whose facts name this account."""
    model = LinearRegression(1.0, 1e-6, y_range=(0, 1), random_state=0, x_norm=1.0)
    model.fit(np.zeros((20, 2)), np.zeros(20))
    account = {"dataset": dataset, "head": list(head)}
    return write(folder, SavedModel(model, model.privacy_, None, {"ledger": account}))


def test_models_are_witnesses_of_the_ledger(run, ledger, tmp_path):
    ledger.charge(PureDP(0.5), "query")
    first = model_folder(tmp_path / "first", "patients", ledger.head)
    answer = run("ledger", "verify", "--model", first)
    assert answer.code == 4
    assert "no note contains the model in" in answer.out
    ledger.note(f"query: model.json has sha256 {digest(first)}")
    second = model_folder(tmp_path / "second", "patients", ledger.head)
    ledger.note(f"again: model.json has sha256 {digest(second)}")
    answer = run("ledger", "verify", "--model", first, "--model", second)
    assert answer.code == 0, answer.out
    # a ledger that was written anew does not have the hash that the model carries
    forged = model_folder(tmp_path / "forged", "patients", (1, "0" * 64))
    ledger.note(f"forged: model.json has sha256 {digest(forged)}")
    path = tmp_path / "june.jsonl"
    assert run("ledger", "export", "--out", path).code == 0
    for source in ((), ("--export", path)):
        answer = run("ledger", "verify", *source, "--model", first, "--model", forged)
        assert answer.code == 4
        assert "is not the one seen earlier" in answer.out


def test_a_model_of_another_account_is_no_alarm(run, ledger, tmp_path):
    other = model_folder(tmp_path / "other", "visits", ledger.head)
    answer = run("ledger", "verify", "--model", other)
    assert answer.code == 2
    assert "was not charged to 'patients'" in answer.err


@pytest.mark.parametrize("name", ["ledger.jsonl", "ledger.json"])
def test_an_export_is_checked_offline_against_a_head(run, ledger, tmp_path, name):
    ledger.charge(PureDP(0.5), "query")
    path = tmp_path / name
    head = run("ledger", "export", "--out", path, "--json").data["head"]
    assert head == list(ledger.head)
    witness = f"{head[0]}:{head[1]}"
    answer = run("ledger", "verify", "--export", path, "--head", witness)
    assert answer.code == 0
    assert "sound, 2 record(s)" in answer.out
    path.write_text(path.read_text().replace("query", "other"))
    answer = run("ledger", "verify", "--export", path, "--json")
    assert answer.code == 4
    assert answer.data["ok"] is False
    assert answer.data["findings"]


def test_verify_ends_with_code_4_when_something_is_wrong(run, ledger, tmp_path):
    ledger.charge(PureDP(0.5), "query")
    assert run("ledger", "verify").code == 0
    other = f"1:{'0' * 64}"
    answer = run("ledger", "verify", "--head", other)
    assert answer.code == 4
    assert "is not the one seen earlier" in answer.out
    ledger.close()
    with sqlite3.connect(tmp_path / "budget.db") as broken:
        broken.execute("DROP TRIGGER tacit_record_update")
        broken.execute("UPDATE tacit_record SET body = '{}' WHERE seq = 1")
    broken.close()
    answer = run("ledger", "verify")
    assert answer.code == 4
    assert "NOT SOUND" in answer.out
    assert "record 1 is not what its hash was made of" in answer.out
    assert run("ledger", "show").code == 4
    assert run("ledger", "history").code == 4


def test_a_text_file_is_code_4(run, tmp_path):
    (tmp_path / "notes.txt").write_text("not a ledger\n" * 100)
    answer = run("ledger", "show", "--ledger", f"sqlite:///{tmp_path}/notes.txt")
    assert answer.code == 4
    assert "no SQLite database" in answer.err


def test_refusals_are_json_where_asked(run, ledger):
    answer = run("ledger", "void", "7", "--reason", "x", "--json")
    assert answer.code == 2
    assert json.loads(answer.out)["exit_code"] == 2
