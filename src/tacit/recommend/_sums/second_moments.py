"""Sums over users of the outer products of their rows, exact in whole numbers.

A user's part is computed from her own row and public numbers alone, multiplied by the
units of the noise and cut towards zero, so that sums have no round-off: they are the
same in any order and with any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.exceptions import PlanError
from tacit.recommend._sides.local import Block
from tacit.recommend._sums.integer_sums import factor_with_room, summed

__all__ = [
    "MOST_MATRIX_ITEMS",
    "integer_factor",
    "packed_size",
    "second_moments",
    "unpacked",
]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
# A block, or what makes it in the thread that adds it
Blocks = Iterable[Block | Callable[[], Block]]

# Items up to which a matrix of items by items is made: it has 3.2 GB there, and a sum
# of each thread half as much
MOST_MATRIX_ITEMS = 20_000


def packed_size(n_items: int) -> int:
    """Return the number of entries of an upper triangle."""
    return n_items * (n_items + 1) // 2


def integer_factor(units: int, n_items: int) -> float:
    """Return by what outer products of rows within the unit ball are multiplied.

    Parameters
    ----------
    units
        Units of the `DiscreteGaussian` that adds the noise.
    n_items
        Number of items in the public catalogue.

    Notes
    -----
    **Bound.** A product of at most ``units - room`` moves towards zero by less than one
    in each entry, and two of them come apart by less than one more in each entry that
    both have, hence by less than the root of the entries. So neighbors move the sums by
    at most ``units`` times what they move exact sums by: the square root of two if a
    row is replaced, and one if it is added or removed. Truncation keeps norms, but not
    that inner products of outer products are at least zero, hence the room.
    """
    if n_items > MOST_MATRIX_ITEMS:
        raise PlanError(
            f"items must be at most {MOST_MATRIX_ITEMS:,}, got {n_items:,}: sums over "
            "all pairs of more do not fit in memory; take fewer, or solver='als'."
        )
    # [completion:room] half the root, as the square root of two multiplies the factor
    room = sqrt(packed_size(n_items) / 2)
    return factor_with_room(
        units, room, f"sums over {n_items} items", "take fewer items"
    )


def second_moments(blocks: Blocks, n_items: int, units: int) -> Integers:
    """Return the upper triangle of the sum over users of ``a a^T``, in whole numbers.

    Entries off the diagonal are times the square root of two, so that the triangle is
    as long as the matrix; rows of the triangle follow each other, as in
    ``numpy.triu_indices``. It is private: `DiscreteGaussian` adds the noise, with a
    sensitivity of the square root of two, or of one if neighbors add or remove a user.

    Parameters
    ----------
    blocks
        Users in blocks of ``indptr``, ``items`` and ``parts``: each user's items
        ascending without duplicates, and her row's numbers, of norm at most one. The
        first entry of ``indptr`` need not be zero, and is where both arrays begin. A
        function without arguments is called for its block, in the thread that adds it.
    n_items
        Number of items.
    units
        Units of the noise.
    """
    from tacit.recommend._sums import moment_kernels as kernels  # noqa: PLC0415 - numba

    factor = integer_factor(units, n_items)
    return summed(kernels.add_outer, blocks, packed_size(n_items), n_items, factor)


def unpacked(noisy: Integers, n_items: int, units: int) -> Array:
    """Return the symmetric matrix of which this is the upper triangle, in whole parts.

    It undoes the factor, and the square root of two off the diagonal.
    """
    factor = integer_factor(units, n_items)
    matrix = np.empty((n_items, n_items))
    begin = 0
    # row by row, as the matrix may be all that memory holds
    for i in range(n_items):
        row = noisy[begin : begin + n_items - i] / factor
        row[1:] /= sqrt(2)
        matrix[i, i:] = matrix[i:, i] = row
        begin += len(row)
    return matrix
