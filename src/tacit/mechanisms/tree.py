"""All prefix sums of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._tape import release
from tacit._validate import at_least, plain, positive
from tacit.mechanisms import noise as draws
from tacit.mechanisms._base import Drawable
from tacit.mechanisms.grid import check_noise, enlarged, to_cells
from tacit.mechanisms.noise import GRID
from tacit.privacy import Event, GaussianNoise

__all__ = ["TreeState", "TreeSum"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TreeState:
    """Open partial sums of a stream, exact and noisy. Private: do not publish."""

    n_steps: int
    _private_exact: NDArray[np.generic] = field(repr=False)
    _private_noisy: NDArray[np.generic] = field(repr=False)


@dataclass(frozen=True)
class TreeSum(Drawable):
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

    Notes
    -----
    **Guarantee.** An element enters at most one node a level, so the stream is one
    Gaussian mechanism with sensitivity ``sensitivity * sqrt(levels)`` (Dwork, Naor,
    Pitassi and Rothblum 2010; Chan, Shi and Song 2011), also for elements chosen after
    seeing outputs (Denisov et al. 2022, Theorem 2.1). The state keeps two arrays a
    level.
    """

    horizon: int
    multiplier: float
    sensitivity: float
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, horizon=self.horizon)
        positive(multiplier=self.multiplier, sensitivity=self.sensitivity)
        check_noise(self.noise)

    @property
    def levels(self) -> int:
        """Height of the tree: nodes an element can enter."""
        return int(self.horizon).bit_length()

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    def scale(self, size: int) -> float:
        """Return the standard deviation of the noise on a node of ``size`` numbers."""
        # [tree:scale]
        multiplier = self.multiplier * sqrt(self.levels)
        if self.noise == "float":
            return multiplier * self.sensitivity
        return enlarged(multiplier, self.sensitivity, sqrt(size))

    def init(self, shape: tuple[int, ...]) -> TreeState:
        """Return the state before the first element."""
        kind = np.float64 if self.noise == "float" else np.int64
        zeros = np.zeros((self.levels, *shape), dtype=kind)
        return TreeState(0, zeros, zeros)

    def step(
        self, state: TreeState, value: Array, rng: Generator
    ) -> tuple[TreeState, Array]:
        """Add one element; return the new state and the noisy sum so far."""
        t = state.n_steps + 1
        if t > self.horizon:
            raise ValueError(
                f"TreeSum was planned for {self.horizon} steps; step {t} was asked."
            )
        value = np.asarray(value, dtype=np.float64)
        scale = self.scale(value.size)
        level = (t & -t).bit_length() - 1  # the node that closes at this step
        exact, noisy = state._private_exact.copy(), state._private_noisy.copy()

        def close_node() -> Any:
            if self.noise == "float":
                exact[level] = exact[:level].sum(axis=0) + value
                return exact[level] + scale * draws.float_normal(value.shape, rng)
            # cut far outside any sensible range, so that no sum leaves 64 bits
            most = scale * 2.0**30 / self.horizon
            cells = to_cells(np.clip(value, -most, most), scale)
            exact[level] = exact[:level].sum(axis=0) + cells
            return exact[level] + draws.rounded_normal(value.shape, rng)

        # under replay the exact sums stay behind, and nothing released reads them
        noisy[level] = release(
            "TreeSum",
            value=value,
            sensitivity=self.sensitivity,
            norm="l2",
            draw=close_node,
        )
        exact[:level] = 0
        noisy[:level] = 0
        open_nodes = [i for i in range(self.levels) if t >> i & 1]
        total = noisy[open_nodes].sum(axis=0)
        cell = 1.0 if self.noise == "float" else scale / GRID
        return TreeState(t, exact, noisy), np.asarray(total * cell, dtype=np.float64)
