"""Differentially private learning with scikit-learn's interface.

Budgets, ledgers and reports are here, estimators in the subpackages.
"""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit._random import Seed, reproducible_noise
    from tacit.exceptions import BudgetExceeded, PlanError
    from tacit.privacy import Budget, Ledger, Neighbors, PrivacyReport
else:
    __getattr__, __dir__ = lazy_names(__name__)

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
