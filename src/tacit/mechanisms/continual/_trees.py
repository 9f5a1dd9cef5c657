"""Prefix sums of a stream by binary trees."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import release
from tacit._state import kept
from tacit.mechanisms.continual._base import Array, PrefixSums
from tacit.mechanisms.noise import enlarged

__all__ = [
    "HonakerState",
    "HonakerTree",
    "TreeState",
    "TreeSum",
]


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
        Largest size of a number in an element, beyond which it is clipped.

    Notes
    -----
    **Guarantee.** An element enters at most one node a level, so the stream is one
    Gaussian mechanism with sensitivity ``sensitivity * sqrt(levels)`` (Dwork, Naor,
    Pitassi and Rothblum 2010; Chan, Shi and Song 2011), also for elements chosen after
    seeing outputs (Denisov et al. 2022, Theorem 2.1). The state keeps two arrays a
    level.
    """

    name = "tree"
    total_fraction = 0.1

    @property
    def levels(self) -> int:
        """Height of the tree: nodes an element can enter."""
        return int(self.horizon).bit_length()

    def scale(self, size: int) -> float:
        return _node_scale(self, self.levels, size)

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
        import tacit.mechanisms.continual._kernels as _kernels  # noqa: PLC0415 - numba

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


@kept
@dataclass(frozen=True)
class HonakerState:
    """Exact open sums, and estimates of them. Private: do not publish."""

    n_steps: int
    _private_exact: NDArray[np.generic] = field(repr=False)
    _private_estimates: Array = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an element."""
        return self._private_exact.shape[1:]


@dataclass(frozen=True)
class HonakerTree(PrefixSums):
    """Noisy prefix sums by the binary tree, with each node estimated by all below it.

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
    **Guarantee.** As `TreeSum`: an element enters one node a level. Here nodes that
    are right halves get noise too, and what sums are made of them is post-processing.

    **Bound.** A node of ``2^h`` elements has ``2^h / (2^(h + 1) - 1)`` times the
    variance of its own noise (Honaker 2015, "Efficient use of differentially private
    binary trees", the estimate from below).
    """

    name = "honaker"
    total_fraction = 0.1

    @property
    def levels(self) -> int:
        """Height of the tree: nodes an element can enter."""
        return int(self.horizon).bit_length()

    def scale(self, size: int) -> float:
        return _node_scale(self, self.levels, size)

    def _variances(self) -> Array:
        """Return the variance of a node of each level, for noise of variance one."""
        sizes = 2.0 ** np.arange(self.levels)
        return np.asarray(sizes / (2 * sizes - 1))

    def std(self, size: int) -> Array:
        steps = np.arange(1, self.horizon + 1)
        squares = np.zeros(self.horizon)
        for level, variance in enumerate(self._variances()):
            squares += variance * (steps >> level & 1)
        return np.asarray(np.sqrt(squares) * self.scale(size))

    def std_at(self, t: int, size: int) -> float:
        parts = (v for level, v in enumerate(self._variances()) if t >> level & 1)
        return sqrt(sum(parts)) * self.scale(size)

    def init(self, shape: tuple[int, ...]) -> HonakerState:
        kind = np.float64 if self.noise == "float" else np.int64
        zeros = np.zeros((self.levels, *shape))
        return HonakerState(0, zeros.astype(kind), zeros)

    def _advanced(
        self, state: HonakerState, values: Array, rng: Generator
    ) -> tuple[HonakerState, Array]:
        import tacit.mechanisms.continual._kernels as _kernels  # noqa: PLC0415 - numba

        n, size, before = len(values), values[0].size, state.n_steps
        exact, estimates = state._private_exact.copy(), state._private_estimates.copy()
        # steps 1 to t end as many nodes as there are halvings of t in all
        n_nodes = _nodes_up_to(before + n) - _nodes_up_to(before)

        def close_nodes() -> Any:
            cells, nodes = self._cells(values), self._draws(n_nodes, size, rng)
            _kernels.close_spines(before, exact.reshape(-1, size), cells, nodes)
            return nodes

        # under replay the exact sums stay behind, and nothing released reads them
        nodes = release(
            "HonakerTree",
            value=values,
            sensitivity=self.sensitivity,
            norm="l2",
            draw=close_nodes,
        )
        sums, variances = np.empty((n, size)), self._variances()
        # halves have twice the variance of one; weights are inverse to variances
        own = np.append(1.0, 2 * variances[:-1] / (2 * variances[:-1] + 1))
        stored, cell = estimates.reshape(self.levels, size), self._cell(size)
        _kernels.add_estimates(before, stored, nodes, own, cell, sums)
        reached = HonakerState(before + n, exact, estimates)
        return reached, sums.reshape(values.shape)


def _nodes_up_to(t: int) -> int:
    """Return the number of nodes that end at steps up to t."""
    return 2 * t - t.bit_count()


def _node_scale(sums: PrefixSums, levels: int, size: int) -> float:
    """Return the standard deviation of the noise on a node of ``size`` numbers."""
    # [continual:tree] [continual:honaker] an element enters one node a level
    multiplier = sums.multiplier * sqrt(levels)
    if sums.noise == "float":
        return multiplier * sums.sensitivity
    return enlarged(multiplier, sums.sensitivity, sqrt(size))
