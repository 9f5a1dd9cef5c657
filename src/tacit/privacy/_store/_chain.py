"""The chain of records of one data set: reading and appending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from sqlalchemy import Connection, bindparam, select

from tacit.exceptions import LedgerDamaged
from tacit.privacy._store._account import Account
from tacit.privacy._store._database import Database
from tacit.privacy._store._records import (
    Record,
    Row,
    Terms,
    chained,
    now,
    read_body,
    token,
)
from tacit.privacy._store._schema import DATASETS, RECORDS, damage, missing_guards
from tacit.privacy._store._verify import Head, Verification, examine

__all__ = ["Chain"]

Result = TypeVar("Result")

_ALL = select(*(RECORDS.c[name] for name in Row._fields))
_SINCE = _ALL.where(
    RECORDS.c.dataset == bindparam("name"), RECORDS.c.seq >= bindparam("since")
).order_by(RECORDS.c.seq)
# An index may be damaged or forged. Who reads everything reads the table itself: no
# index is on a column with something added
_EVERY = _ALL.where(RECORDS.c.dataset + "" == bindparam("name")).order_by(RECORDS.c.seq)
_TERMS = select(DATASETS).where(DATASETS.c.name + "" == bindparam("name"))
_MARKED = _ALL.where(RECORDS.c.token == bindparam("mark"))
_NEXT = RECORDS.insert()


class Chain:
    """The records of a data set, and the account of those read so far.

    Notes
    -----
    **Guarantee.** `append` writes a record exactly once, after all records that are
    committed were counted, or raises. The account only grows along the chain: a record
    that was read and has changed or gone since is an error, never a new start.
    """

    def __init__(self, database: Database, terms: Terms) -> None:
        self.database = database
        self.terms = terms
        self.account = Account(terms)
        # advisory lock of its writers: any number that differs between data sets
        self._key = int(terms.genesis[:15], 16)

    def append(
        self, draft: Record, permit: Callable[[Account], None] | None = None
    ) -> Record:
        """Return the record as written next, or raise and have nothing written.

        ``permit`` may reject by raising, on what the chain says at that point.
        """
        mark = token()

        def work(connection: Connection, doubt: bool) -> Record:
            account = self._read_on(connection)
            if doubt:
                # [store:token] an earlier try may have been committed after all
                found = connection.execute(_MARKED, {"mark": mark}).one_or_none()
                if found is not None:
                    return read_body(Row(*found))
            record = replace(draft, seq=account.seq + 1, when=now())
            # [store:admit] the account is that of all committed records
            account.permit(record)
            if permit is not None:
                permit(account)
            account.room(record)
            self._require_guards(connection)
            body = record.body(mark)
            row = Row(record.seq, mark, body, account.hash, chained(account.hash, body))
            connection.execute(_NEXT, {"dataset": self.terms.name, **row._asdict()})
            return replace(record, hash=row.hash)

        return self.database.write(work, key=self._key)

    def _require_guards(self, connection: Connection) -> None:
        """Require the triggers that guard the chain; checked once a connection."""
        if not self.database.guarded:
            wrong = missing_guards(connection)
            if wrong:
                raise self.damage(wrong[0])
            self.database.guarded = True

    def known(self, work: Callable[[Account], Result]) -> Result:
        """Return what ``work`` returns for the present account."""
        return self.database.read(lambda connection: work(self._read_on(connection)))

    def rows(self, connection: Connection, since: int = -1) -> list[Row]:
        """Return the records from one on, which must be there; by default all."""
        wanted = {"name": self.terms.name, "since": since}
        found = connection.execute(_SINCE if since >= 0 else _EVERY, wanted)
        rows = [Row(*row) for row in found]
        if since >= 0 and (not rows or rows[0].seq != since):
            raise self.damage(f"record {since} is gone")
        return rows

    def _read_on(self, connection: Connection) -> Account:
        account, (seq, last) = self.account, self.account.last
        if account.torn:
            account = Account(self.terms)  # and read from the beginning
        for row in self.rows(connection, since=account.seq):
            # [store:cache] what was counted before is still what the chain says
            if row.seq == seq and row.hash != last:
                raise self.damage(f"record {row.seq} was changed")
            if row.seq == account.seq >= 0:
                continue
            try:
                account.follow(row)
            except ValueError as error:
                raise self.damage(error) from None
        if account.seq < seq:
            raise self.damage(f"record {seq} is gone")
        self.account = account
        return account

    def verify(self, head: Head | None) -> Verification:
        """Read everything anew, trusting nothing that was read before."""

        def work(connection: Connection) -> Verification:
            found = connection.execute(_TERMS, {"name": self.terms.name}).one_or_none()
            if found is None:
                raise self.damage("the account is gone")
            result = examine(
                found.terms,
                found.genesis,
                self.rows(connection),
                name=found.name,
                head=head,
            )
            also = damage(connection) + missing_guards(connection)
            if found.owner != self.terms.owner or found.terms != self.terms.text:
                also.append("the terms of the account are not those it was opened with")
            return replace(result, findings=(*also, *result.findings))

        return self.database.read(work)

    def damage(self, why: object) -> LedgerDamaged:
        """Return the error that says what is wrong."""
        return LedgerDamaged(
            f"The ledger of {self.terms.name!r} was changed outside of tacit: {why}; "
            "nothing was charged or run. Run 'tacit ledger verify', and restore a "
            "backup."
        )
