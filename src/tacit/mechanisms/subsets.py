"""Random orders and subsets of rows, drawn from the generator of the noise.

Amplification by sampling rests on these draws as much as on the noise, so they come
from the same cryptographic words.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["fixed_subset", "permutation", "poisson_subset", "random_blocks"]

Indices = NDArray[np.intp]


def permutation(n: int, rng: Generator) -> Indices:
    """Return 0 to n - 1 in a uniformly random order."""
    return rng.permutation(n).astype(np.intp, copy=False)


def fixed_subset(n: int, size: int, rng: Generator) -> Indices:
    """Return ``size`` of 0 to n - 1, every subset as likely as any other."""
    return np.asarray(rng.choice(n, size, replace=False, shuffle=False), dtype=np.intp)


def poisson_subset(n: int, cells: int, rng: Generator) -> Indices:
    """Return each of 0 to n - 1 with probability ``cells / 2**53``, independently."""
    words = rng.integers(0, 2**53, size=n, dtype=np.uint64)
    return np.flatnonzero(words < np.uint64(cells))


def random_blocks(n: int, n_blocks: int, rng: Generator) -> Indices:
    """Return for each of n rows its block, uniform and independent of all others."""
    return rng.integers(0, n_blocks, size=n, dtype=np.intp)
