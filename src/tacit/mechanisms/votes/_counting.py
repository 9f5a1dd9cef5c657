"""Votes counted exactly, and how far a winner is from losing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "corrected_distance",
    "counts_of",
    "one_vote_each",
    "published_distance",
    "refuse_after_end",
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
    places = np.clip(array, 0, n_classes - 1).astype(np.int64)
    return np.bincount(places, minlength=n_classes).astype(np.int64)


def corrected_distance(counts: NDArray[np.int64]) -> int:
    """Return a distance that moves by at most one if one vote changes.

    Notes
    -----
    **Bound.** One vote moves the lead of the winner by at most two, and where it can
    change the winner the lead is at most two, so that the distance is zero.
    """
    # [votes:distance]
    return max(0, (_lead(counts) + 1) // 2 - 1)


def published_distance(counts: NDArray[np.int64]) -> int:
    """Return the lead less one, which one vote moves by two."""
    return max(0, _lead(counts) - 1)


def _lead(counts: NDArray[np.int64]) -> int:
    if len(counts) == 1:
        return int(counts[0])
    second, first = np.partition(counts, -2)[-2:].tolist()
    return int(first - second)


def refuse_after_end(ended: bool, name: str, planned: str) -> None:
    """Refuse a question that was not paid for."""
    if ended:
        raise ValueError(
            f"{name} was planned for {planned}, all used; plan a new one with a new "
            "charge."
        )
