"""Sizes and words of two trees, side by side.

``python -m tools.house OLD NEW`` prints how large each tree is, what it offers and how
much of that is documented, how much code a first fit crosses, and how many lines speak
a word that the field does not use so. A tree is a worktree of this repository.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
AREAS = ("src", "tests", "docs", "examples", "benchmarks", "tools")
WRITTEN = (".py", ".md", ".rst", ".toml", ".html", ".css", ".sh", ".yml")
# Guides, where a tree keeps them
GUIDES = ("docs/use", "docs/trust", "docs/extend", "docs/guide", "docs/guarantees")
MOST_LINES, MOST_PARAMETERS = 40, 12

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef

# Expressions for words that have a better one, in lines whose identifiers are split
HOUSE_WORDS = (
    r"tells?|told|telling",
    r"cuts?|cutting|shorten\w*",
    r"places?",
    r"slopes?",
    r"promis\w*",
    r"made up",
    r"whole numbers?",
    r"refus\w*",
    r"asks?|asked|asking",
    r"walk\w*",
    r"shares?",
    r"laws?",
    r"texts?",
    r"held",
    r"(?<!standard )deviations?",
    r"catch(?:es)?",
    r"alone",
    r"odds",
    r"stray\w*",
)
# Recipes for contributors, where a tree keeps them, and what they add
RECIPES = ("docs/extend/recipes.md", "CONTRIBUTING.md")
ADDITIONS = ("loss", "set", "mechanism", "solver", "estimator")
# A word of prose, or a part of an identifier
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

# What is called once, in a process of its own, and counted; `tools.fits` knows where a
# tree keeps the class
TRACED = {
    "LogisticRegression.fit": "linear_model.fit(f.X, f.LABELS)",
    "MatrixCompletion.fit": "completion.fit(f.RATINGS)",
    "OnlineLogisticRegression.partial_fit": "online.partial_fit(f.X, f.LABELS)",
    "PrivateLabeler.fit + label": "labeler.fit(f.X, f.LABELS).label(f.POOL)",
}
TRACER = """
import sys, warnings
import tacit
from tools import fits as f
assert tacit.__file__.startswith(sys.argv[1]), tacit.__file__
warnings.simplefilter("ignore")
linear_model = f.seeded("linear_model", "LogisticRegression", 2.0, **f.BOTH)
facts = {"items": 12, "rating_range": (1, 5)}
completion = f.seeded("recommend", "MatrixCompletion", **f.BUDGET, **facts)
online = f.seeded("streaming", "OnlineLogisticRegression", 2.0, **f.BOTH)
learner = f.GaussianNB()
labeler = f.seeded("ensemble", "PrivateLabeler", learner, 20, 30.0, **f.BOTH)
crossed = set()
def note(frame, event, argument):
    code = frame.f_code
    own = code.co_filename.startswith(sys.argv[1]) and code.co_name != "<module>"
    if event == "call" and own:
        crossed.add(code)
sys.setprofile(note)
CALL
sys.setprofile(None)
print(len(crossed), len({code.co_filename for code in crossed}))
"""


def files(tree: Path, area: str, *suffixes: str) -> list[Path]:
    """Return the files of a folder of a tree that git knows or would."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", area],
        cwd=tree, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = (tree / line for line in listed.splitlines())
    return [path for path in found if path.suffix in suffixes and path.is_file()]


def lines(paths: Iterable[Path]) -> Iterator[str]:
    """Return the lines of files."""
    for path in paths:
        yield from path.read_text("utf-8").splitlines()


