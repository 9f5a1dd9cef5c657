"""Differentially private learning with scikit-learn's interface.

Budgets, ledgers and reports are here, estimators in the subpackages.
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
