"""Prefix sums by name, of streams with and without a known end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._discovery import classes_by
from tacit._release import release
from tacit._state import kept
from tacit._validate import at_least, fraction, one_of, plain, positive
from tacit.mechanisms import noise as draws
from tacit.mechanisms._base import Drawable
from tacit.mechanisms.additive import Gaussian
from tacit.mechanisms.continual._base import (
    ROOM,
    Array,
    PrefixSums,
    as_cells,
    check_block,
)
from tacit.mechanisms.continual._blt import LONGEST
from tacit.mechanisms.noise import GRID, GRID_BITS, check_noise
from tacit.privacy import Event, GaussianNoise

__all__ = ["SUMS", "GrowingState", "GrowingSum", "prefix_sums"]

# Fraction for the totals that minimizes the worst ratio to a known horizon; a class
# with larger errors, for which totals matter less, declares its own
DEFAULT_FRACTION = 0.25
# Kinds of prefix sums by what ``sums=`` calls them
SUMS: dict[str, type[PrefixSums]] = classes_by("name", "tacit.mechanisms.continual")


@kept
@dataclass(frozen=True)
class GrowingState:
    """The epoch under way, and the noisy totals before it. Private: do not publish."""

    n_steps: int
    epoch: int
    carried: Array
    _private_total: NDArray[np.generic] = field(repr=False)
    _private_inner: Any = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an element."""
        return self.carried.shape


@dataclass(frozen=True)
class GrowingSum(Drawable):
    """Noisy prefix sums of a stream whose length is not known.

    The stream is split into epochs, each longer than the one before by a public factor.
    An epoch has prefix sums of its own and, at its end, a noisy total that all later
    sums carry.

    Parameters
    ----------
    multiplier
        Privacy of the whole stream, as the multiplier of one Gaussian mechanism.
    sensitivity
        How far neighbors can move one element of the stream, in L2.
    noise
        ``"grid"`` or ``"float"``.
    largest
        Largest size of a number in an element, beyond which it is clipped.
    kind
        Prefix sums of an epoch: ``"blt"``, ``"tree"``, ``"honaker"`` or
        ``"square_root"``.
    first
        Length of the first epoch.
    growth
        Ratio of the lengths of consecutive epochs, up to 2**26 steps.
    total_fraction
        Fraction of the privacy, in squares of parameters, for the totals; None for that
        of least error.

    Notes
    -----
    **Guarantee.** An element lives in one epoch, so epochs do not add up. Within an
    epoch the two parts are Gaussian mechanisms whose squared parameters add up to that
    of ``multiplier``.

    **Bound.** With the defaults the standard deviation at step t is at most 1.65 times
    that of `BLTSum` with the horizon t, up to 2**26 steps. Each epoch, of which there
    are seven by then, adds four times the squared noise of one total.
    """

    multiplier: float
    sensitivity: float
    noise: str = "grid"
    largest: float | None = None
    kind: str = "blt"
    first: int = 16
    growth: int = 16
    total_fraction: float | None = None

    def __post_init__(self) -> None:
        plain(self)
        positive(multiplier=self.multiplier, sensitivity=self.sensitivity)
        if self.largest is not None:
            positive(largest=self.largest)
        if self.total_fraction is not None:
            fraction(closed=False, total_fraction=self.total_fraction)
        check_noise(self.noise)
        one_of(tuple(SUMS), kind=self.kind)
        at_least(1, first=self.first, growth=self.growth)

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    def length(self, epoch: int) -> int:
        """Return the number of steps of an epoch."""
        # a power that would be far beyond the longest is not computed
        power: int = self.growth ** min(epoch, LONGEST.bit_length())
        return min(self.first * power, LONGEST)

    def _total_fraction(self) -> float:
        if self.total_fraction is not None:
            return self.total_fraction
        kind = SUMS[self.kind]
        return float(getattr(kind, "total_fraction", DEFAULT_FRACTION))

    def inner(self, epoch: int) -> PrefixSums:
        """Return the prefix sums of an epoch."""
        # [continual:split] a little more, as the square roots are rounded
        multiplier = self.multiplier / sqrt(1 - self._total_fraction()) * (1 + 1e-12)
        return SUMS[self.kind](
            self.length(epoch), multiplier, self.sensitivity, self.noise, self.largest
        )

    def total(self) -> Gaussian:
        """Return the mechanism of the total of an epoch."""
        multiplier = self.multiplier / sqrt(self._total_fraction()) * (1 + 1e-12)
        return Gaussian(multiplier, self.sensitivity, self.noise)

    def std_at(self, t: int, size: int) -> float:
        """Return the standard deviation of each number of the sum at step ``t``.

        Parameters
        ----------
        t
            The step, from 1.
        size
            Number of entries of an element.
        """
        epoch = 0
        while t > self.length(epoch):
            t -= self.length(epoch)
            epoch += 1
        own = self.inner(epoch).std_at(t, size)
        return sqrt(own**2 + epoch * self.total().scale(size) ** 2)

    def init(self, shape: tuple[int, ...]) -> GrowingState:
        """Return the state before the first element."""
        return self._opened(0, 0, np.zeros(shape))

    def _opened(self, n_steps: int, epoch: int, carried: Array) -> GrowingState:
        kind = np.float64 if self.noise == "float" else np.int64
        total = np.zeros((2, *carried.shape), dtype=kind)
        inner = self.inner(epoch).init(carried.shape)
        return GrowingState(n_steps, epoch, carried, total, inner)

    def step(
        self, state: GrowingState, value: Array, rng: Generator
    ) -> tuple[GrowingState, Array]:
        """Add one element; return the new state and the noisy sum so far."""
        values = np.asarray(value, dtype=np.float64)[None]
        state, sums = self.steps(state, values, rng)
        return state, sums[0]

    def steps(
        self, state: GrowingState, values: Array, rng: Generator
    ) -> tuple[GrowingState, Array]:
        """Add a block of elements; return the new state and the sum after each."""
        values = np.asarray(values, dtype=np.float64)
        check_block(self, state, values, rng)
        sums = np.empty(values.shape)
        position = 0
        while position < len(values):
            inner = self.inner(state.epoch)
            left = inner.horizon - state._private_inner.n_steps
            part = slice(position, min(position + left, len(values)))
            state, sums[part] = self._within(state, inner, values[part], rng)
            position = part.stop
        return state, sums

    def _within(
        self, state: GrowingState, inner: PrefixSums, values: Array, rng: Generator
    ) -> tuple[GrowingState, Array]:
        """Add elements of one epoch, and release its total at the end."""
        reached, sums = inner.steps(state._private_inner, values, rng)
        gaussian, size = self.total(), values[0].size
        scale = gaussian.scale(size)
        cell = 1.0 if self.noise == "float" else scale / GRID
        most = min(scale * ROOM, self.largest or np.inf)
        rows = as_cells(values.reshape(len(values), size), cell, most, self.noise)
        total = _added(state._private_total, rows)
        sums += state.carried
        n_steps = state.n_steps + len(values)
        if reached.n_steps < inner.horizon:
            state = replace(
                state, n_steps=n_steps, _private_total=total, _private_inner=reached
            )
            return state, sums

        def draw() -> Any:
            if self.noise == "float":
                return _added(total, scale * draws.float_normal((1, size), rng))
            return _added(total, draws.rounded_normal((1, size), rng))

        noisy = release(
            "GrowingSum",
            value=_joined(total) * cell,
            sensitivity=scale / gaussian.multiplier,
            norm="l2",
            draw=draw,
        )
        carried = state.carried + _joined(noisy) * cell
        return self._opened(n_steps, state.epoch + 1, carried), sums


