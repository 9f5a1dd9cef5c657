"""Compositions of privacy losses, by fast Fourier transforms.

Losses on a grid are convolved after an exponential tilt, which makes the losses of
interest likely: so that rounding errors are small in relation to the smallest deltas
too. What a finite grid cannot hold counts as an infinite loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, expm1, inf, log, log1p, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.losses import Loss, Masses

__all__ = ["Parts", "composed"]

Floats = NDArray[np.float64]
Parts = tuple[tuple[Loss, int], ...]

# Rounding of the transforms, relative to a delta
SAFETY = 1.0 + 1e-6
# Probability beyond the ends of the grid, of one loss and of a tilted sum
TAIL, WRAPPED = 1e-20, 1e-18
# Deltas around which sums are tilted; each serves those within about a factor of 1000
LEVELS = (1e-2, 1e-6, 1e-10, 1e-15)
# Tilts that are tried, in units of one over the standard deviation of the sum
TILTS = np.concatenate([-np.geomspace(24, 0.5, 8), [0.0], np.geomspace(0.5, 64, 15)])
STEEPEST = 16.0  # of those that sums are tilted by; the others bound their tails
# Spacing: this part of a standard deviation of one loss, and of the sum
SPACING, FINEST = 0.04, 1 / 400
LARGEST = 2**18
WIDEST = 600.0  # of a grid: exponentials of it must not overflow
MOST_CELLS = 2**21  # of a grid


@lru_cache(maxsize=64)
def composed(parts: Parts) -> Composition:
    """Return the composition of these losses, each as often as its count says."""
    return Composition(parts)


class Composition:
    """Delta of a composition as a function of epsilon, and its inverse.

    Notes
    -----
    **Bound.** Never below the truth, but for rounding errors that `SAFETY` covers: the
    losses dominate, and what is cut off is counted as an infinite loss.
    """

    def __init__(self, parts: Parts) -> None:
        exchanged = tuple((loss.exchanged, count) for loss, count in parts)
        # a row that is removed is removed from all; what holds is the larger delta
        sides = [
            tuple(part for loss, count in side for part in loss.parts(count))
            for side in dict.fromkeys((parts, exchanged))
        ]
        if any(max(loss.reach(TAIL)) > WIDEST for loss, _ in sides[0]):
            sides = []  # as good as not private
        self._sums = tuple(map(_Sum, sides))

    def delta(self, epsilon: float) -> float:
        """Return delta at ``epsilon``."""
        return max((total.delta(epsilon) for total in self._sums), default=1.0)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon at ``delta``, or infinity."""
        return max((total.epsilon(delta) for total in self._sums), default=inf)


class _Sum:
    """The sum of independent losses, on grids that are made when asked for."""

    def __init__(self, parts: Parts) -> None:
        n_losses = sum(count for _, count in parts)
        self._spread, self._step = _spacing(parts, n_losses)
        tail = TAIL / n_losses
        self._parts = [(loss.masses(self._step, tail), n) for loss, n in parts]
        kept = sum(n * log1p(-masses.infinite) for masses, n in self._parts)
        self._infinite = -expm1(kept)
        self._tilts = TILTS / self._spread
        # log of the mean of exp(tilt * loss)
        self._logs: Floats = np.sum(
            [n * _log_means(m, self._step, self._tilts) for m, n in self._parts], axis=0
        )
        # [pld:fits] steep tilts of a rare and large loss make it as likely as no loss,
        # and such a sum needs a grid from one to the other; flatter tilts serve as well
        steep = np.flatnonzero((TILTS > 0) & (TILTS <= STEEPEST))
        windows = {int(at): self._window(int(at)) for at in steep}
        fitting = [at for at in windows if windows[at] is not None]
        usable = np.array(fitting or steep[:1])
        tilts, logs = self._tilts[usable], self._logs[usable]
        best = {int(np.argmin((logs - log(level)) / tilts)) for level in LEVELS}
        self._best = usable[sorted(best)]
        self._tables: dict[int, _Table] = {}

    def delta(self, epsilon: float) -> float:
        return self._near(self._logs - self._tilts * epsilon).delta(epsilon)

    def epsilon(self, delta: float) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            bounds = (self._logs - log(delta)) / self._tilts
        return self._near(bounds).epsilon(delta)

    def _near(self, bounds: Floats) -> _Table:
        """Return the table of the tilt with the least bound."""
        at = int(self._best[np.argmin(bounds[self._best])])
        if at not in self._tables:
            self._tables[at] = self._table(at)
        return self._tables[at]

    def _window(self, at: int) -> tuple[int, int, float] | None:
        """Return where the grid of a tilt begins, its size, and what lies above it.

        None where the grid would be too long.
        """
        tilts, logs, step = self._tilts, self._logs, self._step
        # [pld:window] Chernoff bounds of the tilted sum, within its support
        excess = logs - logs[at] - log(WRAPPED)
        low = float(np.max(-excess[:at] / (tilts[at] - tilts[:at])))
        high = float(np.min(excess[at + 1 :] / (tilts[at + 1 :] - tilts[at])))
        low = max(low, step * sum(n * m.first for m, n in self._parts))
        largest = step * sum(n * (m.first + len(m.mass)) for m, n in self._parts)
        high = min(high, largest)
        first = int(np.floor(low / step))
        size = 2 ** ceil(np.log2(max(16.0, high / step - first + 2)))
        if size > min(MOST_CELLS, WIDEST / step):
            return None
        # [pld:support] nothing lies above the largest loss, which tilts are too flat to
        # show where the support is narrow
        beyond, end = 0.0, step * (first + size - 1)
        if end < largest:
            beyond = exp(min(0.0, float(np.min(logs[at:] - tilts[at:] * end))))
        return first, size, beyond

    def _table(self, at: int) -> _Table:
        tilts, logs, step = self._tilts, self._logs, self._step
        window = self._window(at)
        if window is None:
            return _Table(0.0, step, np.ones(1), 1.0)
        first, size, beyond = window
        losses = step * (first + np.arange(size))
        mass = np.roll(self._tilted(tilts[at], size), -first)
        # far below the losses that the tilt is for, only rounding errors are left
        scale = np.exp(np.minimum(logs[at] - tilts[at] * losses, WIDEST))
        mass = np.minimum(np.maximum(mass, 0.0) * scale, 1.0)
        return _Table.of(losses[0], step, mass, self._infinite + beyond)

    def _tilted(self, tilt: float, size: int) -> Floats:
        """Return the tilted sum; the loss ``i * step`` is at i modulo the size."""
        spectrum: NDArray[np.complex128] | complex = 1.0 + 0.0j
        for masses, count in self._parts:
            places = masses.first + np.flatnonzero(masses.mass)
            exponents = tilt * self._step * places
            tilted = masses.mass[masses.mass > 0] * np.exp(exponents - exponents.max())
            wrapped = np.bincount(places % size, tilted / tilted.sum(), minlength=size)
            spectrum = spectrum * np.fft.rfft(wrapped) ** count
        return np.fft.irfft(spectrum, size)


