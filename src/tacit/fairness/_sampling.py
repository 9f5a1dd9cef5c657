"""Intervals for the population, from the rows of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.audit.bounds import clopper_pearson_lower, clopper_pearson_upper
from tacit.fairness._groups import Layout
from tacit.fairness._notions import comparisons

__all__ = ["Ends", "Tallies", "figure_ends", "population_ends", "tallies_of"]

Floats = NDArray[np.float64]


class Ends(NamedTuple):
    """Least and most of a number."""

    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Tallies:
    """Rows of each group and of those it is compared with, by what happens to them.

    The event happens among the sure ones under every model within the distance, and
    among the possible ones under some such model. ``alone`` is whether the figure is
    the fraction in the group, compared with nothing.
    """

    inside: Floats
    outside: Floats
    sure_inside: Floats
    sure_outside: Floats
    possible_inside: Floats
    possible_outside: Floats
    alone: bool


def tallies_of(
    layout: Layout,
    sizes: NDArray[np.int64],
    sure: NDArray[np.int64],
    possible: NDArray[np.int64],
) -> Tallies:
    """Sum counts of cells into those of each comparison.

    ``sure`` and ``possible`` count right answers; where the figure counts wrong ones
    they are swapped.
    """
    _, inside, among, sign = comparisons(layout)
    surely = np.where(sign > 0, sure, sizes - possible)
    maybe = np.where(sign > 0, possible, sizes - sure)
    outside = among & ~inside

    def total(chosen: NDArray[np.bool_], counts: NDArray[np.int64]) -> Floats:
        return np.asarray((chosen * counts).sum(axis=1), dtype=np.float64)

    return Tallies(
        total(inside, sizes),
        total(outside, sizes),
        total(inside, surely),
        total(outside, surely),
        total(inside, maybe),
        total(outside, maybe),
        layout.alone,
    )


def population_ends(tallies: Tallies, failure: float) -> Ends:
    """Return intervals for the figures of the population, all at once.

    For rows drawn independently, and not those the model was fitted on.
    """
    t = tallies
    # [fairness:sampling] two ends of three fractions for each group
    tail = failure / (len(t.inside) * (2 if t.alone else 6))

    def fraction(least: Floats, most: Floats, trials: Floats) -> Ends:
        n = np.maximum(trials, 1)
        low = clopper_pearson_lower(least, n, tail)
        high = clopper_pearson_upper(most, n, tail)
        return Ends(np.where(trials > 0, low, 0.0), np.where(trials > 0, high, 1.0))

    inside = fraction(t.sure_inside, t.possible_inside, t.inside)
    if t.alone:
        return inside
    outside = fraction(t.sure_outside, t.possible_outside, t.outside)
    size = fraction(t.inside, t.inside, t.inside + t.outside)
    return figure_ends(inside, outside, size)


def figure_ends(inside: Ends, outside: Ends, size: Ends) -> Ends:
    """Return ends of ``(1 - size) (inside - outside)``, the figure of a group.

    ``size`` is the fraction of the group among all it is compared with, itself
    included.
    """
    # [fairness:contrast] the larger factor makes the ends further from zero
    low, high = inside.low - outside.high, inside.high - outside.low
    low = low * np.where(low < 0, 1 - size.low, 1 - size.high)
    high = high * np.where(high > 0, 1 - size.low, 1 - size.high)
    return Ends(np.asarray(low), np.asarray(high))
