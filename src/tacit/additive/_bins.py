"""Private bins: where the rows of each column are, from noisy counts.

Counts go from coarse to fine. All columns are counted together, in equal parts of their
ranges first; parts with many rows are counted again in finer parts. A column that fills
a thousandth of its range so gets as many bins as one that fills all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import PlainNumbers
from tacit.additive._columns import CELLS, Codes, Column
from tacit.mechanisms import Gaussian
from tacit.mechanisms.noise import noise_assumptions
from tacit.privacy import Event, GaussianNoise, Neighbors, Repeated

__all__ = ["ROUNDS", "Bins", "BinsPlan"]

Array = NDArray[np.float64]

# Digits of a cell that each round of counts resolves; all together those of CELLS
ROUNDS = (5, 8, 11, 14)
# Parts with more than this fraction of all rows are counted again in finer parts, and
# with more than this many standard deviations of the noise
CROWDED, VISIBLE = 1 / 128, 2.0
# Bins have the widths that make ``mass^POWER * width^(1 - POWER)`` the same for all:
# between equal numbers of rows, 1, and equal widths, 0. Some bins are for where no rows
# were seen. Both by benchmarks/additive/fit_rule.py
POWER, UNSEEN = 0.6, 0.02
# Bins of a column of numbers
MOST_BINS = 128


@dataclass(frozen=True)
class BinsPlan(PlainNumbers):
    """Noise of the counts of all columns, fixed without data.

    Notes
    -----
    **Guarantee.** A row is in one part of each of the ``n_columns`` columns, so that
    the counts of a round have sensitivity ``sqrt(n_columns)`` in L2 for a row more or
    less, and ``sqrt(2 n_columns)`` for one replaced. Which parts are counted next is a
    function of earlier rounds, so the rounds compose as Gaussian mechanisms that depend
    on earlier outputs (Dong, Roth and Su 2022, Corollary 3.3).
    """

    n_columns: int
    neighbors: Neighbors
    multiplier: float
    noise: str = "grid"

    @property
    def mechanism(self) -> Gaussian:
        """What draws the noise of one round."""
        # [additive:counts] one part of each column, of each row changed
        moved = sqrt(self.neighbors.rows_changed * self.n_columns)
        return Gaussian(self.multiplier, moved, self.noise)

    @property
    def event(self) -> Event:
        return Repeated(GaussianNoise(self.multiplier), len(ROUNDS))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return noise_assumptions(self.noise)

    def run(
        self,
        codes: Codes,
        columns: Sequence[Column],
        n_rows: int | None,
        rng: Generator,
    ) -> tuple[list[Bins], float]:
        """Return the bins of each column, and the number of rows.

        ``n_rows`` is the number of rows where it is public.
        """
        trees = [_Tree.root(column) for column in columns]
        for digits in ROUNDS:
            exact = [tree.counts(codes[:, k], digits) for k, tree in enumerate(trees)]
            ends = np.cumsum([len(part) for part in exact])
            counts = np.concatenate(exact)
            if not len(counts):
                break  # no part is crowded, as released counts say
            noisy = self.mechanism(counts, rng)
            parts = np.split(noisy, ends[:-1])
            scale = self.mechanism.scale(len(counts))
            if digits == ROUNDS[0]:
                total = float(n_rows or _total(parts))
            trees = [
                tree.refined(part, digits, scale, total)
                for tree, part in zip(trees, parts, strict=True)
            ]
        return [tree.bins(total) for tree in trees], total


def _total(parts: Sequence[Array]) -> float:
    """Return the number of rows by all columns, weighted by what noise they have."""
    weights = np.array([1 / len(part) for part in parts])
    sums = np.array([part.sum() for part in parts])
    return max(1.0, float(weights @ sums / weights.sum()))


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of one column, and how many rows they have, with noise.

    Parameters
    ----------
    column
        Public facts about the column.
    starts
        First cell of each bin of numbers; a category is a bin of its own.
    position
        Position of each bin on the scale from 0 to 1 on which shapes are smooth.
    mass
        Fraction of the rows in each bin; the last is that of missing cells, and the
        last but one, of a column of categories, that of unlisted ones.
    """

    column: Column
    starts: NDArray[np.int32]
    position: Array
    mass: Array

    @property
    def n_bins(self) -> int:
        """Number of bins, that of missing cells included."""
        return len(self.mass)

    @property
    def fractions(self) -> Array:
        """Masses that sum to one."""
        return self.mass / max(float(self.mass.sum()), 1e-300)

    def of(self, codes: Codes) -> NDArray[np.intp]:
        """Return the bin of each code."""
        if not self.column.is_numeric:
            return codes.astype(np.intp)
        # one search for each cell there is, not for each row
        of_cell = np.searchsorted(self.starts, np.arange(CELLS), side="right") - 1
        return np.append(of_cell, self.n_bins - 1)[codes]


