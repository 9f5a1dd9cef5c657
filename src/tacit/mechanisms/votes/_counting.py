"""Votes counted exactly, and how far a winner is from losing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "counts_of",
    "distance_of_lead",
    "lead_of",
    "one_vote_each",
    "published_distance",
]


def one_vote_each(votes: NDArray[Any]) -> NDArray[Any]:
    """Return the votes as an array with one entry for each teacher."""
    array = np.asarray(votes)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "biuf":
        raise ValueError(
            "votes must be an array of numbers, one for each teacher, got shape "
            f"{array.shape} and dtype {array.dtype}."
        )
    return array


def counts_of(votes: NDArray[Any], n_classes: int) -> NDArray[np.int64]:
    """Return the number of votes for each class; a place beyond counts as the next."""
    array = one_vote_each(votes)
    if array.dtype.kind == "f":
        raise ValueError(
            f"votes must be whole numbers, places of classes, got dtype {array.dtype}."
        )
    positions = np.clip(array, 0, n_classes - 1).astype(np.int64)
    return np.bincount(positions, minlength=n_classes).astype(np.int64)


def lead_of(counts: NDArray[np.int64]) -> int:
    """Return the votes by which the first class is ahead of the second."""
    if len(counts) == 1:
        return int(counts[0])
    second, first = np.partition(counts, -2)[-2:].tolist()
    return int(first - second)


def distance_of_lead(lead: int) -> int:
    """Return a distance that moves by at most one if one vote changes.

    Notes
    -----
    **Bound.** One vote moves the lead of the winner by at most two, and where it can
    change the winner the lead is at most two, so that the distance is zero.
    """
    # [votes:distance]
    return max(0, (lead + 1) // 2 - 1)


def published_distance(lead: int) -> int:
    """Return the lead less one, which one vote moves by two."""
    return max(0, lead - 1)
