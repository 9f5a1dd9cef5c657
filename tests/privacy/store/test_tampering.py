"""What was changed behind the ledger's back is found, by it or by a witness."""

import dataclasses
import json
import sqlite3

import pytest
from tests.privacy.store.server import run_sql

from tacit.exceptions import BudgetExceeded, LedgerDamaged
from tacit.privacy import Budget, Ledger, PureDP
from tacit.privacy._store import _chain, read_export
from tacit.privacy._store._account import Account
from tacit.privacy._store._database import parsed
from tacit.privacy._store._records import Row, canonical, chained, read_body
from tacit.privacy._store._verify import examine

BUDGET = Budget(1.0, 1e-6)
GUARDS = [
    ("tacit_record", "update"),
    ("tacit_record", "delete"),
    ("tacit_record", "append"),
    ("tacit_dataset", "update"),
    ("tacit_dataset", "delete"),
]


@pytest.fixture
def filled(url):
    """A ledger with a record of each kind."""
    ledger = Ledger.open(url, dataset="patients", budget=BUDGET)
    ledger.charge(PureDP(0.1), "first", guarantee=Budget(0.2))
    ledger.charge(PureDP(0.1), "second")
    ledger.void(2, "never ran")
    with ledger.reserve(PureDP(0.1), "third") as held:
        held.charge()
    with ledger.reserve(PureDP(0.1), "fourth"):
        pass
    ledger.allow("ann", Budget(0.5))
    ledger.note("a remark", refers_to=1)
    yield ledger
    ledger.close()


def run(ledger, *statements):
    run_sql(parsed(ledger.url), *statements)


def drop_guards(ledger):
    on = " ON {}" if ledger.url.startswith("postgres") else ""
    run(
        ledger,
        *(f"DROP TRIGGER {table}_{verb}" + on.format(table) for table, verb in GUARDS),
    )