def nodes(tree: Path) -> Iterator[tuple[Path, ast.AST]]:
    """Return all nodes of the package, each with its file."""
    for path in files(tree, "src", ".py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            yield path, node


def source(path: Path) -> list[str]:
    """Return the lines of a file."""
    return path.read_text("utf-8").splitlines()


def public_names(tree: Path) -> list[str]:
    """Return the names that public packages list in ``__all__``."""
    names: list[str] = []
    for path in files(tree, "src", ".py"):
        inside = path.relative_to(tree / "src").parts
        if inside[-1] != "__init__.py" or any(p.startswith("_") for p in inside[:-1]):
            continue
        for node in ast.parse(path.read_text("utf-8")).body:
            if (
                isinstance(node, ast.Assign)
                and ast.unparse(node.targets[0]) == "__all__"
            ):
                names += ast.literal_eval(node.value)
    return names


def undocumented(tree: Path) -> int:
    """Return how many public names no guide, example or README has."""
    guides = [p for area in GUIDES for p in files(tree, area, ".md", ".rst")]
    shown = [*guides, *files(tree, "examples", ".py", ".md"), tree / "README.md"]
    words = set(re.findall(r"\w+", "\n".join(lines(shown))))
    return sum(name not in words for name in public_names(tree))


def charges(tree: Path) -> int:
    """Return the number of calls of ``Ledger.charge`` outside of ``privacy``."""
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "charge"
        and "privacy" not in path.relative_to(tree).parts
        for path, node in nodes(tree)
    )


@dataclass(frozen=True)
class Finding:
    """A function or class over a limit of the house, and why it may be."""

    path: Path
    line: int
    name: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name}: {self.reason or 'not argued'}"


def argument(source: list[str], node: Definition, mark: str) -> str | None:
    """Return the text after ``# mark:`` above a definition or before its first line."""
    start = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    above = start - 1
    while above and source[above - 1].lstrip().startswith("#"):
        above -= 1
    documented = ast.get_docstring(node) is not None
    body = node.body[documented:] or node.body
    inside = min([body[0].lineno, *(d.lineno for d in decorators(body[0]))])
    for line in (*source[above : start - 1], *source[node.lineno - 1 : inside]):
        _, found, reason = line.partition(f"# {mark}: ")
        if found:
            return reason.strip()
    return None


def decorators(node: ast.AST) -> list[ast.expr]:
    """Return the decorators of a definition, and of other statements none."""
    return getattr(node, "decorator_list", [])


def long_functions(tree: Path) -> list[Finding]:
    """Return the functions of too many lines, less their docstrings."""

    def length(node: Function) -> int:
        start = node.body[0]
        documented = ast.get_docstring(node) is not None
        text = (start.end_lineno or 0) - start.lineno + 1 if documented else 0
        return (node.end_lineno or 0) - node.lineno + 1 - text

    return [
        Finding(path, node.lineno, node.name, argument(source(path), node, "long"))
        for path, node in nodes(tree)
        if isinstance(node, Function) and length(node) > MOST_LINES
    ]


def wide_constructors(tree: Path) -> list[Finding]:
    """Return the classes whose constructor has too many parameters."""

    def width(node: ast.ClassDef) -> int:
        for part in node.body:
            if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                given = part.args
                return len(given.posonlyargs + given.args + given.kwonlyargs) - 1
        if not any("dataclass" in ast.unparse(each) for each in node.decorator_list):
            return 0
        fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
        return sum("init=False" not in ast.unparse(part) for part in fields)

    return _classes(tree, "wide", lambda node, _: width(node) > MOST_PARAMETERS)


def deep_classes(tree: Path) -> list[Finding]:
    """Return the classes with a base of ours that has a base of ours."""
    return _classes(tree, "deep", lambda _, bases: any(each.bases for each in bases))


@dataclass(frozen=True)
class Class:
    """A class of the package with what is argued of it, and its bases of ours."""

    path: Path
    node: ast.ClassDef
    argued: str | None
    bases: tuple[Class, ...]

    @property
    def reason(self) -> str | None:
        """What is argued of it or of a base."""
        return self.argued or next(filter(None, (b.reason for b in self.bases)), None)


def _classes(
    tree: Path, mark: str, over: Callable[[ast.ClassDef, tuple[Class, ...]], bool]
) -> list[Finding]:
    """Return classes over a limit; what is argued of a base holds for all of them."""
    found = [(p, node) for p, node in nodes(tree) if isinstance(node, ast.ClassDef)]
    by_name: dict[str, list[tuple[Path, ast.ClassDef]]] = {}
    for path, node in found:
        by_name.setdefault(node.name, []).append((path, node))

    @cache
    def of(path: Path, node: ast.ClassDef) -> Class:
        named = (re.split(r"[.\[]", ast.unparse(each))[0] for each in node.bases)
        # one of the same file first, as names may be those of several classes
        bases = tuple(
            of(*min(by_name[name], key=lambda each: each[0] != path))
            for name in named
            if name in by_name and name != node.name
        )
        return Class(path, node, argument(source(path), node, mark), bases)

    return [
        Finding(path, node.lineno, node.name, of(path, node).reason)
        for path, node in found
        if over(node, of(path, node).bases)
    ]


