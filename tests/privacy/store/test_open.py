"""Opening: the first fixes the terms, the later ones find them."""

import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tacit.exceptions import LedgerDamaged, LedgerUnavailable
from tacit.privacy import Budget, Ledger, Neighbors, PureDP, Shares
from tacit.privacy._store import _schema, datasets
from tacit.privacy._store._database import Database, parsed

BUDGET = Budget(1.0, 1e-6)


def test_the_first_opens_the_account_and_the_later_ones_find_it(url):
    first = Ledger.open(url, dataset="patients", budget=BUDGET)
    first.charge(PureDP(0.25), "mean age")
    again = Ledger.open(url, dataset="patients")
    assert again.budget == BUDGET
    assert again.spent() == first.spent() == pytest.approx(0.25, rel=1e-4)
    assert again.head == first.head
    assert [record.kind for record in again.history()] == ["open", "charge"]
    assert again.history()[1].label == "mean age"
    assert datasets(url) == ("patients",)


def test_data_sets_in_one_database_have_accounts_of_their_own(url):
    one = Ledger.open(url, dataset="one", budget=BUDGET)
    two = Ledger.open(url, dataset="two", budget=Budget(2.0))
    one.charge(PureDP(0.5), "query")
    assert two.spent() == 0
    assert two.head[0] == 0
    assert datasets(url) == ("one", "two")


@pytest.mark.parametrize(
    "other",
    [
        Budget(2.0, 1e-6),
        Budget(1.0, 1e-5),
        Budget(1.0, 1e-6, Neighbors.ADD_OR_REMOVE_ONE),
    ],
)
def test_another_budget_is_refused_and_the_sentence_states_the_one_kept(ledger, other):
    with pytest.raises(ValueError, match=r"budget must be that .* epsilon=1, delta"):
        Ledger.open(ledger.url, dataset="patients", budget=other)
    assert Ledger.open(ledger.url, dataset="patients", budget=BUDGET).budget == BUDGET


def test_other_shares_are_refused(ledger):
    with pytest.raises(ValueError, match="shares must be those"):
        Ledger.open(ledger.url, dataset="patients", shares=Shares(1, 0, 0, 0))


def test_shares_are_kept(url):
    shares = Shares(basic=1, gaussian=0, renyi=0, slack=0)
    Ledger.open(url, dataset="basic", budget=BUDGET, shares=shares)
    assert Ledger.open(url, dataset="basic", shares=shares).terms.shares == shares


def test_an_unknown_data_set_without_a_budget_is_refused(ledger):
    with pytest.raises(ValueError, match="no ledger of 'patient' at"):
        Ledger.open(ledger.url, dataset="patient")


def test_a_missing_file_is_not_made_by_looking_for_it(sqlite_url, tmp_path):
    with pytest.raises(ValueError, match="no ledger of 'x'"):
        Ledger.open(sqlite_url, dataset="x")
    with pytest.raises(ValueError, match="There is no ledger at"):
        datasets(sqlite_url)
    assert list(tmp_path.iterdir()) == []


def test_many_that_open_at_once_find_the_same_account(url):
    def opened(_):
        ledger = Ledger.open(url, dataset="patients", budget=BUDGET)
        ledger.charge(PureDP(0.01), "query")
        try:
            return ledger.terms.genesis
        finally:
            ledger.close()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(opened, range(4)))) == 1
    found = Ledger.open(url, dataset="patients")
    assert found.head[0] == 4
    assert found.verify().ok


@pytest.mark.parametrize(
    "url",
    [
        "budget.db",
        "mysql://host/db",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///x.db?mode=ro",
        "postgresql//host/db",
        "",
    ],
)
def test_a_bad_url_is_refused_with_an_example(url):
    with pytest.raises(ValueError, match=r"url must be like 'sqlite:///budget\.db'"):
        Ledger.open(url, dataset="x", budget=BUDGET)


def test_bad_names_and_types_are_refused(sqlite_url):
    for name in ("", "  ", "a\nb", "x" * 201):
        with pytest.raises(ValueError, match="dataset must"):
            Ledger.open(sqlite_url, dataset=name, budget=BUDGET)
    with pytest.raises(TypeError, match="dataset must be a str"):
        Ledger.open(sqlite_url, dataset=3, budget=BUDGET)
    with pytest.raises(TypeError, match="budget must be a Budget"):
        Ledger.open(sqlite_url, dataset="x", budget=1.0)
    with pytest.raises(TypeError, match="shares must be Shares"):
        Ledger.open(sqlite_url, dataset="x", budget=BUDGET, shares=(1, 0, 0, 0))
    with pytest.raises(TypeError, match="url must be like"):
        Ledger.open(3, dataset="x", budget=BUDGET)
    with pytest.raises(ValueError, match="analyst must not be empty"):
        Ledger.open(sqlite_url, dataset="x", budget=BUDGET, analyst="")


