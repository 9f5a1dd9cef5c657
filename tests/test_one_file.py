"""A new loss, set, mechanism, solver or estimator is one source and one test file.

The recipes of the guide for contributors are carried out to the letter in a copy of the
package.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "docs" / "extend" / "recipes.md"
FILE = re.compile(r"^```python\n# ((?:src|tests)/\S+)\n(.*?)^```$", re.M | re.S)
COPIED = ("src/tacit", "tests", "tools", "examples")
# what each recipe adds
ADDED = {
    "src/tacit/convex/pseudo_huber.py": "PseudoHuber",
    "src/tacit/convex/nonnegative_ball.py": "NonnegativeBall",
    "src/tacit/mechanisms/response.py": "RandomizedResponse",
    "src/tacit/solvers/one_step.py": "OneStep",
    "src/tacit/linear_model/_median.py": "MedianRegressor",
}
# shared tests and lists of what there is, which take seconds: all of each is run, as
# what is added could make a test fail that does not mention it
WHOLE = (
    *("convex/test_losses.py", "convex/test_sets.py", "test_plain_numbers.py"),
    *("linear_model/test_solver_names.py", "persistence/test_registries.py"),
    *("sensitivity/test_lists.py", "test_complete.py"),
)
# and those that take minutes, of which what mentions an addition is run
SHARED = (
    *("test_architecture.py", "solvers/test_contract.py"),
    *("linear_model/test_estimators.py", "linear_model/test_sklearn.py"),
    *("persistence/test_models.py", "sensitivity/test_search.py"),
)


def recipes():
    """Return the files of all recipes by their paths."""
    return dict(FILE.findall(RECIPES.read_text("utf-8")))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Return a copy of the repository with what the recipes add."""
    tree = tmp_path_factory.mktemp("tree")
    for area in COPIED:
        shutil.copytree(ROOT / area, tree / area)
    for name in ("pyproject.toml", "docs", "README.md"):
        (tree / name).symlink_to(ROOT / name)
    for name, source in recipes().items():
        assert not (tree / name).exists()
        (tree / name).write_text(source)
    return tree


def stem(name):
    return Path(name).stem


def run(tree, *command):
    """Run a module of Python in a tree, and return what it printed."""
    path = os.pathsep.join([str(tree / "src"), str(tree)])
    done = subprocess.run(
        [sys.executable, "-m", *command],
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "200"},
        cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout


def passed(tree, *names, chosen=""):
    fast = ["-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return run(tree, "pytest", "-q", *fast, "-k", chosen, *names)


def test_each_recipe_is_one_source_file_and_one_test_file():
    added = list(recipes())
    assert added[::2] == list(ADDED)
    assert all(Path(name).name.startswith("test_") for name in added[1::2])


def test_what_a_recipe_adds_is_found_saved_and_complete_and_breaks_no_list(tree):
    own = [name for name in recipes() if name.startswith("tests")]
    status, printed = passed(tree, *own, *(f"tests/{module}" for module in WHOLE))
    assert status == 0, printed


def test_the_command_line_takes_what_recipes_add(tree):
    status, printed = run(tree, "tacit", "fit", "--help")
    assert status == 0
    assert "median" in printed


def test_recipes_have_the_style_of_the_library(tree):
    for check in (["check"], ["format", "--check"]):
        status, printed = run(tree, "ruff", *check, "--no-cache", *recipes())
        assert status == 0, printed


@pytest.mark.slow
@pytest.mark.parametrize("module", SHARED)
def test_shared_tests_take_what_recipes_add(tree, module):
    chosen = " or ".join(["proofs", *ADDED.values(), *map(stem, ADDED)])
    status, printed = passed(tree, f"tests/{module}", chosen=chosen)
    assert status == 0, printed


def test_without_its_test_file_each_is_missed(tree):
    kept = {name: source for name, source in recipes().items() if "tests/" in name}
    for name in kept:
        (tree / name).unlink()
    try:
        status, printed = passed(tree, "tests/test_complete.py")
    finally:
        for name, source in kept.items():
            (tree / name).write_text(source)
    assert status == 1
    missed = re.findall(r"^E .*AssertionError: (.*)$", printed, re.M)
    for name in ADDED.values():
        assert any(name in line for line in missed), printed