def _log_means(masses: Masses, step: float, tilts: Floats) -> Floats:
    losses = step * (masses.first + np.flatnonzero(masses.mass))
    exponents = tilts[:, None] * losses
    largest = exponents.max(axis=1)
    means = np.exp(exponents - largest[:, None]) @ masses.mass[masses.mass > 0]
    return np.asarray(np.log(means) + largest)


def _spacing(parts: Parts, n_losses: int) -> tuple[float, float]:
    """Return about the standard deviation of the sum, and the spacing of its grid."""
    variance = 0.0
    widest = 0.0
    for loss, count in parts:
        reach = max(loss.reach(TAIL / n_losses))
        step = reach / 128
        masses = loss.masses(step, TAIL / n_losses)
        losses = step * (masses.first + np.arange(len(masses.mass)))
        mean = float(losses @ masses.mass)
        variance += count * float((losses - mean) ** 2 @ masses.mass)
        widest = max(widest, reach)
    # a loss that is nearly certain has a tail that its variance does not show
    spread = max(sqrt(variance), widest / 40)
    step = spread * min(FINEST, SPACING / sqrt(n_losses))
    step = max(step, 24 * spread / LARGEST)
    # losses that lie on a grid stay where they are, where that is theirs
    lattices = [(loss.lattice, n) for loss, n in parts if loss.lattice is not None]
    if lattices:
        largest = max(lattices, key=lambda lattice: lattice[0] ** 2 * lattice[1])[0]
        step = largest / ceil(largest / step)
    return spread, step


@dataclass(frozen=True, eq=False)
class _Table:
    """Delta at ``first + i * step``, without a part that does not depend on epsilon."""

    first: float
    step: float
    deltas: Floats
    infinite: float

    @classmethod
    def of(cls, first: float, step: float, mass: Floats, infinite: float) -> _Table:
        """Return the table of a loss with these probabilities from ``first`` on."""
        # delta(e) is the integral of exp(e - x) P(loss > x) over x > e
        above = np.append(np.cumsum(mass[::-1])[::-1][1:], 0.0)
        scale = np.exp(-step * np.arange(len(mass)))
        sums = np.cumsum((above * scale)[::-1])[::-1]
        return cls(first, step, -expm1(-step) * sums / scale, infinite)

    def delta(self, epsilon: float) -> float:
        place = (epsilon - self.first) / self.step
        if place < 0:
            return 1.0
        at = int(place)
        found = 0.0
        if at + 1 < len(self.deltas):
            weight = expm1((place - at) * self.step) / expm1(self.step)
            found = self.deltas[at] + weight * (self.deltas[at + 1] - self.deltas[at])
        return min(1.0, SAFETY * float(found) + self.infinite)

    def epsilon(self, delta: float) -> float:
        left = (delta - self.infinite) / SAFETY
        if left <= 0:
            return inf
        at = int(np.searchsorted(-self.deltas, -left))
        if at == 0:
            return max(0.0, float(self.first))
        if at == len(self.deltas):
            return inf
        before, after = self.deltas[at - 1], self.deltas[at]
        weight = float((before - left) / (before - after))
        found = self.first + self.step * (at - 1) + log1p(weight * expm1(self.step))
        return max(0.0, float(found))