FORBIDDEN = [
    "UPDATE tacit_record SET body = '{}' WHERE seq = 1",
    "UPDATE tacit_record SET seq = 99 WHERE seq = 1",
    "DELETE FROM tacit_record WHERE seq = 1",
    "DELETE FROM tacit_record",
    "UPDATE tacit_dataset SET terms = 'x'",
    "DELETE FROM tacit_dataset",
    "INSERT INTO tacit_record VALUES ('patients', 99, 't', '{\"who\": \"postgres@\"}',"
    " 'p', 'h')",
    "INSERT INTO tacit_record SELECT dataset, 10, 't', body, hash, hash "
    "FROM tacit_record WHERE seq = 1",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_database_takes_nothing_but_the_next_record(filled, statement):
    with pytest.raises(Exception, match="append-only"):
        run(filled, statement)
    assert filled.verify().ok


@pytest.mark.parametrize("verb", ["INSERT OR REPLACE", "REPLACE"])
def test_sqlite_does_not_replace_a_record(sqlite_url, verb):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    ledger.charge(PureDP(0.1), "query")
    for table, columns in (
        ("tacit_record", "dataset, seq, token, 'other', previous, hash"),
        ("tacit_dataset", "name, owner, 'other', genesis"),
    ):
        with pytest.raises(Exception, match="append-only"):
            run(ledger, f"{verb} INTO {table} SELECT {columns} FROM {table}")
    assert ledger.verify().ok


def test_postgresql_does_not_truncate(postgres_url):
    ledger = Ledger.open(postgres_url, dataset="x", budget=BUDGET)
    with pytest.raises(Exception, match="append-only"):
        run(ledger, "TRUNCATE tacit_dataset, tacit_record")
    ledger.close()


def test_missing_guards_are_found(filled):
    drop_guards(filled)
    found = filled.verify().findings
    assert len(found) == len(GUARDS)
    assert "append-only, is missing" in found[0]
    fresh = Ledger.open(filled.url, dataset="patients")
    with pytest.raises(LedgerDamaged, match="is missing"):
        fresh.charge(PureDP(0.01), "query")
    fresh.close()


HOLLOW = {
    "sqlite": [
        ("DROP TRIGGER tacit_dataset_append",),
        (
            "DROP TRIGGER tacit_record_delete",
            "CREATE TRIGGER tacit_record_delete BEFORE DELETE ON tacit_record "
            "BEGIN SELECT 1; END",
        ),
        (
            "CREATE TRIGGER more BEFORE INSERT ON tacit_record "
            "BEGIN SELECT RAISE(IGNORE); END",
        ),
    ],
    "postgres": [
        ("DROP TRIGGER tacit_record_truncate ON tacit_record",),
        ("ALTER TABLE tacit_record DISABLE TRIGGER tacit_record_delete",),
        (
            "CREATE OR REPLACE FUNCTION tacit_append() RETURNS trigger "
            "LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp "
            "AS $$BEGIN RETURN NEW; END$$",
        ),
        ("ALTER FUNCTION tacit_append() RESET search_path",),
        (
            "CREATE TRIGGER more BEFORE INSERT ON tacit_record FOR EACH ROW "
            "EXECUTE FUNCTION tacit_refuse()",
        ),
    ],
}


@pytest.mark.parametrize(
    ("kind", "change"), [(kind, s) for kind in HOLLOW for s in HOLLOW[kind]]
)
def test_hollow_guards_are_found_and_stop_charges(request, kind, change):
    url = request.getfixturevalue(f"{kind}_url")
    ledger = Ledger.open(url, dataset="x", budget=BUDGET)
    assert ledger.verify().ok
    run(ledger, *change)
    assert any("trigger" in finding for finding in ledger.verify().findings)
    with pytest.raises(LedgerDamaged, match="the trigger"):
        ledger.charge(PureDP(0.1), "query")
    ledger.close()


def test_a_record_hidden_from_the_index_is_found(sqlite_url, tmp_path):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    ledger.charge(PureDP(0.9), "query")
    ledger.close()
    name = "sqlite_autoindex_tacit_record_1"
    with sqlite3.connect(tmp_path / "budget.db") as forger:
        # the index by place now lists what another, empty one does
        forger.execute("CREATE TABLE other (a, b, PRIMARY KEY (a, b))")
        forger.execute("PRAGMA writable_schema = ON")
        forger.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master "
            "WHERE name = 'sqlite_autoindex_other_1') WHERE name = ?",
            (name,),
        )
    forger.close()
    fresh = Ledger.open(sqlite_url, dataset="x")
    assert "SQLite finds the file damaged" in fresh.verify().findings
    assert fresh.verify().spent == pytest.approx(0.9, rel=1e-4)
    with pytest.raises((LedgerDamaged, BudgetExceeded)):
        fresh.charge(PureDP(0.9), "again")


