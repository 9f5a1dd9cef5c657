"""Loops that turn uniform 64-bit words into exact draws, in integers only.

A kernel reads ``words`` from a position and says how far it got. Reading past the
end gives zeros and moves the position beyond the end: the draw under way is then
dropped and its words are read again after a refill. Every inner loop stops on
zeros, so a short buffer is always noticed.

Numba turns a sum of signed and unsigned integers into a float, so words are
combined with unsigned values only.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TOP = np.uint64(63)
_HALF = np.uint64(32)
_LOW_MASK = np.uint64(2**32 - 1)
_ALL = np.uint64(2**64 - 1)


@njit(cache=True)
def _take(words: Words, pos: int) -> tuple[np.uint64, int]:
    if pos < len(words):
        return words[pos], pos + 1
    return _ZERO, len(words) + 1


@njit(cache=True)
def _less(
    words: Words, pos: int, z: np.uint64, y: np.uint64, y_low: np.uint64, known: bool
) -> tuple[bool, np.uint64, bool, int]:
    """Whether the fresh deviate z is below y, then z's second word if it was read."""
    if z != y:
        return bool(z < y), _ZERO, False, pos
    z_low, pos = _take(words, pos)
    if not known:
        y_low, pos = _take(words, pos)
    return bool(z_low < y_low), z_low, True, pos


@njit(cache=True)
def _below_small(words: Words, pos: int, m: np.uint64) -> tuple[np.uint64, int]:
    """Uniform integer in [0, m) for m < 2**32, by multiplication (Lemire 2019)."""
    while True:
        word, pos = _take(words, pos)
        product = (word >> _HALF) * m
        low = product & _LOW_MASK
        # the first test spares a division; the last one stops on a short buffer
        if low >= m or low >= (_LOW_MASK - m + _ONE) % m or pos > len(words):
            return product >> _HALF, pos


@njit(cache=True)
def _accepts(
    words: Words, pos: int, k: int, x: np.uint64, x_low: np.uint64
) -> tuple[bool, int]:
    """Bernoulli(exp(-x (2 k + x) / (2 k + 2))): steps B and C of Karney (2016)."""
    double_k = np.uint64(2 * k)
    y, y_low, known, even = x, x_low, True, True
    while True:
        z, pos = _take(words, pos)
        below, z_low, z_known, pos = _less(words, pos, z, y, y_low, known)
        if not below:
            return even, pos
        # true with probability (2 k + x) / (2 k + 2)
        if k == 0:
            word, pos = _take(words, pos)
            choice = word >> _TOP
        else:
            choice, pos = _below_small(words, pos, double_k + _ONE + _ONE)
        if choice > double_k:
            return even, pos
        if choice == double_k:
            r, pos = _take(words, pos)
            below, _, _, pos = _less(words, pos, r, x, x_low, True)
            if not below:
                return even, pos
        y, y_low, known, even = z, z_low, z_known, not even