@dataclass(frozen=True, eq=False)
class _Tree:
    """Parts of a column as counted so far: first cells, widths in cells and masses."""

    column: Column
    starts: NDArray[np.int64]
    widths: NDArray[np.int64]
    masses: Array
    open: NDArray[np.bool_]  # whether a part is counted again
    missing: float = 0.0

    @classmethod
    def root(cls, column: Column) -> _Tree:
        n_cells = CELLS if column.is_numeric else len(column.categories or ()) + 1
        one = np.array([1])
        return cls(column, 0 * one, n_cells * one, np.zeros(1), np.array([True]))

    def counts(self, codes: Codes, digits: int) -> Array:
        """Return the counts that a round adds: of finer parts of the open ones."""
        column = self.column
        if not column.is_numeric:
            if digits > ROUNDS[0]:
                return np.zeros(0)
            return np.bincount(codes, minlength=column.n_codes).astype(np.float64)
        width = CELLS >> digits
        fine = np.bincount(codes >> (ROUNDS[-1] - digits), minlength=2**digits + 1)
        parts = [
            fine[start // width : (start + wide) // width]
            for start, wide in zip(
                self.starts[self.open], self.widths[self.open], strict=True
            )
        ]
        first = digits == ROUNDS[0]
        missing = [np.array([np.count_nonzero(codes == column.missing)])] * first
        return np.concatenate([*parts, *missing, np.zeros(0)]).astype(np.float64)

    def refined(self, noisy: Array, digits: int, scale: float, total: float) -> _Tree:
        """Return the tree with the finer parts that a round counted."""
        if len(noisy) == 0:
            return self
        first, missing = digits == ROUNDS[0], self.missing
        if first:
            missing = _shrunk_count(noisy[-1], scale, total)
            noisy = noisy[:-1]
        if not self.column.is_numeric:
            masses = np.array([_shrunk_count(each, scale, total) for each in noisy])
            return self._with(np.arange(len(noisy)), 1, masses, missing)
        width = CELLS >> digits
        masses = np.where(first, total - missing, self.masses)
        starts: list[Any] = []
        widths: list[Any] = []
        found: list[Array] = []
        left = noisy
        for start, wide, mass, open_ in zip(
            self.starts, self.widths, masses, self.open, strict=True
        ):
            if not open_:
                starts.append([start])
                widths.append([wide])
                found.append(np.array([mass]))
                continue
            count = wide // width
            starts.append(range(start, start + wide, width))
            widths.append([width] * count)
            found.append(_children(max(mass, 0.0), left[:count], scale))
            left = left[count:]
        masses = np.concatenate(found)
        wide = np.concatenate(widths)
        crowded = masses > max(CROWDED * total, VISIBLE * scale)
        return _Tree(
            self.column,
            np.concatenate(starts),
            wide,
            masses,
            crowded & (wide == width),
            missing,
        )

    def _with(
        self, starts: NDArray[np.int64], width: int, masses: Array, missing: float
    ) -> _Tree:
        wide = np.full(len(starts), width)
        return _Tree(self.column, starts, wide, masses, wide < 0, missing)

    def bins(self, total: float) -> Bins:
        """Return the bins: of categories as they are, of numbers by mass and width."""
        mass = np.maximum(self.masses, 0.0)
        missing = min(max(self.missing / total, 0.0), 1.0)
        if not self.column.is_numeric:
            fractions = np.append(mass, max(self.missing, 0.0))
            whole = fractions.sum() or 1.0
            codes = np.arange(len(fractions), dtype=np.int32)
            none = np.zeros(len(fractions))
            return Bins(self.column, codes, none, fractions / whole)
        parts = self.widths / CELLS
        mass = mass / mass.sum() if mass.sum() > 0 else parts
        mass = (1 - UNSEEN) * mass + UNSEEN * parts
        weight = mass**POWER * parts ** (1 - POWER)
        density = np.repeat(weight / self.widths, self.widths)
        scale = np.cumsum(density) / weight.sum()
        middle = scale - density / (2 * weight.sum())
        of_cell = np.minimum((middle * MOST_BINS).astype(np.int64), MOST_BINS - 1)
        _, starts = np.unique(of_cell, return_index=True)
        sizes = np.add.reduceat(np.repeat(mass / self.widths, self.widths), starts)
        ends = np.append(starts[1:], CELLS)
        low = np.append(0.0, scale)[starts]
        position = (low + scale[ends - 1]) / 2
        sizes = np.append(sizes * (1 - missing), missing)
        return Bins(self.column, starts.astype(np.int32), position, sizes)


def _shrunk_count(noisy: float, scale: float, total: float) -> float:
    """Return a count shrunk towards zero, as much as noise could have made it."""
    prior = total * total / 12
    return float(np.clip(noisy * prior / (prior + scale**2), 0.0, total))


def _children(mass: float, noisy: Array, scale: float) -> Array:
    """Return the masses of the parts of a part, from noisy counts of them.

    Halves first, then halves of these. The difference of two halves is shrunk as one
    that is uniform between the mass and its opposite, with noise of known size.
    """
    found = np.array([mass])
    while len(found) < len(noisy):
        size = len(noisy) // (2 * len(found))
        sums = noisy.reshape(-1, size).sum(axis=1)
        prior, variance = found**2 / 3, 2 * size * scale**2
        difference = (sums[0::2] - sums[1::2]) * prior / (prior + variance)
        difference = np.clip(difference, -found, found)
        halves = np.empty(2 * len(found))
        halves[0::2], halves[1::2] = (found + difference) / 2, (found - difference) / 2
        found = halves
    return found
