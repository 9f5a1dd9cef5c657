"""Private selection among models, with every fit and score charged.

`PrivateSearchCV` tries candidates a secret number of times and keeps the one with the
best noisy score. `private_choice` chooses between models that are fitted already, and
`private_accuracy` and `private_rmse` say how good one is.
"""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.model_selection._choice import (
        Choice,
        private_accuracy,
        private_choice,
        private_rmse,
    )
    from tacit.model_selection._plan import SearchPlan
    from tacit.model_selection._search import PrivateSearchCV
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Choice",
    "PrivateSearchCV",
    "SearchPlan",
    "private_accuracy",
    "private_choice",
    "private_rmse",
]
