"""Random split into training and test rows, which reads no row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit._random import RandomSource, public_generator
from tacit._validate import at_least
from tacit._validate import fraction as part_of_one
from tacit.mechanisms.subsets import fixed_subset, random_blocks
from tacit.privacy import Neighbors

__all__ = ["hold_out", "test_size_of"]

# Sides of the die of a row
SIDES = 2**30


def hold_out(
    n_rows: int,
    fraction: float = 0.2,
    *,
    neighbors: str | Neighbors = "replace_one",
    random_state: RandomSource = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of training rows and of test rows.

    Parameters
    ----------
    n_rows
        Number of rows: at least two where it is public, and any where it is not.
    fraction
        Fraction of the rows for testing.
    neighbors
        Relation of the guarantee. Where a row is replaced, the number of test rows is
        fixed. Where one is added or removed, each row is drawn independently, so that
        another row moves none.
    random_state
        None for the operating system's randomness, or a seed. The split need not be
        secret, but must have been drawn without regard to the rows.

    Notes
    -----
    **Guarantee.** The split depends only on the number of rows and on chance, so that
    neighbors differ in one part only.

    Examples
    --------
    >>> from tacit.evaluation import hold_out
    >>> train, test = hold_out(1000, 0.25, random_state=0)
    >>> len(train), len(test)
    (750, 250)
    """
    counted = Neighbors.of(neighbors) is Neighbors.REPLACE_ONE
    at_least(2 if counted else 0, n_rows=n_rows)
    part_of_one(closed=False, fraction=fraction)
    rng = public_generator(random_state, "hold out")
    if counted:
        test = fixed_subset(n_rows, test_size_of(n_rows, fraction), rng)
    else:
        # [score:split] each row is drawn independently of the others
        test = np.flatnonzero(random_blocks(n_rows, SIDES, rng) < fraction * SIDES)
    train = np.ones(n_rows, dtype=bool)
    train[test] = False
    return np.flatnonzero(train), test


def test_size_of(n_rows: int, fraction: float) -> int:
    """Return the number of test rows, of a public number of rows."""
    return min(max(1, round(fraction * n_rows)), n_rows - 1)
