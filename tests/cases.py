"""Cases that test modules declare for shared tests, wherever they stand in `tests`.

A module with ``SHARED_CASES = Cases(...)`` at its top level adds to the shared tests of
each kind that it names, so that a new class needs its own test module and no list.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["Cases", "audited", "cases", "other_estimators"]

ROOT = Path(__file__).parent
NAME = "SHARED_CASES"
Declared = Sequence[Any] | Callable[[], Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class Cases:
    """What a test module declares; a function is called when its cases are needed.

    A module that declares cases imports none of the modules that collect them.

    Parameters
    ----------
    losses, regularizers, sets
        Parts of problems, for `tests.convex`.
    mechanisms
        Additive mechanisms, for `tests.mechanisms.test_contract`.
    solvers
        Solvers of any smooth loss, for `tests.solvers.test_contract`.
    estimators
        Linear models with public settings, for `tests.linear_model` and
        `tests.persistence`.
    searches
        Subjects for `tests.sensitivity`.
    audits
        Names that audits of this module attack, in one literal, with spaces between.
    """

    losses: Declared = ()
    regularizers: Declared = ()
    sets: Declared = ()
    mechanisms: Declared = ()
    solvers: Declared = ()
    estimators: Declared = ()
    searches: Declared = ()
    audits: str = ""


@cache
def declarations() -> dict[str, dict[str, ast.expr]]:
    """Return what each module declares, read off its source."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text("utf-8")
        if f"\n{NAME} = Cases(" in source:
            module = ".".join(("tests", *path.relative_to(ROOT).with_suffix("").parts))
            (call,) = (
                node.value
                for node in ast.parse(source).body
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == NAME
            )
            found[module] = {keyword.arg: keyword.value for keyword in call.keywords}
    return found


@cache
def cases(kind: str) -> list[Any]:
    """Return the cases of one kind that any test module declares."""
    found: list[Any] = []
    for module, kinds in declarations().items():
        if kind in kinds:
            given = getattr(getattr(import_module(module), NAME), kind)
            found += given() if callable(given) else given
    return found


def other_estimators(known: Iterable[Any]) -> list[Any]:
    """Return the estimators that are declared, of classes that are not known."""
    kinds = set(map(type, known))
    return [model for model in cases("estimators") if type(model) not in kinds]


@cache
def audited() -> dict[str, list[str]]:
    """Return the names that audits attack, each with the modules that do."""
    found: dict[str, list[str]] = {}
    for module, kinds in declarations().items():
        for name in ast.literal_eval(kinds.get("audits", ast.Constant(""))).split():
            found.setdefault(name, []).append(module)
    return dict(sorted(found.items()))
