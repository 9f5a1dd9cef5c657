"""Nothing private is left out of the search."""

import importlib

from tests.excused import EXCUSED, could_tell
from tests.sensitivity.subjects import BUILT_ON_OTHERS, SUBJECTS

MODULES = (
    "solvers",
    "linear_model",
    "preprocessing",
    "feature_selection",
    "model_selection",
    "streaming",
    "ensemble",
    "recommend",
    "stability",
    "evaluation",
    "fairness",
)
COVERED = {name for subject in SUBJECTS.values() for name in subject.covers}


EXCUSES = {
    *BUILT_ON_OTHERS,
    *(f"{module}.{name}" for module in MODULES for name in EXCUSED[f"tacit.{module}"]),
}


def public_names():
    """Return the public names of all that learns."""
    return {
        f"{module}.{name}"
        for module in MODULES
        for name in could_tell(importlib.import_module(f"tacit.{module}"))
    }


def test_every_public_name_is_searched_or_excused():
    left = public_names() - COVERED - EXCUSES
    assert not left, f"add a subject, or say why none is needed: {sorted(left)}"


def test_no_excuse_is_stale():
    assert public_names() >= COVERED | EXCUSES
    assert not COVERED & EXCUSES
