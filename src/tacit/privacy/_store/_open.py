"""Opening and creating ledgers in a database."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, select, text

from tacit.exceptions import LedgerDamaged
from tacit.privacy._store._database import Database, parsed, shown
from tacit.privacy._store._ledger import StoredLedger
from tacit.privacy._store._records import (
    Record,
    Row,
    Terms,
    chained,
    checked_name,
    host,
    look,
    now,
    system_user,
    token,
)
from tacit.privacy._store._schema import (
    DATASETS,
    RECORDS,
    migrate,
    outdated,
    version_of,
)
from tacit.privacy.budget import Budget
from tacit.privacy.ledger import Shares

__all__ = ["datasets", "open_ledger", "reopened"]

# Advisory lock of PostgreSQL under which tables are created
FOUNDING = 7_226_248
LONGEST_NAME = 200


def open_ledger(
    url: str,
    *,
    dataset: str,
    budget: Budget | None = None,
    shares: Shares | None = None,
    analyst: str | None = None,
) -> StoredLedger:
    """Return the ledger of a data set; see `tacit.privacy.Ledger.open`."""
    checked_name(dataset=dataset)
    if len(dataset) > LONGEST_NAME or not dataset.isprintable():
        raise ValueError(
            f"dataset must be at most {LONGEST_NAME} printable characters."
        )
    if analyst is not None:
        checked_name(analyst=analyst)
    if budget is not None and not isinstance(budget, Budget):
        raise TypeError(f"budget must be a Budget, got {type(budget).__name__}.")
    if shares is not None and not isinstance(shares, Shares):
        raise TypeError(f"shares must be Shares, got {type(shares).__name__}.")
    database = _reached(url, create=budget is not None, dataset=dataset)
    user, terms = database.read(lambda c: _found(c, dataset), patience=0)
    if database.read(outdated):
        database.write(lambda c, _: migrate(c), key=FOUNDING)
    if terms is None:
        if budget is None:
            raise _unknown(database, dataset)
        wanted = Terms(dataset, budget, shares or Shares(), user, now(), token())
        terms = database.write(lambda c, _: _founded(c, wanted), key=FOUNDING)
    _check_terms(terms, budget, shares)
    return StoredLedger(database, terms, user, user if analyst is None else analyst)


def datasets(url: str) -> tuple[str, ...]:
    """Return the names of the data sets that have an account in a database."""
    database = _reached(url, create=False, dataset=None)

    def work(connection: Connection) -> tuple[str, ...]:
        if version_of(connection) == 0:
            return ()
        names = select(DATASETS.c.name).order_by(DATASETS.c.name)
        return tuple(connection.execute(names).scalars())

    try:
        return database.read(work, patience=0)
    finally:
        database.close()


def reopened(url: str, dataset: str, analyst: str | None, genesis: str) -> StoredLedger:
    """Return a ledger that was pickled."""
    ledger = open_ledger(url, dataset=dataset, analyst=analyst)
    if ledger.terms.genesis != genesis:
        raise LedgerDamaged(
            f"The ledger of {dataset!r} is not the one that was pickled: its account "
            "was opened anew."
        )
    return ledger


def _reached(url: str, *, create: bool, dataset: str | None) -> Database:
    database = Database(parsed(url), create=create)
    if (
        database.sqlite
        and not create
        and not Path(database.url.database or "").exists()
    ):
        raise _unknown(database, dataset)
    return database


def _unknown(database: Database, dataset: str | None) -> ValueError:
    where = shown(database.url)
    what = "no ledger" if dataset is None else f"no ledger of {dataset!r}"
    return ValueError(
        f"There is {what} at {where}; open one with its budget (tacit ledger init), or "
        "correct the name."
    )


def _found(connection: Connection, dataset: str) -> tuple[str, Terms | None]:
    """Return the real user, and the terms if there is an account."""
    if connection.dialect.name == "sqlite":
        user = system_user()
    else:
        user = str(connection.execute(text("SELECT session_user")).scalar_one())
    if version_of(connection) > 0:
        return user, _terms(connection, dataset)
    if connection.dialect.name == "sqlite" and inspect(connection).get_table_names():
        raise ValueError(
            "url is an SQLite database of something else; give the ledger its own file."
        )
    return user, None


def _terms(connection: Connection, dataset: str) -> Terms | None:
    row = connection.execute(
        select(DATASETS).where(DATASETS.c.name == dataset)
    ).one_or_none()
    if row is None:
        return None
    try:
        terms = Terms.read(row.terms)
    except ValueError as error:
        why = str(error)
    else:
        why = "the terms of the account do not have the hash kept with them"
        if terms.genesis == row.genesis and terms.name == dataset:
            return terms
    raise LedgerDamaged(
        f"The ledger of {dataset!r} was changed outside of tacit: {why}; restore a "
        "backup."
    )


def _founded(connection: Connection, wanted: Terms) -> Terms:
    """Return the terms of the account, which is made here unless another just did."""
    migrate(connection)
    found = _terms(connection, wanted.name)
    if found is not None:
        return found
    for name in connection.execute(select(DATASETS.c.name)).scalars():
        if look(name) == look(wanted.name):
            raise ValueError(
                f"dataset must differ from {name!r} by more than case and width, for "
                f"there is an account of that name, got {wanted.name!r}; use that one."
            )
    connection.execute(
        DATASETS.insert().values(
            name=wanted.name,
            owner=wanted.owner,
            terms=wanted.text,
            genesis=wanted.genesis,
        )
    )
    first = Record(
        0,
        "open",
        wanted.created,
        f"{wanted.owner}@{host()}",
        wanted.owner,
        promise=wanted.budget.to_dict(),
    )
    mark = token()
    body = first.body(mark)
    row = Row(0, mark, body, wanted.genesis, chained(wanted.genesis, body))
    connection.execute(RECORDS.insert().values(dataset=wanted.name, **row._asdict()))
    return wanted


def _check_terms(terms: Terms, budget: Budget | None, shares: Shares | None) -> None:
    """Reject other terms: they were fixed before the first charge, and stay."""
    if budget is not None and budget != terms.budget:
        kept = terms.budget
        raise ValueError(
            f"budget must be that of the account of {terms.name!r}, epsilon="
            f"{kept.epsilon:g}, delta={kept.delta:g}, neighbors="
            f"{kept.neighbors.value!r}, which cannot be changed; leave it out."
        )
    if shares is not None and shares != terms.shares:
        raise ValueError(
            f"shares must be those of the account of {terms.name!r}, {terms.shares}, "
            "which cannot be changed; leave them out."
        )
