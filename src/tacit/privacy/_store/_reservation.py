"""Reservations: budget that is set aside for a charge that comes later."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from tacit.privacy._store._records import Record
from tacit.privacy.report import Entry

if TYPE_CHECKING:
    from tacit.privacy._store._ledger import StoredLedger

__all__ = ["Reservation"]


class Reservation:
    """Budget of a ledger that is set aside until it is charged or given back.

    Made by `StoredLedger.reserve`. Leaving its ``with`` block without a charge gives
    the budget back. After an error the reservation stays open, as when a process is
    killed: whether a run failed can depend on the rows, and others read the history.
    `cancel` then gives the budget back.

    Notes
    -----
    **Guarantee.** A reservation counts like a charge from the moment it is made, so its
    own charge always fits, and is made at most once. Nothing may be released before
    `charge`.
    """

    def __init__(self, ledger: StoredLedger, record: Record) -> None:
        self._ledger = ledger
        self._record = record
        self._closed = False

    @property
    def seq(self) -> int:
        """Sequence number of the reservation in the ledger's history."""
        return self._record.seq

    def charge(self, *, seeded: bool = False) -> Entry:
        """Turn the reservation into the charge, once.

        Parameters
        ----------
        seeded
            Whether the randomness comes from a fixed seed, for the report.
        """
        self._open()
        entry = self._ledger._settle(self._record, bool(seeded))
        self._closed = True
        return entry

    def cancel(self, reason: str = "") -> None:
        """Give the budget back; nothing of the run was or will be released."""
        self._open()
        self._ledger.cancel(self.seq, reason)
        self._closed = True

    def _open(self) -> None:
        if self._closed:
            raise ValueError(
                f"The reservation {self.seq} was charged or cancelled before."
            )

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # [store:silent] an error may depend on the rows, so the history does not show
        # it
        if not self._closed and kind is None:
            self.cancel("left without a charge")

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"Reservation(seq={self.seq}, label={self._record.label!r}, {state})"
