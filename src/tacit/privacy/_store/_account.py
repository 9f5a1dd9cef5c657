"""The state of a ledger after the records read so far. No database here."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache

from tacit.exceptions import BudgetExceeded
from tacit.privacy._store._records import (
    UNREADABLE,
    Record,
    Row,
    Terms,
    canonical,
    chained,
    read_body,
    said,
    typed,
    user_of,
)
from tacit.privacy.budget import Budget
from tacit.privacy.curve import PrivacyCurve
from tacit.privacy.event_data import restore
from tacit.privacy.events import Event
from tacit.privacy.ledger import NOTHING, Filter, Total
from tacit.privacy.report import Entry

__all__ = ["EVERYONE", "Account", "Counted"]

EVERYONE = "*"


@dataclass(frozen=True)
class Counted:
    """A charge or a reservation that counts against the budget."""

    record: Record
    entry: Entry
    curve: PrivacyCurve
    guarantee: Budget | None
    alone: float  # epsilon it guarantees by itself

    @property
    def reserved(self) -> bool:
        """Whether it is a reservation that was not charged yet."""
        return self.record.kind == "reserve"


@lru_cache(maxsize=4096)
def _checked(
    text: str, guarantee: Budget | None, rule: Filter
) -> tuple[Event, PrivacyCurve, Budget | None, float]:
    """Return event, curve, true guarantee, epsilon; long series repeat few events."""
    event: Event = restore(json.loads(text))
    try:
        curve, guarantee = rule.checked(event.curve(rule.budget.neighbors), guarantee)
        return event, curve, guarantee, rule.alone(curve, guarantee)
    except (ArithmeticError, MemoryError):
        raise ValueError(
            f"event must have numbers that can be counted with, got {event}."
        ) from None


class Account:
    """State of a ledger after the records read so far.

    `follow` reads the next row of the chain. `room` checks whether a record would fit
    the budget; `follow` does not, since what was written is a fact. An account that
    was interrupted while it read a record is ``torn``, and must be read anew.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.filter = Filter(terms.budget, terms.shares)
        self.last = (-1, terms.genesis)  # sequence number and hash of the last record
        self.torn = False
        self.total = NOTHING
        self.allowed: dict[str, Budget | None] = {}
        self.voided: list[int] = []
        self._cancelled: list[int] = []
        self._noted: set[int] = set()  # what notes refer to
        self._totals: dict[str, Total] = {}
        # in the order in which budget was reserved; a charged reservation keeps its
        # position
        self._counted: dict[int, Counted] = {}
        self._position: dict[int, int] = {}  # of a charge that was reserved before

    @property
    def seq(self) -> int:
        """Sequence number of the last record."""
        return self.last[0]

    @property
    def hash(self) -> str:
        """Hash of the last record."""
        return self.last[1]

    @property
    def counted(self) -> tuple[Counted, ...]:
        """Charges and reservations that count, in order."""
        return tuple(self._counted.values())

    @property
    def reserved(self) -> int:
        """Number of open reservations."""
        return sum(item.reserved for item in self._counted.values())

    def spent(self) -> float:
        """Return the least epsilon that admits what counts."""
        return self.filter.spent(self.total)

    def follow(self, row: Row) -> Record:
        """Read the next row; ValueError says why it cannot be the next."""
        if typed(row).seq != self.seq + 1:
            raise ValueError(f"record {self.seq + 1} is missing")
        if row.previous != self.hash or row.hash != chained(row.previous, row.body):
            raise ValueError(f"record {row.seq} does not follow from the one before")
        try:
            record = read_body(row)
            self.apply(record)
        except UNREADABLE as error:
            raise ValueError(f"record {row.seq}: {said(error)}") from None
        return record

    def apply(self, record: Record) -> None:
        """Count a record after checking references and rights, not the budget."""
        self.permit(record)
        new = record.refers_to is None and record.kind in ("charge", "reserve")
        item = self.item(record) if new else None
        budget = None if record.promise is None else Budget.from_dict(record.promise)
        # nothing below can fail, but Ctrl-C can come at any line
        self.torn = True
        if record.kind == "charge" and record.refers_to is not None:
            position = record.refers_to
            reserved = self._counted[position]
            entry = replace(reserved.entry, seeded=record.seeded)
            self._counted[position] = replace(reserved, record=record, entry=entry)
            self._position[record.seq] = position
        elif item is not None:
            self._counted[record.seq] = item
            self.total = self.total.plus(item.curve, item.guarantee)
            if record.analyst in self._totals:
                own = self._totals[record.analyst].plus(item.curve, item.guarantee)
                self._totals[record.analyst] = own
        elif record.kind in ("cancel", "void"):
            assert record.refers_to is not None
            position = self._position.get(record.refers_to, record.refers_to)
            self._recount(without=position)
            ended = self.voided if record.kind == "void" else self._cancelled
            ended.append(record.refers_to)
        elif record.kind == "allow":
            self.allowed[record.analyst] = budget
        elif record.kind == "note" and record.refers_to is not None:
            self._noted.add(record.refers_to)
        self.last = (record.seq, record.hash)
        self.torn = False

    def _recount(self, without: int) -> None:
        """Add up again: sums of floats cannot be undone exactly."""
        self._totals.pop(self._counted.pop(without).record.analyst, None)
        self.total = NOTHING
        for item in self._counted.values():
            self.total = self.total.plus(item.curve, item.guarantee)

    def _total_of(self, analyst: str) -> Total:
        """Return the total of one analyst, which is kept from then on."""
        if analyst not in self._totals:
            own = NOTHING
            for item in self._counted.values():
                if item.record.analyst == analyst:
                    own = own.plus(item.curve, item.guarantee)
            self._totals[analyst] = own
        return self._totals[analyst]

    def item(self, record: Record) -> Counted:
        """Return how a charge or reservation counts; ValueError for other records."""
        if record.event is None or record.epsilon is None:
            raise ValueError(f"a {record.kind} must have an event and an epsilon")
        given = None if record.promise is None else Budget.from_dict(record.promise)
        event, curve, guarantee, alone = _checked(
            canonical(record.event), given, self.filter
        )
        entry = Entry(record.label, event, record.epsilon, record.seeded)
        return Counted(record, entry, curve, guarantee, alone)

    def permit(self, record: Record) -> None:
        """Reject a wrong reference, and a record that its writer may not make."""
        kind, user, owner = record.kind, user_of(record.who), self.terms.owner
        if (kind == "open") != (record.seq == 0):
            raise ValueError("the account is opened by its first record and no other")
        if kind in ("void", "allow") and user != owner:
            raise PermissionError(
                f"Only the owner {owner!r} of {self.terms.name!r} may {kind}, and this "
                f"is {user!r}."
            )
        if kind == "void" and not record.reason.strip():
            raise ValueError("reason must say why the charge released nothing.")
        if kind == "allow" and record.promise is not None:
            given = Budget.from_dict(record.promise).neighbors
            if given is not self.terms.budget.neighbors:
                raise ValueError(
                    f"budget must be for neighbors="
                    f"{self.terms.budget.neighbors.value!r}, as the data set's is."
                )
        if kind == "void":
            self._open_item(record.refers_to, reserved=False)
        elif kind == "cancel":
            made = self._open_item(record.refers_to, reserved=True).record.who
            if user not in (user_of(made), owner):
                raise PermissionError(
                    f"Only {user_of(made)!r}, who made the reservation, or the owner "
                    f"{owner!r} may cancel it, and this is {user!r}."
                )
        elif kind == "charge" and record.refers_to is not None:
            reserved = self._open_item(record.refers_to, reserved=True).record
            same = ("label", "event", "promise", "analyst", "epsilon")
            if any(getattr(reserved, k) != getattr(record, k) for k in same) or (
                user != user_of(reserved.who)
            ):
                raise ValueError("the charge is not the one that was reserved")
        elif kind == "note" and record.refers_to is not None:
            if not 0 <= record.refers_to < record.seq:
                raise ValueError(f"refers_to must be a record, got {record.refers_to}.")
        elif kind != "note" and record.refers_to is not None:
            raise ValueError(f"a {kind} refers to no other record")

    def _open_item(self, seq: int | None, *, reserved: bool) -> Counted:
        position = -1 if seq is None else self._position.get(seq, seq)
        found = self._counted.get(position)
        if found is not None and found.record.seq == seq and found.reserved == reserved:
            return found
        what = "an open reservation" if reserved else "a charge that counts"
        if seq is None or not 0 <= seq <= self.seq:
            why = f"there is no record {seq}"
        elif seq in self.voided:
            why = f"record {seq} is voided already"
        elif found is not None and found.record.seq != seq:
            why = f"record {seq} is a reservation, charged as record {found.record.seq}"
        elif seq in self._cancelled:
            why = f"record {seq} is a reservation that is cancelled already"
        else:
            why = f"record {seq} is not {what}"
        raise ValueError(f"seq must be {what}, and {why}.")

    def check_unreleased(self, seq: int) -> None:
        """Reject a void where a note says what was released."""
        if seq in self._noted or self._position.get(seq) in self._noted:
            raise ValueError(
                f"A model or another result was noted for record {seq}, so it released "
                "something and must count; give even_if_released=True only if that "
                "was never seen by anybody."
            )

    def room(self, *records: Record) -> None:
        """Raise `BudgetExceeded` if a budget or an analyst's allowance is exceeded."""
        total, owns = self.total, dict[str, Total]()
        for record in records:
            if record.kind not in ("charge", "reserve") or record.refers_to is not None:
                continue  # a reserved charge always fits
            item = self.item(record)
            more = total.plus(item.curve, item.guarantee)
            if not self.filter.admits(more):
                open_ = self.reserved
                also = f", with {open_} open reservation(s)" if open_ else ""
                raise BudgetExceeded(
                    self.filter.rejection(
                        record.label, item.guarantee, total, also=also
                    )
                )
            total = more
            rule = self.allowance(record.analyst)
            if rule is not None:
                own = owns.get(record.analyst) or self._total_of(record.analyst)
                owns[record.analyst] = self._allowed(rule, own, item)

    def _allowed(self, rule: Filter | str, own: Total, item: Counted) -> Total:
        """Return an analyst's own total with one more, if it fits the allowance."""
        analyst = item.record.analyst
        if isinstance(rule, str):
            raise BudgetExceeded(rule)
        more = own.plus(item.curve, item.guarantee)
        if not rule.admits(more):
            raise BudgetExceeded(
                rule.rejection(
                    item.record.label,
                    item.guarantee,
                    own,
                    f"the allowance of {analyst!r}",
                )
            )
        return more

    def spent_with(self, record: Record) -> float:
        """Return the least epsilon that admits what counts and this charge."""
        item = self.item(record)
        return self.filter.spent(self.total.plus(item.curve, item.guarantee))

    def spent_by_analyst(self) -> dict[str, float]:
        """Return what counts of each analyst, at the data set's delta."""
        names = sorted({item.record.analyst for item in self._counted.values()})
        return {name: self.filter.spent(self._total_of(name)) for name in names}

    def allowance(self, analyst: str) -> Filter | str | None:
        """Return an analyst's own filter, why there is none, or None for no limit."""
        for name in (analyst, EVERYONE):
            if name in self.allowed:
                budget = self.allowed[name]
                if budget is None:
                    return (
                        f"Analyst {analyst!r} is allowed nothing on "
                        f"{self.terms.name!r}; nothing was charged or released."
                    )
                return Filter(budget, self.terms.shares)
        return None
