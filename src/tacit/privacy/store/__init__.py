"""Ledgers in a database: durable, shared, and checkable afterwards."""

from tacit.privacy.store._export import Export, read_export
from tacit.privacy.store._ledger import StoredLedger
from tacit.privacy.store._open import datasets, open_ledger
from tacit.privacy.store._records import Record, Terms
from tacit.privacy.store._reservation import Reservation
from tacit.privacy.store._verify import Verification, spent_after

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
