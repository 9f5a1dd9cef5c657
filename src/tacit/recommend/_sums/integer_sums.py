"""Exact sums over users in whole numbers, and the room that cutting them needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._threads import in_order
from tacit.exceptions import PlanError

__all__ = ["MARGIN", "factor_with_room", "summed"]

Integers = NDArray[np.int64]

# What products in floating point may be off by, relative to their size, many times over
MARGIN = 1e-9


def factor_with_room(units: int, room: float, what: str, remedy: str) -> float:
    """Return by what parts are multiplied, so that cutting them is paid for.

    Parameters
    ----------
    units
        Units of the `DiscreteGaussian` that adds the noise.
    room
        How far cutting towards zero takes two parts apart, in whole numbers.
    what, remedy
        What units are too few for, and what else may help, for the error.

    Notes
    -----
    **Bound.** Parts within a norm of one, times the factor and cut, are no further
    apart than ``units`` times what they were.
    """
    factor = units * (1 - MARGIN) - room
    # with less, rounding would be seen
    if factor < units / 2:
        raise PlanError(
            f"Noise of this budget leaves {units} units for {what}, which are too few; "
            f"raise epsilon or delta, or {remedy}."
        )
    return factor


def summed(
    kernel: Callable[..., None],
    blocks: Iterable[tuple[Any, ...] | Callable[[], tuple[Any, ...]]],
    size: int,
    *public: Any,
) -> Integers:
    """Return ``size`` sums over blocks of users, which a kernel adds to.

    The kernel is called with the arrays of a block, the public numbers, and sums that
    no other thread adds to meanwhile.
    """
    free: deque[Integers] = deque()

    def add(block: tuple[Any, ...] | Callable[[], tuple[Any, ...]]) -> None:
        arrays = block() if callable(block) else block
        try:
            sums = free.pop()
        except IndexError:  # all are in use, so there are as many as threads
            sums = np.zeros(size, dtype=np.int64)
        kernel(*arrays, *public, sums)
        free.append(sums)

    for _ in in_order(add, blocks, side_by_side=True):
        pass
    return np.sum(free, axis=0) if free else np.zeros(size, dtype=np.int64)
