"""Classes of the library by the facts they declare, found when they are looked up.

A class declares what it is on itself, such as the name by which users choose it or what
of it is saved. So a new file with a new class is all that a new solver needs: no list
names it.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

__all__ = ["classes_by", "declaring", "modules_of"]


@cache
def declaring(fact: str, *packages: str, nested: bool = True) -> tuple[type[Any], ...]:
    """Return the classes of these packages that declare a fact themselves.

    Neither a class that inherits the fact nor a class of a user is among them. They are
    in order of modules and of definition. Packages within packages are searched unless
    ``nested`` is False.
    """
    kinds = (
        kind
        for package in packages
        for module in modules_of(package, nested)
        for kind in vars(sys.modules[module]).values()
        if isinstance(kind, type) and kind.__module__ == module and fact in vars(kind)
    )
    return tuple(dict.fromkeys(kinds))


@cache
def classes_by(fact: str, *packages: str) -> dict[Any, type[Any]]:
    """Return classes by what they declare, in its order; None is no declaration."""
    found: dict[Any, type[Any]] = {}
    for kind in declaring(fact, *packages):
        value = vars(kind)[fact]
        if value in found:
            raise TypeError(f"{found[value]} and {kind} both declare {fact}={value!r}.")
        if value is not None:
            found[value] = kind
    return dict(sorted(found.items()))


def modules_of(package: str, nested: bool = True) -> list[str]:
    """Return the names of a package and of its modules, which are imported."""
    loaded = import_module(package)
    names = [package]
    for module in iter_modules(getattr(loaded, "__path__", ())):
        # kernels have no classes, and compile when they are loaded
        if not module.name.endswith("kernels") and (nested or not module.ispkg):
            names += modules_of(f"{package}.{module.name}", nested)
    return names
