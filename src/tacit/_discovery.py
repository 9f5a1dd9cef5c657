"""Classes of the library by the facts they declare, found when they are looked up.

A class declares what it is on itself, such as the name by which users choose it or what
of it is saved. So a new file with a new class is all that a new solver needs: no list
names it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

__all__ = [
    "class_by",
    "class_named",
    "classes_by",
    "classes_with",
    "declares",
    "declaring",
    "modules_of",
]


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


def declares(kind: type[Any], fact: str, *packages: str) -> bool:
    """Return whether `declaring` finds this class; nothing is loaded for that."""
    home = kind.__module__
    inside = any(f"{home}.".startswith(f"{package}.") for package in packages)
    found = inside and kind in vars(sys.modules[home]).values()
    return found and fact in vars(kind)


@lru_cache(maxsize=256)
def class_by(fact: str, value: str, *packages: str) -> type[Any] | None:
    """Return the class of `classes_by` that declares this value.

    Only modules whose source has the value as a string are loaded. None if no class
    declares it.
    """
    return next(
        (
            kind
            for module in _mentioning(f'"{re.escape(value)}"', packages)
            for kind in declaring(fact, module, nested=False)
            if vars(kind)[fact] == value
        ),
        None,
    )


@lru_cache(maxsize=256)
def classes_with(fact: str, value: str, *packages: str) -> tuple[type[Any], ...]:
    """Return all classes that declare this value, such as those that share a name.

    Only modules whose source has the value as a string are loaded.
    """
    return tuple(
        kind
        for module in _mentioning(f'"{re.escape(value)}"', packages)
        for kind in declaring(fact, module, nested=False)
        if vars(kind)[fact] == value
    )


@lru_cache(maxsize=256)
def class_named(name: str, fact: str, *packages: str) -> type[Any] | None:
    """Return the class of this name that declares a fact, of which modules are many.

    Only modules whose source defines such a class are loaded. None if there is none.
    """
    return next(
        (
            kind
            for module in _mentioning(rf"^class {re.escape(name)}\b", packages)
            for kind in declaring(fact, module, nested=False)
            if kind.__name__ == name
        ),
        None,
    )


def _mentioning(pattern: str, packages: tuple[str, ...]) -> Iterator[str]:
    """Return the modules whose source has a match, or that have no source."""
    for package in packages:
        for name in _unloaded(package):
            spec = find_spec(name)
            source = getattr(spec and spec.loader, "get_source", lambda _: None)(name)
            if source is None or re.search(pattern, source, re.M):
                yield name


def _unloaded(package: str) -> Iterator[str]:
    """Return the names in `modules_of`, of which only packages are imported."""
    yield package
    for module in iter_modules(import_module(package).__path__):
        name = f"{package}.{module.name}"
        if module.ispkg:
            yield from _unloaded(name)
        elif not module.name.endswith("kernels"):
            yield name


def modules_of(package: str, nested: bool = True) -> list[str]:
    """Return the names of a package and of its modules, which are imported."""
    loaded = import_module(package)
    names = [package]
    for module in iter_modules(getattr(loaded, "__path__", ())):
        # kernels have no classes, and compile when they are loaded
        if not module.name.endswith("kernels") and (nested or not module.ispkg):
            names += modules_of(f"{package}.{module.name}", nested)
    return names
