"""Base classes of prefix sums of a stream: contract, checks and noise."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isqrt, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._random import spawn
from tacit._release import release
from tacit._validate import at_least, plain, positive
from tacit.mechanisms import noise as draws
from tacit.mechanisms._base import Drawable
from tacit.mechanisms.noise import (
    FLOAT_SAFE,
    GRID,
    ROUNDING,
    check_noise,
    enlarged,
    to_cells,
)
from tacit.privacy import Event, GaussianNoise

__all__ = [
    "FAR",
    "ROOM",
    "UNIT",
    "Array",
    "CorrelatedSums",
    "PrefixSums",
    "as_cells",
    "check_block",
    "packed_size",
    "to_matrix",
    "to_vector",
]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Standard deviations of noise that a sum can have: 2**62 cells
ROOM = 2.0**30
# Numbers for which a second thread is worth its start
MANY = 2**12
# Unit round-off of float64
UNIT = 2.0**-53
# A normal number is beyond so many standard deviations with probability below 2**-166
FAR = 15


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
        Largest size of a number in an element; larger ones are clipped, which moves no
        neighbors apart. None clips only where sums would leave 64 bits.
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
        """Return the standard deviation of a draw, for elements of ``size`` numbers."""

    @abstractmethod
    def init(self, shape: tuple[int, ...]) -> Any:
        """Return the state before the first element."""

    @abstractmethod
    def std(self, size: int) -> Array:
        """Return the standard deviation of each number of the sum, at each step.

        Parameters
        ----------
        size
            Number of entries of an element.
        """

    @abstractmethod
    def std_at(self, t: int, size: int) -> float:
        """Return the standard deviation of each number of the sum at step ``t``."""

    def step(self, state: Any, value: Array, rng: Generator) -> tuple[Any, Array]:
        """Add one element; return the new state and the noisy sum so far."""
        values = np.asarray(value, dtype=np.float64)[None]
        state, sums = self._checked(state, values, rng)
        return state, sums[0]

    def steps(self, state: Any, values: Array, rng: Generator) -> tuple[Any, Array]:
        """Add a block of elements; return the new state and the sum after each.

        The distribution is that of the same number of single steps. The draws differ,
        as they are made for the block as a whole, by two threads.
        """
        return self._checked(state, np.asarray(values, dtype=np.float64), rng)

    def _checked(self, state: Any, values: Array, rng: Generator) -> tuple[Any, Array]:
        check_block(self, state, values, rng)
        if state.n_steps + len(values) > self.horizon:
            raise ValueError(
                f"{type(self).__name__} was planned for {self.horizon} steps and "
                f"cannot take step {self.horizon + 1}; plan a longer horizon."
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


@dataclass(frozen=True)
class CorrelatedSums(PrefixSums):
    """Sums of elements that each get noise n, where ``C n`` is fresh noise.

    A subclass defines C, a lower triangular Toeplitz matrix with ones on its diagonal,
    and multiplies the noise so far by the rows of ``C - 1``.
    """

    @property
    @abstractmethod
    def column_norm(self) -> float:
        """Norm of the first column of C, the longest, over the horizon."""

    @abstractmethod
    def _rounding(self) -> float:
        """Return a bound on the error of a number in the state of `_run`, in cells."""

    @abstractmethod
    def _run(
        self, state: Any, numbers: Any, *, given_fresh: bool
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Return noise n, its product with ``C - 1``, and the fields of the state.

        ``numbers`` are fresh noise when that is given, else n.
        """

    def scale(self, size: int) -> float:
        """Return the standard deviation of a fresh draw, for ``size`` numbers."""
        return _scale(self, size)

    def _element(self) -> float:
        """Return a bound on how far neighbors move a number of an element, in cells."""
        return 2 * GRID / (self.multiplier * self.column_norm) + 2

    def _room(self, size: int) -> float:
        # sums are made of what was released, in floats, and have all the room there is
        return self.scale(size) * ROOM

    def _advanced(self, state: Any, values: Array, rng: Generator) -> tuple[Any, Array]:
        n, size = len(values), values[0].size
        cells, cell = self._cells(values), self._cell(size)
        drawn: Any = None

        def draw() -> Any:
            nonlocal drawn
            drawn = self._run(state, self._draws(n, size, rng), given_fresh=True)
            return cells + drawn[0]

        def queried(released: Any) -> Any:
            _, correction, _ = self._run(state, released - cells, given_fresh=False)
            return (cells - correction) * cell

        released = release(
            type(self).__name__,
            value=queried,
            sensitivity=self.scale(size) / self.multiplier,
            norm="l2",
            draw=draw,
        )
        # the state follows from what was released: a replay has another draw, or none
        noise = released - cells
        if drawn is None or not np.array_equal(drawn[0], noise):
            drawn = self._run(state, noise, given_fresh=False)
        sums = np.cumsum(released, axis=0, dtype=np.float64).reshape(values.shape)
        sums += state.sums
        reached = replace(state, n_steps=state.n_steps + n, sums=sums[-1], **drawn[2])
        return reached, sums * cell


