"""Coins, orders and seeds, from a seed or from the operating system."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from tacit._random import Seed
from tacit._validate import shown

__all__ = ["AuditSeed", "coins", "run_seeds", "sequence_of", "shuffled"]

AuditSeed = int | np.random.SeedSequence | None


def sequence_of(random_state: AuditSeed) -> np.random.SeedSequence:
    """Return the sequence of a seed, or a fresh one for None."""
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    integer = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if random_state is None or (integer and random_state >= 0):
        return np.random.SeedSequence(random_state)
    raise ValueError(
        "random_state must be None, a non-negative integer or a SeedSequence, got "
        f"{shown(random_state)}."
    )


def coins(sequence: np.random.SeedSequence, n: int) -> NDArray[np.int64]:
    """Return fair coins, 1 or -1."""
    words = sequence.generate_state(n, np.uint32)
    return np.where(words >= 2**31, 1, -1)


def shuffled(sequence: np.random.SeedSequence, n: int) -> NDArray[np.intp]:
    """Return the indices from 0 to n - 1 in random order."""
    return np.argsort(sequence.generate_state(n, np.uint64))


def run_seeds(random_state: AuditSeed, n: int) -> list[int]:
    """Return seeds of trainings, no two of them alike."""
    # 32 bits are what every seeding interface accepts; repeats would tie runs together
    words = sequence_of(random_state).generate_state(2 * n + 64, np.uint32)
    _, positions = np.unique(words, return_index=True)
    return [Seed(word) for word in words[np.sort(positions)[:n]]]
