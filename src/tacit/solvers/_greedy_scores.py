"""How much a coordinate promises, as scores that one row moves little.

A score is a function of one coordinate sum and of public numbers, and moves by no more
than the sum does. All of it is in whole numbers of the sums, where the scores of [1]_
times the root of the smoothness over the clip become comparable between coordinates.

References
----------
.. [1] S. Karimireddy, A. Koloskova, S. Stich, M. Jaggi, "Efficient greedy coordinate
   descent for composite problems", AISTATS 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit._validate import one_of

__all__ = ["MARGIN", "RULES", "TOP", "Scores", "check_rule"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Public offsets are cut at the parts of so many rows: with sums of 2^26 rows all whole
# numbers here stay below 2^63
REACH = 2**25
# and no score is above the parts of so many
TOP = 2.0**30
# Two computed scores are apart by at most this part of a row more than the exact ones
MARGIN = 2.0**-16
# Ridges far above all smoothness are all the same
LARGEST_RATIO = 2.0**60


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Sums and public numbers of some coordinates, in whole numbers of the sums.

    Parameters
    ----------
    total
        Coordinate sums, the only private part.
    place
        Weights, times the smoothness.
    pull
        Slope of the penalty at the weight, 0 at weight 0.
    l1
        Slope of the penalty beside 0.
    ratio
        Ridge over smoothness.
    low, high
        Ends of the weights, times the smoothness.
    """

    total: Integers
    place: Integers
    pull: Integers
    l1: Integers
    ratio: Floats
    low: Floats
    high: Floats

    @property
    def at_low(self) -> NDArray[np.bool_]:
        """Whether a weight is at its lower end, both rounded alike."""
        return self.place <= np.rint(self.low)

    @property
    def at_high(self) -> NDArray[np.bool_]:
        """Whether a weight is at its upper end, both rounded alike."""
        return self.place >= np.rint(self.high)

    @property
    def landing(self) -> tuple[Integers, Floats, Floats]:
        """Return where a plain step leads, the minimizer there, and that in the box."""
        step = self.place - self.total
        shrunk = step - np.clip(step, -self.l1, self.l1)
        free = shrunk / (1.0 + self.ratio)
        # the weight itself is inside, whatever rounding did to it
        low, high = np.minimum(self.low, self.place), np.maximum(self.high, self.place)
        return step, free, np.clip(free, low, high)


def steepest(at: Coordinates) -> Floats:
    """Return the distance from the slope to where the weight would rest.

    A weight at zero has its true distance below zero too, so that the best of many
    coordinates that all rest is still told from the others.
    """
    slope = at.total + at.pull
    # at an end only the way back counts
    toward = np.where(at.at_high, slope, np.where(at.at_low, -slope, np.abs(slope)))
    return np.where(at.place == 0, toward - at.l1, toward).astype(np.float64)


def longest(at: Coordinates) -> Floats:
    """Return the length of the proximal step."""
    _, _, inside = at.landing
    return np.abs(inside - at.place)


def deepest(at: Coordinates) -> Floats:
    """Return the root of twice the decrease that the quadratic bound promises.

    As a sum of terms that are not negative, so that nothing cancels: the squared step
    with its ridge, what the end of the box holds back, and the bend at zero.
    """
    step, free, inside = at.landing
    length = np.abs(inside - at.place)
    held = 2.0 * np.abs(free - inside)
    bend = at.l1 - np.sign(at.place) * np.clip(step, -at.l1, at.l1)
    twice = (1.0 + at.ratio) * length * (length + held)
    twice += 2.0 * np.abs(at.place) * bend.astype(np.float64)
    return np.sqrt(twice)


RULES: dict[str, Callable[[Coordinates], Floats]] = {
    "gs-s": steepest,
    "gs-r": longest,
    "gs-q": deepest,
}


def check_rule(rule: str) -> None:
    """Refuse an unknown rule."""
    one_of(RULES, rule=rule)


@dataclass(frozen=True, eq=False)
class Scores:
    """Public numbers by which coordinate sums become scores.

    Parameters
    ----------
    rule
        ``"gs-s"``, ``"gs-r"`` or ``"gs-q"``.
    units
        Whole numbers that a row adds to a sum at most.
    back
        What a whole number of each sum stands for, in units of the gradient.
    smooth
        Smoothness of each coordinate.
    l1, l2, low, high
        Penalties and ends of each weight.

    Notes
    -----
    **Bound.** A score moves by at most as much as its sum and ``MARGIN * units``: the
    distance to an interval and the proximal map are 1-Lipschitz, and the decrease is
    at least half the squared step, which is minus its own derivative.
    """

    rule: str
    units: int
    back: Floats
    smooth: Floats
    l1: Floats
    l2: Floats
    low: Floats
    high: Floats

    def __call__(self, sums: Integers, w: Floats, at: Integers) -> Floats:
        """Return the scores of the coordinates ``at``, given all sums and weights."""
        coordinates = self.coordinates(sums[at], w[at], at)
        # [greedy:score] nothing in it but the sum is private
        return np.minimum(RULES[self.rule](coordinates), TOP * self.units)

    def coordinates(self, sums: Integers, w: Floats, at: Integers) -> Coordinates:
        """Return everything in whole numbers of the sums."""
        back, smooth = self.back[at], self.smooth[at]
        l1, l2 = self.l1[at], self.l2[at]
        with np.errstate(over="ignore"):  # infinity is cut
            scale = np.clip(smooth / back, 1e-250, 1e250)
            return Coordinates(
                sums,
                self._whole(w * scale),
                self._whole((l2 * w + l1 * np.sign(w)) / back),
                self._whole(l1 / back),
                np.minimum(l2 / smooth, LARGEST_RATIO),
                self.low[at] * scale,
                self.high[at] * scale,
            )

    def _whole(self, values: Floats) -> Integers:
        most = float(REACH * self.units)
        return np.rint(np.clip(values, -most, most)).astype(np.int64)