CHANGES = [
    "UPDATE tacit_record SET body = replace(body, 'first', 'other') WHERE seq = 1",
    "UPDATE tacit_record SET hash = previous WHERE seq = 1",
    "UPDATE tacit_record SET previous = hash WHERE seq = 1",
    "UPDATE tacit_record SET token = 'other' WHERE seq = 1",
    "UPDATE tacit_record SET seq = 50 WHERE seq = 1",
    "UPDATE tacit_record SET body = 'no JSON' WHERE seq = 1",
    "DELETE FROM tacit_record WHERE seq = 1",
    "DELETE FROM tacit_record WHERE seq = 0",
    "DELETE FROM tacit_record",
    "UPDATE tacit_dataset SET terms = replace(terms, '1.0', '9.0')",
    "UPDATE tacit_dataset SET terms = 'no JSON'",
    "UPDATE tacit_dataset SET genesis = 'x'",
    "UPDATE tacit_dataset SET owner = 'mallory'",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_a_change_in_the_database_is_found(filled, statement):
    assert filled.verify().ok
    drop_guards(filled)
    run(filled, statement)
    findings = [f for f in filled.verify().findings if "is missing" not in f]
    assert findings or "record" in filled.verify().findings[-1]


def rebuilt(rows, change):
    """Change a record and make all hashes fit again, as who can write may do."""
    genesis, previous, out = rows[0].previous, rows[0].previous, []
    for row in change([json.loads(row.body) for row in rows]):
        body = canonical(row)
        new = Row(row["seq"], row["token"], body, previous, chained(previous, body))
        out.append(new)
        previous = new.hash
    return genesis, tuple(out)


FIELDS = {
    "kind": "note",
    "when": "2001-01-01T00:00:00.000000+00:00",
    "who": "mallory@host",
    "analyst": "mallory",
    "label": "other",
    "epsilon": 0.3,
    "event": {"type": "PureDP", "epsilon": 0.05},
    "promise": {"epsilon": 0.1, "delta": 0.0, "neighbors": "replace_one"},
    "seeded": True,
    "reason": "other",
    "refers_to": 0,
    "token": "other",
    "seq": 7,
}


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_of_a_record_is_in_its_hash(sqlite_url, name):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    ledger.charge(PureDP(0.1), "first", guarantee=Budget(0.2))
    export = ledger.export()
    first, second = export.rows
    body = canonical({**json.loads(second.body), name: FIELDS[name]})
    assert body != second.body
    changed = dataclasses.replace(export, rows=(first, second._replace(body=body)))
    assert any("is not what its hash" in f for f in changed.verify().findings)


def test_a_chain_written_anew_is_found_by_a_witness_alone(filled):
    """Who can write the database can rewrite the chain; a head kept elsewhere sees."""
    witness = (3, filled.history()[3].hash)
    export = filled.export()
    genesis, rows = rebuilt(
        export.rows,
        lambda bodies: [bodies[0], {**bodies[1], "label": "other"}, *bodies[2:]],
    )
    assert examine(export.terms, genesis, rows).ok
    result = examine(export.terms, genesis, rows, head=witness)
    assert result.findings == (
        "record 3 is not the one seen earlier: the ledger was truncated or rewritten",
    )


def test_a_chain_cut_short_is_found_by_a_witness_alone(filled):
    drop_guards(filled)
    witness = filled.head
    run(filled, "DELETE FROM tacit_record WHERE seq > 3")
    fresh = Ledger.open(filled.url, dataset="patients")
    sound = [f for f in fresh.verify().findings if "append-only" not in f]
    assert sound == []
    findings = fresh.verify(head=witness).findings
    assert f"record {witness[0]} is not the one seen earlier" in findings[-1]
    # and by the process that had read on
    with pytest.raises(LedgerDamaged, match=rf"record {witness[0]} is gone"):
        filled.charge(PureDP(0.1), "query")
    fresh.close()


def test_a_process_that_read_on_sees_that_its_last_record_changed(filled):
    assert filled.spent() > 0
    drop_guards(filled)
    last = filled.head[0]
    run(filled, f"UPDATE tacit_record SET hash = 'x' WHERE seq = {last}")
    with pytest.raises(LedgerDamaged, match=rf"record {last} was changed; nothing was"):
        filled.charge(PureDP(0.1), "query")


def rewrite_behind_guards(path, row, last=None):
    """Change a record, and drop those after the last, with the triggers put back."""
    with sqlite3.connect(path) as forger:
        triggers = forger.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            forger.execute(f"DROP TRIGGER {name}")
        forger.execute(
            "UPDATE tacit_record SET body = ?, previous = ?, hash = ? WHERE seq = ?",
            (row.body, row.previous, row.hash, row.seq),
        )
        if last is not None:
            forger.execute("DELETE FROM tacit_record WHERE seq > ?", (last,))
        for _, sql in triggers:
            forger.execute(sql)
    forger.close()


@pytest.mark.parametrize("previous", [None, "0" * 64])
def test_a_rewritten_record_stops_later_charges(sqlite_url, tmp_path, previous):
    """Charging reads the chain too: nobody runs `verify` before each charge."""
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    ledger.charge(PureDP(0.9), "first")
    row = ledger.export().rows[1]
    ledger.close()
    cheaper = {"event": {"type": "PureDP", "epsilon": 0.05}, "epsilon": 0.05}
    body = canonical(json.loads(row.body) | cheaper)
    if previous is None:  # the hash is that of the old text
        row = row._replace(body=body)
    else:  # the hash fits, the record before it does not
        row = Row(row.seq, row.token, body, previous, chained(previous, body))
    rewrite_behind_guards(tmp_path / "budget.db", row)
    fresh = Ledger.open(sqlite_url, dataset="x")
    with pytest.raises(LedgerDamaged, match="record 1 does not follow"):
        fresh.charge(PureDP(0.9), "second")


@pytest.mark.parametrize("change", ["gone", "changed"])
def test_a_torn_account_read_anew_still_knows_its_last_record(
    sqlite_url, tmp_path, monkeypatch, change
):
    """Reading from the beginning must not forget what was read before."""
    writer = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    for label in ("first", "second"):
        writer.charge(PureDP(0.4), label)
    reader = Ledger.open(sqlite_url, dataset="x")
    assert reader.spent() > 0.7
    row = writer.export().rows[2]
    writer.void(1, "never ran")
    recount = Account._recount

    def interrupted(self, without):
        recount(self, without)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Account, "_recount", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reader.spent()
    writer.close()
    if change == "changed":
        body = canonical(json.loads(row.body) | {"label": "other"})
        row = row._replace(body=body, hash=chained(row.previous, body))
    last = row.seq if change == "changed" else row.seq - 1
    rewrite_behind_guards(tmp_path / "budget.db", row, last)
    with pytest.raises(LedgerDamaged, match=f"record 2 (is|was) {change}"):
        reader.charge(PureDP(0.4), "third")


def test_a_new_record_that_does_not_follow_stops_all_charges(filled):
    drop_guards(filled)
    run(
        filled,
        "INSERT INTO tacit_record SELECT dataset, 50, 't', body, hash, hash "
        "FROM tacit_record WHERE seq = 1",
    )
    with pytest.raises(LedgerDamaged, match="is missing"):
        filled.charge(PureDP(0.1), "query")
    with pytest.raises(LedgerDamaged):
        filled.spent()


def forged(export, **parts):
    """Append a well-formed record that the ledger itself would not have written."""
    last = export.rows[-1]
    note = read_body(last)
    record = dataclasses.replace(note, seq=last.seq + 1, **parts)
    body = record.body("forged")
    row = Row(record.seq, "forged", body, last.hash, chained(last.hash, body))
    return (*export.rows, row)


FORGED = [
    ({"kind": "charge", "refers_to": None}, "must have an event"),
    (
        {
            "kind": "charge",
            "refers_to": None,
            "event": {"type": "PureDP", "epsilon": 0.95},
            "epsilon": 0.95,
        },
        "exceeds the budget",
    ),
    (
        {
            "kind": "charge",
            "refers_to": None,
            "event": {"type": "PureDP", "epsilon": 0.5},
            "promise": {"epsilon": 0.1, "delta": 0.0, "neighbors": "replace_one"},
            "epsilon": 0.1,
        },
        "guarantee is smaller",
    ),
    (
        {
            "kind": "charge",
            "refers_to": None,
            "event": {"type": "Magic"},
            "epsilon": 0.1,
        },
        "is not an event",
    ),
    ({"kind": "void", "refers_to": 1, "who": "mallory@host"}, "Only the owner"),
    ({"kind": "void", "refers_to": 2}, "must be a charge that counts"),
    ({"kind": "cancel", "refers_to": 1}, "must be an open reservation"),
    ({"kind": "allow", "refers_to": None, "who": "mallory@host"}, "Only the owner"),
    ({"kind": "open", "refers_to": None}, "first record and no other"),
    ({"kind": "note", "refers_to": 99}, "refers_to must be a record"),
    (
        {
            "kind": "charge",
            "refers_to": None,
            "event": {"type": "PureDP", "epsilon": 0.5},
            "epsilon": 0.1,
        },
        "states another epsilon",
    ),
    (
        {
            "kind": "charge",
            "refers_to": None,
            "event": {"type": "L2LaplaceNoise", "multiplier": 1e-100, "size": 1},
            "epsilon": 0.1,
        },
        "numbers that can be counted with",
    ),
    ({"kind": "note", "promise": {"epsilon": 1.0}}, "not what tacit writes"),
    ({"kind": "gift"}, "its kind 'gift' is not known"),
]


@pytest.mark.parametrize(("parts", "finding"), FORGED)
def test_a_record_the_ledger_would_not_have_written_is_found(
    sqlite_url, parts, finding
):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    ledger.charge(PureDP(0.2), "first")
    ledger.charge(PureDP(0.1), "second")
    ledger.void(2, "never ran")
    ledger.note("text", refers_to=1)
    export = ledger.export()
    rows = forged(export, **parts)
    result = examine(export.terms, export.genesis, rows)
    assert len(result.findings) == 1
    assert finding in result.findings[0]


def test_records_swapped_left_out_or_doubled_are_found(filled):
    export = filled.export()
    rows = list(export.rows)
    for changed in (
        [rows[0], rows[2], rows[1], *rows[3:]],
        rows[:4] + rows[5:],
        [*rows, rows[-1]],
        rows[1:],
        [],
    ):
        assert not examine(export.terms, export.genesis, changed).ok
    assert examine(export.terms, export.genesis, rows).ok


def test_a_clock_that_goes_back_is_a_note_and_stops_nothing(ledger, monkeypatch):
    times = iter(f"20{year}-01-01T00:00:00.000000+00:00" for year in (40, 20, 30))
    monkeypatch.setattr(_chain, "now", lambda: next(times))
    for _ in range(3):
        ledger.charge(PureDP(0.1), "query")
    result = ledger.verify()
    assert result.ok
    assert result.notes == ("the clock went back before record 2",)
    assert ledger.spent() == pytest.approx(0.3, rel=1e-4)


@pytest.mark.parametrize("lines", [True, False])
def test_an_export_is_checked_without_the_database(filled, tmp_path, lines):
    path = filled.export().write(tmp_path / "ledger.json", lines=lines)
    export = read_export(path)
    assert export == filled.export()
    assert export.records == filled.history()
    assert export.verify(head=filled.head).ok
    assert export.verify().to_dict()["records"] == filled.head[0] + 1
    assert export.account.budget == BUDGET
    assert not export.verify(head=(1, "other")).ok
    short = dataclasses.replace(export, rows=export.rows[:-1])
    assert short.verify().findings == ("the file does not end with the head it states",)


def test_a_record_of_a_stranger_that_cannot_be_parsed_is_a_finding(filled):
    export = filled.export()
    last = export.rows[-1]
    for body in ("[" * 200_000, '{"a":' * 100_000, "1" * 10_000):
        row = Row(last.seq + 1, "t", body, last.hash, chained(last.hash, body))
        result = dataclasses.replace(export, rows=(*export.rows, row)).verify()
        assert f"record {row.seq}: its text" in result.findings[0]


@pytest.mark.parametrize(
    ("part", "value"), [("seq", "1"), ("body", 3), ("token", "\ud800"), ("hash", None)]
)
def test_an_export_with_parts_of_other_types_is_refused(filled, tmp_path, part, value):
    path = filled.export().write(tmp_path / "ledger.json", lines=False)
    whole = json.loads(path.read_text())
    whole["records"][1][part] = value
    path.write_text(json.dumps(whole))
    with pytest.raises(ValueError, match="is not an export of a ledger"):
        read_export(path)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[" * 200_000,
        "{}",
        "[]",
        "text",
        '{"format": "tacit ledger export 1"}\n{}',
        "3",
    ],
)
def test_a_file_that_is_no_export_is_refused(tmp_path, content):
    path = tmp_path / "export"
    path.write_text(content)
    with pytest.raises(ValueError, match="is not an export of a ledger"):
        read_export(path)
