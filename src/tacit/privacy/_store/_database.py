"""Connections and transactions: one connection a ledger and a process."""

from __future__ import annotations

import os
import secrets
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import connect as sqlite_connect
from threading import Lock, RLock
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    QueuePool,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.util import immutabledict

from tacit.exceptions import LedgerDamaged, LedgerUnavailable
from tacit.privacy._store._transactions import BUSY_SECONDS, Attempt, diagnose

__all__ = ["Database", "parsed", "shown"]

# Options that a URL may pass to PostgreSQL. No options: they could turn off what the
# guarantees rest on, or lead to other tables
KEYS = {
    "host",
    "port",
    "user",
    "password",
    "passfile",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslpassword",
    "channel_binding",
    "gssencmode",
    "target_session_attrs",
}


def shown(url: URL) -> str:
    """Return a URL that may be printed and stored: without passwords."""
    kept = {k: v for k, v in url.query.items() if "password" not in k.lower()}
    plain = url._replace(
        drivername=url.drivername.partition("+")[0],
        password=None,
        query=immutabledict(kept),
    )
    return plain.render_as_string(hide_password=False)


def parsed(url: str) -> URL:
    """Return a URL that can be used, or reject it without quoting it."""
    usage = (
        "url must be like 'sqlite:///budget.db' or 'postgresql://user@host/database'"
    )
    if not isinstance(url, str):
        raise TypeError(f"{usage}, got {type(url).__name__}.")
    try:
        found = make_url(url)
    except (ArgumentError, ValueError):
        found = None
    if found is None:
        raise ValueError(f"{usage}, and this one cannot be read.")
    if found.drivername == "sqlite":
        if found.database in (None, "", ":memory:") or found.host or found.query:
            raise ValueError(
                f"{usage}; a SQLite ledger needs the path of a file and nothing else."
            )
        return found.set(database=str(Path(found.database or "").resolve()))
    if found.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        # not quoted: either may be a part of a password
        where = f"{found.host} {found.database}"
        if "@" in where or "://" in where:
            raise ValueError(
                f"{usage}; write '@' in a password as '%40', '/' as '%2F'."
            )
        if not KEYS.issuperset(found.query):
            raise ValueError(
                f"{usage}, with no options after '?' but {', '.join(sorted(KEYS))}."
            )
        return found.set(drivername="postgresql+psycopg")
    raise ValueError(f"{usage}, got one of {found.drivername!r}.")


# How long a write keeps trying to reach a database that went away
PATIENCE = 30.0
# and how long it waits in the queue before it writes without the lock
LOCK_WAIT = "SET lock_timeout = '5s'"

# Turns on what the guarantees rest on, where somebody has turned it off
DURABLE = (
    "SELECT pg_catalog.set_config('synchronous_commit', 'on', false) "
    "WHERE pg_catalog.current_setting('synchronous_commit') = 'off'"
)

Result = TypeVar("Result")

_databases: weakref.WeakSet[Database] = weakref.WeakSet()


def _postgresql(url: URL, options: dict[str, Any]) -> Engine:
    try:
        engine = create_engine(
            url,
            connect_args={
                "application_name": "tacit",
                "connect_timeout": 10,
                "keepalives_idle": 30,
                "tcp_user_timeout": 30_000,
            },
            **options,
        )
    except ModuleNotFoundError:
        raise ImportError(
            "A ledger in PostgreSQL needs psycopg; install tacit[postgres]."
        ) from None
    event.listen(engine, "connect", _set_up)
    return engine


def _set_up(connection: Any, _: Any) -> None:
    connection.execute(LOCK_WAIT)
    connection.execute(DURABLE)


@dataclass(eq=False)
class _Open:
    """An engine and the process that may close it."""

    process: int
    path: str = ""
    create: bool = False
    file: tuple[int, int] | None = None
    engine: Engine | None = None
    guarded: bool = False

    def connect(self) -> Any:
        """Return a new connection to the file."""
        mode = "rwc" if self.create else "rw"
        connection = sqlite_connect(
            f"file:{quote(self.path)}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            check_same_thread=False,  # the database's lock lets in one thread at a time
            isolation_level=None,
        )
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("SELECT count(*) FROM sqlite_master")
            file = os.stat(self.path)
            _reject_hard_links(file)
            # [store:journal] all that is committed is in the file itself: a log beside
            # it would be lost when the file is moved, or has a second name
            connection.execute("PRAGMA journal_mode = TRUNCATE")
        except BaseException:
            connection.close()
            raise
        self.file = (file.st_dev, file.st_ino)
        self.create = False  # once made, a file that is gone must not come back empty
        return connection

    def close(self) -> None:
        """Close the connection, unless it is the parent's."""
        if self.process == os.getpid() and self.engine is not None:
            self.engine.dispose()


