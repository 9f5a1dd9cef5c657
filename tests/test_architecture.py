"""Rules about the source that no linter states."""

import ast
import importlib
import inspect
import io
import pkgutil
import re
import subprocess
import tokenize
import tomllib
from pathlib import Path

import pytest
from tools.house import deep_classes, long_functions, wide_constructors

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tacit"
GUARANTEES = ROOT / "docs" / "guarantees"

MAKERS = {"default_rng", "RandomState"}
# a generator is always called rng here, so whatever is called on it is a draw
GENERATOR = "rng"
# mechanisms draw noise, _random makes generators, datasets invent people
MAY_DRAW = {"mechanisms", "_random.py", "datasets"}

# what admits and records charges, and the one path of release that makes them
MAY_CHARGE = {"privacy", "_release.py"}

# what is charged for by others
ALGORITHMS = {"mechanisms", "solvers"}

TAG = r"[\w-]+:[\w-]+"


def sources():
    return sorted(SOURCE.rglob("*.py"))


def relative(path):
    return path.relative_to(SOURCE).as_posix()


def forbidden_calls(code):
    """Lines of ``code`` that make a generator or draw from one."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Attribute) and (
            function.attr in MAKERS
            or (isinstance(function.value, ast.Name) and function.value.id == GENERATOR)
        ):
            found.append(node.lineno)
        if isinstance(function, ast.Name) and function.id in MAKERS:
            found.append(node.lineno)
    return found


def charges(code):
    """Lines of ``code`` that charge a ledger."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "charge"
    ]


def tags_in_code(code):
    """Proof tags that open a comment of ``code``."""
    tags = set()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            opening = re.match(rf"#\s*((?:\[{TAG}\]\s*)+)", token.string)
            if opening:
                tags |= set(re.findall(rf"\[({TAG})\]", opening.group(1)))
    return tags


def tags_in_docs(text):
    return set(re.findall(rf"`\[({TAG})\]`", text))


def packages():
    """Names of tacit and of its public packages."""
    walk = pkgutil.walk_packages([str(SOURCE)], prefix="tacit.", onerror=lambda _: None)
    names = [info.name for info in walk if info.ispkg]
    return ["tacit", *(n for n in names if "._" not in n)]


@pytest.mark.parametrize(
    "path",
    [p for p in sources() if p.relative_to(SOURCE).parts[0] not in MAY_DRAW],
    ids=relative,
)
def test_noise_and_generators_come_only_from_their_modules(path):
    assert forbidden_calls(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "call", [*(f"numpy.random.{name}(x)" for name in sorted(MAKERS)), "rng.random(3)"]
)
def test_a_forbidden_call_would_be_seen(call):
    assert forbidden_calls(f"x = 1\ny = {call}") == [2]


@pytest.mark.parametrize(
    "path",
    [p for p in sources() if p.relative_to(SOURCE).parts[0] not in MAY_CHARGE],
    ids=relative,
)
def test_ledgers_are_charged_on_the_one_path_of_release(path):
    assert charges(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "path",
    [p for p in sources() if p.relative_to(SOURCE).parts[0] in ALGORITHMS],
    ids=relative,
)
def test_algorithms_do_not_charge(path):
    assert "charged_run" not in path.read_text(encoding="utf-8")


def test_a_charge_elsewhere_would_be_seen():
    assert charges("x = report.charge\nledger.charge(event, label)") == [2]
    (only,) = charges((SOURCE / "_release.py").read_text(encoding="utf-8"))
    assert only


def test_a_mention_is_not_a_call():
    assert forbidden_calls('"""Call rng.normal(0)."""\nlaw = scipy.stats.laplace') == []


@pytest.mark.parametrize("name", packages())
def test_public_names_have_docstrings(name):
    package = importlib.import_module(name)
    assert package.__doc__
    for public in getattr(package, "__all__", []):
        thing = getattr(package, public)
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        # a dataclass without a docstring is given its signature as one
        written = thing.__doc__ and not thing.__doc__.startswith(f"{public}(")
        assert written, f"{name}.{public} has no docstring"


JUDGES = [name for name in ("audit", "fairness") if (SOURCE / name).is_dir()]


@pytest.mark.parametrize("name", JUDGES)
def test_packages_that_judge_from_outside_are_held_to_it(name):
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    outside = next(c for c in contracts if c["name"].endswith("look from outside"))
    assert f"tacit.{name}" in outside["source_modules"]


def test_proofs_and_code_have_the_same_tags():
    sourced = [p.read_text("utf-8") for p in sources()]
    code = set().union(*map(tags_in_code, sourced))
    # a short proof stands in the notes of what it is about
    pages = sourced + [p.read_text("utf-8") for p in GUARANTEES.rglob("*.md")]
    docs = set().union(*(tags_in_docs(page) for page in pages))
    assert code - docs == set(), "tags in the code that no proof explains"
    assert docs - code == set(), "tags in a proof that the code lacks"


def test_tables_of_tags_name_the_files_that_have_them():
    wrong = [
        (page.name, tag, file)
        for page in GUARANTEES.glob("*.md")
        for tag, file in re.findall(
            rf"^\| `\[({TAG})\]` \| `([^`]+)`", page.read_text("utf-8"), re.M
        )
        if tag not in tags_in_code((SOURCE / file).read_text("utf-8"))
    ]
    assert wrong == []


def test_tags_are_read_from_comments_and_pages():
    code = "x = a[lo:hi]  # rows a[lo:hi]\n# [amp:ridge] [amp:tilt]\ny = '# [no:tag]'\n"
    assert tags_in_code(code) == {"amp:ridge", "amp:tilt"}
    assert tags_in_docs("see `[amp:ridge]`, and [a:b]") == {"amp:ridge"}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="files are those of git")
@pytest.mark.parametrize(
    "limit", [long_functions, wide_constructors, deep_classes], ids=lambda f: f.__name__
)
def test_what_is_over_a_limit_of_the_house_is_argued(limit):
    missing = [str(found) for found in limit(ROOT) if found.reason is None]
    assert not missing, "split it, or argue in a comment # long:, # wide: or # deep:"


def test_what_is_not_argued_would_be_seen(tmp_path):
    long = ["def f():", '    """Do."""', *["    x = 1"] * 41]
    wide = ["@dataclass", "class W:", *(f"    x{i}: int" for i in range(13))]
    deep = ["class A: ...", "class B(A): ...", "class C(B): ..."]
    argued = [*long[:2], "    # long: it is", *long[2:], "# wide: it is", *wide]
    code = [*long, *wide, *deep, *argued, "# deep: it is", "class D(B): ..."]
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "module.py").write_text("\n".join(code))
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for limit, name in ((long_functions, "f"), (wide_constructors, "W")):
        assert [(x.name, x.reason) for x in limit(tmp_path)] == [
            (name, None),
            (name, "it is"),
        ]
    found = deep_classes(tmp_path)
    assert [(x.name, x.reason) for x in found] == [("C", None), ("D", "it is")]
