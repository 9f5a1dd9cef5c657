"""Every private algorithm has an audit, a sensitivity search and a proof page."""

import re
import sys
from pathlib import Path

import pytest
from tests.cases import audited, cases
from tests.excused import EXCUSED, could_leak, excused, subjects
from tests.sensitivity.subjects import SUBJECTS
from tests.test_architecture import GUARANTEES, tags_in_code

from tacit._discovery import declaring
from tacit.convex.regularizers import CoordinatePenalty
from tacit.persistence._kinds import saved_kinds
from tacit.persistence._values import decode, encode, saved_parts

SEARCHED = {name for subject in SUBJECTS.values() for name in subject.covers}
# A mechanism is searched where it is used, and its own tests attack it
NOT_SEARCHED = ("tacit.mechanisms", "tacit.mechanisms.continual")
PAGES = " ".join(page.read_text("utf-8") for page in GUARANTEES.glob("*.md"))

each_package = pytest.mark.parametrize("package", EXCUSED)


@each_package
def test_every_subject_has_an_audit(package):
    missing = subjects(package).keys() - audited()
    assert not missing, f"declare audits= in SHARED_CASES: {missing}"


@each_package
def test_every_subject_has_a_sensitivity_search(package):
    names = set() if package in NOT_SEARCHED else set(subjects(package))
    missing = names - {name.rpartition(".")[2] for name in SEARCHED}
    assert not missing, f"declare searches= in SHARED_CASES: {missing}"


@each_package
def test_every_subject_has_a_proof_page(package):
    missing = {name for name, s in subjects(package).items() if not has_proof(name, s)}
    assert not missing, f"write **Guarantee.** and a page in docs/guarantees: {missing}"


def has_proof(name, subject):
    """Whether a page names a subject, its module has a tag of one, or it runs others.

    `tests.test_architecture` compares tags and pages.
    """
    tags = tags_in_code(Path(sys.modules[subject.__module__].__file__).read_text())
    runs_others = hasattr(subject, "fit") or hasattr(subject, "partial_fit")
    proved = tags or runs_others or re.search(rf"\b{name}\b", PAGES)
    return proved and "**Guarantee.**" in subject.__doc__


def test_every_part_of_a_problem_is_examined():
    declared = [*cases("losses"), *cases("sets"), *cases("regularizers")]
    # it has a fixed size, and tests of its own
    examined = {CoordinatePenalty, *map(type, declared)}
    missing = set(declaring("saved", "tacit.convex")) - examined
    assert not missing, f"declare losses=, sets= or regularizers= for {missing}"


def test_every_solver_and_linear_model_that_is_saved_is_fitted_and_read_back():
    models = {kind.make for kind in saved_kinds().values()}
    missing = {
        kind
        for kind in models
        if kind.__module__.startswith("tacit.linear_model")
        and kind not in map(type, cases("estimators"))
    }
    assert not missing, f"declare estimators= for {missing}"


@pytest.mark.parametrize("kind", ["losses", "sets", "regularizers", "solvers"])
def test_declared_parts_are_read_as_they_were_saved(kind):
    for part in cases(kind):
        assert decode(encode(part, kind), kind) == part
        assert type(part) in saved_parts().values()


def test_nothing_is_declared_that_is_no_subject():
    names = {package: set(subjects(package)) for package in EXCUSED}
    assert audited().keys() <= set().union(*names.values())
    every = {f"{package[6:]}.{name}" for package in names for name in names[package]}
    assert every >= SEARCHED
    for package in EXCUSED:
        assert excused(package) <= could_leak(sys.modules[package]) | own(package)


def own(package):
    """Names that the modules of a package define."""
    loaded = [m for name, m in sys.modules.items() if name.startswith(package)]
    return {name for module in loaded for name in vars(module)}


@pytest.mark.parametrize(("name", "modules"), audited().items())
def test_audits_mention_what_they_declare(name, modules):
    for module in modules:
        source = Path(*module.split(".")).with_suffix(".py").read_text("utf-8")
        mentions = len(re.findall(rf"\b{name}\b", source))
        assert mentions > 1, f"{module} does not mention {name}"


def test_a_new_name_without_an_audit_would_be_seen():
    class Module:
        __all__ = ("LIMIT", "NewMechanism", "NewMechanismPlan")
        LIMIT = 1.0

        class NewMechanism: ...

        class NewMechanismPlan: ...

    assert could_leak(Module) == {"NewMechanism"}