def recipe_files(tree: Path, addition: str) -> int:
    """Return how many files the recipe of an addition writes; 0 without a recipe.

    Where a recipe has whole files, `tests/test_one_file.py` shows that they suffice.
    """
    pages = (page for place in RECIPES for page in files(tree, place, ".md"))
    text = "\n".join(lines(pages))
    found = re.search(rf"^## Add an? {addition}\b(.*?)(?=^## |\Z)", text, re.M | re.S)
    section = found[1] if found else ""
    whole = re.findall(r"^```python\n# (\S+\.py)$", section, re.M)
    named = re.findall(r"[\w.]+/(\w+\.(?:py|md))\b", section)
    return len(set(whole or named))


def house_lines(tree: Path, *areas: str) -> dict[str, int]:
    """Return the number of lines with any house word, and then with each of them."""
    paths = [path for area in areas for path in files(tree, area, ".py", ".md")]
    spoken = [
        " ".join(WORD.findall(line)).lower()
        for line in lines(path for path in paths if path.name != "changes.md")
    ]
    return {
        word: sum(re.search(rf"\b(?:{word})\b", line) is not None for line in spoken)
        for word in ("|".join(HOUSE_WORDS), *HOUSE_WORDS)
    }


def crossed(tree: Path, call: str) -> str:
    """Return the numbers of functions and files of a tree that a call crosses."""
    source = str(tree.resolve() / "src")
    path = f"{source}{os.pathsep}{ROOT}"
    return subprocess.run(
        [sys.executable, "-c", TRACER.replace("CALL", call), source],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        cwd="/", stdout=subprocess.PIPE, text=True, check=True,
    ).stdout.strip()  # fmt: skip


def figures(tree: Path) -> dict[str, Any]:
    """Return all figures of a tree by the words of their rows."""
    found: dict[str, Any] = {}
    for area in AREAS:
        written = files(tree, area, *WRITTEN)
        found[f"{area}: files"] = len(written)
        found[f"{area}: lines"] = sum(1 for _ in lines(written))
    found["all: lines"] = sum(found[f"{area}: lines"] for area in AREAS)
    measures: dict[str, Callable[[Path], int]] = {
        "public names": lambda tree: len(public_names(tree)),
        "public names in no guide, example or README": undocumented,
        "calls of charge outside of privacy": charges,
    }
    limits: dict[str, Callable[[Path], list[Finding]]] = {
        f"functions over {MOST_LINES} lines": long_functions,
        f"constructors over {MOST_PARAMETERS} parameters": wide_constructors,
        "classes that inherit deeper than one": deep_classes,
    }
    for row, over in limits.items():
        over_limit = over(tree)
        found[row] = len(over_limit)
        found[f"{row}, not argued"] = sum(each.reason is None for each in over_limit)
    found |= {row: measure(tree) for row, measure in measures.items()}
    for row, call in TRACED.items():
        functions, crossed_files = crossed(tree, call).split()
        found[f"{row}: functions"] = int(functions)
        found[f"{row}: files"] = int(crossed_files)
    for addition in ADDITIONS:
        found[f"files to touch for a new {addition}"] = recipe_files(tree, addition)
    scopes = {"src": ("src",), "prose": ("docs", "README.md", "CONTRIBUTING.md")}
    for scope, areas in scopes.items():
        every, *each = house_lines(tree, *areas).items()
        found[f"{scope}: lines with a house word"] = every[1]
        found |= {f"{scope}: lines with {word}": count for word, count in each}
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args(arguments)
    old, new = figures(given.old), figures(given.new)
    for row in old:
        change = new[row] - old[row]
        print(f"{row:50} {old[row]:>9,} {new[row]:>9,} {change:>+9,}")


if __name__ == "__main__":
    main()
