"""Public names of packages, each imported when it is first used (PEP 562).

A package imports its public names for type checkers only, where readers expect them,
and leaves the rest to `lazy_names`::

    if TYPE_CHECKING:
        from tacit.convex.losses import Logistic
    else:
        __getattr__, __dir__ = lazy_names(__name__)

    __all__ = ["Logistic"]

So the import of a package costs little, and that of one of its names loads only what
this one needs. No second list says where a name is defined.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["homes_of", "lazy_names"]


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Modules of the package are found as attributes too, loaded or not.
    """

    def get(name: str) -> Any:
        homes = homes_of(package)
        if name in homes:
            found = getattr(import_module(homes[name]), name)
        else:
            found = _module(package, name)
        # found there from now on, without a call
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        loaded = vars(sys.modules[package])
        return sorted({*loaded, *loaded["__all__"]})

    return get, names


@cache
def homes_of(package: str) -> dict[str, str]:
    """Return the modules of the names that a package imports for type checkers."""
    spec = sys.modules[package].__spec__
    source: str = spec.loader.get_source(package)  # type: ignore[union-attr]
    return {
        alias.name: f"{statement.module}"
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def _module(package: str, name: str) -> Any:
    """Return a module of a package, or say that the package has no such attribute."""
    missing = AttributeError(f"module {package!r} has no attribute {name!r}")
    if name.startswith("__"):
        raise missing
    wanted = f"{package}.{name}"
    try:
        return import_module(wanted)
    except ModuleNotFoundError as error:
        # another name is that of a library which the module needs
        if error.name != wanted:
            raise
        raise missing from None
