"""Models that learn from people without telling on them.

The estimators live in `tacit.linear_model`; budgets and ledgers, which every part of
the library speaks of, are here.
"""

from tacit._random import Seed, reproducible_noise
from tacit.exceptions import BudgetExceeded, PlanError
from tacit.privacy import Budget, Ledger, Neighbors, PrivacyReport

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Ledger",
    "Neighbors",
    "PlanError",
    "PrivacyReport",
    "Seed",
    "reproducible_noise",
]
