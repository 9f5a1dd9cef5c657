"""A ledger as a file that can be checked without the database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit.privacy.store._records import (
    UNREADABLE,
    Record,
    Row,
    Terms,
    read_body,
    typed,
)
from tacit.privacy.store._verify import Head, Verification, examine

__all__ = ["Export", "read_export"]

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
