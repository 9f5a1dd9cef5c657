"""Classes of the library by the facts they declare, found when they are looked up.

A class declares what it is on itself, such as the name by which users choose it. So a
new file with a new class is all that a new solver needs: no list names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

__all__ = ["classes_by", "subclasses"]


@cache
def subclasses(base: type, *packages: str) -> tuple[type, ...]:
    """Return the classes below ``base`` that these packages define.

    Classes of users, which their modules define, are none of them.
    """
    for package in packages:
        _load(package)
    within = tuple(f"{package}." for package in packages)
    found = {
        kind: None
        for kind in _below(base)
        if kind.__module__.startswith(within) or kind.__module__ in packages
    }
    return tuple(found)


@cache
def classes_by(fact: str, base: type, *packages: str) -> dict[str, type]:
    """Return classes by a name that they declare themselves, in order of the names.

    A name that a class inherits is not its own.
    """
    found: dict[str, type] = {}
    for kind in subclasses(base, *packages):
        name = vars(kind).get(fact)
        if name is None:
            continue
        if name in found:
            raise TypeError(f"{found[name]} and {kind} both declare {fact}={name!r}.")
        found[name] = kind
    return dict(sorted(found.items()))


def _load(package: str) -> None:
    """Import the modules of a package, whose classes are known from then on."""
    loaded = import_module(package)
    for module in iter_modules(getattr(loaded, "__path__", ())):
        # kernels have no classes, and compile when they are loaded
        if module.name.endswith("kernels"):
            continue
        name = f"{package}.{module.name}"
        _load(name) if module.ispkg else import_module(name)


def _below(base: type) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield kind
        yield from _below(kind)
