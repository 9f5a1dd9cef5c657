"""Errors that are ours.

::

    ValueError
    └── PlanError          no plan exists for this problem and this budget
    RuntimeError
    ├── BudgetExceeded     a charge would pass the budget; nothing was charged
    ├── LedgerUnavailable  the database of a ledger cannot be used now
    └── LedgerDamaged      what a ledger's database holds is not what was written
"""

__all__ = ["BudgetExceeded", "LedgerDamaged", "LedgerUnavailable", "PlanError"]


class PlanError(ValueError):
    """No private plan exists for what was asked; the message says what would do."""


class BudgetExceeded(RuntimeError):
    """A charge would bring the spend over the budget; nothing was charged."""


class LedgerUnavailable(RuntimeError):
    """The database of a ledger cannot be used now; nothing was run."""


class LedgerDamaged(RuntimeError):
    """The records of a ledger were changed outside of it; nothing was run."""
