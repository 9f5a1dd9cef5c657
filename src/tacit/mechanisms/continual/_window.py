"""Sliding-window sums of an unbounded stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
from numpy.random import Generator
from scipy import fft

from tacit._state import kept
from tacit._validate import at_least, plain
from tacit.mechanisms._base import Drawable
from tacit.mechanisms.continual._base import Array, check_block
from tacit.mechanisms.continual._blt import BLTState, BLTSum
from tacit.privacy import Event

__all__ = ["WindowState", "WindowSum"]


@kept
@dataclass(frozen=True)
class WindowState:
    """The block under way, and noisy sums of the last one. Private: do not publish."""

    n_steps: int
    before: Array
    now: tuple[Array, ...]
    _private_inner: BLTState = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an element."""
        return self._private_inner.shape


@dataclass(frozen=True)
class WindowSum(Drawable):
    """A noisy sum of the last ``window`` elements, after each element of a stream.

    The stream is split into blocks as long as the window, each with prefix sums of its
    own. A window is the end of one block and the beginning of the next.

    Parameters
    ----------
    window
        Number of elements of a sum, public; at most 2**26.
    multiplier
        Privacy of the whole stream, as the multiplier of one Gaussian mechanism.
    sensitivity
        How far neighbors can move one element of the stream, in L2.
    noise
        ``"grid"`` or ``"float"``.
    largest
        Largest size of a number in an element, beyond which it is clipped.
    buffers
        As in `BLTSum`.

    Notes
    -----
    **Guarantee.** An element lives in one block, and sums over windows are made of the
    prefix sums of blocks. So the stream may go on for ever: it is as private as one
    block of `BLTSum`. The state keeps the prefix sums of the last block.
    """

    window: int
    multiplier: float
    sensitivity: float
    noise: str = "grid"
    largest: float | None = None
    buffers: int = 4

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, window=self.window)
        self.inner()

    def inner(self) -> BLTSum:
        """Return the prefix sums of a block."""
        return BLTSum(
            self.window,
            self.multiplier,
            self.sensitivity,
            self.noise,
            self.largest,
            self.buffers,
        )

    @property
    def event(self) -> Event:
        return self.inner().event

    def std(self, size: int) -> Array:
        """Return the standard deviation at each step of a block, from the second on.

        Parameters
        ----------
        size
            Number of entries of an element.
        """
        inner = self.inner()
        row = inner.coefficients()
        squares = np.cumsum(row**2)
        # the covariance of the sum of a block and that up to a step, for each step
        length = 2 * fft.next_fast_len(self.window, real=True)
        spectrum = np.abs(fft.rfft(row, length)) ** 2
        shared = fft.irfft(spectrum, length)[self.window - 1 :: -1]
        rest = squares[-1] + squares - 2 * shared
        variances = np.maximum(rest, 0.0) + squares
        return np.asarray(np.sqrt(variances) * inner.scale(size))

    def std_at(self, t: int, size: int) -> float:
        """Return the standard deviation of each number of the sum at step ``t``."""
        inner, position = self.inner(), (t - 1) % self.window + 1
        row = inner.coefficients()
        own = float(row[:position] @ row[:position])
        if t <= self.window:
            return sqrt(own) * inner.scale(size)
        lagged = row.copy()
        lagged[self.window - position :] -= row[:position]
        return sqrt(own + float(lagged @ lagged)) * inner.scale(size)

    def init(self, shape: tuple[int, ...]) -> WindowState:
        """Return the state before the first element."""
        return WindowState(
            0, np.zeros((self.window, *shape)), (), self.inner().init(shape)
        )

    def step(
        self, state: WindowState, value: Array, rng: Generator
    ) -> tuple[WindowState, Array]:
        """Add one element; return the new state and the noisy sum of the window."""
        values = np.asarray(value, dtype=np.float64)[None]
        state, sums = self.steps(state, values, rng)
        return state, sums[0]

    def steps(
        self, state: WindowState, values: Array, rng: Generator
    ) -> tuple[WindowState, Array]:
        """Add a block of elements; return the new state and the sum after each."""
        values = np.asarray(values, dtype=np.float64)
        check_block(self, state, values, rng)
        sums = np.empty(values.shape)
        inner, position = self.inner(), 0
        while position < len(values):
            start = state.n_steps % self.window
            n = min(self.window - start, len(values) - position)
            part = slice(position, position + n)
            stored, found = inner.steps(state._private_inner, values[part], rng)
            before = state.before
            sums[part] = before[-1] - before[start : start + n] + found
            now = _appended(state.now, found)
            if stored.n_steps == self.window:
                before, now = np.concatenate(now), ()
                stored = inner.init(state.shape)
            state = WindowState(state.n_steps + n, before, now, stored)
            position += n
        return state, sums


def _appended(parts: tuple[Array, ...], new: Array) -> tuple[Array, ...]:
    """Return parts with rows at their end; short parts are joined, so few remain."""
    while parts and len(parts[-1]) <= len(new):
        new = np.concatenate([parts[-1], new])
        parts = parts[:-1]
    return (*parts, new)