@pytest.mark.parametrize("name", ["cafe\u0301", " census", "census ", "\u2007x"])
def test_names_that_print_like_others_are_refused(sqlite_url, name):
    with pytest.raises(ValueError, match="dataset must"):
        Ledger.open(sqlite_url, dataset=name, budget=BUDGET)
    with pytest.raises(ValueError, match="analyst must"):
        Ledger.open(sqlite_url, dataset="x", budget=BUDGET, analyst=name)


@pytest.mark.parametrize("name", ["PATIENTS", "patient\uff53"])
def test_a_new_account_is_not_named_like_another(ledger, name):
    with pytest.raises(ValueError, match="must differ from 'patients' by more than"):
        Ledger.open(ledger.url, dataset=name, budget=BUDGET)
    assert datasets(ledger.url) == ("patients",)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3@cret@h/db",
        "postgresql://u:s3@cret/x@h/db",
        "postgresql:///?dbname=postgresql%3A%2F%2Fu%3As3cret%40h%2Fdb",
        "postgresql:///postgresql%3A%2F%2Fu%3As3cret%40h%2Fdb",
        "postgresql://h/db?options=-csynchronous_commit%3Doff",
        "postgresql://h/db?passwd=s3cret",
    ],
)
def test_a_url_that_hides_things_is_refused_without_being_quoted(url):
    with pytest.raises(ValueError, match="url must be like") as caught:
        Ledger.open(url, dataset="x", budget=BUDGET)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cret@127.0.0.1:1/db",
        "postgresql://ann@127.0.0.1:1/db?password=s3cret",
        "postgresql://ann:s3cret@/db?host=/no/such/folder",
    ],
)
def test_a_server_that_is_not_there_is_one_sentence_without_the_password(url):
    with pytest.raises(LedgerUnavailable, match="PostgreSQL says") as caught:
        Ledger.open(url, dataset="x", budget=BUDGET)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "nothing was charged or run" in str(caught.value)


def test_no_password_is_shown_or_stored(postgres_url):
    url = postgres_url.replace(":@", ":s3cret@")
    assert "s3cret" in url
    ledger = Ledger.open(url, dataset="x", budget=BUDGET)  # the server trusts anyone
    assert "s3cret" not in repr(ledger) + ledger.url + repr(ledger.__reduce__())
    assert "***" not in ledger.url
    exported = ledger.export()
    assert "s3cret" not in exported.terms + "".join(r.body for r in exported.rows)


def test_without_psycopg_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"install tacit\[postgres\]"):
        Ledger.open("postgresql://host/db", dataset="x", budget=BUDGET)


def test_a_database_of_something_else_is_left_alone(sqlite_url, tmp_path):
    path = tmp_path / "budget.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE people (name TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="SQLite database of something else"):
        Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    assert path.read_bytes() == before


def test_a_text_file_is_no_ledger(sqlite_url, tmp_path):
    (tmp_path / "budget.db").write_text("epsilon 1, or so\n" * 100)
    with pytest.raises(LedgerDamaged, match="no SQLite database"):
        Ledger.open(sqlite_url, dataset="x", budget=BUDGET)


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path):
    url = f"sqlite:///{tmp_path}/missing/budget.db"
    with pytest.raises(LedgerUnavailable, match="check that its folder exists"):
        Ledger.open(url, dataset="x", budget=BUDGET)


def test_tables_of_a_later_version_are_refused(ledger):
    database = Database(parsed(ledger.url), create=False)
    database.write(lambda c, _: c.execute(_schema.VERSIONS.update().values(version=7)))
    database.close()
    with pytest.raises(LedgerDamaged, match=r"version 7 .* use the later tacit"):
        Ledger.open(ledger.url, dataset="patients")


def test_tables_of_an_earlier_version_grow_up_when_opened(ledger, monkeypatch):
    ledger.charge(PureDP(0.25), "query")

    def step(connection):
        connection.exec_driver_sql("ALTER TABLE tacit_dataset ADD COLUMN unit TEXT")

    monkeypatch.setattr(_schema, "STEPS", (*_schema.STEPS, step))
    again = Ledger.open(ledger.url, dataset="patients")
    assert again.spent() == pytest.approx(0.25, rel=1e-4)
    assert again.verify().ok
    database = Database(parsed(ledger.url), create=False)
    assert database.read(_schema.version_of) == 2
    database.read(lambda c: c.exec_driver_sql("SELECT unit FROM tacit_dataset"))
    database.close()
