"""The exponential mechanism with incremental updates of scores."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, isqrt, log, log2

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import release
from tacit._validate import positive
from tacit.mechanisms.noise import GRID_BITS
from tacit.privacy import BoundedRange, Event

__all__ = ["WeightedSampler"]

Array = NDArray[np.float64]

# Separate levels, each of half the weight of the next; all below count as one level
N_LEVELS = 128
# Rebuild when the best candidate has fallen to this slot: candidates below all levels
# are then still too light to be proposed
LOW_SLOT = 64
# Exponents stay below this many units, so that floating point rounds a product by a
# quarter of a unit at most
LARGEST_EXPONENT = 2**51
# and below this many powers of two, beyond which a finer choice makes no difference
MOST_LEVELS = 2**43
# A score is rounded by a quarter of a unit in its product and by half a unit to an
# integer, on both data sets; the rest covers the rate itself and the last bits of the
# acceptance
KEPT_BACK = 2.0

# 2^(-2^-i) for i = 1, 2, ... with this many bits after the point, rounded down
ROOT_BITS = 192
ONE = 1 << ROOT_BITS
# A proposal reads 160 bits for the position, 1 for the sign, 192 for the fractional and
# 64 for the whole halvings; four are needed in the mean, and words are cheap
PROPOSAL_BYTES = 56
PROPOSALS = 8


def _roots() -> list[int]:
    roots, root = [], ONE >> 1
    for _ in range(GRID_BITS):
        root = isqrt(root << ROOT_BITS)
        roots.append(root)
    return roots


ROOTS = _roots()


def power_of_half(units: int, bits: int) -> int:
    """Return ``2^(-units / 2^bits)`` for units below ``2^bits``, times ``ONE``.

    Rounded down, by a part of less than 2^-180: each of at most 32 factors and each
    product is off by at most two units of 2^-192, and none is below a half.
    """
    product = ONE
    for i in range(bits):
        if units >> (bits - 1 - i) & 1:
            product = product * ROOTS[i] >> ROOT_BITS
    return product


class WeightedSampler:
    """Draws from the exponential mechanism in constant time, however many candidates.

    Parameters
    ----------
    epsilon
        Privacy parameter of one draw.
    sensitivity
        How far neighbors can move any one score.
    largest
        Public bound on the absolute value of a score; values far beyond are clipped.
    scores
        One score a candidate.
    both_signs
        Whether every entry stands for two candidates, with the score and with its
        negative: index j for the first, ``len(scores) + j`` for the second.

    Notes
    -----
    **Guarantee.** Bounded range with ``epsilon`` for each draw, as
    `tacit.mechanisms.Exponential` [1]_. Weights are powers of two with exponents on a
    grid [2]_, and a draw is a proposal in integers and an acceptance in 192 bits: each
    probability is within a factor ``1 ± 2^-170`` of the one that the rounded scores
    give, which the rate makes up for. A draw takes four proposals in the mean at most,
    an update one swap for each halving or doubling of the weight. The running time
    depends on the scores.

    References
    ----------
    .. [1] J. Dong, D. Durfee, R. Rogers, "Optimal differential privacy composition for
       exponential mechanisms", ICML 2020, Lemma 3.2.
    .. [2] C. Ilvento, "Implementing the exponential mechanism with base-2 differential
       privacy", CCS 2020.
    """

    def __init__(
        self,
        epsilon: float,
        sensitivity: float,
        largest: float,
        scores: Array,
        *,
        both_signs: bool = False,
    ) -> None:
        positive(epsilon=epsilon, sensitivity=sensitivity, largest=largest)
        if not 0 < len(scores) < 2**31:
            raise ValueError(
                f"scores must have 1 to 2^31 - 1 entries, got {len(scores)}."
            )
        self.epsilon, self.sensitivity = epsilon, sensitivity
        self.both_signs = both_signs
        self.bits, self.rate = grid_rate(epsilon, sensitivity, largest)
        n = len(scores)
        self._private_exponents = self._exponents(scores)
        self._order = np.empty(n, dtype=np.int32)
        self._position = np.empty(n, dtype=np.int32)
        self._start = np.empty(N_LEVELS + 2, dtype=np.int64)
        self._base: int = 0
        self._rebuild()

    @property
    def event(self) -> Event:
        return BoundedRange(self.epsilon)

    def update(self, indices: NDArray[np.int32], scores: Array) -> None:
        """Replace the scores of the entries at ``indices``, which must be distinct."""
        from tacit.mechanisms import _weighted_kernels as kernels  # noqa: PLC0415

        self._base = kernels.update(
            self._private_exponents,
            self.bits,
            self.both_signs,
            self._order,
            self._position,
            self._start,
            self._base,
            indices,
            self._exponents(scores),
        )
        n = len(self._private_exponents)
        if self._start[LOW_SLOT] == n and self._start[1] > 0:
            self._rebuild()

    def __call__(self, rng: Generator, scores: Callable[[], Array]) -> int:
        """Draw an index; ``scores`` gives those of all candidates to an auditor."""
        return int(
            release(
                "Exponential",
                value=lambda _: scores(),
                sensitivity=self.sensitivity,
                norm="linf",
                draw=lambda: self._draw(rng),
            )
        )

    def _exponents(self, scores: Array) -> NDArray[np.int64]:
        units = scores * self.rate
        np.clip(units, -LARGEST_EXPONENT, LARGEST_EXPONENT, out=units)
        np.rint(units, out=units)
        return units.astype(np.int64)

    def _rebuild(self) -> None:
        from tacit.mechanisms import _weighted_kernels as kernels  # noqa: PLC0415

        self._base = kernels.rebuild(
            self._private_exponents,
            self.bits,
            self.both_signs,
            self._order,
            self._position,
            self._start,
        )

    def _draw(self, rng: Generator) -> int:
        # slot s has weights up to 2^(base + s); the heaviest come first
        counts = np.diff(self._start).tolist()
        slots = [(s, counts[s]) for s in range(N_LEVELS, -1, -1) if counts[s]]
        total = sum(count << slot for slot, count in slots)
        width = total.bit_length()  # at most 129 + 31
        while True:
            words = rng.bytes(PROPOSALS * PROPOSAL_BYTES)
            for low in range(0, len(words), PROPOSAL_BYTES):
                bits = int.from_bytes(words[low : low + PROPOSAL_BYTES], "little")
                position, bits = bits & ((1 << width) - 1), bits >> width
                if position < total:
                    index = self._accepted(slots, position, bits, rng)
                    if index is not None:
                        return index

    def _accepted(
        self, slots: list[tuple[int, int]], position: int, bits: int, rng: Generator
    ) -> int | None:
        """Return the candidate at this position of all weights, None if rejected."""
        for slot, count in slots:
            if position < count << slot:
                break
            position -= count << slot
        entry = int(self._order[self._start[slot] + (position >> slot)])
        exponent = int(self._private_exponents[entry])
        negative, bits = self.both_signs and bits & 1 == 1, bits >> 1
        # [weighted:accept] all in a slot are proposed alike, and accepted by weight
        gap = ((self._base + slot) << self.bits) - (-exponent if negative else exponent)
        part, whole = gap & ((1 << self.bits) - 1), gap >> self.bits
        coin, bits = bits & (ONE - 1), bits >> ROOT_BITS
        if coin >= power_of_half(part, self.bits) or not _all_heads(whole, bits, rng):
            return None
        return entry + negative * len(self._private_exponents)


def _all_heads(flips: int, bits: int, rng: Generator) -> bool:
    """Return whether all flips of a fair coin are heads, the first 64 from ``bits``."""
    while flips > 64:
        if bits & (2**64 - 1):
            return False
        flips, bits = flips - 64, int.from_bytes(rng.bytes(8), "little")
    return bits & ((1 << flips) - 1) == 0


def grid_rate(epsilon: float, sensitivity: float, largest: float) -> tuple[int, float]:
    """Return the bits after the point of exponents, and units a unit of score."""
    whole = epsilon / (2 * log(2) * sensitivity)  # powers of two a unit of score
    whole = min(whole, MOST_LEVELS / largest)
    room = log2(LARGEST_EXPONENT) - log2(whole * largest) - 1e-9
    bits = min(GRID_BITS, floor(room))
    # [weighted:rate] what rounding adds is kept back, and the rate is rounded down
    units = whole * sensitivity * 2.0**bits * (1 - 1e-14) - KEPT_BACK
    if units <= 0:
        raise ValueError(f"epsilon={epsilon!r} is too small for the grid.")
    return bits, units / sensitivity
