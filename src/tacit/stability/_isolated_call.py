"""Functions of rows that may fail, and whose failures tell nobody."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._suppress_output import attempt
from tacit.mechanisms.subsets import random_seeds
from tacit.stability._taken_rows import taken

__all__ = [
    "as_vote",
    "asked",
    "seeds_for",
    "votes_of",
]

Function = Callable[..., Any]

# Types whose values are told apart by how they print
_PLAIN = (bool, int, float, str, bytes, type(None))


def seeds_for(function: Function, n: int, rng: Generator) -> list[int | None]:
    """Return a seed for each of n calls, where the function has a use for it.

    They are drawn before the rows are looked at or even counted.
    """
    try:
        takes = "random_state" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions do not say
        takes = False
    if not takes:
        return [None] * n
    return list(random_seeds(n, rng))


def asked(
    function: Function,
    X: Any,
    y: Any,
    rows: NDArray[np.intp],
    seed: int | None = None,
) -> Any:
    """Return what the function says of these rows, and None where it fails.

    What it raises, warns of or prints is kept from view, as is what taking the rows
    does. It must not log rows, nor write them anywhere.
    """
    given = {} if seed is None else {"random_state": seed}
    # [vote:taking] indexing copies, so that a function cannot write into the rows
    return attempt(lambda: function(taken(X, rows), taken(y, rows), **given))


def as_vote(value: Any) -> Any:
    """Return a plain value, or None for what is none or is not equal to itself."""
    try:
        return _plain(value)
    except (TypeError, ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is tuple:
        return tuple(_plain(part) for part in value)
    if type(value) not in _PLAIN or value != value:
        raise TypeError
    repr(value)  # integers of thousands of digits do not print
    return value


def votes_of(
    function: Function,
    X: Any,
    y: Any,
    sets: Iterable[NDArray[np.intp]],
    seeds: Iterable[int | None],
) -> list[Any]:
    """Return the vote of each set of rows: a plain value, or None for no vote."""
    return [
        as_vote(asked(function, X, y, rows, seed))
        for rows, seed in zip(sets, seeds, strict=True)
    ]
