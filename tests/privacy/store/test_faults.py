"""Whatever breaks, no charge that was told to succeed is lost, and none is doubled."""

import os
import random
import resource
import signal
import sqlite3
import threading
import time

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from tacit.exceptions import BudgetExceeded, LedgerDamaged, LedgerUnavailable
from tacit.privacy import Budget, Ledger, PureDP
from tacit.privacy._store import _database, _transactions
from tacit.privacy._store._transactions import Attempt

BUDGET = Budget(1.0, 1e-6)
LARGE = Budget(1000.0)
POINTS = 30
BYTES = 4


def in_child(work):
    """Run ``work`` in a forked child; return its id and a pipe of its numbers."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    try:
        os.close(reader)
        work(lambda number: os.write(writer, number.to_bytes(BYTES, "big")))
        os._exit(0)
    except BaseException:
        os._exit(1)


def numbers(reader):
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    return [
        int.from_bytes(data[i : i + BYTES], "big") for i in range(0, len(data), BYTES)
    ]


def spend_together(ledger):
    """Charge tenths from four processes; return how many were told to succeed."""

    def spend(tell):
        for attempt in range(5):
            try:
                ledger.charge(PureDP(0.1), f"{attempt}")
            except BudgetExceeded:
                return
            tell(1)

    children = [in_child(spend) for _ in range(4)]
    told = sum(len(numbers(reader)) for _, reader in children)
    assert [os.waitpid(child, 0)[1] for child, _ in children] == [0] * 4
    return told


def test_processes_together_spend_the_budget_once(ledger):
    assert spend_together(ledger) == ledger.head[0] == 10
    assert ledger.verify().ok
    assert not ledger.admits(PureDP(1e-6))


def test_a_killed_process_loses_no_charge_and_leaves_at_most_one_more(url, seed):
    ledger = Ledger.open(url, dataset="x", budget=LARGE)
    moment = random.Random(seed)
    begun = time.perf_counter()
    ledger.charge(PureDP(1e-3), "timed")
    one = time.perf_counter() - begun
    told = {}
    for point in range(POINTS):

        def spend(tell, label=f"run {point}"):
            while True:
                ledger.charge(PureDP(1e-3), label)
                tell(1)

        child, reader = in_child(spend)
        os.read(reader, BYTES)  # its first charge is made
        time.sleep(moment.uniform(0, 3 * one))  # any moment: that is the test
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        told[f"run {point}"] = 1 + len(numbers(reader))
    kept = [record.label for record in ledger.history()[1:]]
    for label, count in told.items():
        assert count <= kept.count(label) <= count + 1
    assert ledger.verify().ok


def test_a_reservation_of_a_killed_process_stands_until_it_is_cancelled(ledger):
    def hold(tell):
        tell(ledger.reserve(PureDP(0.8), "long run").seq)
        signal.pause()

    child, reader = in_child(hold)
    seq = int.from_bytes(os.read(reader, BYTES), "big")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    with pytest.raises(BudgetExceeded, match="1 open reservation"):
        ledger.charge(PureDP(0.5), "query")
    ledger.cancel(seq, "the process is gone")
    ledger.charge(PureDP(0.5), "query")
    assert ledger.verify().ok


def full_by_pages(ledger):
    with ledger._chain.database._engine().connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")


def test_a_full_disk_charges_nothing_and_says_so(sqlite_url):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=LARGE)
    full_by_pages(ledger)  # SQLite then allows no page more than there are
    done = 0

    def spend():
        nonlocal done
        while done < 200:
            ledger.charge(PureDP(1e-3), "x" * 2000)
            done += 1

    with pytest.raises(LedgerUnavailable, match="full; nothing was charged or run"):
        spend()
    assert ledger.head[0] == done
    ledger.close()  # and when there is room again, it continues
    ledger.charge(PureDP(1e-3), "query")
    assert ledger.head[0] == done + 1
    assert ledger.verify().ok


def test_a_file_that_may_not_grow_loses_no_charge(sqlite_url):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=LARGE)

    def spend(tell):
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        try:
            for _ in range(300):
                ledger.charge(PureDP(1e-3), "x" * 2000)
                tell(ledger.head[0])
        except LedgerUnavailable:
            return
        raise AssertionError("the limit was not met")

    child, reader = in_child(spend)
    told = numbers(reader)
    assert os.waitpid(child, 0)[1] == 0
    assert told
    assert ledger.head[0] in (told[-1], told[-1] + 1)
    ledger.charge(PureDP(1e-3), "query")
    assert ledger.verify().ok


def test_a_locked_file_is_one_sentence(sqlite_url, monkeypatch):
    monkeypatch.setattr(_transactions, "BUSY_SECONDS", 0.05)
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnavailable, match="locked by another process"):
        ledger.charge(PureDP(0.1), "query")
    assert ledger.spent() == 0  # reading continues
    other.execute("ROLLBACK")
    other.close()
    ledger.charge(PureDP(0.1), "query")


def test_a_read_only_file_is_one_sentence(sqlite_url):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    with ledger._chain.database._engine().connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = 1")
    with pytest.raises(LedgerUnavailable, match="read-only; nothing was charged"):
        ledger.charge(PureDP(0.1), "query")
    assert ledger.spent() == 0


def test_a_file_removed_or_replaced_under_the_ledger_is_noticed(sqlite_url, tmp_path):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    ledger.charge(PureDP(0.9), "query")
    for part in tmp_path.iterdir():
        part.rename(part.with_name(f"aside-{part.name}"))
    with pytest.raises(LedgerDamaged, match="removed or replaced while it was open"):
        ledger.charge(PureDP(0.9), "query")
    Ledger.open(sqlite_url, dataset="x", budget=BUDGET)  # anew, with an open budget
    with pytest.raises(LedgerDamaged, match="changed outside of tacit"):
        ledger.charge(PureDP(0.9), "query")


def test_a_file_with_a_second_name_is_refused(sqlite_url, tmp_path):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    (tmp_path / "other.db").hardlink_to(tmp_path / "budget.db")
    with pytest.raises(LedgerUnavailable, match="another name"):
        ledger.charge(PureDP(0.9), "query")
    for name in ("budget.db", "other.db"):
        with pytest.raises(LedgerUnavailable, match="another name"):
            Ledger.open(f"sqlite:///{tmp_path / name}", dataset="x")
    (tmp_path / "other.db").unlink()
    ledger.charge(PureDP(0.9), "query")


def test_all_that_was_charged_is_in_the_file_itself(sqlite_url, tmp_path):
    """What lies beside it may be deleted, and a killed process's file moved alone."""
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)

    def spend(tell):
        ledger.charge(PureDP(0.9), "query")
        tell(1)
        os.kill(os.getpid(), signal.SIGKILL)

    child, reader = in_child(spend)
    os.waitpid(child, 0)
    assert numbers(reader) == [1]
    ledger.close()
    (tmp_path / "budget.db").rename(tmp_path / "moved.db")
    moved = Ledger.open(f"sqlite:///{tmp_path / 'moved.db'}", dataset="x")
    with pytest.raises(BudgetExceeded):
        moved.charge(PureDP(0.9), "again")
    for beside in tmp_path.glob("moved.db-*"):
        beside.unlink()
    moved.charge(PureDP(0.05), "while nothing lies beside it")
    moved.close()
    assert len(Ledger.open(moved.url, dataset="x").history()) == 3


