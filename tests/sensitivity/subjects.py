"""All that is private in the package; `tests.excused` says what needs no search."""

from tests.sensitivity.asking import labelers, procedures, recommenders
from tests.sensitivity.fitting import (
    linear_models,
    questions,
    selectors,
    transformers,
)
from tests.sensitivity.solving import solvers
from tests.sensitivity.streaming import incremental, online

__all__ = ["BUILT_ON_OTHERS", "FAMILIES", "SUBJECTS"]

FAMILIES = {
    "solvers": solvers,
    "linear_model": linear_models,
    "preprocessing": transformers,
    "feature_selection": selectors,
    "questions": questions,
    "online": online,
    "incremental": incremental,
    "ensemble": labelers,
    "stability": procedures,
    "recommend": recommenders,
}
SUBJECTS = {
    f"{family}: {subject.name}": subject
    for family, subjects in FAMILIES.items()
    for subject in subjects()
}

# names that are audited, and stand on others that are searched
BUILT_ON_OTHERS = {
    "ensemble.PrivateStudent": "a PrivateLabeler, and what learns from its answers",
}
