"""Ledgers that are stored in a database."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tacit.exceptions import BudgetExceeded
from tacit.privacy._store._account import Account
from tacit.privacy._store._chain import Chain
from tacit.privacy._store._database import Database, shown
from tacit.privacy._store._records import (
    UNREADABLE,
    Record,
    Terms,
    checked_name,
    checked_text,
    event_text,
    host,
    read_body,
    said,
)
from tacit.privacy._store._reservation import Reservation
from tacit.privacy._store._verify import Export, Head, Verification, spent_after
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.ledger import Ledger, full_label
from tacit.privacy.report import Entry, PrivacyReport

__all__ = ["StoredLedger"]


class StoredLedger(Ledger):
    """A ledger in a database, shared by processes and people; see `Ledger.open`.

    Notes
    -----
    **Guarantee.** The same admission rule as `Ledger`, and each charge is one
    serializable transaction, committed to the disk before it is returned. So the
    guarantee holds for all processes together, and a process that is killed leaves at
    most a charge too many, never one too few. See the page on durable ledgers of the
    guarantees.

    It may be pickled and copied, and used by threads and after a fork: the state is in
    the database. A password is left out of the pickle.
    """

    def __init__(
        self, database: Database, terms: Terms, user: str, analyst: str
    ) -> None:
        super().__init__(terms.budget, shares=terms.shares)
        self._chain = Chain(database, terms)
        self._user = user
        self._analyst = analyst
        self._made: list[int] = []

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self._chain.terms.name

    @property
    def url(self) -> str:
        """Where the ledger lives, without a password."""
        return shown(self._chain.database.url)

    @property
    def owner(self) -> str:
        """User who opened the account, and who may void and allow."""
        return self._chain.terms.owner

    @property
    def terms(self) -> Terms:
        """What was fixed when the account was opened."""
        return self._chain.terms

    @property
    def analyst(self) -> str:
        """Name under which charges are made here."""
        return self._analyst

    @property
    def made(self) -> tuple[int, ...]:
        """Sequence numbers of the charges that were made through this object."""
        return tuple(self._made)

    @property
    def head(self) -> Head:
        """Sequence number and hash of the last record, of which to keep a copy."""
        return self._chain.known(lambda account: (account.seq, account.hash))

    def charge(
        self,
        event: Event,
        label: str,
        guarantee: Budget | None = None,
        *,
        seeded: bool = False,
    ) -> Entry:
        """Charge ``event`` durably, or raise and record nothing.

        Parameters
        ----------
        event
            Event of the release that is about to be computed.
        label
            Name under which the report lists it.
        guarantee
            Budget the event was planned for, if any. Such guarantees are also composed
            by adding their epsilons and deltas.
        seeded
            Whether the randomness comes from a fixed seed, for the report.

        Raises
        ------
        BudgetExceeded
            When the budget of the data set, or the analyst's own, would be exceeded.
        LedgerUnavailable
            When the database cannot be written; the message says whether the charge
            may stand. Do not run anything.
        LedgerDamaged
            When the records were changed outside of the ledger.
        """
        draft = self._draft("charge", event, label, guarantee, seeded=bool(seeded))
        record = self._chain.append(draft)
        self._made.append(record.seq)
        return self._chain.account.item(record).entry

    def reserve(
        self, event: Event, label: str, guarantee: Budget | None = None
    ) -> Reservation:
        """Reserve budget for a charge that comes later, for a long run.

        Use it in a ``with`` block, call its ``charge`` before anything is released, and
        leave the block without it to give the budget back. A reservation counts like a
        charge. It does not expire: clocks go back, and a run that takes longer than
        expected would then release without budget. `cancel` gives back what an error
        or a killed process left reserved.

        Parameters
        ----------
        event, label, guarantee
            As for `charge`.
        """
        record = self._chain.append(self._draft("reserve", event, label, guarantee))
        return Reservation(self, record)

    def admits(self, event: Event, guarantee: Budget | None = None) -> bool:
        """Whether `charge` would take this now; charges nothing."""
        try:
            self.require(event, "", guarantee)
        except BudgetExceeded:
            return False
        return True

    def require_all(self, charges: Iterable[tuple[Event, str, Budget | None]]) -> None:
        """Raise `BudgetExceeded` where one of several charges would; charges none."""
        drafts = [self._draft("charge", *charge) for charge in charges]
        self._chain.known(lambda account: account.room(*drafts))

    def spent_with(self, event: Event, guarantee: Budget | None = None) -> float:
        """Return what `spent` would return after this charge; charges nothing."""
        draft = self._draft("charge", event, "", guarantee)
        return self._chain.known(lambda account: account.spent_with(draft))

    def spent(self) -> float:
        """Return the least epsilon, at the budget's delta, that admits what counts.

        Open reservations count too.
        """
        return self._chain.known(lambda account: account.spent())

    def report(self, assumptions: tuple[str, ...] = ()) -> PrivacyReport:
        """Return the privacy report of all charges so far."""

        def made(account: Account) -> PrivacyReport:
            entries = tuple(
                replace(item.entry, label=f"{item.entry.label} (reserved)")
                if item.reserved
                else item.entry
                for item in account.counted
            )
            voided = ", ".join(map(str, account.voided))
            stated = (
                (
                    f"the owner {self.owner!r} states that the voided charges released "
                    f"nothing: records {voided}",
                )
                if voided
                else ()
            )
            return PrivacyReport(
                self.budget,
                account.spent(),
                entries,
                (*assumptions, *stated),
                heading="budget",
            )

        return self._chain.known(made)

    def history(self) -> tuple[Record, ...]:
        """Return all records, from the first on."""
        rows = self._chain.database.read(self._chain.rows)
        try:
            return tuple(map(read_body, rows))
        except UNREADABLE as error:
            raise self._chain.damage(said(error)) from None

    def spending(self) -> list[dict[str, Any]]:
        """Return the history as plain data, with what was spent after each record."""
        records = self.history()
        try:
            spent = spent_after(self.terms, records)
        except UNREADABLE as error:
            raise self._chain.damage(said(error)) from None
        return [
            {**record.to_dict(), "spent_after": after}
            for record, after in zip(records, spent, strict=True)
        ]

    def cancel(self, seq: int, reason: str = "") -> Record:
        """Give back the budget of a reservation whose charge never came.

        For the user who made it, or the owner. Only when nothing of that run was or
        will be released.

        Parameters
        ----------
        seq
            Sequence number of the reservation in the history.
        reason
            Why, for the history.
        """
        return self._chain.append(self._plain("cancel", refers_to=seq, reason=reason))

    def void(self, seq: int, reason: str, *, even_if_released: bool = False) -> Record:
        """State as the owner that a charge released nothing, so that it stops counting.

        The charge and the statement stay in the history, and every later report says
        that it rests on the statement. Void only a run that never began: one that read
        the rows and failed has revealed something about them by failing.

        Parameters
        ----------
        seq
            Sequence number of the charge in the history.
        reason
            Why nothing was released; needed.
        even_if_released
            Whether to void also a charge that a note refers to, such as the digest of
            the model the charge was for.
        """
        draft = self._plain("void", refers_to=seq, reason=reason)
        return self._chain.append(
            draft,
            None if even_if_released else lambda account: account.check_unreleased(seq),
        )

    def allow(self, analyst: str, budget: Budget | None) -> Record:
        """Limit what one analyst may charge, as the owner.

        A charge must then fit the data set's budget and the analyst's own.

        Parameters
        ----------
        analyst
            Name of the analyst, or ``"*"`` for each analyst without a limit of their
            own.
        budget
            What this analyst may spend in all; None for nothing.
        """
        checked_name(analyst=analyst)
        if budget is not None and not isinstance(budget, Budget):
            raise TypeError(
                f"budget must be a Budget or None, got {type(budget).__name__}."
            )
        guarantee = None if budget is None else budget.to_dict()
        return self._chain.append(
            self._plain("allow", analyst=analyst, promise=guarantee)
        )

    def note(self, text: str, refers_to: int | None = None) -> Record:
        """Append a remark, such as the digest of the model a charge was for.

        Parameters
        ----------
        text
            What to keep. It is read by everyone who reads the ledger.
        refers_to
            Record it is about, if any.
        """
        return self._chain.append(self._plain("note", refers_to=refers_to, reason=text))

    def allowances(self) -> dict[str, Budget | None]:
        """Return what `allow` has set, by analyst."""
        return self._chain.known(lambda account: dict(account.allowed))

    def spent_by_analyst(self) -> dict[str, float]:
        """Return the least epsilon that admits the charges of each analyst by itself.

        At the data set's delta, with open reservations, by name. The parts need
        not add up to `spent`: composition is better than addition.
        """
        return self._chain.known(lambda account: account.spent_by_analyst())

    def reservations(self) -> tuple[Record, ...]:
        """Return the open reservations."""
        return self._chain.known(
            lambda account: tuple(c.record for c in account.counted if c.reserved)
        )

    def verify(self, *, head: Head | None = None) -> Verification:
        """Read everything again and check it, step by step.

        Parameters
        ----------
        head
            Sequence number and hash of a record seen earlier and kept elsewhere. It
            reveals a ledger that was truncated or rewritten as a whole, which nothing
            inside the database can.
        """
        return self._chain.verify(head)

    def export(self) -> Export:
        """Return everything as stored, to be written to a file and checked there."""
        rows = tuple(self._chain.database.read(self._chain.rows))
        if not rows:
            raise self._chain.damage("record 0 is missing")
        head = (rows[-1].seq, rows[-1].hash)
        return Export(self._chain.terms.text, self._chain.terms.genesis, rows, head)

    def close(self) -> None:
        """Close the connection. The next use opens another."""
        self._chain.database.close()

    # Drafts have no sequence number yet: the chain gives it in the transaction.

    def _settle(self, reserved: Record, seeded: bool) -> Entry:
        """Charge what was reserved."""
        draft = replace(
            reserved,
            seq=-1,
            kind="charge",
            who=self._who,
            seeded=seeded,
            refers_to=reserved.seq,
            hash="",
        )
        record = self._chain.append(draft)
        return self._chain.account.item(record).entry

    @property
    def _who(self) -> str:
        return f"{self._user}@{host()}"

    def _plain(self, kind: str, **parts: Any) -> Record:
        checked_text(reason=parts.get("reason", ""), empty=True)
        refers_to = parts.get("refers_to")
        if refers_to is not None and (
            isinstance(refers_to, bool) or not isinstance(refers_to, int)
        ):
            raise TypeError(
                "the record must be given by its sequence number, an integer."
            )
        parts.setdefault("analyst", self._analyst)
        return Record(-1, kind, "", self._who, **parts)

    def _draft(
        self,
        kind: str,
        event: Event,
        label: str,
        guarantee: Budget | None,
        seeded: bool = False,
    ) -> Record:
        label = full_label(label)
        checked_text(label=label, empty=True)
        draft = self._plain(
            kind,
            label=label,
            event=json.loads(event_text(event, self.budget.neighbors)),
            promise=None if guarantee is None else guarantee.to_dict(),
            seeded=seeded,
            epsilon=0.0,
        )
        # infinite where no epsilon would do: then it is rejected, and never stored
        return replace(draft, epsilon=self._chain.account.item(draft).alone)

    def __repr__(self) -> str:
        return f"StoredLedger({self.url!r}, dataset={self.dataset!r}, {self.budget!r})"

    def __reduce__(self) -> tuple[Any, ...]:  # type: ignore[override]
        analyst = None if self._analyst == self._user else self._analyst
        from tacit.privacy._store._open import reopened  # noqa: PLC0415 - a cycle

        return reopened, (self.url, self.dataset, analyst, self._chain.terms.genesis)

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:  # type: ignore[override]
        return self.__reduce__()

    def __copy__(self) -> StoredLedger:  # type: ignore[override]
        return self

    def __deepcopy__(self, _: Any) -> StoredLedger:  # type: ignore[override]
        return self
