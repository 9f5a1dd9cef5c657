"""Records on disk: their format, and how damage and other files are detected."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from tacit._random import is_seeded
from tacit._state import StateDamaged, loaded

__all__ = [
    "VERSION",
    "OtherParameters",
    "RecordKind",
    "damaged",
    "estimator_string",
    "fingerprint",
    "public_parameters",
    "understood",
]

Parts = dict[str, tuple[type, ...]]

# Version of all formats that this version of the library writes and reads
VERSION = 1
# Parts of a record, with their types
BEGUN: Parts = {
    "identity": (str,),
    "key": (bytes,),
    "parameters": (dict,),
    "n_steps": (int,),
}
# Further parts of one with steps, besides its state
STEPPED: Parts = {
    "plan": (str,),
    "n_features": (int,),
    "names": (tuple, type(None)),
    "privacy": (str,),
    "digest": (bytes,),
}


@dataclass(frozen=True)
class RecordKind:
    """Kind of record: its parts, and its words in errors.

    Parameters
    ----------
    noun
        Word for the content of the folder.
    parameter
        Name of the parameter that resumes it.
    format
        Format marker of a file.
    stepped
        Additional parts of a record with steps.
    """

    noun: str
    parameter: str
    format: str
    stepped: Parts


# Memory address of an object, which differs from process to process
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class OtherParameters(ValueError):
    """Parameters differ from those that a record was begun with."""

    def __init__(self, folder: Path, names: list[str], kind: RecordKind) -> None:
        super().__init__(
            f"{kind.parameter} must have the parameters that the {kind.noun} in "
            f"{folder} was begun with; {', '.join(names)} must be unchanged."
        )
        self.names = names


def public_parameters(model: Any) -> dict[str, str]:
    """Return the parameters to resume a model with, as strings and without a seed."""
    given = model.get_params(deep=False)
    seed = given.pop("random_state", None)
    return {
        "estimator": type(model).__name__,
        **{name: ADDRESS.sub("", repr(_bare(part))) for name, part in given.items()},
        # reports state whether there is a seed, which must remain true
        "random_state": "fixed" if is_seeded(seed) else "fresh",
    }


def _bare(value: Any) -> Any:
    """Return a parameter in a canonical form."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.ndarray | np.generic):
        return _bare(value.tolist())
    if isinstance(value, list | tuple | range):
        return list(map(_bare, value))
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    return value


def fingerprint(planned: Any) -> str:
    """Return a digest that identifies a plan, which is plain data."""
    return sha256(ADDRESS.sub("", repr(planned)).encode()).hexdigest()


def understood(path: Path, content: bytes, kind: RecordKind) -> dict[str, Any]:
    """Return the record of a file, or reject it in one sentence."""
    try:
        found = loaded(content)
    except StateDamaged:
        found = None
    if not isinstance(found, dict) or found.get("format") != kind.format:
        raise damaged(path, kind)
    version = found.get("version")
    if type(version) is int and version != VERSION:
        raise StateDamaged(
            f"{path} has format {version}, and this version of tacit reads "
            f"{VERSION}: resume it with the version that wrote it."
        )
    if not _holds(found, {"version": (int,), **BEGUN}):
        raise damaged(path, kind)
    stepped = {**STEPPED, **kind.stepped}
    if found["n_steps"] and not ("state" in found and _holds(found, stepped)):
        raise damaged(path, kind)
    return found


def damaged(path: Path, kind: RecordKind) -> StateDamaged:
    """Return the error of a file that differs from what was written."""
    return StateDamaged(
        f"{path} is damaged, and the {kind.noun} cannot be resumed without it: restore "
        f"a complete copy of the folder, or begin a {kind.noun} in another, which is "
        "charged again."
    )


def _holds(found: dict[str, Any], kinds: Parts) -> bool:
    # the type itself, as a truth value is an integer to Python
    return all(name in found and type(found[name]) in kinds[name] for name in kinds)


def estimator_string(value: Any) -> str:
    """Return an estimator with all its parameters, in words.

    No setting of a process changes them, such as how scikit-learn and numpy print, or
    the order in which a set is gone through.
    """
    if hasattr(value, "get_params") and not isinstance(value, type):
        given = value.get_params(deep=False)
        parts = (f"{name}={estimator_string(given[name])}" for name in sorted(given))
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(estimator_string, value))}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(estimator_string, value)))}}}"
    if isinstance(value, dict):
        parts = (
            f"{estimator_string(key)}: {estimator_string(value[key])}" for key in value
        )
        return f"{{{', '.join(sorted(parts))}}}"
    if isinstance(value, np.generic):
        return estimator_string(value.item())
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return f"array{value.shape}{estimator_string(value.ravel().tolist())}"
        content = sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array{value.shape} {value.dtype.str} {content}"
    return ADDRESS.sub("", repr(value))
