"""Compositions of privacy losses, by fast Fourier transforms.

Losses on a grid are convolved after an exponential tilt, which makes the losses of
interest likely: so that rounding errors are small in relation to the smallest deltas
too. What a finite grid cannot hold counts as an infinite loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, expm1, floor, inf, log, log1p, log2, sqrt
from typing import NamedTuple

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
TILTS = np.concatenate([[-16.0, -8.0, -4.0, 0.0], np.geomspace(0.5, 32, 13), [64.0]])
STEEPEST = 16.0  # of those that sums are tilted by; the others bound their tails
NEAR = np.array([1.03, 1.06, 1.12, 1.22])  # and these, in units of the tilt of a sum
# Spacing: this part of a standard deviation of one loss, and of the sum
SPACING, FINEST = 0.04, 1 / 400
LARGEST = 2**18
WIDEST = 600.0  # of a window: exponentials of it must not overflow
MOST_POINTS = 2.0**21  # of a window


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


class _Window(NamedTuple):
    """Grid points of a tilted sum, and the probability that the sum is above them."""

    first: int
    size: int
    beyond: float
    fits: bool  # whether they are nearly all of it


class _Sum:
    """The sum of independent losses, on grids that are made when needed."""

    def __init__(self, parts: Parts) -> None:
        n_losses = sum(count for _, count in parts)
        self._spread, self._step = _spacing(parts, n_losses)
        tail = TAIL / n_losses
        self._parts = [(loss.masses(self._step, tail), n) for loss, n in parts]
        kept = sum(n * log1p(-masses.infinite) for masses, n in self._parts)
        self._infinite = -expm1(kept)
        self._tilts = TILTS / self._spread
        self._logs = self._log_means(self._tilts)
        usable = np.flatnonzero((TILTS > 0) & (TILTS <= STEEPEST))
        tilts, logs = self._tilts[usable], self._logs[usable]
        best = {int(np.argmin((logs - log(level)) / tilts)) for level in LEVELS}
        self._best = usable[sorted(best)]
        self._tables: dict[int, _Table] = {}

    def delta(self, epsilon: float) -> float:
        return self._near(self._logs - self._tilts * epsilon).delta(epsilon)

    def epsilon(self, delta: float) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            bounds = (self._logs - log(delta)) / self._tilts
        found = self._near(bounds).epsilon(delta)
        if found < inf:
            return found
        # the window of this tilt was too short; every other gives a bound as well
        tables = (self._table_of(int(at)) for at in self._best)
        return min(table.epsilon(delta) for table in tables)

    def _log_means(self, tilts: Floats) -> Floats:
        """Return logs of the means of ``exp(tilt * sum)``."""
        means = [n * _log_means(m, self._step, tilts) for m, n in self._parts]
        return np.asarray(np.sum(means, axis=0))

    def _near(self, bounds: Floats) -> _Table:
        """Return the table of the tilt with the least bound."""
        return self._table_of(int(self._best[np.argmin(bounds[self._best])]))

    def _table_of(self, at: int) -> _Table:
        if at not in self._tables:
            self._tables[at] = self._table(at)
        return self._tables[at]

    def _window(self, at: int) -> _Window:
        tilt, step = self._tilts[at], self._step
        # rare, large losses may dominate already at the next tilt of the list
        tilts = np.append(self._tilts, tilt * NEAR)
        logs = np.append(self._logs, self._log_means(tilt * NEAR))
        below, above = tilts < tilt, tilts > tilt
        # [pld:window] Chernoff bounds of the tilted sum, within its support
        excess = logs - self._logs[at] - log(WRAPPED)
        low = float(np.max(-excess[below] / (tilt - tilts[below])))
        high = float(np.min(excess[above] / (tilts[above] - tilt)))
        bottom = sum(n * int(m.positions[0]) for m, n in self._parts)
        top = sum(n * int(m.positions[-1]) for m, n in self._parts)
        first = max(floor(low / step), bottom)
        most = min(WIDEST / step, MOST_POINTS)
        wanted = max(16.0, min(high / step, top) - first + 2)
        n_points = min(wanted, most)
        unit = 2 ** (floor(log2(n_points)) - 2)  # transforms of 4 to 7 units are fast
        size = unit * min(ceil(n_points / unit), floor(most / unit))
        # [pld:beyond] Any window gives a bound: the transform is circular, so losses
        # outside add to masses inside and lower none. Losses above the window count as
        # infinite too; losses below add nothing to delta at an epsilon inside.
        end, positive = first + size - 1, tilts > 0
        chernoff = float(np.min(logs[positive] - tilts[positive] * (step * end)))
        # [pld:support] nothing is above the largest loss, though tilts may not show it
        beyond = exp(min(0.0, chernoff)) if end < top else 0.0
        return _Window(first, size, beyond, wanted <= most)

    def _table(self, at: int) -> _Table:
        # [pld:fits] steep tilts of a rare and large loss make it as likely as no loss;
        # where no window holds both, a flatter tilt serves nearly as well
        flatter = range(at, int(np.argmax(TILTS > 0)) - 1, -1)
        windows = ((near, self._window(near)) for near in flatter)
        found = next((pair for pair in windows if pair[1].fits), None)
        at, window = found or (at, self._window(at))
        tilt, log_mean, step = self._tilts[at], self._logs[at], self._step
        losses = step * (window.first + np.arange(window.size))
        mass = np.roll(self._tilted(tilt, window.size), -window.first)
        # far below the losses that the tilt is for, only rounding errors are left
        scale = np.exp(np.minimum(log_mean - tilt * losses, WIDEST))
        mass = np.minimum(np.maximum(mass, 0.0) * scale, 1.0)
        return _Table.of(losses[0], step, mass, self._infinite + window.beyond)

    def _tilted(self, tilt: float, size: int) -> Floats:
        """Return the tilted sum; the loss ``i * step`` is at i modulo the size."""
        spectrum: NDArray[np.complex128] | complex = 1.0 + 0.0j
        for masses, count in self._parts:
            exponents = tilt * masses.losses(self._step)
            tilted = masses.mass * np.exp(exponents - exponents.max())
            at = masses.positions % size
            wrapped = np.bincount(at, tilted / tilted.sum(), minlength=size)
            spectrum = spectrum * np.fft.rfft(wrapped) ** count
        return np.fft.irfft(spectrum, size)


def _log_means(masses: Masses, step: float, tilts: Floats) -> Floats:
    exponents = tilts[:, None] * masses.losses(step)
    largest = exponents.max(axis=1)
    means = np.exp(exponents - largest[:, None]) @ masses.mass
    return np.asarray(np.log(means) + largest)


def _spacing(parts: Parts, n_losses: int) -> tuple[float, float]:
    """Return about the standard deviation of the sum, and the spacing of its grid."""
    variance = 0.0
    widest = 0.0
    for loss, count in parts:
        reach = max(loss.reach(TAIL / n_losses))
        step = reach / 128
        masses = loss.masses(step, TAIL / n_losses)
        losses = masses.losses(step)
        mean = float(losses @ masses.mass)
        variance += count * float((losses - mean) ** 2 @ masses.mass)
        widest = max(widest, reach)
    # a loss that is nearly certain has a tail that its variance does not show
    spread = max(sqrt(variance), widest / 40)
    step = spread * min(FINEST, SPACING / sqrt(n_losses))
    # a window has at least so many points
    step = min(max(step, 24 * spread / LARGEST), WIDEST / 64)
    # losses that lie on a grid stay where they are, where that is theirs
    lattices = [(loss.lattice, n) for loss, n in parts if loss.lattice is not None]
    if lattices:
        largest = max(lattices, key=lambda lattice: lattice[0] ** 2 * lattice[1])[0]
        if largest >= step:  # a finer one would need more points than there are
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
        position = (epsilon - self.first) / self.step
        if position < 0:
            return 1.0
        at = int(position)
        found = 0.0
        if at + 1 < len(self.deltas):
            weight = expm1((position - at) * self.step) / expm1(self.step)
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
