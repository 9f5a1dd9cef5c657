"""All prefix sums of a stream, by a tree whose nodes help each other."""

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

__all__ = ["HonakerState", "HonakerTree"]


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
        Largest size of a number in an element, beyond which it is cut.

    Notes
    -----
    **Guarantee.** As `TreeSum`: an element enters one node a level. Here nodes that
    are right halves get noise too, and what sums are made of them is post-processing.

    **Bound.** A node of ``2^h`` elements has ``2^h / (2^(h + 1) - 1)`` times the
    variance of its own noise (Honaker 2015, "Efficient use of differentially private
    binary trees", the estimate from below).
    """

    @property
    def levels(self) -> int:
        """Height of the tree: nodes an element can enter."""
        return int(self.horizon).bit_length()

    def scale(self, size: int) -> float:
        """Return the standard deviation of the noise on a node of ``size`` numbers."""
        # [continual:honaker]
        multiplier = self.multiplier * sqrt(self.levels)
        if self.noise == "float":
            return multiplier * self.sensitivity
        return enlarged(multiplier, self.sensitivity, sqrt(size))

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
        from tacit.mechanisms.continual import _kernels  # noqa: PLC0415 - numba

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
        held, cell = estimates.reshape(self.levels, size), self._cell(size)
        _kernels.add_estimates(before, held, nodes, own, cell, sums)
        reached = HonakerState(before + n, exact, estimates)
        return reached, sums.reshape(values.shape)


def _nodes_up_to(t: int) -> int:
    """Return how many nodes end at steps up to t."""
    return 2 * t - t.bit_count()
