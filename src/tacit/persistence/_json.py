"""Strict JSON: no duplicate keys, no non-finite numbers, no unknown keys."""

from __future__ import annotations

import json
from hashlib import sha256
from math import isfinite
from typing import Any

from tacit import _json
from tacit.persistence._errors import ModelFileError

__all__ = ["checked_keys", "checksum", "dumped", "parsed", "plain"]


def plain(value: Any, name: str) -> Any:
    """Return a value as plain data for JSON; errors call it by its name."""
    try:
        return _json.plain(value, name)
    except ValueError as error:
        raise ModelFileError(str(error)) from None


def dumped(data: Any) -> bytes:
    """Return plain data as indented JSON."""
    return (
        json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    ).encode()


def checksum(data: dict[str, Any]) -> str:
    """Return the digest of a mapping without its own ``sha256``."""
    rest = {key: value for key, value in data.items() if key != "sha256"}
    return sha256(_json.canonical(rest).encode()).hexdigest()


def parsed(content: bytes, name: str) -> dict[str, Any]:
    """Return the object in a JSON file, or raise."""
    try:
        data = json.loads(
            content.decode(),
            parse_float=_finite,
            parse_constant=_no_constant,
            object_pairs_hook=_once,
        )
    except RecursionError:
        raise ModelFileError(f"{name} is nested too deep to be read.") from None
    except ModelFileError as error:
        raise ModelFileError(f"{name} {error}") from None
    except ValueError:  # also for bytes that are not UTF-8, and for long integers
        raise ModelFileError(f"{name} is damaged: it is not valid JSON.") from None
    if not isinstance(data, dict):
        raise ModelFileError(f"{name} must hold a JSON object.")
    # rejects unpaired surrogates and deep nesting
    checked: dict[str, Any] = plain(data, name)
    return checked


def checked_keys(
    data: Any, required: set[str], name: str, optional: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return an object with these keys and no others."""
    if not isinstance(data, dict):
        raise ModelFileError(f"{name} must hold a JSON object.")
    for key in required - set(data):
        raise ModelFileError(f"{name} lacks {key!r}.")
    for key in set(data) - required - optional:
        raise ModelFileError(f"{name} has {key!r}, which this version does not know.")
    return data


def _finite(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise ModelFileError("holds a number beyond all floats.")
    return value


def _no_constant(name: str) -> float:
    raise ModelFileError(f"holds {name}, which is not a number.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ModelFileError("names a key twice.")
    return found
