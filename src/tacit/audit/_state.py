"""What an observer can read off a returned object, as comparable leaves."""

import dataclasses
import enum
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["leaves"]

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PRIVATE = "_private_"
_OPAQUE = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
    # their state moves with the draws, which a replay does not make
    np.random.Generator,
    np.random.BitGenerator,
)


def leaves(value: Any, name: str = "result") -> dict[str, Any]:
    """Return every readable part of a value, by its path, in a comparable form.

    Two values with equal leaves are bit for bit the same to whoever reads them; all NaN
    count as one. Nothing in the answer shares memory with ``value``, so it stays what
    it was when the object is fitted again. Of an object, the instance attributes and
    the public properties that end in an underscore are read; names beginning with
    ``_private_`` and functions are not.
    """
    return dict(_parts(value, name, frozenset()))


def _parts(value: Any, path: str, above: frozenset[int]) -> Iterator[tuple[str, Any]]:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, _OPAQUE) or id(value) in above:
        yield path, kind
        return
    above |= {id(value)}
    if isinstance(value, type):
        yield path, f"{value.__module__}.{value.__qualname__}"
    elif value is None or isinstance(value, str | bytes | bool | int | enum.Enum):
        yield path, (kind, value)
    elif isinstance(value, float | complex):
        yield path, (kind, _bits(np.asarray(value)))
    elif isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.hasobject:
            yield path, (kind, array.shape)
            for i, item in enumerate(array.ravel().tolist()):
                yield from _parts(item, f"{path}[{i}]", above)
        else:
            yield path, (kind, str(array.dtype), array.shape, _bits(array))
    elif isinstance(value, Mapping):
        # the order of the keys is as readable as the keys
        yield path, (kind, [repr(key) for key in value])
        for key, item in value.items():
            yield from _parts(item, f"{path}[{key!r}]", above)
    elif isinstance(value, list | tuple):
        yield path, (kind, len(value))
        for i, item in enumerate(value):
            yield from _parts(item, f"{path}[{i}]", above)
    elif isinstance(value, set | frozenset):
        yield path, (kind, sorted(map(repr, value)))
    else:
        names = _readable(value)
        yield path, (kind, names or _ADDRESS.sub("", repr(value)))
        for attribute in names:
            item = _attribute(value, attribute)
            yield from _parts(item, f"{path}.{attribute}", above)


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute, or its error, as properties raise for some settings."""
    try:
        return getattr(value, name)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _readable(value: Any) -> list[str]:
    if dataclasses.is_dataclass(value):
        names = {f.name for f in dataclasses.fields(value)}
    else:
        names = {name for name in dir(value) if name[0] != "_" and name[-1] == "_"}
    names |= set(getattr(value, "__dict__", ()))
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        names |= {slots} if isinstance(slots, str) else set(slots)
    names -= {"__dict__", "__weakref__"}
    return sorted(name for name in names if not name.startswith(_PRIVATE))


def _bits(array: Any) -> Any:
    if array.dtype.kind not in "fc":
        return array.tobytes()
    # extended precision has padding bytes, which mean nothing
    if array.dtype.itemsize > (8 if array.dtype.kind == "f" else 16):
        return [repr(item) for item in array.ravel()]
    array = np.array(array)
    array[np.isnan(array)] = np.nan
    return array.tobytes()
