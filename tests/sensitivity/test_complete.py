"""Nothing private is left out of the search."""

import importlib

import pytest
from tests.sensitivity.subjects import EXCUSED, SUBJECTS

MODULES = (
    "solvers",
    "linear_model",
    "preprocessing",
    "feature_selection",
    "model_selection",
    "online",
    "incremental",
    "ensemble",
    "recommend",
    "stability",
    "inference",
    "fairness",
)
COVERED = {name for subject in SUBJECTS.values() for name in subject.covers}


def public_names():
    """Return the public names of all that learns, but for plans."""
    for module in MODULES:
        for name in importlib.import_module(f"tacit.{module}").__all__:
            yield f"{module}.{name}"


def is_plan(name, names):
    """Return whether this is the plan of another name, made of public facts."""
    return name.endswith("Plan") and name.removesuffix("Plan") in names


def test_every_public_name_is_searched_or_excused():
    names = set(public_names())
    left = {n for n in names - COVERED - EXCUSED.keys() if not is_plan(n, names)}
    assert not left, f"add a subject, or say why none is needed: {sorted(left)}"


def test_no_excuse_is_stale():
    names = set(public_names())
    assert names >= EXCUSED.keys()
    assert names >= COVERED
    assert not COVERED & EXCUSED.keys()


@pytest.mark.parametrize("name", EXCUSED)
def test_every_excuse_is_given_in_words(name):
    assert EXCUSED[name].strip()
