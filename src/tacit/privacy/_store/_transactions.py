"""One transaction, on SQLite or PostgreSQL."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from sqlite3 import SQLITE_BUSY
from sqlite3 import Error as SQLiteError
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from tacit.exceptions import LedgerDamaged, LedgerUnavailable

__all__ = ["Attempt", "Trouble", "diagnose"]

# Between two tries for the lock of a file
LONGEST_PAUSE = 0.02

Result = TypeVar("Result")


class Attempt:
    """One transaction."""

    def __init__(
        self, sqlite: bool, write: bool, key: int, check: Callable[[], None]
    ) -> None:
        self.key = key if write and not sqlite else 0
        self.committing = False
        self.check = check
        if sqlite:
            self.begin = "BEGIN IMMEDIATE" if write else "BEGIN"
        elif write:
            self.begin = "BEGIN ISOLATION LEVEL SERIALIZABLE"
        else:
            self.begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def run(
        self, engine: Engine, work: Callable[[Connection, bool], Result], doubt: bool
    ) -> Result:
        with engine.connect() as connection:
            queued = self.key and self._queue(connection)
            try:
                self._begin(connection)
                self.check()
                result = work(connection, doubt)
                self.committing = True
                self.commit(connection)
            except BaseException:
                self._undo(connection)
                raise
            if queued:
                self._leave(connection)
            return result

    def _begin(self, connection: Connection) -> None:
        if self.begin != "BEGIN IMMEDIATE":
            connection.exec_driver_sql(self.begin)
            return
        # SQLite's own waiting retries more and more rarely, so that those who wait
        # longest come last; here all who wait have the same chance
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("PRAGMA busy_timeout = 0")
        until, pause = time.monotonic() + BUSY_SECONDS, 0.001
        try:
            while time.monotonic() < until:
                try:
                    driver.execute(self.begin)
                    return
                except SQLiteError as error:
                    if getattr(error, "sqlite_errorcode", 0) & 0xFF != SQLITE_BUSY:
                        break
                time.sleep(pause * secrets.randbelow(1000) / 1000)
                pause = min(2 * pause, LONGEST_PAUSE)
            connection.exec_driver_sql(self.begin)  # fails in the usual way
        finally:
            driver.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")

    def commit(self, connection: Connection) -> None:
        connection.exec_driver_sql("COMMIT")

    def _queue(self, connection: Connection) -> bool:
        """Wait for other writers, so that they seldom meet.

        For speed only. Whoever does not get the lock continues without it, and then
        SERIALIZABLE and the primary key decide.
        """
        try:
            connection.exec_driver_sql("SELECT pg_advisory_lock(%s)", (self.key,))
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != "55P03":
                raise
            return False
        return True

    def _leave(self, connection: Connection) -> None:
        try:
            connection.exec_driver_sql("SELECT pg_advisory_unlock(%s)", (self.key,))
        except DBAPIError:  # it is committed already; the server drops the lock
            connection.invalidate()

    def _undo(self, connection: Connection) -> None:
        try:
            connection.exec_driver_sql("ROLLBACK")
            if self.key:
                connection.exec_driver_sql("SELECT pg_advisory_unlock_all()")
        except Exception:  # also "no transaction is active"
            with suppress(Exception):
                connection.invalidate()


BUSY_SECONDS = 60


@dataclass(frozen=True)
class Trouble:
    """An error of a database.

    ``again``: the transaction certainly did nothing and may be tried again. ``lost``:
    the connection is gone. ``unsure``: what was being committed may stand.
    """

    sentence: str
    damaged: bool = False
    again: bool = False
    lost: bool = False
    unsure: bool = False

    def error(self, *, may_stand: bool = False) -> Exception:
        """Return the exception to raise."""
        if self.damaged:
            return LedgerDamaged(self.sentence)
        end = (
            "the charge may stand, and nothing was run; see the ledger's history"
            if may_stand
            else "nothing was charged or run"
        )
        return LedgerUnavailable(f"{self.sentence}; {end}.")


# By the primary result code of SQLite: sqlite.org/rescode.html
_SQLITE = {
    3: Trouble("The ledger's file may not be used by this user"),
    5: Trouble(f"The ledger is locked by another process for over {BUSY_SECONDS} s"),
    6: Trouble("The ledger is locked by another connection of this process"),
    8: Trouble("The ledger's file or folder is read-only"),
    10: Trouble("The system cannot read or write the ledger's file", unsure=True),
    11: Trouble("The ledger's file is damaged; restore it from a backup.", True),
    13: Trouble("The disk of the ledger is full"),
    14: Trouble(
        "The ledger's file cannot be opened: check that its folder exists and that you "
        "may write in it"
    ),
    19: Trouble("The ledger's database rejects the record, as not the next.", True),
    26: Trouble(
        "The ledger's file is no SQLite database; give a file that tacit made, or a "
        "new one.",
        True,
    ),
}

_RIGHTS = Trouble(
    "The role may not do this; the ledger's owner can grant SELECT on its three tables "
    "and INSERT on tacit_record"
)
# a conflict, a deadlock, a sequence number taken, tables that another made at the same
# time
_AGAIN = {"40001", "40P01", "23505", "42P07", "42710", "42723"}


def diagnose(error: DBAPIError, secrets: tuple[str, ...] = ()) -> Trouble:
    """Return what happened, in a sentence that has none of the secrets."""
    cause = error.orig
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        unknown = Trouble(f"SQLite says {_first_line(cause, secrets)!r}")
        return _SQLITE.get(code & 0xFF, unknown)
    if isinstance(cause, SQLiteError):  # of Python's own: text that is no UTF-8
        return Trouble("The ledger's file holds what tacit never writes.", damaged=True)
    state = getattr(cause, "sqlstate", None)
    if state in _AGAIN:
        return Trouble("Other writers kept changing the ledger", again=True)
    if state == "42501":
        return _RIGHTS
    said = f"PostgreSQL says {_first_line(cause, secrets)!r}"
    if state == "P0001":  # raised by a trigger of ours
        return Trouble(f"{said}.", damaged=True)
    # without a state the server was not reached; 08: connection, 57P: shutting down
    if state is None:
        gone = isinstance(error, OperationalError | InterfaceError)
    else:
        gone = state[:2] == "08" or state[:3] == "57P"
    gone = gone or error.connection_invalidated
    return Trouble(said, lost=gone, unsure=gone)


def _first_line(cause: BaseException | None, secrets: tuple[str, ...]) -> str:
    text = (str(cause).strip() or type(cause).__name__).splitlines()[0]
    for secret in secrets:
        text = text.replace(secret, "***")
    return text