class Database:
    """A database that ledgers are kept in.

    Notes
    -----
    **Guarantee.** What `write` returned is committed and flushed to the disk. A work
    that raised has left nothing behind, but for a connection lost in the commit, where
    the work must look first (``doubt``).
    """

    def __init__(self, url: URL, *, create: bool) -> None:
        self.url = url
        self.lock = RLock()
        self._create = create
        self._open: _Open | None = None
        self._finalizer: Any = None
        with _fork_lock:
            _databases.add(self)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Passwords, which must not appear in messages."""
        named = (v for k, v in self.url.query.items() if "password" in k.lower())
        found = (self.url.password, *named)
        return tuple(str(secret) for secret in found if secret)

    @property
    def sqlite(self) -> bool:
        """Whether it is a file."""
        return self.url.drivername == "sqlite"

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self.lock:
            if self._finalizer is not None:
                self._finalizer()
            self._open = self._finalizer = None

    def _engine(self) -> Engine:
        if self._open is None or self._open.engine is None:
            # no reference back to the database, which would keep it open for ever
            opened = _Open(os.getpid(), self.url.database or "", self._create)
            options: dict[str, Any] = {
                "isolation_level": "AUTOCOMMIT",  # transactions are begun by hand
                "poolclass": QueuePool,
                "pool_size": 1,
                "max_overflow": 0,
            }
            if self.sqlite:
                engine = create_engine("sqlite://", creator=opened.connect, **options)
            else:
                engine = _postgresql(self.url, options)
            opened.engine = engine
            self._open = opened
            self._finalizer = weakref.finalize(self, opened.close)
        return self._open.engine  # type: ignore[return-value]

    @property
    def guarded(self) -> bool:
        """Whether this connection has seen that the tables guard themselves."""
        return self._open is not None and self._open.guarded

    @guarded.setter
    def guarded(self, value: bool) -> None:
        if self._open is not None:
            self._open.guarded = value

    def read(
        self, work: Callable[[Connection], Result], *, patience: float | None = None
    ) -> Result:
        """Return what ``work`` reads from one snapshot."""
        return self._tried(
            lambda connection, _: work(connection), write=False, patience=patience
        )

    def write(
        self, work: Callable[[Connection, bool], Result], *, key: int = 0
    ) -> Result:
        """Return what ``work`` returned when its transaction was committed.

        ``work`` may run several times. Its second argument says whether an earlier run
        may have been committed. ``key`` names what writers queue for in PostgreSQL.
        """
        return self._tried(work, write=True, key=key)

    def _tried(
        self,
        work: Callable[[Connection, bool], Result],
        *,
        write: bool,
        key: int = 0,
        patience: float | None = None,
    ) -> Result:
        patience = PATIENCE if patience is None else patience
        begun = time.monotonic()
        doubt, pause = False, 0.01
        with self.lock:
            while True:
                attempt = Attempt(self.sqlite, write, key, self.check_file)
                try:
                    result = attempt.run(self._engine(), work, doubt)
                    self._create = False
                    return result
                except DBAPIError as error:
                    trouble = diagnose(error, self.secrets)
                doubt = doubt or (attempt.committing and trouble.unsure)
                if trouble.lost:
                    self._open_anew()
                limit = PATIENCE if trouble.again else patience if trouble.lost else 0
                if time.monotonic() - begun >= limit:
                    # not chained: the error of the driver may quote the connection
                    raise trouble.error(may_stand=doubt) from None
                time.sleep(pause * (0.5 + secrets.randbelow(1000) / 1000))
                pause = min(2 * pause, 1.0)

    def _open_anew(self) -> None:
        with suppress(Exception):
            self.close()
        self._open = self._finalizer = None

    def check_file(self) -> None:
        """Reject a file that was removed, replaced or linked during the connection."""
        if not self.sqlite or self._open is None or self._open.file is None:
            return
        try:
            now = os.stat(self.url.database or "")
            same = (now.st_dev, now.st_ino) == self._open.file
            _reject_hard_links(now)
        except OSError:
            same = False
        if not same:
            self.close()
            raise LedgerDamaged(
                "The ledger's file was removed or replaced while it was open; put the "
                "true file back, nothing was charged or run."
            )


def _reject_hard_links(file: os.stat_result) -> None:
    """Reject a file with hard links: a half-finished write is undone by its name."""
    if file.st_nlink > 1:
        raise LedgerUnavailable(
            "The ledger's file has another name (a hard link), under which a charge "
            "could be lost; remove that name or copy the file, nothing was charged or "
            "run."
        )


def _before_fork() -> None:
    # [store:fork] an SQLite connection must not be open across a fork: the child would
    # inherit the notes on locks that only the parent holds
    _fork_lock.acquire()  # until the fork is done: threads may fork at the same time
    for database in list(_databases):
        database.lock.acquire()
        _forking.append(database)
        if database.sqlite:
            database.close()


def _after_fork_in_parent() -> None:
    while _forking:
        _forking.pop().lock.release()
    _fork_lock.release()


def _after_fork_in_child() -> None:
    global _fork_lock
    _fork_lock = Lock()  # the parent's is locked
    _forking.clear()
    for database in list(_databases):
        database.lock = RLock()
        if database._finalizer is not None:
            database._finalizer.detach()
        if database._open is not None:
            _abandoned.append(database._open)  # the parent's: neither used nor closed
        database._open = database._finalizer = None


_fork_lock = Lock()
_forking: list[Database] = []
_abandoned: list[_Open] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
