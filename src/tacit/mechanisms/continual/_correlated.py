"""Prefix sums whose noise is correlated by a Toeplitz matrix."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator

from tacit._release_log import release
from tacit.mechanisms.continual._base import ROOM, Array, PrefixSums
from tacit.mechanisms.grid import ROUNDING, enlarged
from tacit.mechanisms.noise import GRID

__all__ = ["FAR", "UNIT", "CorrelatedSums"]

# Unit round-off of float64
UNIT = 2.0**-53
# A normal number is beyond so many standard deviations with probability below 2**-166
FAR = 15


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
