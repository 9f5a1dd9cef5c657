"""Every public mechanism, solver and estimator is attacked by some audit."""

import importlib
import inspect
from pathlib import Path

import pytest
from tests.audits.subjects import AUDITED, EXCUSED

AUDITS = Path(__file__).parent
# what only says what another thing will do or holds what it has done
PARTS = ("Plan", "State")

each_package = pytest.mark.parametrize("package", AUDITED)


def subjects(module):
    """Return the public names of a module that could tell on a row."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        name
        for name, thing in found.items()
        if (inspect.isclass(thing) or inspect.isroutine(thing))
        and not getattr(thing, "_is_protocol", False)
        and not name.endswith(PARTS)
    }


@each_package
def test_every_public_name_is_audited_or_excused(package):
    listed = {*AUDITED[package], *EXCUSED.get(package, {})}
    public = subjects(importlib.import_module(package))
    assert public - listed == set(), "names without an audit: see tests.audits.subjects"
    assert listed - public == set(), "names that are no longer public"


@each_package
def test_no_name_is_both_audited_and_excused(package):
    assert not set(AUDITED[package]) & set(EXCUSED.get(package, {}))


@each_package
def test_audits_speak_of_what_they_are_listed_for(package):
    for name, modules in AUDITED[package].items():
        assert modules, f"{name} has no audit"
        for module in modules:
            text = (AUDITS / f"{module}.py").read_text("utf-8")
            assert name in text, f"{module} does not mention {name}"


def test_a_new_name_without_an_audit_would_be_seen():
    class Module:
        __all__ = ("LIMIT", "NewMechanism", "NewMechanismPlan")
        LIMIT = 1.0

        class NewMechanism: ...

        class NewMechanismPlan: ...

    assert subjects(Module) == {"NewMechanism"}
