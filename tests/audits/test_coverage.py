"""Every public mechanism, solver and estimator is attacked by some audit."""

import importlib
import re
from pathlib import Path

import pytest
from tests.audits.subjects import AUDITED
from tests.excused import EXCUSED, could_tell

AUDITS = Path(__file__).parent

each_package = pytest.mark.parametrize("package", AUDITED)


@each_package
def test_every_public_name_is_audited_or_excused(package):
    listed = {*AUDITED[package], *EXCUSED.get(package, {})}
    public = could_tell(importlib.import_module(package))
    assert public - listed == set(), "list it in tests.audits.subjects, or excuse it"
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
            assert re.search(rf"\b{name}\b", text), f"{module} does not mention {name}"


@each_package
def test_every_excuse_is_given_in_words(package):
    assert all(reason.strip() for reason in EXCUSED.get(package, {}).values())


def test_a_new_name_without_an_audit_would_be_seen():
    class Module:
        __all__ = ("LIMIT", "NewMechanism", "NewMechanismPlan")
        LIMIT = 1.0

        class NewMechanism: ...

        class NewMechanismPlan: ...

    assert could_tell(Module) == {"NewMechanism"}
