"""Verification of a whole chain, with findings as sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isclose
from pathlib import Path
from typing import Any

from tacit.exceptions import BudgetExceeded
from tacit.privacy._store._account import Account
from tacit.privacy._store._records import (
    UNREADABLE,
    Record,
    Row,
    Terms,
    chained,
    read_body,
    said,
    typed,
)

__all__ = ["Export", "Head", "Verification", "examine", "read_export", "spent_after"]

Head = tuple[int, str]


@dataclass(frozen=True)
class Verification:
    """Result of the verification of a ledger.

    Parameters
    ----------
    dataset
        Name of the data set.
    records
        How many records there are.
    head
        Sequence number and hash of the last one: keep a copy elsewhere for a later
        check.
    spent
        Epsilon spent by what counts, at the budget's delta.
    findings
        What is wrong, as sentences. Empty for a sound ledger.
    notes
        What is unusual but harmless, such as a clock that went back.
    """

    dataset: str
    records: int
    head: Head | None
    spent: float
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dictionary, for JSON."""
        return {
            "dataset": self.dataset,
            "ok": self.ok,
            "records": self.records,
            "head": None if self.head is None else list(self.head),
            "spent": self.spent,
            "findings": list(self.findings),
            "notes": list(self.notes),
        }


def examine(
    terms_text: str,
    genesis: str,
    rows: Iterable[Row],
    *,
    name: str | None = None,
    head: Head | None = None,
) -> Verification:
    """Check terms, chain, sequence, references, rights and the budget at each step.

    ``head`` is a sequence number and a hash seen earlier, which must still be in the
    chain.
    """
    # long: one pass over the chain, in which each record is checked against the last
    findings: list[str] = []
    notes: list[str] = []
    try:
        terms = Terms.read(terms_text)
    except ValueError as error:
        return Verification(name or "", 0, None, 0.0, (f"{error}",))
    if terms.genesis != genesis:
        findings.append("the terms of the account do not have the hash kept with them")
    if name is not None and terms.name != name:
        findings.append(f"the account of {name!r} has the terms of {terms.name!r}")
    account = Account(terms)
    expected, last, when = 0, genesis, ""
    tokens: set[str] = set()
    witness = None
    for row in rows:
        try:
            typed(row)
        except ValueError as error:
            findings.append(str(error))
            continue
        if row.seq != expected:
            findings.append(
                f"record {expected} is missing"
                if row.seq > expected
                else f"record {row.seq} is out of order"
            )
        # [store:verify] the chain: what a record says, and that it follows the last
        if row.previous != last:
            findings.append(f"record {row.seq} does not follow from the one before")
        if row.hash != chained(row.previous, row.body):
            findings.append(f"record {row.seq} is not what its hash was made of")
        if row.token in tokens:
            findings.append(f"record {row.seq} is there twice")
        tokens.add(row.token)
        try:
            record = read_body(row)
            # as if it came now: enough room, the right person, a fitting reference
            account.room(record)
        except BudgetExceeded:
            findings.append(f"record {row.seq} exceeds the budget")
        except UNREADABLE as error:
            findings.append(f"record {row.seq}: {said(error)}")
            record = None
        if record is not None:
            try:
                account.apply(record)
                # [store:epsilon] readers are shown this number
                if record.event and not _near(account.item(record).alone, record):
                    findings.append(f"record {row.seq} states another epsilon")
            except UNREADABLE as error:
                findings.append(f"record {row.seq}: {said(error)}")
            if record.when < when:
                notes.append(f"the clock went back before record {row.seq}")
            when = record.when
        if head is not None and row.seq == head[0]:
            witness = row.hash
        expected, last = row.seq + 1, row.hash
    if expected == 0:
        findings.append("record 0 is missing")
    if head is not None and witness != head[1]:
        findings.append(
            f"record {head[0]} is not the one seen earlier: the ledger was "
            "truncated or rewritten"
        )
    return Verification(
        terms.name,
        expected,
        (expected - 1, last) if expected else None,
        account.spent(),
        tuple(findings),
        tuple(notes),
    )


def _near(alone: float, record: Record) -> bool:
    """Whether a record's epsilon is what it guarantees, as computed on any machine."""
    return record.epsilon is not None and isclose(alone, record.epsilon, rel_tol=1e-4)


def spent_after(terms: Terms, records: Iterable[Record]) -> list[float]:
    """Return what was spent after each of the records, from the first on."""
    account = Account(terms)
    spent, now = [], 0.0
    for record in records:
        account.apply(record)
        if record.kind in ("charge", "reserve", "cancel", "void"):
            now = account.spent()
        spent.append(now)
    return spent


FORMAT = "tacit ledger export 1"


@dataclass(frozen=True)
class Export:
    """A whole ledger, as stored."""

    terms: str
    genesis: str
    rows: tuple[Row, ...]
    head: Head

    @property
    def records(self) -> tuple[Record, ...]:
        """The records; ValueError if one cannot be read."""
        return tuple(map(read_body, self.rows))

    @property
    def account(self) -> Terms:
        """What was fixed when the account was opened."""
        return Terms.read(self.terms)

    def verify(self, *, head: Head | None = None) -> Verification:
        """Check the file as a ledger is checked, and against its own head."""
        own = examine(self.terms, self.genesis, self.rows, head=head)
        if own.head != self.head:
            ends = "the file does not end with the head it states"
            return replace(own, findings=(*own.findings, ends))
        return own

    def write(self, path: str | Path, *, lines: bool = True) -> Path:
        """Write JSON, one line a record or as a whole."""
        path = Path(path)
        top = {"format": FORMAT, "terms": self.terms, "genesis": self.genesis}
        rows = [row._asdict() for row in self.rows]
        if lines:
            parts: Sequence[Any] = (top, *rows, {"head": list(self.head)})
            text = "".join(json.dumps(part) + "\n" for part in parts)
        else:
            whole = {**top, "records": rows, "head": list(self.head)}
            text = json.dumps(whole, indent=1) + "\n"
        path.write_text(text, encoding="utf-8")
        return path


def read_export(path: str | Path) -> Export:
    """Return what `Export.write` wrote, in either form; ValueError if it is invalid."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        try:
            whole = json.loads(text)
            rows = whole["records"]
        except json.JSONDecodeError:
            whole, *rows = map(json.loads, text.splitlines())
            whole = {**whole, **rows.pop()}
        if whole["format"] != FORMAT:
            raise ValueError
        seq, last = whole["head"]
        return Export(
            str(whole["terms"]),
            str(whole["genesis"]),
            tuple(typed(Row(**row)) for row in rows),
            (int(seq), str(last)),
        )
    except UNREADABLE:
        raise ValueError(
            f"{str(path)!r} is not an export of a ledger, or was truncated; write it "
            "with 'tacit ledger export'."
        ) from None
