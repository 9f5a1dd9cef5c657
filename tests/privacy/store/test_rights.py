"""Reservations, voids, allowances and notes: who may, and what counts."""

from dataclasses import replace

import psycopg
import pytest
from tests.privacy.store.server import run_sql

from tacit.exceptions import BudgetExceeded, LedgerUnavailable
from tacit.privacy import Budget, Ledger, PureDP
from tacit.privacy._store import _open, spent_after
from tacit.privacy._store._database import parsed
from tacit.privacy._store._records import chained

BUDGET = Budget(1.0, 1e-6)


def as_user(monkeypatch, name, url):
    """Open the ledger as another user of the system."""
    with monkeypatch.context() as patched:
        patched.setattr(_open, "system_user", lambda: name)
        return Ledger.open(url, dataset="x", budget=BUDGET)


@pytest.fixture
def owned(sqlite_url, monkeypatch):
    return as_user(monkeypatch, "olga", sqlite_url)


@pytest.fixture
def other(owned, monkeypatch, sqlite_url):
    return as_user(monkeypatch, "otto", sqlite_url)


def test_a_reservation_holds_its_room_until_it_is_charged(ledger):
    with ledger.reserve(PureDP(0.6), "long run") as held:
        assert ledger.spent() == pytest.approx(0.6, rel=1e-4)
        assert ledger.reservations()[0].label == "long run"
        assert ledger.report().entries[0].label == "long run (reserved)"
        with pytest.raises(BudgetExceeded, match=r"with 1 open reservation\(s\)"):
            ledger.charge(PureDP(0.6), "meanwhile")
        entry = held.charge(seeded=True)
    assert entry.label == "long run"
    assert entry.seeded
    assert ledger.reservations() == ()
    assert ledger.report().entries == (entry,)
    assert ledger.spent() == pytest.approx(0.6, rel=1e-4)
    assert [r.kind for r in ledger.history()] == ["open", "reserve", "charge"]
    assert ledger.history()[2].refers_to == 1
    assert ledger.verify().ok


def test_leaving_without_a_charge_gives_the_room_back(ledger):
    with ledger.reserve(PureDP(0.6), "nothing came of it"):
        pass
    assert ledger.spent() == 0
    cancelled = ledger.history()[-1]
    assert cancelled.reason == "left without a charge"
    ledger.charge(PureDP(0.9), "now it fits")
    assert ledger.verify().ok


def test_the_history_does_not_tell_that_a_run_failed(ledger):
    """Whether it failed may depend on the rows: the reservation stands, and counts."""
    with pytest.raises(KeyError), ledger.reserve(PureDP(0.6), "failed") as held:
        raise KeyError("a row nobody may see")
    assert [record.kind for record in ledger.history()] == ["open", "reserve"]
    assert ledger.spent() == pytest.approx(0.6, rel=1e-4)
    held.cancel()
    assert ledger.spent() == 0


def test_a_reservation_is_charged_or_cancelled_once(ledger):
    with ledger.reserve(PureDP(0.1), "run") as held:
        held.charge()
        with pytest.raises(ValueError, match="was charged or cancelled before"):
            held.charge()
        with pytest.raises(ValueError, match="was charged or cancelled before"):
            held.cancel()
    with pytest.raises(ValueError, match="charged as record 2"):
        ledger.cancel(1)
    assert ledger.head[0] == 2


def test_a_reservation_cancelled_by_the_owner_cannot_be_charged(owned, other):
    held = other.reserve(PureDP(0.6), "left standing")
    owned.cancel(held.seq, "the machine is gone")
    with pytest.raises(ValueError, match="must be an open reservation"):
        held.charge()
    assert owned.spent() == 0
    assert owned.verify().ok


def test_only_who_reserved_or_the_owner_may_cancel(owned, other, monkeypatch):
    held = owned.reserve(PureDP(0.6), "long run")
    with pytest.raises(PermissionError, match="Only 'olga', who made the reservation"):
        other.cancel(held.seq)
    third = as_user(monkeypatch, "tess", owned.url)
    mine = other.reserve(PureDP(0.1), "mine")
    with pytest.raises(PermissionError, match="or the owner 'olga'"):
        third.cancel(mine.seq)
    mine.cancel()
    held.charge()


