"""The ledger of a data set for a page of limited size."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tacit.reports._format import (
    NOTHING,
    TIMES,
    clean,
    number_up,
    spent_up,
    stamp,
    tiny_up,
)

__all__ = ["Account", "account_of", "thinned"]

# Beyond these a chart or a table is thinned, and says so
MOST_STEPS = 480
MOST_MARKS = 80
MOST_ROWS = 60
FIRST_ROWS = 10
MOST_PEOPLE = 40

_MARKED = ("charge", "reserve", "cancel", "void", "allow")

Row = dict[str, Any]


# wide: one field for each fact of the page
@dataclass(frozen=True)
class Account:
    """The parts of a ledger that a page shows."""

    dataset: str
    budget: dict[str, Any]
    spent: float
    n_records: int
    steps: list[Row]
    marks: list[Row]
    kinds: list[tuple[str, int]]
    people: list[Row]
    n_people: int
    rows: list[Row]
    n_hidden: int
    head: str | None
    last: int
    as_of: str | None
    assumptions: list[str]

    @property
    def n_charges(self) -> int:
        """Number of charges that count: those that were not voided."""
        found = dict(self.kinds)
        return found.get("charge", 0) - found.get("void", 0)

    @property
    def is_thinned(self) -> bool:
        """Whether the chart shows fewer steps than there are records."""
        return len(self.steps) < self.n_records

    @property
    def hides_marks(self) -> bool:
        """Whether some records have a step but no mark."""
        marked = sum(n for kind, n in self.kinds if kind in _MARKED)
        return len(self.marks) < marked


def account_of(ledger: dict[str, Any] | None) -> Account | None:
    """Return the account from the entry ``ledger`` of the facts."""
    if ledger is None:
        return None
    records = list(ledger.get("records") or ())
    steps = _steps(records)
    people = _people(records)
    hidden = max(0, len(records) - MOST_ROWS)
    shown = (
        records
        if not hidden
        else records[:FIRST_ROWS] + records[-(MOST_ROWS - FIRST_ROWS) :]
    )
    rows = [_row(record) for record in shown]
    if hidden:
        rows[FIRST_ROWS]["gap"] = hidden
    return Account(
        dataset=clean(ledger["dataset"]),
        budget=ledger["budget"],
        spent=float(ledger["spent"]),
        n_records=len(records),
        steps=thinned(steps),
        marks=_marks(steps),
        kinds=Counter(clean(r.get("kind", "")) for r in records).most_common(),
        people=people[:MOST_PEOPLE],
        n_people=len(people),
        rows=rows,
        n_hidden=hidden,
        head=_head(records),
        last=max((step["seq"] for step in steps), default=0),
        as_of=ledger.get("as_of"),
        assumptions=[clean(text) for text in ledger.get("assumptions") or ()],
    )


def _head(records: list[Row]) -> str | None:
    """Return number and hash of the last record, as ``tacit ledger verify`` takes them.

    It is copied into a command line, so nothing but a hash is accepted.
    """
    if not records:
        return None
    seq, digest = records[-1].get("seq"), str(records[-1].get("hash"))
    if seq is None or not re.fullmatch("[0-9a-fA-F]{8,128}", digest):
        return None
    return f"{int(seq)}:{digest}"


def _steps(records: list[Row]) -> list[Row]:
    """Return the spend after each record; without one, the spend before it."""
    spent = 0.0
    steps = []
    for position, record in enumerate(records):
        after = record.get("spent_after")
        spent = spent if after is None else float(after)
        seq = record.get("seq")
        steps.append(
            {
                "seq": position if seq is None else int(seq),
                "spent": spent,
                "kind": clean(record.get("kind", "")),
            }
        )
    return steps


def thinned(steps: list[Row], most: int = MOST_STEPS) -> list[Row]:
    """Return at most ``most`` steps: first, lowest, highest and last of each group.

    Every rise and fall of the spend stays visible; only its position in a group of
    consecutive records is lost.
    """
    if len(steps) <= most:
        return steps
    n_groups = most // 4
    kept: list[Row] = []
    for group in range(n_groups):
        start, stop = (len(steps) * k // n_groups for k in (group, group + 1))
        by_spend = sorted(range(start, stop), key=lambda i: steps[i]["spent"])
        positions = {start, by_spend[0], by_spend[-1], stop - 1}
        kept += [steps[i] for i in sorted(positions)]
    return kept


def _marks(steps: list[Row]) -> list[Row]:
    """Return the records drawn as marks; without charges if there are too many."""
    marked = [step for step in steps if step["kind"] in _MARKED]
    if len(marked) <= MOST_MARKS:
        return marked
    others = [step for step in marked if step["kind"] != "charge"]
    return others[-MOST_MARKS:]


def _people(records: list[Row]) -> list[Row]:
    """Return the records of each person by kind, most records first."""
    found: dict[tuple[str, str], Row] = {}
    own: dict[str, str] = {}
    for record in records:
        writer = clean(record.get("who") or NOTHING)
        if record.get("kind") == "allow":
            # an allowance names the analyst who may spend, not the one who wrote it
            who = writer, own.get(writer, NOTHING)
        else:
            who = writer, clean(record.get("analyst") or NOTHING)
            own[writer] = who[1]
        person = found.setdefault(
            who,
            {"who": who[0], "analyst": who[1], "kinds": Counter(), "last": ""},
        )
        person["kinds"][clean(record.get("kind", ""))] += 1
        person["last"] = record.get("when") or person["last"]
    people = sorted(found.values(), key=lambda p: -p["kinds"].total())
    for person in people:
        person["last"] = stamp(person["last"]) if person["last"] else NOTHING
        kinds: Counter[str] = person["kinds"]
        person["did"] = ", ".join(
            f"{kind} {TIMES} {n:,}" for kind, n in kinds.most_common()
        )
    return people


def _row(record: Row) -> Row:
    kind = clean(record.get("kind", ""))
    writer = clean(record.get("who") or NOTHING)
    analyst = clean(record.get("analyst") or NOTHING)
    notes = []
    if kind == "allow":
        notes.append(f"{analyst} may spend {_amount(record.get('promise'))}")
    if record.get("refers_to") is not None:
        notes.append(f"refers to record {clean(record['refers_to'])}")
    if record.get("reason"):
        notes.append(clean(record["reason"]))
    return {
        "seq": clean(NOTHING if record.get("seq") is None else record["seq"]),
        "kind": kind,
        "when": stamp(record.get("when") or NOTHING),
        "by": writer if kind == "allow" or analyst == NOTHING else analyst,
        "label": clean(record.get("label") or ""),
        "epsilon": number_up(record.get("epsilon")),
        "spent": spent_up(record.get("spent_after")),
        "seeded": bool(record.get("seeded")),
        "notes": "; ".join(notes),
        "gap": 0,
    }


def _amount(guarantee: Any) -> str:
    if guarantee is None:
        return "nothing"
    return f"ε = {number_up(guarantee['epsilon'])}, δ = {tiny_up(guarantee['delta'])}"
