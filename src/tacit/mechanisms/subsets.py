"""Random orders and subsets of rows, drawn from the generator of the noise.

Amplification by sampling rests on these draws as much as on the noise, so they come
from the same cryptographic words, and every probability is exact: words are compared
as integers, and NumPy rejects those that would make one outcome likelier.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import at_least

__all__ = [
    "RATE_CELLS",
    "block_members",
    "fixed_subset",
    "permutation",
    "poisson_subset",
    "random_blocks",
    "random_seeds",
]

Indices = NDArray[np.intp]

# Sampling rates are multiples of one over this: doubles in [1/2, 1) are
RATE_CELLS = 2**53
# A byte decides for most rows; these bits decide where it leaves the matter open
_LOW_BITS = 45


def permutation(n: int, rng: Generator) -> Indices:
    """Return 0 to n - 1 in a uniformly random order."""
    return rng.permutation(n).astype(np.intp, copy=False)


def fixed_subset(n: int, size: int, rng: Generator) -> Indices:
    """Return ``size`` of 0 to n - 1 in rising order, every subset as likely."""
    drawn = rng.choice(n, size, replace=False, shuffle=False)
    # rows are read in the order in which they lie in memory
    return np.sort(np.asarray(drawn, dtype=np.intp))


def poisson_subset(n: int, cells: int, rng: Generator) -> Indices:
    """Return each of 0 to n - 1 with probability ``cells / 2**53``, independently.

    Notes
    -----
    **Guarantee.** Exact for independent uniform words. A row is in when 53 uniform
    bits are below ``cells`` as integers. The first eight of them settle that unless
    they are those of ``cells``, so the others are drawn for one row in 256 only.
    """
    at_least(0, cells=cells)
    if cells >= RATE_CELLS:
        if cells > RATE_CELLS:
            raise ValueError(f"cells must be at most 2**53, got {cells!r}.")
        return np.arange(n)
    words = rng.integers(0, 2**64, size=-(-n // 8), dtype=np.uint64)
    high = words.view(np.uint8)[:n]
    chosen = high < (cells >> _LOW_BITS)
    open_rows = np.flatnonzero(high == cells >> _LOW_BITS)
    low = rng.integers(0, 2**_LOW_BITS, size=len(open_rows), dtype=np.uint64)
    chosen[open_rows] = low < np.uint64(cells & (2**_LOW_BITS - 1))
    return np.flatnonzero(chosen)


def random_blocks(n: int, n_blocks: int, rng: Generator) -> Indices:
    """Return for each of n rows its block, uniform and independent of all others."""
    return rng.integers(0, n_blocks, size=n, dtype=np.intp)


def random_seeds(n: int, rng: Generator) -> list[int]:
    """Return n seeds of 32 bits, for functions that draw something of their own."""
    return [int(seed) for seed in rng.integers(0, 2**32, size=n, dtype=np.uint64)]


def block_members(n: int, n_blocks: int, equal: bool, rng: Generator) -> list[Indices]:
    """Return the rows of each of disjoint blocks, in rising order.

    Parameters
    ----------
    n
        Number of rows.
    n_blocks
        Number of blocks.
    equal
        Whether sizes differ by at most one, which releases the number of rows;
        otherwise the block of each row is drawn independently.
    rng
        Source of the words.

    Notes
    -----
    **Guarantee.** A row is in one block. Without ``equal``, the blocks of the others
    have the same distribution whether it is there or not.
    """
    # [vote:blocks]
    if equal:
        return [np.sort(b) for b in np.array_split(permutation(n, rng), n_blocks)]
    labels = random_blocks(n, n_blocks, rng)
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(n_blocks + 1))
    return [order[ends[b] : ends[b + 1]] for b in range(n_blocks)]