def test_a_voided_charge_stops_counting_and_stays_in_sight(ledger):
    ledger.charge(PureDP(0.6), "failed run")
    ledger.void(1, "the disk broke before anything was written")
    assert ledger.spent() == 0
    report = ledger.report(("rows are public",))
    assert report.entries == ()
    assert report.assumptions[0] == "rows are public"
    assert "states that the voided charges released nothing" in report.assumptions[1]
    ledger.charge(PureDP(0.9), "again")
    assert [r.kind for r in ledger.history()] == ["open", "charge", "void", "charge"]
    assert ledger.verify().ok


def test_a_charge_that_was_reserved_can_be_voided(ledger):
    with ledger.reserve(PureDP(0.6), "run") as held:
        held.charge()
    with pytest.raises(ValueError, match="record 1 is a reservation, charged"):
        ledger.void(1, "that is the reservation")
    ledger.void(2, "never ran")
    assert ledger.spent() == 0
    assert ledger.verify().ok


def test_a_void_needs_a_reason_a_charge_and_the_owner(owned, other):
    owned.charge(PureDP(0.1), "query")
    with pytest.raises(ValueError, match="reason must say why"):
        owned.void(1, " ")
    for seq, why in ((0, "record 0 is not a charge"), (2, "no record 2"), (-1, "no ")):
        with pytest.raises(ValueError, match=f"must be a charge that counts, .*{why}"):
            owned.void(seq, "never ran")
    with pytest.raises(TypeError, match="given by its sequence number"):
        owned.void("1", "never ran")
    with pytest.raises(PermissionError, match="Only the owner 'olga' of 'x' may void"):
        other.void(1, "never ran")
    owned.void(1, "never ran")
    with pytest.raises(ValueError, match="record 1 is voided already"):
        owned.void(1, "twice")
    assert owned.head[0] == 2


def test_a_charge_with_a_noted_model_is_voided_only_on_purpose(ledger):
    with ledger.reserve(PureDP(0.5), "fit") as held:
        held.charge()
    ledger.note("sha256 of the model: abc", refers_to=2)
    with pytest.raises(ValueError, match="A model or another result was noted"):
        ledger.void(2, "never ran")
    ledger.void(2, "the disk of the model burned", even_if_released=True)
    assert ledger.spent() == 0
    assert ledger.verify().ok


def test_claiming_to_be_the_owner_as_an_analyst_does_not_help(owned, other):
    owned.charge(PureDP(0.1), "query")
    claims = Ledger.open(owned.url, dataset="x", analyst="olga")
    with pytest.raises(PermissionError):
        claims.void(1, "never ran")


def test_analysts_have_budgets_of_their_own(owned):
    owned.allow("ann", Budget(0.3))
    owned.allow("*", Budget(0.1))
    owned.allow("eve", None)
    ann, bob, eve = (
        Ledger.open(owned.url, dataset="x", analyst=name)
        for name in ("ann", "bob", "eve")
    )
    ann.charge(PureDP(0.3), "query")
    with pytest.raises(BudgetExceeded, match="the allowance of 'ann' of epsilon"):
        ann.charge(PureDP(0.01), "more")
    bob.charge(PureDP(0.1), "query")
    assert not bob.admits(PureDP(0.01))
    with pytest.raises(BudgetExceeded, match="'eve' is allowed nothing"):
        eve.charge(PureDP(0.01), "query")
    owned.allow("ann", Budget(5.0))
    with pytest.raises(BudgetExceeded, match="would exceed the budget of epsilon=1"):
        ann.charge(PureDP(0.7), "the data set has its own")
    ann.charge(PureDP(0.5), "query")
    assert owned.spent_by_analyst() == pytest.approx({"ann": 0.8, "bob": 0.1}, rel=1e-4)
    assert owned.allowances() == {"ann": Budget(5.0), "*": Budget(0.1), "eve": None}
    assert owned.verify().ok


def test_a_reservation_cancelled_twice_says_so(ledger):
    held = ledger.reserve(PureDP(0.5), "fit")
    ledger.cancel(held.seq)
    with pytest.raises(ValueError, match="a reservation that is cancelled already"):
        ledger.cancel(held.seq)