def _cumulative(n: int) -> tuple[Words, Words]:
    """P(K <= k), k < n, for weights exp(-k**2 / 2): 128 bits rounded down, two words.

    Weights are good to 2**-240 and those from k = n + 3 on, left out, are below
    2**-160 for n = 13.
    """
    weights = []
    for k in range(n + 3):
        # exp(k**2 / 2) by its series in fixed point, with 256 bits after the point
        term, total, j = 1 << 256, 0, 0
        while term:
            total += term
            j += 1
            term = term * k * k // (2 * j)
        weights.append((1 << 512) // total)
    sums = [(sum(weights[: k + 1]) << 128) // sum(weights) for k in range(n)]
    high = np.array([s >> 64 for s in sums], dtype=np.uint64)
    return high, np.array([s & (2**64 - 1) for s in sums], dtype=np.uint64)


_HIGH, _LOW = _cumulative(13)


@njit(cache=True)
def _integer_part(words: Words, pos: int) -> tuple[int, int]:
    """Integer k >= 0 with weight exp(-k**2 / 2), by inversion in 128 bits."""
    u, pos = _take(words, pos)
    k = 0
    while k < len(_HIGH) and u > _HIGH[k]:
        k += 1
    if k < len(_HIGH) and u == _HIGH[k]:
        u_low, pos = _take(words, pos)
        # far in the tail several steps share their first word
        while k < len(_HIGH) and u == _HIGH[k] and u_low >= _LOW[k]:
            k += 1
    return k, pos


@njit(cache=True)
def _normal(words: Words, pos: int) -> tuple[int, np.uint64, np.uint64, int]:
    """Integer part k, the two words of x, and the position after an accepted draw."""
    accepted = False
    k = 0
    x = x_low = _ZERO
    while not accepted and pos <= len(words):
        k, pos = _integer_part(words, pos)
        x, pos = _take(words, pos)
        x_low, pos = _take(words, pos)
        accepted = True
        for _ in range(k + 1):
            # the last bit of the second word is the sign, so it is not compared
            accepted, pos = _accepts(words, pos, k, x, x_low & ~_ONE)
            if not accepted:
                break
    return k, x, x_low, pos


@njit(cache=True, nogil=True)
def rounded_normal(words: Words, out: NDArray[np.int64], done: int) -> tuple[int, int]:
    """Fill ``out[done:]`` with round(2**32 N(0, 1)); return draws and words used.

    Notes
    -----
    **Bound.** Algorithm N of Karney (2016), "Sampling exactly from the normal
    distribution", ACM TOMS 42(1), with its integer part k drawn from a table. The
    distribution is within 2**-120 of the exact one in total variation, for independent
    uniform words. Couple a draw with one on real deviates whose first 128 bits are our
    words (127 for x, as one bit is the sign).

    The table moves each of 13 steps by at most 2**-128 and takes k >= 14, of
    probability below 2**-140, for 13: the two draws part at a proposal of k with
    probability at most 14 * 2**-128. They part at a comparison of two deviates only
    when all known bits agree; one of the two is fresh and independent of the past, so
    with probability at most 2**-127. All else is exact. A draw takes 1.4 proposals
    and fewer than 2**4 comparisons in the mean, hence by Wald's identity a distance
    of at most 2**-123 + 2**-123. The output reads bits 1 to 33 of x, all in the word
    that the acceptance test compares first.
    """
    start = 0
    while done < len(out):
        k, x, x_low, pos = _normal(words, start)
        if pos > len(words):
            return done, start
        # round to nearest: bit 33 of x decides, ties have probability zero
        size = (k << 32) + np.int64(((x >> (_HALF - _ONE)) + _ONE) >> _ONE)
        out[done] = -size if x_low & _ONE else size
        done += 1
        start = pos
    return done, start


@njit(cache=True)
def wide_normal(words: Words, out: Words, done: int) -> tuple[int, int]:
    """Fill rows of ``out`` with k and the two words of x; return draws and words used.

    The draw is ``k + x`` with x in [0, 1) to 127 bits; the last bit of the second word
    is the sign. Its distribution is as near the exact one as that of `rounded_normal`.
    """
    start = 0
    while done < len(out):
        k, x, x_low, pos = _normal(words, start)
        if pos > len(words):
            return done, start
        out[done, 0], out[done, 1], out[done, 2] = np.uint64(k), x, x_low
        done += 1
        start = pos
    return done, start


@njit(cache=True)
def _below(words: Words, pos: int, m: np.uint64) -> tuple[np.uint64, int]:
    """Uniform integer in [0, m), m >= 1, by rejection."""
    width = _ALL // m
    while True:
        word, pos = _take(words, pos)
        if word < width * m:
            return word // width, pos


@njit(cache=True)
def _bernoulli_exp(
    words: Words, pos: int, u: np.uint64, t: np.uint64
) -> tuple[bool, int]:
    """Bernoulli(exp(-u / t)) for integers 0 <= u <= t, exactly.

    Algorithm 1 of Canonne, Kamath and Steinke (2020): the number of successes of
    Bernoulli(u / (t j)), j = 1, 2, ... before the first failure is even. For
    t <= 2**48 the product t j would need 2**15 successes to overflow, which has
    probability at most 1 / (2**15)!.
    """
    m = _ZERO
    even = True
    while True:
        m += t
        # success is the upper end, so that zeros past the end stop the loop
        v, pos = _below(words, pos, m)
        if v < m - u:
            return even, pos
        even = not even


@njit(cache=True)
def discrete_laplace(
    words: Words, out: NDArray[np.int64], done: int, t: np.uint64
) -> tuple[int, int]:
    """Fill ``out[done:]`` with P(i) ~ exp(-|i| / t); return draws and words used.

    Notes
    -----
    **Guarantee.** Exact for independent uniform words, up to an overflow of
    probability below exp(-2**14): Algorithm 2 of Canonne, Kamath and Steinke (2020),
    "The discrete Gaussian for differential privacy", with s = 1.
    """
    start = 0
    while done < len(out):
        pos = start
        size = np.int64(0)
        negative = False
        accepted = False
        while not accepted and pos <= len(words):
            u, pos = _below(words, pos, t)
            accepted, pos = _bernoulli_exp(words, pos, u, t)
            if not accepted:
                continue
            size = np.int64(u)
            more, pos = _bernoulli_exp(words, pos, t, t)
            while more:
                size += np.int64(t)
                more, pos = _bernoulli_exp(words, pos, t, t)
            word, pos = _take(words, pos)
            negative = word >> _TOP == _ONE
            # zero has one sign, or it would weigh double
            accepted = not (negative and size == 0)
        if pos > len(words):
            return done, start
        out[done] = -size if negative else size
        done += 1
        start = pos
    return done, start


@njit(cache=True)
def _bernoulli_exp_gap(
    words: Words, pos: int, gap: np.uint64, t: np.uint64
) -> tuple[bool, int]:
    """Bernoulli(exp(-gap / t)) for any gap: whole units first, until one fails."""
    units = gap // t
    while units > _ZERO:
        more, pos = _bernoulli_exp(words, pos, t, t)
        if not more:
            return False, pos
        units -= _ONE
    return _bernoulli_exp(words, pos, gap % t, t)


@njit(cache=True)
def exponential_index(words: Words, gaps: Words, t: np.uint64) -> tuple[int, int]:
    """Index with P(i) ~ exp(-gaps[i] / t), or -1 when short; words used."""
    start = 0
    while True:
        i, pos = _below(words, start, np.uint64(len(gaps)))
        accepted, pos = _bernoulli_exp_gap(words, pos, gaps[i], t)
        if pos > len(words):
            return -1, start
        if accepted:
            return int(i), pos
        start = pos


@njit(cache=True)
def permute_and_flip_index(
    words: Words, gaps: Words, t: np.uint64, order: NDArray[np.int64], step: int
) -> tuple[int, int, int]:
    """First index accepted in random order, or -1 when short; step; words used.

    ``order`` starts as a permutation and is shuffled in place up to ``step``.
    """
    start = 0
    while True:
        left = np.uint64(len(gaps) - step)
        offset, pos = _below(words, start, left)
        other = step + np.int64(offset)
        i = order[other]
        accepted, pos = _bernoulli_exp_gap(words, pos, gaps[i], t)
        if pos > len(words):
            return -1, step, start
        if accepted:
            return i, step, pos
        order[other] = order[step]
        order[step] = i
        step += 1
        start = pos
