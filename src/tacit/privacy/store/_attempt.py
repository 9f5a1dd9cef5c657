"""One transaction, on SQLite or PostgreSQL."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from sqlite3 import SQLITE_BUSY
from sqlite3 import Error as SQLiteError
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from tacit.privacy.store._errors import BUSY_SECONDS

__all__ = ["Attempt"]

# Between two tries for the lock of a file
LONGEST_PAUSE = 0.02

Result = TypeVar("Result")


class Attempt:
    """One transaction."""

    def __init__(
        self,
        sqlite: bool,
        write: bool,
        key: int,
        check: Callable[[], None],
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
        self,
        engine: Engine,
        work: Callable[[Connection, bool], Result],
        doubt: bool,
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
