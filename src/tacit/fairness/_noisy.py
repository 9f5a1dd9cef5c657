"""Figures of groups from counts with noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tacit.fairness._groups import Layout
from tacit.fairness._notions import comparisons
from tacit.fairness._sampling import Ends, figure_ends

__all__ = ["LOSABLE", "SURELY_RIGHT", "SURELY_WRONG", "WINNABLE", "noisy_figures"]

Floats = NDArray[np.float64]
Chosen = NDArray[np.bool_]

# Kinds of rows, in the order of the counts of a cell
SURELY_RIGHT, LOSABLE, WINNABLE, SURELY_WRONG = range(4)
# Kinds of the event that a figure counts, in the same order; reversed where the event
# is a wrong answer
SURE, MAY_END, MAY_BEGIN, NEVER = EVERY = range(4)
# Sums in the intervals of one group: two for each of ten ends of fractions
SUMS = 20


@dataclass(frozen=True, eq=False)
class _Side:
    """The counts of one side of each comparison: of the groups, or of the others.

    ``cells`` are those on this side, one row a group, and ``kinds`` the kind of the
    event for each count. ``reach`` bounds the noise of a sum of so many counts with
    high probability.
    """

    cells: Chosen
    kinds: NDArray[np.intp]
    noisy: Floats
    reach: Callable[[int], float]

    def total(self, *kinds: int) -> tuple[Floats, Floats]:
        """Return a sum of counts for each group, and the reach of its noise."""
        chosen = self.cells[..., None] & np.isin(self.kinds, kinds)
        sums = np.asarray((chosen * self.noisy).sum(axis=(1, 2)))
        return sums, np.array([self.reach(int(m)) for m in chosen.sum(axis=(1, 2))])

    def least(self, *kinds: int) -> Floats:
        """Return a lower bound on the fraction of these kinds."""
        rest = (kind for kind in EVERY if kind not in kinds)
        return _min_fraction(self.total(*kinds), self.total(*rest))

    def most(self, kind: int) -> Floats:
        """Return an upper bound on the fraction of one kind."""
        return 1 - self.least(*(other for other in EVERY if other != kind))

    def ends(self) -> Ends:
        """Return bounds on the fraction with the event, under any model near."""
        return Ends(self.least(SURE), 1 - self.least(NEVER))

    def estimate(self) -> Floats:
        """Return the noisy fraction with the event under the reference."""
        happens, every = self.total(SURE, MAY_END)[0], self.total(*EVERY)[0]
        return np.asarray(np.maximum(happens, 0.0) / np.maximum(every, 1.0))


def _min_fraction(part: tuple[Floats, Floats], rest: tuple[Floats, Floats]) -> Floats:
    # [fairness:noisy-share] it grows with the part and falls with the rest
    low = np.maximum(part[0] - part[1], 0.0)
    whole = low + np.maximum(rest[0] + rest[1], 0.0)
    return np.asarray(np.divide(low, whole, out=np.zeros_like(low), where=whole > 0))


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
    tail = failure / (SUMS * len(groups))
    reach_of = cache(lambda m: reach(m, tail))
    kinds = np.where(sign[..., None] > 0, EVERY, EVERY[::-1])
    own, others = (
        _Side(cells, kinds, noisy, reach_of) for cells in (inside, among & ~inside)
    )
    if layout.alone:
        figures, values = own.ends(), own.estimate()
        change = np.maximum(own.most(MAY_END), own.most(MAY_BEGIN))
    else:
        rows, other_rows = own.total(*EVERY), others.total(*EVERY)
        size = Ends(
            _min_fraction(rows, other_rows), 1 - _min_fraction(other_rows, rows)
        )
        figures = figure_ends(own.ends(), others.ends(), size)
        part, rest = np.maximum(rows[0], 0.0), np.maximum(other_rows[0], 0.0)
        values = (
            rest / np.maximum(part + rest, 1.0) * (own.estimate() - others.estimate())
        )
        change = (1 - size.low) * np.maximum(
            own.most(MAY_END) + others.most(MAY_BEGIN),
            own.most(MAY_BEGIN) + others.most(MAY_END),
        )
    # the reference is within any distance of itself
    return np.clip(values, figures.low, figures.high), figures, change
