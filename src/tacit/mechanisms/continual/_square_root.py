"""Prefix sums of a stream by the square-root matrix mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from tacit._state import kept
from tacit.mechanisms.continual._base import FAR, UNIT, Array, CorrelatedSums
from tacit.mechanisms.noise import GRID

__all__ = ["SquareRootState", "SquareRootSum"]

# Steps that are convolved directly, before blocks are
LEAF = 64
# Numbers that are transformed at once, so that a transform takes little memory
AT_ONCE = 2**22


@kept
@dataclass(frozen=True)
class SquareRootState:
    """All noise so far, and its effect on later steps. Private: do not publish.

    ``_private_past`` holds one block for each binary digit of the number of leaves,
    each with its contribution to the same number of steps after it.
    """

    n_steps: int
    sums: Array
    _private_recent: NDArray[np.generic] = field(repr=False)
    _private_past: tuple[tuple[Array, Array], ...] = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an element."""
        return self.sums.shape


@dataclass(frozen=True)
class SquareRootSum(CorrelatedSums):
    """Noisy prefix sums of a stream by the square-root matrix mechanism.

    The least error of all noise that looks alike at every step, for the memory of the
    whole stream: two numbers for each number of each element so far.

    Parameters
    ----------
    horizon
        Longest stream planned for, public.
    multiplier
        Privacy of the whole stream, as the multiplier of one Gaussian mechanism.
    sensitivity
        How far neighbors can move one element of the stream, in L2.
    noise
        ``"grid"`` or ``"float"``.
    largest
        Largest size of a number in an element, beyond which it is clipped.

    Notes
    -----
    **Guarantee.** One Gaussian mechanism whose sensitivity is ``sensitivity`` times
    the norm of the coefficients ``f_0 = 1, f_k = f_(k - 1) (2 k - 1) / (2 k)`` over the
    horizon (Fichtenberger, Henzinger and Upadhyay 2023). What transforms in floating
    point are off by is rounded to cells and part of the sensitivity.

    **Bound.** The work of a step grows as the squared logarithm of the step, on
    average: blocks of noise are convolved by fast transforms as soon as they are known
    (van der Hoeven 2002, "Relax, but don't be too lazy").
    """

    name = "square_root"

    @property
    def column_norm(self) -> float:
        # [continual:square-root-norm] positive terms, each off by a few units a step
        upward = 1 + 8 * (self.horizon + 8) * UNIT
        return sqrt(_squares(self.horizon)[-1]) * upward

    def _rounding(self) -> float:
        # [continual:square-root-rounding]
        # coefficients of the inverse of C add up to two in size
        largest = 2 * FAR * GRID + self._element()
        norm = 2 * GRID * (sqrt(self.horizon) + FAR) + self._element()
        direct = _row_sum(LEAF) * largest + self.column_norm * self._digits() * norm
        off = 0.5 + (LEAF + 64) * UNIT * direct
        for digit in range(self._digits()):
            block = LEAF << digit
            # each of the transforms is off by less than 16 units a halving
            norms = 2 * self.column_norm + _row_sum(2 * block)
            off += 16 * log2(2 * block) * UNIT * norms * norm
        return 1.01 * off

    def _digits(self) -> int:
        """Return the largest number of blocks of the past."""
        return (self.horizon // LEAF).bit_length()

    def std(self, size: int) -> Array:
        return np.asarray(np.sqrt(_squares(self.horizon)) * self.scale(size))

    def std_at(self, t: int, size: int) -> float:
        return sqrt(_squares(self.horizon)[t - 1]) * self.scale(size)

    def init(self, shape: tuple[int, ...]) -> SquareRootState:
        kind = np.float64 if self.noise == "float" else np.int64
        no_rows = np.zeros((0, int(np.prod(shape))), dtype=kind)
        return SquareRootState(0, np.zeros(shape), no_rows, ())

    def _run(
        self, state: SquareRootState, numbers: Any, *, given_fresh: bool
    ) -> tuple[Any, Any, dict[str, Any]]:
        import tacit.mechanisms.continual._kernels as _kernels  # noqa: PLC0415 - numba

        numbers = numbers.copy()
        correction = np.empty_like(numbers)
        recent, past = state._private_recent, state._private_past
        position, t = 0, state.n_steps
        first = _coefficients(LEAF)
        while position < len(numbers):
            n = min(LEAF - len(recent), len(numbers) - position)
            part = slice(position, position + n)
            from_past = self._from_past(past, t, n, numbers.shape[1])
            leaf = np.concatenate([recent, numbers[part]])
            start, whole = len(recent), self.noise == "grid"
            _kernels.run_leaf(
                first, from_past, leaf, start, correction[part], whole, given_fresh
            )
            numbers[part] = leaf[len(recent) :]
            recent, position, t = leaf, position + n, t + n
            if len(leaf) == LEAF:
                recent, past = leaf[:0].copy(), self._with_leaf(past, leaf, t)
        return numbers, correction, {"_private_recent": recent, "_private_past": past}

    def _from_past(
        self, past: tuple[tuple[Array, Array], ...], t: int, n: int, size: int
    ) -> Array:
        """Return the contribution of all blocks to the n steps after step t."""
        total = np.zeros((n, size))
        leaves, in_leaf = divmod(t, LEAF)
        for block, added in past:
            since = leaves % (len(block) // LEAF) * LEAF + in_leaf
            total += added[since : since + n]
        return total

    def _with_leaf(
        self, past: tuple[tuple[Array, Array], ...], leaf: Any, t: int
    ) -> tuple[tuple[Array, Array], ...]:
        """Return blocks with one more leaf, which carries as a binary digit does."""
        block = leaf.astype(np.float64)
        while past and len(past[-1][0]) == len(block):
            block = np.concatenate([past[-1][0], block])
            past = past[:-1]
        n_after = min(len(block), self.horizon - t)
        return (*past, (block, _added(block, n_after)))


def _added(block: Array, n_after: int) -> Array:
    """Return the contribution of a block of noise to later steps, by FFT."""
    length = 2 * len(block)
    added = np.empty((n_after, block.shape[1]))
    if n_after == 0:
        return added
    root = _transformed(length)[:, None]
    at_once = max(1, AT_ONCE // length)
    for start in range(0, block.shape[1], at_once):
        columns = slice(start, start + at_once)
        product = fft.rfft(block[:, columns], length, axis=0) * root
        whole = fft.irfft(product, length, axis=0)
        added[:, columns] = whole[len(block) : len(block) + n_after]
    return added


@lru_cache(maxsize=4)
def _coefficients(n: int) -> Array:
    """Return the first n coefficients of ``(1 - x)^(-1/2)``."""
    k = np.arange(1, n)
    coefficients = np.cumprod(np.concatenate([[1.0], (2 * k - 1) / (2 * k)]))
    coefficients.flags.writeable = False
    return coefficients


@lru_cache(maxsize=4)
def _squares(n: int) -> Array:
    """Return the sums of the first squared coefficients."""
    squares = np.cumsum(_coefficients(n) ** 2)
    squares.flags.writeable = False
    return squares


@lru_cache(maxsize=32)
def _row_sum(n: int) -> float:
    return float(_coefficients(n).sum()) * 1.01


@lru_cache(maxsize=32)
def _transformed(n: int) -> NDArray[np.complex128]:
    return np.asarray(fft.rfft(_coefficients(n)))
