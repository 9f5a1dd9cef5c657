"""Public names are imported at their first use, and nothing that is unused."""

import importlib
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.test_public_names import packages

import tacit
from tacit._discovery import (
    class_by,
    class_named,
    classes_by,
    declares,
    declaring,
)
from tacit._lazy import homes_of
from tacit.cli import main
from tacit.persistence._kinds import SAVED_IN, kind_named, saved_kinds
from tacit.persistence._values import MODELS, PARTS, saved_models, saved_parts

SOURCE = Path(tacit.__file__).parents[1]
LAZY = [p for p in packages() if homes_of(p)]

# Slow to import, and needed by a part of the library only
HEAVY = {
    *("dp_accounting", "jinja2", "llvmlite", "matplotlib", "numba", "rich", "skops"),
    *("sqlalchemy", "click"),
    *("sklearn.linear_model", "sklearn.neighbors", "sklearn.covariance"),
    *("sklearn.feature_selection", "sklearn.decomposition", "sklearn.ensemble"),
    *("sklearn.discriminant_analysis", "sklearn.model_selection"),
}
# Packages that no linear model of all columns needs
OTHERS = {
    *("tacit.audit.run", "tacit.ensemble", "tacit.feature_selection"),
    *("tacit.recommend.solvers", "tacit.stability", "tacit.streaming"),
    *("tacit.model_selection", "tacit.fairness", "tacit.mechanisms.continual"),
}
# The rule chooses one solver; this is another
UNUSED_SOLVERS = {"tacit.solvers.objective_perturbation", "tacit.solvers.frank_wolfe"}

FIT = """
from tacit.datasets import make_census
from tacit.linear_model import LogisticRegression
census = make_census(500, random_state=0)
model = LogisticRegression(1.0, x_norm=census.x_norm, classes=[0, 1])
model.fit(census.X, census.y)
"""
FIT_COMMANDS = """
example census.csv --rows 2000
schema init census.csv --target high_income --out census.toml
schema confirm census.toml --all
ledger init --ledger sqlite:///b.db --dataset census --epsilon 2 --delta 1e-5
fit census.csv --schema census.toml --epsilon 1 --ledger sqlite:///b.db --out model
"""
SAVE = """
import tempfile
from tacit.persistence import load_model, save_model
with tempfile.TemporaryDirectory() as folder:
    load_model(save_model(model, folder + "/model"))
"""


def loaded_by(code):
    """Return the modules that a new process has after this code."""
    script = f"import sys\nsys.path.insert(0, {str(SOURCE)!r})\n{code}\n"
    script += "print('loaded', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("package", ["tacit", "tacit.linear_model", "tacit.solvers"])
def test_a_package_loads_no_other_library(package):
    found = loaded_by(f"import {package}")
    assert not {"numpy", "scipy", "sklearn"} & found
    assert sum(name.startswith("tacit") for name in found) <= 4


def test_a_model_loads_what_it_needs():
    found = loaded_by("from tacit.linear_model import LogisticRegression")
    assert not (HEAVY | OTHERS | UNUSED_SOLVERS) & found
    # 46 when this was written, 131 before names were loaded at their first use
    assert sum(name.startswith("tacit") for name in found) < 70


def test_a_default_fit_loads_one_solver_and_saves_without_others():
    found = loaded_by(FIT + SAVE)
    assert "tacit.solvers.preconditioned_gd" in found
    assert not (OTHERS | UNUSED_SOLVERS) & found


def test_the_command_line_shows_help_without_numerical_libraries():
    code = "from contextlib import suppress\nfrom tacit.cli import main\n"
    found = loaded_by(f"{code}with suppress(SystemExit):\n    main(['--version'])")
    assert not {"numpy", "sklearn", "sqlalchemy", "jinja2"} & found


