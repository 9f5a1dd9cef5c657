"""Loops that keep candidates sorted by the whole part of their exponent.

Candidates are in ``order``, slot by slot: slot s holds
``order[start[s]:start[s + 1]]``. Slot 0 is for all levels below ``base``, slot s >= 1
for level ``base + s - 1``. ``position`` is the inverse of ``order``. One step between
slots is one swap and one boundary moved, so a small change of a score is cheap
whatever the number of candidates.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Exponents = NDArray[np.int64]
Indices = NDArray[np.int32]
Bounds = NDArray[np.int64]


@njit(cache=True)
def _level(exponent: int, bits: int, both_signs: bool) -> int:
    if both_signs and exponent < 0:
        exponent = -exponent
    return exponent >> bits


@njit(cache=True)
def rebuild(
    exponents: Exponents,
    bits: int,
    both_signs: bool,
    order: Indices,
    position: Indices,
    start: Bounds,
) -> int:
    """Sort all candidates into slots, the highest level in the last; return base."""
    n, last = len(exponents), len(start) - 2
    top = _level(exponents[0], bits, both_signs)
    for j in range(1, n):
        top = max(top, _level(exponents[j], bits, both_signs))
    base = top - last + 1
    start[:] = 0
    for j in range(n):
        slot = max(_level(exponents[j], bits, both_signs) - base + 1, 0)
        start[slot + 1] += 1
    for slot in range(last + 1):
        start[slot + 1] += start[slot]
    free = start[:-1].copy()
    for j in range(n):
        slot = max(_level(exponents[j], bits, both_signs) - base + 1, 0)
        order[free[slot]] = j
        position[j] = free[slot]
        free[slot] += 1
    return base


@njit(cache=True)
def _swap(order: Indices, position: Indices, a: int, b: int) -> None:
    first, second = order[a], order[b]
    order[a], order[b] = second, first
    position[second], position[first] = a, b


@njit(cache=True)
def update(
    exponents: Exponents,
    bits: int,
    both_signs: bool,
    order: Indices,
    position: Indices,
    start: Bounds,
    base: int,
    changed: Indices,
    values: Exponents,
) -> int:
    """Update some exponents in place; return base, which rises with the top."""
    last = len(start) - 2
    for i in range(len(changed)):
        j = changed[i]
        slot = max(_level(exponents[j], bits, both_signs) - base + 1, 0)
        exponents[j] = values[i]
        level = _level(values[i], bits, both_signs)
        rise = level - (base + last - 1)
        if rise > 0:
            # the lowest slots join slot 0: only their boundaries go
            for s in range(1, last + 2):
                start[s] = start[min(s + rise, last + 1)]
            base += rise
            slot = max(slot - rise, 0)
        target = max(level - base + 1, 0)
        while slot < target:
            _swap(order, position, position[j], start[slot + 1] - 1)
            start[slot + 1] -= 1
            slot += 1
        while slot > target:
            _swap(order, position, position[j], start[slot])
            start[slot] += 1
            slot -= 1
    return base
