"""Errors that are ours.

::

    ValueError
    └── PlanError          no plan exists for this problem and this budget
    RuntimeError
    └── BudgetExceeded     a charge would pass the budget; nothing was charged
"""

__all__ = ["BudgetExceeded", "PlanError"]


class PlanError(ValueError):
    """No private plan exists for what was asked; the message says what would do."""


class BudgetExceeded(RuntimeError):
    """A charge would bring the spend over the budget; nothing was charged."""