def test_tacit_fit_loads_what_it_uses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    *before, fit = FIT_COMMANDS.strip().splitlines()
    for line in before:
        with pytest.raises(SystemExit, match=r"^0$"):
            main(line.split())
    code = "from contextlib import suppress\nfrom tacit.cli import main\n"
    found = loaded_by(f"{code}with suppress(SystemExit):\n    main({fit.split()})")
    assert (tmp_path / "model" / "model.json").exists()
    unused = {"skops", "dp_accounting", "matplotlib", "sklearn.linear_model"}
    assert not (OTHERS | UNUSED_SOLVERS | unused) & found
    # 116 when this was written, 341 before
    assert sum(name.startswith("tacit") for name in found) < 150


@pytest.mark.parametrize("package", LAZY)
def test_lazy_names_are_all_public_and_found(package):
    module, homes = importlib.import_module(package), homes_of(package)
    assert homes.keys() == set(module.__all__) - {"__version__"}
    assert set(module.__all__) <= set(dir(module))
    for name, home in homes.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)
    # the import of a module of this name would hide the public one
    assert not set(homes) & {
        each.name for each in pkgutil.iter_modules(module.__path__)
    }


def test_most_packages_are_lazy():
    assert len(LAZY) >= 20


def test_other_names_are_missing():
    for name in ("nothing", "__nothing__"):
        with pytest.raises(AttributeError, match=f"'tacit.convex' has no .*'{name}'"):
            getattr(tacit.convex, name)
    with pytest.raises(ImportError, match="cannot import name"):
        exec("from tacit.linear_model import Nothing")


def test_modules_are_attributes_of_their_package():
    found = loaded_by("import tacit\ntacit.privacy.budget.Budget(1.0)")
    assert "tacit.privacy.budget" in found
    assert "tacit.privacy.ledger" not in found


def test_an_import_that_fails_inside_a_module_is_not_a_missing_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "tacit.tables._growing", raising=False)
    monkeypatch.delattr(importlib.import_module("tacit.tables"), "GrowingTable", False)
    with pytest.raises(ModuleNotFoundError, match="pyarrow"):
        _ = tacit.tables.GrowingTable


def test_objects_of_lazy_packages_are_pickled():
    code = "import pickle, sys\nfrom tacit.convex import L1\n"
    code += "sys.stdout.write(pickle.dumps(L1(2.0), 0).hex() + chr(10))\n"
    script = f"import sys\nsys.path.insert(0, {str(SOURCE)!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert pickle.loads(bytes.fromhex(done.stdout)) == tacit.convex.L1(2.0)


@pytest.mark.parametrize(
    ("fact", "package"),
    [
        ("name", "tacit.solvers"),
        ("name", "tacit.feature_selection"),
        ("model_name", "tacit.linear_model"),
    ],
)
def test_one_class_is_found_as_among_all(fact, package):
    for value, kind in classes_by(fact, package).items():
        assert class_by(fact, value, package) is kind
    assert class_by(fact, "nothing", package) is None


@pytest.mark.parametrize("packages", [SAVED_IN, PARTS, (MODELS,)])
def test_saved_classes_are_found_by_name_and_nothing_else_is(packages):
    for kind in declaring("saved", *packages):
        assert declares(kind, "saved", *packages)
        assert class_named(kind.__name__, "saved", *packages) is not None
    assert not declares(int, "saved", *packages)
    assert class_named("object", "saved", *packages) is None
    assert class_named(".*", "saved", *packages) is None


def test_registries_and_single_lookups_agree():
    for name, kind in saved_kinds().items():
        assert kind_named(name) == kind
    for name, kind in saved_parts().items():
        assert class_named(name, "saved", *PARTS) is kind
    for name, kind in saved_models().items():
        assert class_named(name, "saved", MODELS) is kind


def test_an_imposter_is_not_declared():
    imposter = type(
        "L1", (), {"saved": True, "__module__": "tacit.convex.regularizers"}
    )
    assert not declares(imposter, "saved", *PARTS)
