"""All prefix sums of a stream, by the binary tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release_log import release
from tacit._state import kept
from tacit.mechanisms.continual._base import Array, PrefixSums
from tacit.mechanisms.grid import enlarged

__all__ = ["TreeState", "TreeSum"]


@kept
@dataclass(frozen=True)
class TreeState:
    """Open partial sums of a stream, exact and noisy. Private: do not publish."""

    n_steps: int
    _private_exact: NDArray[np.generic] = field(repr=False)
    _private_noisy: NDArray[np.generic] = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an element."""
        return self._private_exact.shape[1:]


@dataclass(frozen=True)
class TreeSum(PrefixSums):
    """Noisy prefix sums of a stream, by the binary tree.

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
        Largest size of a number in an element, beyond which it is cut.

    Notes
    -----
    **Guarantee.** An element enters at most one node a level, so the stream is one
    Gaussian mechanism with sensitivity ``sensitivity * sqrt(levels)`` (Dwork, Naor,
    Pitassi and Rothblum 2010; Chan, Shi and Song 2011), also for elements chosen after
    seeing outputs (Denisov et al. 2022, Theorem 2.1). The state keeps two arrays a
    level.
    """

    @property
    def levels(self) -> int:
        """Height of the tree: nodes an element can enter."""
        return int(self.horizon).bit_length()

    def scale(self, size: int) -> float:
        """Return the standard deviation of the noise on a node of ``size`` numbers."""
        # [continual:tree]
        multiplier = self.multiplier * sqrt(self.levels)
        if self.noise == "float":
            return multiplier * self.sensitivity
        return enlarged(multiplier, self.sensitivity, sqrt(size))

    def std(self, size: int) -> Array:
        digits = np.bitwise_count(np.arange(1, self.horizon + 1)).astype(np.float64)
        return np.asarray(np.sqrt(digits) * self.scale(size))

    def std_at(self, t: int, size: int) -> float:
        return sqrt(t.bit_count()) * self.scale(size)

    def init(self, shape: tuple[int, ...]) -> TreeState:
        kind = np.float64 if self.noise == "float" else np.int64
        zeros = np.zeros((self.levels, *shape), dtype=kind)
        return TreeState(0, zeros, zeros)

    def _advanced(
        self, state: TreeState, values: Array, rng: Generator
    ) -> tuple[TreeState, Array]:
        from tacit.mechanisms.continual import _kernels  # noqa: PLC0415 - numba

        n, size = len(values), values[0].size
        exact, noisy = state._private_exact.copy(), state._private_noisy.copy()

        def close_nodes() -> Any:
            cells, nodes = self._cells(values), self._draws(n, size, rng)
            levels = exact.reshape(self.levels, size)
            _kernels.close_nodes(state.n_steps, levels, cells, nodes)
            return nodes

        # under replay the exact sums stay behind, and nothing released reads them
        nodes = release(
            "TreeSum",
            value=values,
            sensitivity=self.sensitivity,
            norm="l2",
            draw=close_nodes,
        )
        sums = np.empty((n, size))
        levels, cell = noisy.reshape(self.levels, size), self._cell(size)
        _kernels.add_nodes(state.n_steps, levels, nodes, cell, sums)
        reached = TreeState(state.n_steps + n, exact, noisy)
        return reached, sums.reshape(values.shape)