def test_a_file_that_keeps_a_log_is_switched_over(sqlite_url, tmp_path):
    Ledger.open(sqlite_url, dataset="x", budget=BUDGET).close()
    other = sqlite3.connect(tmp_path / "budget.db")
    assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    other.close()
    ledger = Ledger.open(sqlite_url, dataset="x")
    ledger.charge(PureDP(0.5), "query")
    assert not (tmp_path / "budget.db-wal").exists()
    assert ledger.verify().ok


def test_a_damaged_file_is_one_sentence(sqlite_url, tmp_path):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=LARGE)
    for _ in range(5):
        ledger.charge(PureDP(1e-3), "x" * 3000)
    ledger.close()
    path = tmp_path / "budget.db"
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(LedgerDamaged, match=r"damaged|changed outside"):
        Ledger.open(sqlite_url, dataset="x").charge(PureDP(1e-3), "query")


LOST = OperationalError("COMMIT", {}, psycopg.OperationalError("connection lost"))


@pytest.mark.parametrize("arrived", [True, False])
def test_a_connection_lost_in_the_commit_charges_once(
    postgres_url, monkeypatch, arrived
):
    ledger = Ledger.open(postgres_url, dataset="x", budget=BUDGET)
    commit, tries = Attempt.commit, []

    def lost_once(self, connection):
        tries.append(self)
        if arrived or len(tries) > 1:
            commit(self, connection)
        if len(tries) == 1:
            raise LOST

    monkeypatch.setattr(Attempt, "commit", lost_once)
    ledger.charge(PureDP(0.5), "query")
    assert len(tries) == 2
    assert ledger.head[0] == 1
    assert ledger.spent() == pytest.approx(0.5, rel=1e-4)
    ledger.close()


