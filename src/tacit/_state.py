"""Serialization of states: arrays in numpy's format, structure in JSON.

Nothing is pickled. A state is a tree of dataclasses that were registered with `kept`,
tuples, dicts, arrays of plain numbers, and plain values.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np
from numpy.lib import format as npy

__all__ = ["StateDamaged", "dumped", "kept", "loaded"]

T = TypeVar("T")

STRUCTURE = "structure.json"
_KEPT: dict[str, type] = {}


class StateDamaged(ValueError):
    """Saved state that this version did not write, or that is damaged."""


def kept(kind: type[T]) -> type[T]:
    """Register a dataclass whose instances can be part of a saved state."""
    _KEPT[_name(kind)] = kind
    return kind


def dumped(state: Any) -> bytes:
    """Return a state as an archive with its digest; equal states have equal bytes."""
    arrays: list[np.ndarray[Any, Any]] = []
    structure = json.dumps(_outline(state, arrays)).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        _put(archive, STRUCTURE, structure)
        for position, array in enumerate(arrays):
            member = io.BytesIO()
            npy.write_array(member, array, version=(1, 0), allow_pickle=False)
            _put(archive, f"{position}.npy", member.getvalue())
    content = buffer.getvalue()
    return content + sha256(content).digest()


def loaded(content: bytes) -> Any:
    """Return the state of an archive that `dumped` wrote, or raise `StateDamaged`."""
    size = sha256().digest_size
    body, digest = content[:-size], content[-size:]
    if sha256(body).digest() != digest:
        raise StateDamaged("The state of the stream is damaged.")
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            outline = json.loads(archive.read(STRUCTURE))
            arrays = [
                npy.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
                for name in archive.namelist()
                if name != STRUCTURE
            ]
        return _filled(outline, arrays)
    except Exception as error:  # another version may have written anything
        raise StateDamaged("The state of the stream is damaged.") from error


def _name(kind: type) -> str:
    # with the module, as two modules may have states of the same name
    return f"{kind.__module__}.{kind.__qualname__}"


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    # a fixed date, as the archive would contain the time of writing otherwise
    archive.writestr(zipfile.ZipInfo(name), content)


def _outline(node: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Return a node as plain data, and append its arrays to the list."""
    if node is None or isinstance(node, bool | int | float | str):
        return node
    if isinstance(node, bytes):
        return {"bytes": node.hex()}
    if isinstance(node, np.ndarray) and node.dtype.kind in "biuf":
        arrays.append(node)
        return {"array": len(arrays) - 1}
    if isinstance(node, tuple):
        return {"tuple": [_outline(part, arrays) for part in node]}
    if isinstance(node, dict) and all(isinstance(key, str) for key in node):
        return {"dict": {key: _outline(part, arrays) for key, part in node.items()}}
    if is_dataclass(node) and _KEPT.get(_name(type(node))) is type(node):
        parts = {f.name: _outline(getattr(node, f.name), arrays) for f in fields(node)}
        return {"state": _name(type(node)), "parts": parts}
    raise TypeError(
        f"A state must not contain an object of type {type(node).__name__}."
    )


def _filled(outline: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if not isinstance(outline, dict):
        return outline
    if "state" in outline:
        parts = {name: _filled(part, arrays) for name, part in outline["parts"].items()}
        return _KEPT[outline["state"]](**parts)
    ((kind, content),) = outline.items()
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "array":
        return arrays[content]
    if kind == "tuple":
        return tuple(_filled(part, arrays) for part in content)
    if kind == "dict":
        return {key: _filled(part, arrays) for key, part in content.items()}
    raise ValueError(f"Unknown part {kind!r}.")
