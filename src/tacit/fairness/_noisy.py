"""Figures of groups from counts with noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.fairness._groups import Layout
from tacit.fairness._notions import comparisons
from tacit.fairness._sampling import Ends, figure_ends

__all__ = ["LOSABLE", "SURELY_RIGHT", "SURELY_WRONG", "WINNABLE", "noisy_figures"]

Floats = NDArray[np.float64]
Chosen = NDArray[np.bool_]

# What can be said of a row, in the order of the counts of a cell
SURELY_RIGHT, LOSABLE, WINNABLE, SURELY_WRONG = range(4)
# Sums that the intervals of one group rest on: two for each of ten ends of shares
SUMS = 20


def noisy_figures(
    layout: Layout,
    noisy: Floats,
    reach: Callable[[int, float], float],
    failure: float,
) -> tuple[Floats, Ends, Floats]:
    """Return figures of the reference, ends for another model, and the largest change.

    ``reach(m, chance)`` is what the noise of a sum of m counts passes with at most this
    chance. Ends and changes hold for all groups at once but for ``failure``.
    """
    groups, inside, among, sign = comparisons(layout)
    outside = among & ~inside
    tail = failure / (SUMS * len(groups))
    # where a figure counts wrong answers, what is lost and won change places
    kinds = np.where(sign[..., None] > 0, np.arange(4), np.arange(4)[::-1])

    def rows(side: Chosen, *of: int) -> Chosen:
        return np.asarray(side[..., None] & np.isin(kinds, of))

    def total(chosen: Chosen) -> Floats:
        return np.asarray((chosen * noisy).sum(axis=(1, 2)))

    def least_share(part: Chosen, rest: Chosen) -> Floats:
        # [fairness:noisy-share] it grows with the part and falls with the rest
        low = np.maximum(total(part) - _reaches(part, reach, tail), 0.0)
        most = np.maximum(total(rest) + _reaches(rest, reach, tail), 0.0)
        return _ratio(low, low + most)

    def ends(side: Chosen) -> Ends:
        sure = least_share(rows(side, 0), rows(side, 1, 2, 3))
        never = least_share(rows(side, 3), rows(side, 0, 1, 2))
        return Ends(sure, 1 - never)

    def most(side: Chosen, kind: int) -> Floats:
        others = tuple(k for k in range(4) if k != kind)
        return 1 - least_share(rows(side, *others), rows(side, kind))

    every = rows(inside, 0, 1, 2, 3), rows(outside, 0, 1, 2, 3)
    size = Ends(least_share(*every), 1 - least_share(*every[::-1]))
    happens = [
        _ratio(np.maximum(total(rows(side, 0, 1)), 0.0), np.maximum(total(whole), 1.0))
        for side, whole in zip((inside, outside), every, strict=True)
    ]
    if layout.notion == "accuracy":
        figures, value = ends(inside), happens[0]
        change = np.maximum(most(inside, 1), most(inside, 2))
    else:
        figures = figure_ends(ends(inside), ends(outside), size)
        share = _ratio(
            *(np.maximum(total(w), 1.0) for w in (every[0], every[0] | every[1]))
        )
        value = (1 - np.minimum(share, 1.0)) * (happens[0] - happens[1])
        turned = np.maximum(
            most(inside, 1) + most(outside, 2), most(inside, 2) + most(outside, 1)
        )
        change = (1 - size.low) * turned
    # the reference is within any distance of itself
    return np.clip(value, figures.low, figures.high), figures, change


def _reaches(
    chosen: Chosen, reach: Callable[[int, float], float], tail: float
) -> Floats:
    sums = chosen.sum(axis=(1, 2)).tolist()
    found = {m: reach(m, tail) for m in set(sums)}
    return np.array([found[m] for m in sums])


def _ratio(part: Any, whole: Any) -> Floats:
    """Return a share, zero of nothing."""
    return np.asarray(np.divide(part, whole, out=np.zeros_like(part), where=whole > 0))
