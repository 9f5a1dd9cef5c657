"""Prefix sums of a stream with buffered linear Toeplitz (BLT) noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import floor, log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._state import kept
from tacit._validate import at_least
from tacit.exceptions import PlanError
from tacit.mechanisms.continual._base import FAR, UNIT, Array, CorrelatedSums
from tacit.mechanisms.continual._designs import DESIGNS
from tacit.mechanisms.noise import GRID

__all__ = ["LONGEST", "BLTState", "BLTSum"]

LONGEST: int = 2 ** (len(DESIGNS[1]) - 1)
NONE = np.empty(0)


@kept
@dataclass(frozen=True)
class BLTState:
    """The buffers of past noise, and the last sum. Private: do not publish."""

    n_steps: int
    sums: Array
    _private_buffers: NDArray[Any] = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an element."""
        return self.sums.shape


@dataclass(frozen=True)
class _Design:
    """Buffers for one horizon, and the norms of their recurrence."""

    gaps: tuple[float, ...]
    weights: tuple[float, ...]
    column_norm: float
    inverse_sum: float


@dataclass(frozen=True)
class BLTSum(CorrelatedSums):
    """Noisy prefix sums of a stream with buffered linear Toeplitz (BLT) noise.

    Parameters
    ----------
    horizon
        Longest stream planned for, public; at most 2**26.
    multiplier
        Privacy of the whole stream, as the multiplier of one Gaussian mechanism.
    sensitivity
        How far neighbors can move one element of the stream, in L2.
    noise
        ``"grid"`` or ``"float"``.
    largest
        Largest size of a number in an element, beyond which it is clipped.
    buffers
        Number of buffers, from 1 to 4. The state has an array for each, and one more.

    Notes
    -----
    **Guarantee.** One Gaussian mechanism whose sensitivity is ``sensitivity`` times
    the column norm of C, the Toeplitz matrix with first column 1 and then
    ``sum_j w_j th_j^(k - 1)``: sums are those of ``C^-1 (C v + noise)`` (Dvijotham,
    McMahan, Pillutla, Steinke and Thakurta 2024). The norm is found by running the
    recurrence over the horizon. On the grid the noise of the buffers is in
    integers, and how their rounding moves neighbors apart is part of the sensitivity.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.mechanisms import as_generator
    >>> from tacit.mechanisms.continual import BLTSum
    >>> mechanism, rng = BLTSum(1000, multiplier=2.0, sensitivity=1.0), as_generator(0)
    >>> state = mechanism.init((3,))
    >>> for _ in range(1000):
    ...     state, noisy_sum = mechanism.step(state, np.full(3, 0.5), rng)
    >>> noisy_sum.round(), round(mechanism.std_at(1000, 3), 2)
    (array([505., 508., 493.]), 6.53)
    """

    name = "blt"

    buffers: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, buffers=self.buffers)
        if self.buffers not in DESIGNS:
            raise ValueError(
                f"buffers must be at most {max(DESIGNS)}, got {self.buffers}."
            )
        if self.horizon > LONGEST:
            raise PlanError(
                f"BLTSum has buffers for at most {LONGEST} steps, got a horizon of "
                f"{self.horizon}; use TreeSum."
            )

    @property
    def _design(self) -> _Design:
        return _designed(self.horizon, self.buffers)

    @property
    def column_norm(self) -> float:
        return self._design.column_norm

    def _reach(self, gap: float) -> float:
        """Return a bound on the buffer of that gap, in cells, for either neighbor."""
        # [continual:blt-reach]
        noise = FAR * GRID * self._design.inverse_sum * sqrt(self._memory(gap))
        return noise + self._element()

    def _memory(self, gap: float) -> float:
        """Return a bound on the sum of the powers of one minus the gap."""
        return min(self.horizon, 1.01 / gap)

    def _unit(self) -> float:
        """Return the number of units of a buffer in one cell, a power of two."""
        return 2.0 ** min(20, floor(61 - log2(self._reach(min(self._design.gaps)))))

    def _rounding(self) -> float:
        # [continual:blt-rounding]
        gaps, weights, unit = self._design.gaps, self._design.weights, self._unit()
        # each step rounds what a buffer loses, and may round what it gets
        halves = (0.5 if unit >= 1 else 1.0) / unit + UNIT * self._element()
        off = 0.5
        for gap, weight in zip(gaps, weights, strict=True):
            floats = (self.buffers + 8) * UNIT * self._reach(gap)
            off += weight * (self._memory(gap) * halves + floats)
        return 1.01 * off

    def std(self, size: int) -> Array:
        import tacit.mechanisms.continual._kernels as _kernels  # noqa: PLC0415 - numba

        squares = np.empty(self.horizon)
        _kernels.rows_of_b(*self._arrays(), self.horizon, squares)
        return np.asarray(np.sqrt(squares) * self.scale(size))

    def std_at(self, t: int, size: int) -> float:
        import tacit.mechanisms.continual._kernels as _kernels  # noqa: PLC0415 - numba

        squares, _ = _kernels.rows_of_b(*self._arrays(), t, NONE)
        return sqrt(squares) * self.scale(size)

    def coefficients(self) -> Array:
        """Return what one draw adds to the sum of its step and of those that follow."""
        import tacit.mechanisms.continual._kernels as _kernels  # noqa: PLC0415 - numba

        row = np.empty(self.horizon)
        _kernels.coefficients_of_b(*self._arrays(), row)
        return row

    def _arrays(self) -> tuple[Array, Array]:
        return np.array(self._design.gaps), np.array(self._design.weights)

    def init(self, shape: tuple[int, ...]) -> BLTState:
        kind = np.float64 if self.noise == "float" else np.int64
        buffers = np.zeros((self.buffers, *shape), dtype=kind)
        return BLTState(0, np.zeros(shape), buffers)

    def _run(
        self, state: BLTState, numbers: Any, *, given_fresh: bool
    ) -> tuple[Any, Any, dict[str, Any]]:
        import tacit.mechanisms.continual._kernels as _kernels  # noqa: PLC0415 - numba

        buffers, numbers = state._private_buffers.copy(), numbers.copy()
        stored = buffers.reshape(self.buffers, -1)
        correction = np.empty_like(numbers)
        if self.noise == "float":
            _kernels.run_float(
                *self._arrays(), stored, numbers, correction, given_fresh
            )
        else:
            unit = self._unit()
            _kernels.run_integer(
                *self._arrays(), unit, stored, numbers, correction, given_fresh
            )
        return numbers, correction, {"_private_buffers": buffers}


@lru_cache(maxsize=256)
def _designed(horizon: int, n_buffers: int) -> _Design:
    """Return the buffers for the least horizon in the table that is long enough."""
    import tacit.mechanisms.continual._kernels as _kernels  # noqa: PLC0415 - numba

    gaps, weights = DESIGNS[n_buffers][(horizon - 1).bit_length()]
    arrays = np.array(gaps), np.array(weights)
    # [continual:blt-norm] positive terms, each off by a few units a step
    upward = 1 + 8 * (horizon + 8) * UNIT
    squares = _kernels.squares_of_powers(*arrays, horizon)
    _, sizes = _kernels.rows_of_b(*arrays, horizon, NONE)
    return _Design(gaps, weights, sqrt(squares) * upward, 1.01 * sizes)
