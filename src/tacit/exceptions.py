"""Exceptions of the library.

::

    ValueError
    └── PlanError          no plan exists for this problem and this budget
    RuntimeError
    ├── BudgetExceeded     a charge would exceed the budget; nothing was charged
    ├── LedgerUnavailable  the database of a ledger cannot be used now
    └── LedgerDamaged      the records of a ledger's database were changed
    UserWarning
    └── NoiseWarning       the noise of a plan exceeds any signal; not charged yet
"""

__all__ = [
    "BudgetExceeded",
    "LedgerDamaged",
    "LedgerUnavailable",
    "NoiseWarning",
    "PlanError",
]


class PlanError(ValueError):
    """No private plan exists for this request; the message says what to change."""


class BudgetExceeded(RuntimeError):
    """A charge would exceed the budget; nothing was charged."""


class LedgerUnavailable(RuntimeError):
    """The database of a ledger cannot be used now; nothing was run."""


class LedgerDamaged(RuntimeError):
    """The records of a ledger were changed outside of it; nothing was run."""


class NoiseWarning(UserWarning):
    """The noise of a plan exceeds any signal; a fit warns before its charge."""
