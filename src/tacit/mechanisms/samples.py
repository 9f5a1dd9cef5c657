"""Many draws from one distribution over candidates, exactly."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import release
from tacit._validate import at_least, plain, positive
from tacit.mechanisms._base import Drawable
from tacit.mechanisms.noise import GRID, GRID_BITS, check_noise, finite_scores
from tacit.privacy import BoundedRange, Event, PureDP, Repeated

__all__ = ["SampleIndices"]

# Log-weights further than this below the largest count as so far: e^(-2^18) as likely
FLOOR = -(2.0**18)
# Rounding moves a log-weight by half a cell and the normalizer by as much, on both data
# sets; the floor moves the normalizer by far less than one cell
CELLS = 3
WORD = 64
# Bits below those that are compared, for the errors of the weights
GUARD = 96
# Up to this many candidates a release log records the log-odds of every pair
ALL_PAIRS = 256


@dataclass(frozen=True)
class SampleIndices(Drawable):
    """Counts of indices drawn with given log-weights.

    Parameters
    ----------
    sensitivity
        How far neighbors can move the log-probabilities, before rounding; with
        ``bounded_range`` how far they can move any log-odds, that is a difference of
        two log-weights.
    n_samples
        Number of independent draws.
    bounded_range
        Whether the bound is on log-odds, which composes better.
    noise
        ``"grid"`` for exact integer draws, ``"float"`` for research.

    Notes
    -----
    **Guarantee.** Each draw is pure with the sensitivity, or has it as a bounded range
    (Dong, Durfee and Rogers 2020, Section 3), up to three cells of 2^-32 for rounding
    log-weights to the grid, which are added. Given the rounded log-weights the
    distribution is exact: uniform words are compared with bounds on the cumulative
    weights in integer arithmetic, and more words are read where the bounds leave the
    index open.
    """

    sensitivity: float
    n_samples: int
    bounded_range: bool = False
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        positive(sensitivity=self.sensitivity)
        at_least(1, n_samples=self.n_samples)
        check_noise(self.noise)

    @property
    def event(self) -> Event:
        # [samples:grid] what rounding the log-weights adds
        epsilon = self.sensitivity + CELLS / GRID
        one = BoundedRange(epsilon) if self.bounded_range else PureDP(epsilon)
        return Repeated(one, self.n_samples)

    def __call__(
        self, log_weights: NDArray[np.float64], rng: Generator
    ) -> NDArray[np.int64]:
        """Return how often each index was drawn.

        Log-weights are read as scores are: NaN counts as the lowest.
        """
        weights = finite_scores(log_weights).ravel()
        if weights.size == 0:
            raise ValueError("log_weights is empty; at least one candidate is needed.")
        below = np.maximum(weights - weights.max(), FLOOR)

        def draw() -> NDArray[np.int64]:
            if self.noise == "float":
                weights_of_all = np.exp(below)
                total = weights_of_all.sum()
                return rng.multinomial(self.n_samples, weights_of_all / total)
            # times a power of two, hence exact before it is rounded
            gaps = np.rint(-below * GRID).astype(np.int64)
            return _counts(gaps.tolist(), self.n_samples, rng)

        return release(
            "SampleIndices",
            value=lambda _: self._protected(weights),
            sensitivity=self.sensitivity,
            norm="linf",
            draw=draw,
        )

    def _protected(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantities that the sensitivity bounds."""
        if self.bounded_range:
            against = weights if weights.size <= ALL_PAIRS else weights[:1]
            return np.asarray(weights[:, None] - against[None, :])
        largest = float(weights.max())
        total = float(np.log(np.exp(weights - largest).sum()))
        return np.asarray(weights - largest - total, dtype=np.float64)


def _counts(gaps: list[int], n_samples: int, rng: Generator) -> NDArray[np.int64]:
    """Count exact draws with probability proportional to ``exp(-gap / GRID)``."""
    last = 2**WORD - 1
    # the last weights may be too small to be seen here, and the edge before them is one
    edges = np.array(
        [min(edge, last) for edge in _cumulative(gaps, WORD)[:-1]], dtype=np.uint64
    )
    words = rng.integers(0, 2**WORD, size=n_samples, dtype=np.uint64)
    positions = np.searchsorted(edges, words, side="right")
    # an edge is known up to two units: words next to one are looked at again
    reach = np.uint64(2)
    above = words + np.minimum(reach, np.uint64(last) - words)
    below = words - np.minimum(reach, words)
    near = np.searchsorted(edges, above, side="right") != np.searchsorted(
        edges, below, side="left"
    )
    for i in np.flatnonzero(near):
        positions[i] = _resolve(int(words[i]), gaps, rng)
    counts: NDArray[np.int64] = np.bincount(positions, minlength=len(gaps))
    return counts


def _resolve(word: int, gaps: list[int], rng: Generator) -> int:
    """Read more words until a single index is possible."""
    bits = WORD
    while True:
        more = int(rng.integers(0, 2**WORD, dtype=np.uint64))
        word, bits = (word << WORD) | more, bits + WORD
        bounds = _cumulative(gaps, bits)[:-1]
        low, high = bisect_right(bounds, word - 2), bisect_right(bounds, word + 2)
        if low == high:
            return low


def _cumulative(gaps: list[int], bits: int) -> list[int]:
    """Return the cumulative probabilities in units of ``2**-bits``.

    Notes
    -----
    **Bound.** Each is off the exact one by less than two units. A weight is a product
    of at most 64 tabulated factors, none above one, each off by at most 2^20 units of
    ``2**-(bits + GUARD)``: it is off by less than 2^27, and a sum of p by less than
    2^27 p. The total is at least one, so for p below 2^60 the quotient is off by less
    than 2^-8 units before it is rounded down.
    """
    width = bits + GUARD
    factors = _factors(max(gaps).bit_length(), width)
    weights = [_weight(gap, factors, width) for gap in gaps]
    sums = list(accumulate(weights))
    return [(s << bits) // sums[-1] for s in sums]


def _weight(gap: int, factors: list[int], width: int) -> int:
    """Return ``exp(-gap / GRID)`` in units of ``2**-width``."""
    weight, position = 1 << width, 0
    while gap and weight:
        if gap & 1:
            weight = weight * factors[position] >> width
        gap >>= 1
        position += 1
    return weight


def _factors(count: int, width: int) -> list[int]:
    """Return ``exp(-2**i / GRID)``, i < count, in units of ``2**-width``."""
    out: list[int] = []
    for i in range(count):
        if i > GRID_BITS:
            out.append(out[-1] * out[-1] >> width)
            continue
        # the series of exp(x), whose terms all have one sign, then one division
        x = (1 << width) >> (GRID_BITS - i)
        term, total, j = 1 << width, 0, 0
        while term:
            total += term
            j += 1
            term = (term * x >> width) // j
        out.append((1 << 2 * width) // total)
    return out
