"""Ledgers in a database: durable, shared, and checkable afterwards."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.privacy._store._ledger import StoredLedger
    from tacit.privacy._store._open import datasets, open_ledger
    from tacit.privacy._store._records import Record, Terms
    from tacit.privacy._store._reservation import Reservation
    from tacit.privacy._store._verify import (
        Export,
        Verification,
        read_export,
        spent_after,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Export",
    "Record",
    "Reservation",
    "StoredLedger",
    "Terms",
    "Verification",
    "datasets",
    "open_ledger",
    "read_export",
    "spent_after",
]
