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

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit._validate import one_of

__all__ = ["MARGIN", "RULES", "TOP", "Scores", "check_rule"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RULES = ("gs-s", "gs-r", "gs-q")
# Public offsets are cut at the parts of so many rows: with sums of 2^26 rows all whole
# numbers here stay below 2^63
REACH = 2**25
# and no score is above the parts of so many
TOP = 2.0**30
# Two computed scores are apart by at most this part of a row more than the exact ones
MARGIN = 2.0**-16
# Ridges far above all smoothness are all the same
LARGEST_RATIO = 2.0**60


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

    def __call__(
        self,
        sums: Integers,
        w: Floats,
        at: Integers,
        out_of: NDArray[np.bool_] | None = None,
    ) -> Floats:
        """Return the scores of the coordinates ``at``, given all sums and weights.

        Those that are ``out_of`` the choice have the lowest score there is.
        """
        from tacit.solvers import _score_kernels as kernels  # noqa: PLC0415

        out_of = np.zeros(len(w), dtype=np.bool_) if out_of is None else out_of
        found = np.empty(len(at))
        # [greedy:score] nothing in it but the sums is private
        kernels.scores(
            RULES.index(self.rule),
            self.table,
            sums,
            w,
            at,
            out_of,
            float(REACH * self.units),
            TOP * self.units,
            found,
        )
        return found

    @cached_property
    def table(self) -> Floats:
        """A line of public numbers for each coordinate, in whole numbers of the sums.

        What a whole number stands for, the penalties, that beside zero as it is
        rounded, smoothness, ridge over smoothness, and the ends of the weights.
        """
        most = float(REACH * self.units)
        with np.errstate(over="ignore"):  # infinity is cut
            scale = np.clip(self.smooth / self.back, 1e-250, 1e250)
            columns = (
                self.back,
                self.l1,
                self.l2,
                np.rint(np.clip(self.l1 / self.back, -most, most)),
                scale,
                np.minimum(self.l2 / self.smooth, LARGEST_RATIO),
                self.low * scale,
                self.high * scale,
            )
        return np.column_stack(columns)
