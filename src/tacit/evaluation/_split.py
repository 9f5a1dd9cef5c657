"""Rows that are set aside for a score, chosen without looking at any."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit._random import RandomSource, public_generator
from tacit._validate import at_least
from tacit._validate import fraction as part_of_one
from tacit.mechanisms.subsets import fixed_subset, random_blocks
from tacit.privacy import Neighbors

__all__ = ["hold_out", "test_size_of"]

# Sides of the coin of a row
SIDES = 2**30


def hold_out(
    n_rows: int,
    fraction: float = 0.2,
    *,
    neighbors: str | Neighbors = "replace_one",
    random_state: RandomSource = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of rows to fit on and of rows to score on.

    Parameters
    ----------
    n_rows
        Number of rows: at least two where it is public, and any where it is not.
    fraction
        Part of the rows that is set aside.
    neighbors
        Relation of the guarantee. Where a row is replaced, the number of rows set aside
        is fixed. Where one is added or removed, each row is set aside by a coin of its
        own, so that one row more moves no other.
    random_state
        None for the operating system's randomness, or a seed. The split need not be
        secret, but must have been drawn without regard to the rows.

    Notes
    -----
    **Guarantee.** Places depend on the number of rows and on chance alone, so that
    neighbors differ in the part their row is in and in no other.

    Examples
    --------
    >>> from tacit.evaluation import hold_out
    >>> kept, held = hold_out(1000, 0.25, random_state=0)
    >>> len(kept), len(held)
    (750, 250)
    """
    counted = Neighbors.of(neighbors) is Neighbors.REPLACE_ONE
    at_least(2 if counted else 0, n_rows=n_rows)
    part_of_one(closed=False, fraction=fraction)
    rng = public_generator(random_state, "hold out")
    if counted:
        held = fixed_subset(n_rows, test_size_of(n_rows, fraction), rng)
    else:
        # [score:split] one coin a row: a row more leaves the others where they were
        held = np.flatnonzero(random_blocks(n_rows, SIDES, rng) < fraction * SIDES)
    kept = np.ones(n_rows, dtype=bool)
    kept[held] = False
    return np.flatnonzero(kept), held


def test_size_of(n_rows: int, fraction: float) -> int:
    """Return how many of a public number of rows are set aside."""
    return min(max(1, round(fraction * n_rows)), n_rows - 1)
