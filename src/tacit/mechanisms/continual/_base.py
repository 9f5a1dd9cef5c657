"""What all prefix sums of a stream share: the contract, checks and noise."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._random import spawn
from tacit._validate import at_least, plain, positive
from tacit.mechanisms import noise as draws
from tacit.mechanisms._base import Drawable
from tacit.mechanisms.grid import FLOAT_SAFE, check_noise, to_cells
from tacit.mechanisms.noise import GRID
from tacit.privacy import Event, GaussianNoise

__all__ = ["ROOM", "Array", "PrefixSums", "as_cells", "check_block"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

# Deviations of noise that a sum can have: 2**62 cells
ROOM = 2.0**30
# Numbers for which a second thread is worth its start
MANY = 2**12


@dataclass(frozen=True)
class PrefixSums(Drawable):
    """A noisy sum of all elements so far, after each element of a stream.

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
        Largest size of a number in an element; what is beyond is cut, which moves no
        neighbors apart. None cuts only where sums would leave 64 bits.
    """

    horizon: int
    multiplier: float
    sensitivity: float
    noise: str = "grid"
    largest: float | None = None

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, horizon=self.horizon)
        positive(multiplier=self.multiplier, sensitivity=self.sensitivity)
        if self.largest is not None:
            positive(largest=self.largest)
        check_noise(self.noise)

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    @abstractmethod
    def scale(self, size: int) -> float:
        """Return the deviation of one draw, for elements of ``size`` numbers."""

    @abstractmethod
    def init(self, shape: tuple[int, ...]) -> Any:
        """Return the state before the first element."""

    @abstractmethod
    def std(self, size: int) -> Array:
        """Return the deviation of each number of the sum, at each step.

        Parameters
        ----------
        size
            How many numbers an element has.
        """

    @abstractmethod
    def std_at(self, t: int, size: int) -> float:
        """Return the deviation of each number of the sum at step ``t``."""

    def step(self, state: Any, value: Array, rng: Generator) -> tuple[Any, Array]:
        """Add one element; return the new state and the noisy sum so far."""
        values = np.asarray(value, dtype=np.float64)[None]
        state, sums = self._checked(state, values, rng)
        return state, sums[0]

    def steps(self, state: Any, values: Array, rng: Generator) -> tuple[Any, Array]:
        """Add a block of elements; return the new state and the sum after each.

        The law is that of as many single steps. The noise is another, as it is drawn
        for the block as a whole, by two threads.
        """
        return self._checked(state, np.asarray(values, dtype=np.float64), rng)

    def _checked(self, state: Any, values: Array, rng: Generator) -> tuple[Any, Array]:
        check_block(self, state, values, rng)
        if state.n_steps + len(values) > self.horizon:
            raise ValueError(
                f"{type(self).__name__} was planned for {self.horizon} steps; step "
                f"{self.horizon + 1} was asked."
            )
        if len(values) == 0:
            return state, values.copy()
        return self._advanced(state, values, rng)

    @abstractmethod
    def _advanced(self, state: Any, values: Array, rng: Generator) -> tuple[Any, Array]:
        """Add elements of the right shape, at least one."""

    def _cells(self, values: Array) -> Any:
        """Return elements as they are added: one row a step, see `as_cells`."""
        size = values[0].size
        most = self._room(size)
        if self.largest is not None:
            most = min(most, self.largest)
        flat = values.reshape(len(values), size)
        return as_cells(flat, self._cell(size), most, self.noise)

    def _room(self, size: int) -> float:
        """Return the largest number for which no sum leaves 64 bits."""
        return self.scale(size) * ROOM / self.horizon

    def _cell(self, size: int) -> float:
        """Return the unit of what `_cells` returns."""
        return 1.0 if self.noise == "float" else self.scale(size) / GRID

    def _draws(self, n_rows: int, size: int, rng: Generator) -> Any:
        """Return rows of noise, in the unit of the elements."""
        if self.noise == "float":
            return self.scale(size) * draws.float_normal((n_rows, size), rng)
        if n_rows == 1 or n_rows * size < MANY:
            return draws.rounded_normal((n_rows, size), rng)
        return side_by_side(n_rows, size, rng)


def check_block(mechanism: Any, state: Any, values: Array, rng: Any) -> None:
    """Refuse elements of another shape than the state was made for, or no generator."""
    if not isinstance(rng, Generator):
        raise TypeError(
            "rng must be a generator such as tacit.mechanisms.as_generator(None), got "
            f"{type(rng).__name__}."
        )
    if values.ndim == 0 or values.shape[1:] != state.shape:
        raise ValueError(
            f"{type(mechanism).__name__} was started for elements of shape "
            f"{state.shape}, got one of shape {values.shape[1:]}."
        )


def as_cells(values: Array, cell: float, most: float, noise: str) -> Any:
    """Return rows without NaN and cut to ``most``, in whole cells on the grid."""
    from tacit.mechanisms.continual import _kernels  # noqa: PLC0415 - numba

    cells = np.empty(values.shape, dtype=np.int64)
    if (
        noise == "grid"
        and _kernels.integer_cells(values, most, cell, cells) < FLOAT_SAFE
    ):
        return cells
    cut = np.clip(np.nan_to_num(values, posinf=most, neginf=-most), -most, most)
    if noise == "float":
        return cut
    # [continual:cells] number by number, so that a large one changes no other
    far = np.abs(cut / cell) >= FLOAT_SAFE
    cells[far] = to_cells(cut[far], cell * GRID)
    return cells


def side_by_side(n_rows: int, size: int, rng: Generator) -> Whole:
    """Return rounded normals drawn by two threads, from two children of ``rng``.

    Shares are fixed, so that the numbers do not depend on the threads there are.
    """
    half = -(-n_rows // 2)
    with ThreadPoolExecutor(2) as pool:
        shapes = (half, size), (n_rows - half, size)
        parts = pool.map(draws.rounded_normal, shapes, spawn(rng, 2))
        return np.concatenate(list(parts))
