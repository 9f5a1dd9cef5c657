"""Constructor parameters as plain data, and back, by a fixed table of types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np

from tacit._discovery import class_named, declares, declaring
from tacit._json import DEEPEST, canonical
from tacit.persistence._errors import ModelFileError, rejected_as
from tacit.persistence._json import checked_keys, plain
from tacit.privacy import Neighbors

__all__ = [
    "array_from",
    "array_to",
    "decode",
    "encode",
    "restored_parameter",
    "saved_models",
    "saved_parts",
]

# Packages of the classes that declare themselves parts of models; names from files are
# looked up only there
PARTS = (
    *("tacit.convex", "tacit.solvers", "tacit.feature_selection"),
    *("tacit.streaming.online", "tacit.streaming.incremental"),
)
MODELS = "tacit.linear_model"

# Never written: whoever knows the seed can remove the noise
SECRET = frozenset({"random_state"})
SCALARS = (type(None), bool, np.bool_, str, Integral, float, np.floating)
# Limits that fit in memory many times over
LONGEST = 10_000_000
WIDEST_STRING = 4096
# Parameters that may be an array of two dimensions
TABLES = ("feature_bounds", "ranges")
NUMBERS = {f"<{kind}" for kind in ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4")}
DTYPES = NUMBERS | {"|b1", "|i1", "|u1", "<f8", "|O"}


def encode(value: Any, name: str, depth: int = 0) -> Any:
    """Return a parameter as plain data, or raise."""
    # long: one branch for each type of the format
    if depth > DEEPEST:
        raise ModelFileError(
            f"{name} cannot be written: it is nested more than {DEEPEST} deep."
        )
    if isinstance(value, Neighbors):
        return {"type": "Neighbors", "value": value.value}
    # a span of time is an integer to numpy
    if isinstance(value, SCALARS) and not isinstance(value, np.timedelta64):
        return plain(value, name)
    if type(value) is list:
        return [encode(part, name, depth + 1) for part in value]
    if type(value) is tuple:
        return {
            "type": "tuple",
            "items": [encode(part, name, depth + 1) for part in value],
        }
    if isinstance(value, range):
        ends = {"start": value.start, "stop": value.stop, "step": value.step}
        return {"type": "range", **ends}
    table = name.rpartition(".")[2] in TABLES
    if isinstance(value, np.ndarray) and value.ndim == 2 and table:
        parts = array_to(value.ravel(), name)
        return {"type": "table", "columns": value.shape[1], **parts}
    if isinstance(value, np.ndarray):
        return {"type": "array", **array_to(value, name)}
    if isinstance(value, Mapping):
        pairs = [
            [encode(key, name, depth + 1), encode(part, name, depth + 1)]
            for key, part in value.items()
        ]
        return {"type": "dict", "items": pairs}
    kind = type(value).__name__
    is_model = declares(type(value), "saved", MODELS)
    if is_model or (declares(type(value), "saved", *PARTS) and value.saved is True):
        parts = {
            key: encode(getattr(value, key), f"{name}.{key}", depth + 1)
            for key in _made_of(type(value))
        }
        if is_model:
            return {"type": "estimator", "of": kind, "parameters": parts}
        return {"type": kind, **parts}
    raise ModelFileError(
        f"{name} cannot be written: {type(value).__name__} is neither plain data nor a "
        "part of tacit; give such data, or set it to its default before saving."
    )


def decode(data: Any, name: str) -> Any:
    """Return the parameter that `encode` was given."""
    if isinstance(data, list):
        return [decode(part, name) for part in data]
    if not isinstance(data, dict):
        return data
    parts = dict(data)
    kind = parts.pop("type", None)
    if isinstance(kind, str) and kind in _DECODERS:
        keys, decoder = _DECODERS[kind]
        with rejected_as(name):
            return decoder(checked_keys(parts, keys, name), name)
    return _made(_part_named(kind), parts, name)


def _made(make: Any | None, parts: Any, name: str) -> Any:
    """Return an object of this class, made of decoded parts."""
    if make is None:
        raise ModelFileError(f"{name} has a type that this version does not know.")
    known = frozenset(_made_of(make))
    checked_keys(parts, set(), f"{name} ({make.__name__})", known)
    with rejected_as(name):
        return make(
            **{key: decode(part, f"{name}.{key}") for key, part in parts.items()}
        )


@cache
def saved_parts() -> dict[str, Any]:
    """Return the classes of parts of parameters and fitted models, by name."""
    kinds = declaring("saved", *PARTS)
    return {kind.__name__: kind for kind in kinds if kind.saved is True}


@cache
def saved_models() -> dict[str, Any]:
    """Return the estimators that another may take; penalties share their names."""
    return {kind.__name__: kind for kind in declaring("saved", MODELS)}


def _part_named(name: Any) -> Any | None:
    """Return the class of `saved_parts` of this name, None if there is none."""
    found = class_named(name, "saved", *PARTS) if isinstance(name, str) else None
    return None if found is None or found.saved is not True else found


def _model(parts: dict[str, Any], name: str) -> Any:
    kind = parts["of"]
    make = class_named(kind, "saved", MODELS) if isinstance(kind, str) else None
    return _made(make, parts["parameters"], name)


def _made_of(kind: Any) -> list[str]:
    """Return the names of the fields or parameters, without a seed."""
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    return [name for name in signature(kind).parameters if name not in SECRET]


def restored_parameter(name: str, data: Any) -> Any:
    """Return a parameter of an estimator from the plain data of ``model.json``.

    Parameters
    ----------
    name
        Name of the parameter, for errors.
    data
        Plain data. An object is a part of tacit, as ``{"type": "L1", "weight": 2.0}``,
        or a tuple, range, dict or array.

    Examples
    --------
    >>> from tacit.persistence._values import restored_parameter
    >>> restored_parameter("penalty", {"type": "L1", "weight": 2.0})
    L1(weight=2.0)
    """
    return decode(plain(data, name), name)


def array_to(array: np.ndarray, name: str) -> dict[str, Any]:
    """Return a vector of labels or numbers as plain data with its type."""
    dtype = array.dtype.newbyteorder("<")
    if array.ndim != 1 or not _writable(dtype.str):
        raise ModelFileError(
            f"{name} cannot be written: an array must be a vector of numbers, truth "
            "values or strings."
        )
    values = array.tolist()
    if not all(type(value) in (bool, int, float, str) for value in values):
        raise ModelFileError(
            f"{name} cannot be written: its entries must be numbers, truth values or "
            "strings."
        )
    return {
        "dtype": dtype.str,
        "values": [encode(value, name) for value in values],
    }


def array_from(data: Any, name: str) -> np.ndarray:
    """Return the vector that `array_to` was given."""
    parts = checked_keys(data, {"dtype", "values"}, name)
    dtype, values = parts["dtype"], parts["values"]
    scalars = isinstance(values, list) and not any(
        isinstance(value, list | dict | None) for value in values
    )
    if not scalars or not isinstance(dtype, str) or not _writable(dtype):
        raise ModelFileError(f"{name} must be a vector of numbers or strings.")
    # wide strings are padded, so check the size first
    if np.dtype(dtype).itemsize * len(values) > 64 * LONGEST:
        raise ModelFileError(f"{name} is too long.")
    with rejected_as(name), np.errstate(all="ignore"):
        array = np.array(values, dtype=dtype)
        # this library writes no value that NumPy rounds, truncates or converts
        if canonical(array.tolist()) != canonical(values):
            raise ModelFileError(f"{name} does not hold what its dtype says.")
    return array


def _table(parts: dict[str, Any], name: str) -> np.ndarray:
    columns = parts.pop("columns")
    flat = array_from(parts, name)
    if type(columns) is not int or columns < 1 or len(flat) % columns:
        raise ModelFileError(f"{name} must have rows of equal length.")
    return flat.reshape(-1, columns)


def _writable(dtype: str) -> bool:
    if dtype in DTYPES:
        return True
    width = dtype.removeprefix("<U")
    digits = width.isascii() and width.isdigit() and len(width) <= 4
    return dtype.startswith("<U") and digits and 0 < int(width) <= WIDEST_STRING


def _items(parts: dict[str, Any], name: str) -> list[Any]:
    if not isinstance(parts["items"], list):
        raise ModelFileError(f"{name} must list its items.")
    return [decode(part, name) for part in parts["items"]]


def _mapping(parts: dict[str, Any], name: str) -> dict[Any, Any]:
    pairs = _items(parts, name)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ModelFileError(f"{name} must list pairs of a key and a value.")
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ModelFileError(f"{name} names a key twice.")
    return found


def _range(parts: dict[str, Any], name: str) -> range:
    if any(isinstance(end, bool) for end in parts.values()):
        raise ModelFileError(f"{name} must have integers as ends.")
    return range(parts["start"], parts["stop"], parts["step"])


Decoder = Callable[[dict[str, Any], str], Any]
_DECODERS: dict[str, tuple[set[str], Decoder]] = {
    "Neighbors": ({"value"}, lambda parts, name: Neighbors(parts["value"])),
    "array": ({"dtype", "values"}, array_from),
    "dict": ({"items"}, _mapping),
    "estimator": ({"of", "parameters"}, _model),
    "range": ({"start", "stop", "step"}, _range),
    "table": ({"columns", "dtype", "values"}, _table),
    "tuple": ({"items"}, lambda parts, name: tuple(_items(parts, name))),
}