def _added(total: Any, rows: Any) -> Any:
    """Return a total with rows added: integers in two parts, of 32 bits below."""
    added = np.zeros((2, rows.shape[1]), dtype=rows.dtype)
    if rows.dtype == np.float64:
        added[1] = rows.sum(axis=0)
        return total + added.reshape(total.shape)
    # sums of integers that fit 64 bits need not fit them
    added[0] = (rows >> GRID_BITS).sum(axis=0)
    added[1] = (rows & (GRID - 1)).sum(axis=0)
    high, low = total + added.reshape(total.shape)
    return np.stack([high + (low >> GRID_BITS), low & (GRID - 1)])


def _joined(total: Any) -> Array:
    """Return a total in two parts as floats."""
    return np.asarray(total[0] * float(GRID) + total[1])


def prefix_sums(
    name: str,
    horizon: int | None,
    multiplier: float,
    sensitivity: float,
    noise: str = "grid",
    largest: float | None = None,
) -> PrefixSums | GrowingSum:
    """Return the mechanism of that name, for a stream of a known or unknown length.

    Parameters
    ----------
    name
        ``"blt"``, the best in little memory; ``"square_root"``, a little better in the
        memory of the whole stream; ``"tree"``; or ``"honaker"``, a better tree.
    horizon
        Longest stream planned for; None for a `GrowingSum` of that kind.
    multiplier
        Privacy of the whole stream, as the multiplier of one Gaussian mechanism.
    sensitivity
        How far neighbors can move one element of the stream, in L2.
    noise
        ``"grid"`` or ``"float"``.
    largest
        Largest size of a number in an element, beyond which it is clipped.

    Examples
    --------
    >>> from tacit.mechanisms.continual import prefix_sums
    >>> for name in ("tree", "honaker", "square_root", "blt"):
    ...     mechanism = prefix_sums(name, 65_536, 1.0, 1.0)
    ...     print(name, round(mechanism.std(size=1).max(), 2))
    tree 16.49
    honaker 12.23
    square_root 4.6
    blt 4.62
    """
    one_of(tuple(SUMS), name=name)
    if horizon is None:
        return GrowingSum(multiplier, sensitivity, noise, largest, kind=name)
    return SUMS[name](horizon, multiplier, sensitivity, noise, largest)
