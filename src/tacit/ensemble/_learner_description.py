"""Learners in words: the same in each process for the same parameters."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np

from tacit._resumable.record import ADDRESS

__all__ = ["described"]


def described(value: Any) -> str:
    """Return an estimator with all its parameters, in words.

    No setting of a process changes them, such as how scikit-learn and numpy print, or
    the order in which a set is gone through.
    """
    if hasattr(value, "get_params") and not isinstance(value, type):
        given = value.get_params(deep=False)
        parts = (f"{name}={described(given[name])}" for name in sorted(given))
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(described, value))}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(described, value)))}}}"
    if isinstance(value, dict):
        parts = (f"{described(key)}: {described(value[key])}" for key in value)
        return f"{{{', '.join(sorted(parts))}}}"
    if isinstance(value, np.generic):
        return described(value.item())
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return f"array{value.shape}{described(value.ravel().tolist())}"
        content = sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array{value.shape} {value.dtype.str} {content}"
    return ADDRESS.sub("", repr(value))