def test_a_database_that_stays_away_says_that_the_charge_may_stand(
    postgres_url, monkeypatch
):
    ledger = Ledger.open(postgres_url, dataset="x", budget=BUDGET)
    commit = Attempt.commit

    def lost(self, connection):
        commit(self, connection)
        raise LOST

    monkeypatch.setattr(_database, "PATIENCE", 0.0)
    monkeypatch.setattr(Attempt, "commit", lost)
    with pytest.raises(LedgerUnavailable, match="may stand, and nothing was run"):
        ledger.charge(PureDP(0.5), "query")
    monkeypatch.undo()
    assert ledger.head[0] == 1  # here it does
    ledger.close()


def test_an_error_of_the_disk_in_the_commit_may_stand(sqlite_url, monkeypatch):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)

    def broken(self, connection):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise OperationalError("COMMIT", {}, error)

    monkeypatch.setattr(Attempt, "commit", broken)
    with pytest.raises(LedgerUnavailable, match="may stand, and nothing was run"):
        ledger.charge(PureDP(0.5), "query")
    monkeypatch.undo()
    assert ledger.head[0] == 0


def asked(ledger, statement, *, write=True):
    """Return what the database says within a transaction of the ledger."""
    database = ledger._chain.database
    if not write:
        return database.read(lambda c: c.exec_driver_sql(statement).scalar())
    return database.write(lambda c, _: c.exec_driver_sql(statement).scalar())


def test_sqlite_flushes_each_commit(sqlite_url):
    """No test here cuts the power: what would survive it is asked of SQLite."""
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    assert asked(ledger, "PRAGMA synchronous") == 3  # EXTRA
    assert asked(ledger, "PRAGMA journal_mode") == "truncate"
    assert asked(ledger, "PRAGMA foreign_keys") == 1


def test_postgresql_isolates_and_flushes(postgres_url, server):
    role = postgres_url.partition("//")[2].partition("@")[0].partition(":")[0]
    server.run(f"ALTER ROLE {role} SET synchronous_commit = off")
    ledger = Ledger.open(postgres_url, dataset="x", budget=BUDGET)
    assert asked(ledger, "SHOW transaction_isolation") == "serializable"
    assert asked(ledger, "SHOW synchronous_commit") == "on"
    level = asked(ledger, "SHOW transaction_isolation", write=False)
    assert level == "repeatable read"
    assert asked(ledger, "SHOW transaction_read_only", write=False) == "on"
    ledger.close()


def test_without_the_queue_serializable_decides(postgres_url, monkeypatch):
    """The advisory lock is for speed: writers that skip it are as correct."""
    monkeypatch.setattr(Attempt, "_queue", lambda *_: False)
    ledger = Ledger.open(postgres_url, dataset="x", budget=BUDGET)
    assert spend_together(ledger) == ledger.head[0] == 10
    assert ledger.verify().ok
    ledger.close()


def test_a_restart_of_the_server_loses_no_charge(server):
    url = server.database()
    ledger = Ledger.open(url, dataset="x", budget=LARGE)
    told, restarted, running = [], threading.Event(), threading.Event()

    def spend():
        while not restarted.is_set() or len(told) < 20:
            ledger.charge(PureDP(1e-3), f"{len(told)}")
            told.append(len(told))
            running.set()

    writer = threading.Thread(target=spend)
    writer.start()
    try:
        assert running.wait(20)
        before = server.handle.get_pid()
        server.restart()
        assert server.handle.get_pid() != before
    finally:
        restarted.set()
        writer.join(60)
    labels = [record.label for record in ledger.history()[1:]]
    assert labels == [str(number) for number in told]
    assert ledger.verify().ok
    ledger.close()