# cached, as a step needs it several times; it depends on public numbers only
@lru_cache(maxsize=256)
def _scale(mechanism: CorrelatedSums, size: int) -> float:
    # [continual:toeplitz]
    moved = mechanism.sensitivity * mechanism.column_norm
    if mechanism.noise == "float":
        return mechanism.multiplier * moved
    apart = 2 * mechanism._rounding() * sqrt(mechanism.horizon * size)
    ones = mechanism.column_norm * sqrt(size) + apart / ROUNDING
    return enlarged(mechanism.multiplier, moved, ones)


def check_block(mechanism: Any, state: Any, values: Array, rng: Any) -> None:
    """Check the shape of elements against the state, and the type of the generator."""
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
    """Return rows without NaN and clipped to ``most``, in whole cells on the grid."""
    import tacit.mechanisms.continual._kernels as _kernels  # noqa: PLC0415 - numba

    cells = np.empty(values.shape, dtype=np.int64)
    if (
        noise == "grid"
        and _kernels.integer_cells(values, most, cell, cells) < FLOAT_SAFE
    ):
        return cells
    clipped = np.clip(np.nan_to_num(values, posinf=most, neginf=-most), -most, most)
    if noise == "float":
        return clipped
    # [continual:cells] number by number, so that a large one changes no other
    far = np.abs(clipped / cell) >= FLOAT_SAFE
    cells[far] = to_cells(clipped[far], cell * GRID)
    return cells


def side_by_side(n_rows: int, size: int, rng: Generator) -> Integers:
    """Return rounded normals drawn by two threads, from two children of ``rng``.

    The parts are fixed, so that the draws do not depend on the number of threads.
    """
    half = -(-n_rows // 2)
    with ThreadPoolExecutor(2) as pool:
        shapes = (half, size), (n_rows - half, size)
        parts = pool.map(draws.rounded_normal, shapes, spawn(rng, 2))
        return np.concatenate(list(parts))


def packed_size(p: int) -> int:
    """Return the length of the vector of a symmetric p by p matrix."""
    return p * (p + 1) // 2


def to_vector(matrix: Array) -> Array:
    """Return a symmetric matrix as a vector of the same norm.

    Parameters
    ----------
    matrix
        Array of shape ``(..., p, p)``; only the upper triangles are read.

    Returns
    -------
    Array of shape ``(..., p (p + 1) / 2)``: upper triangles by rows, with entries off
    the diagonal times the root of two.

    Notes
    -----
    **Bound.** An isometry from the Frobenius norm to L2, but for one rounding of each
    entry off the diagonal, of half an ulp.
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    p = matrix.shape[-1]
    if matrix.ndim < 2 or matrix.shape[-2] != p:
        raise ValueError(
            f"matrix must be square, got an array of shape {matrix.shape}."
        )
    upper = np.triu_indices(p)
    return np.asarray(matrix[..., upper[0], upper[1]] * _weights(p))


def to_matrix(vector: Array) -> Array:
    """Return the symmetric matrix of a vector that `to_vector` made.

    Parameters
    ----------
    vector
        Array of shape ``(..., p (p + 1) / 2)``.
    """
    vector = np.asarray(vector, dtype=np.float64)
    size = vector.shape[-1] if vector.ndim else 0
    p = (isqrt(8 * size + 1) - 1) // 2
    if size == 0 or packed_size(p) != size:
        raise ValueError(
            f"vector must have p (p + 1) / 2 entries for some p, got {size}."
        )
    rows, columns = np.triu_indices(p)
    matrix = np.empty((*vector.shape[:-1], p, p))
    matrix[..., rows, columns] = vector / _weights(p)
    matrix[..., columns, rows] = matrix[..., rows, columns]
    return matrix


def _weights(p: int) -> Array:
    rows, columns = np.triu_indices(p)
    return np.where(rows == columns, 1.0, sqrt(2.0))