def test_allowances_are_set_by_the_owner_in_the_relation_of_the_data_set(owned, other):
    with pytest.raises(PermissionError, match="may allow"):
        other.allow("otto", Budget(1.0))
    with pytest.raises(ValueError, match="neighbors='replace_one'"):
        owned.allow("ann", Budget(1.0, 1e-6, "add_or_remove_one"))
    with pytest.raises(TypeError, match="Budget or None"):
        owned.allow("ann", 1.0)
    with pytest.raises(ValueError, match="analyst must not be empty"):
        owned.allow("", Budget(1.0))
    assert owned.head[0] == 0


def test_a_note_is_kept_and_costs_nothing(ledger):
    ledger.charge(PureDP(0.5), "fit")
    ledger.note("sha256 of the model: abc", refers_to=1)
    ledger.note("handed over")
    with pytest.raises(ValueError, match="refers_to must be a record"):
        ledger.note("about the future", refers_to=9)
    note = ledger.history()[2]
    assert (note.kind, note.refers_to) == ("note", 1)
    assert note.reason == "sha256 of the model: abc"
    assert spent_after(ledger.terms, ledger.history()) == pytest.approx(
        [0, 0.5, 0.5, 0.5], rel=1e-4
    )
    assert ledger.verify().ok


def analyst_of(server, owner):
    """Return a role that may read the ledger, and the ledger opened as that role."""
    schema = owner.owner
    role = server.role(f"r{schema}", schema=schema)
    run_sql(
        parsed(owner.url),
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
    )
    return role, Ledger.open(server.url_of(role), dataset="x")


def test_the_server_knows_who_writes(server):
    """PostgreSQL rejects a record under another's name, whatever the client does."""
    url = server.database()
    owner = Ledger.open(url, dataset="x", budget=BUDGET)
    owner.charge(PureDP(0.1), "query")
    role, ann = analyst_of(server, owner)
    assert ann.spent() == pytest.approx(0.1, rel=1e-4)  # reading is enough for that
    with pytest.raises(LedgerUnavailable, match="owner can grant SELECT"):
        ann.charge(PureDP(0.1), "query")
    run_sql(parsed(url), f"GRANT INSERT ON tacit_record TO {role}")
    ann.charge(PureDP(0.1), "query")
    assert owner.history()[2].who.startswith(f"{role}@")
    with pytest.raises(PermissionError):
        ann.void(1, "never ran")
    ann._user = owner.owner  # a client that lies
    with pytest.raises(Exception, match="under the name of another"):
        ann.void(1, "never ran")
    with pytest.raises(Exception, match="under the name of another"):
        ann.charge(PureDP(0.1), "query")
    assert owner.head[0] == 2
    owner.close()
    ann.close()
    run_sql(parsed(url), f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_the_server_is_not_fooled_by_tables_and_operators_of_the_writer(server):
    """What a writer's own temporary schema holds does not change who may void."""
    owner = Ledger.open(server.database(), dataset="x", budget=BUDGET)
    owner.charge(PureDP(1.0), "released")
    schema, (role, ann) = owner.owner, analyst_of(server, owner)
    run_sql(
        parsed(owner.url),
        f"GRANT INSERT ON tacit_record TO {role}",
        f"GRANT CREATE ON SCHEMA {schema} TO {role}",
    )
    last = owner.export().rows[-1]
    record = replace(owner.history()[1], kind="void", seq=2, refers_to=1, reason="no")
    body = replace(record, epsilon=None, event=None, promise=None).body("t")
    with psycopg.connect(server.url_of(role), autocommit=True) as mallory:
        mallory.execute(
            "CREATE TEMP TABLE tacit_dataset AS SELECT name, session_user::text AS "
            f"owner, terms, genesis FROM {schema}.tacit_dataset"
        )
        mallory.execute(
            f"CREATE FUNCTION {schema}.f(name, name) RETURNS text LANGUAGE sql AS "
            f"$$ SELECT '{schema}@'::text $$"
        )
        mallory.execute(
            f"CREATE OPERATOR {schema}.|| (leftarg = name, rightarg = name, "
            f"function = {schema}.f)"
        )
        row = ("x", 2, "t", body, last.hash, chained(last.hash, body))
        insert = f"INSERT INTO {schema}.tacit_record VALUES (%s, %s, %s, %s, %s, %s)"
        with pytest.raises(psycopg.Error, match="under the name of another"):
            mallory.execute(insert, row)
        with pytest.raises(psycopg.Error, match="append-only"):
            mallory.execute(insert, ("x", -5, *row[2:]))
    assert owner.verify().ok
    assert owner.head[0] == 1
    ann.close()
    owner.close()
