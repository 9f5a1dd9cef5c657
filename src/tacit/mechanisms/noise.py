"""Draws of noise: exact integers for releases, floats for research.

The integer samplers compare uniform 64-bit words in integer arithmetic, so no
floating-point rounding shapes the distribution (Mironov 2012 shows how that leaks). The
same generator state gives the same draws however the words are split into chunks, and a
longer draw begins with the shorter one. How far a call moves the generator depends on
its size and on the words it met, and on nothing else.

Integers are added on a public grid: a value is rounded to a multiple of the cell, noise
is an integer number of cells, and so is their sum, so that no rounding of floating
point depends on the value any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import isqrt
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from tacit._validate import one_of
from tacit.exceptions import PlanError

__all__ = [
    "GRID",
    "GRID_BITS",
    "MAX_SCALE",
    "bernoulli",
    "check_noise",
    "discrete_laplace",
    "enlarged",
    "exponential_index",
    "finite_scores",
    "float_gumbel",
    "float_laplace",
    "float_normal",
    "gamma_norm",
    "noise_assumptions",
    "on_grid",
    "permute_and_flip_index",
    "rounded_gamma_norm",
    "rounded_normal",
    "to_cells",
    "uniform_below",
]

GRID_BITS = 32
GRID: int = 2**GRID_BITS
# the kernels add and multiply the scale in 64 bits; 2**48 leaves 15 bits of room
MAX_SCALE = 2**48
# Below this many cells a division in floating point is off by a quarter of a cell at
# most; above, rational numbers take over
FLOAT_SAFE = 2.0**51
# Hence a value is rounded by three quarters of a cell at most, and two of them move
# apart by at most this many cells a coordinate
ROUNDING = 1.5
# Largest score that counts; the difference of two is still a float
MOST_SCORE = 1e300

# words read at once: half a megabyte, which stays in the second-level cache
_CHUNK = 2**16
_FIRST = 32
# a little above the mean of both filling kernels, so that one refill is usual
_WORDS_PER_DRAW = 10

Size = int | tuple[int, ...]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def rounded_normal(size: Size, rng: Generator) -> Integers:
    """Integers ``round(2**32 z)`` with z standard normal.

    Notes
    -----
    **Guarantee.** Each draw is within 2**-120 in total variation of the normal
    distribution rounded to the nearest integer, for independent uniform words [1]_.
    Rounding is post-processing of the Gaussian mechanism on the grid.

    References
    ----------
    .. [1] C. F. F. Karney, "Sampling exactly from the normal distribution", ACM
       Transactions on Mathematical Software 42(1), 2016, Algorithm N.
    """
    import tacit.mechanisms._kernels as _kernels  # noqa: PLC0415 - numba is slow

    return _fill(_kernels.rounded_normal, size, rng)


def discrete_laplace(size: Size, rng: Generator, scale: int = GRID) -> Integers:
    """Integers i with probability proportional to ``exp(-|i| / scale)``.

    Notes
    -----
    **Guarantee.** Exact for independent uniform words [1]_, up to an overflow of
    probability below ``exp(-2**14)``.

    References
    ----------
    .. [1] C. L. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for
       differential privacy", NeurIPS 2020, Algorithms 1 and 2.
    """
    import tacit.mechanisms._kernels as _kernels  # noqa: PLC0415 - numba is slow

    return _fill(_kernels.discrete_laplace, size, rng, _scale_word(scale))


def rounded_gamma_norm(size: int, rng: Generator) -> Integers:
    """Integers ``round(2**32 v)`` with v of density proportional to ``exp(-|v|_2)``.

    Notes
    -----
    **Guarantee.** v is the norm of ``size + 1`` standard normals times a vector of
    ``size`` others: given the norm it is Gaussian with a squared scale of chi-squared
    distribution, and that mixture has the density wanted (Kotz, Kozubowski and
    Podgorski 2001, Section 5.2.1). Normals carry 127 bits after the point and products
    are exact integers, so a coordinate is rounded otherwise than in exact arithmetic
    with probability below ``sqrt(size) 2**-92``: all of them are within ``size**1.5
    2**-90`` of the exact distribution, the distance of the normals included.
    """
    import tacit.mechanisms._kernels as _kernels  # noqa: PLC0415 - numba is slow

    parts = np.empty((2 * size + 1, 3), dtype=np.uint64)
    _fill_rows(_kernels.wide_normal, parts, rng)
    normals = [
        (1 - 2 * (low & 1)) * ((k << 127) + (high << 63) + (low >> 1))
        for k, high, low in parts.tolist()
    ]
    norm = isqrt(sum(z * z for z in normals[size:]))
    half = 1 << 221
    return np.array([(norm * z + half) >> 222 for z in normals[:size]], dtype=np.int64)


def bernoulli(cells: int, n_words: int, rng: Generator) -> bool:
    """Return True with probability ``cells / 2**(64 n_words)``.

    Notes
    -----
    **Guarantee.** Exact for independent uniform words: together they are an
    integer, which is compared with ``cells``. As many words are drawn in either case.
    """
    words = _words(rng, n_words).astype("<u8").tobytes()
    return int.from_bytes(words, "little") < cells


def uniform_below(end: int, rng: Generator) -> int:
    """Return each integer from zero to below ``end`` as likely as any other.

    Notes
    -----
    **Guarantee.** Exact for independent uniform words: numbers of as many bits as
    ``end`` are drawn until one is below it, every second one or more.
    """
    bits = end.bit_length()
    n_words = -(-bits // 64)
    while True:
        words = _words(rng, n_words).astype("<u8").tobytes()
        drawn = int.from_bytes(words, "little") >> (64 * n_words - bits)
        if drawn < end:
            return drawn


def exponential_index(scores: ArrayLike, scale: int, rng: Generator) -> int:
    """Index i with probability proportional to ``exp(scores[i] / scale)``.

    Parameters
    ----------
    scores
        One integer for each candidate.
    scale
        Positive integer, in the unit of the scores.
    rng
        Source of the words.

    Notes
    -----
    **Guarantee.** Exact for independent uniform words: uniform proposals, accepted
    with probability ``exp((scores[i] - max(scores)) / scale)`` by Algorithm 1 of [1]_.
    The running time depends on the scores.

    References
    ----------
    .. [1] C. L. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for
       differential privacy", NeurIPS 2020.
    """
    import tacit.mechanisms._kernels as _kernels  # noqa: PLC0415 - numba is slow

    gaps, t = _gaps(scores), _scale_word(scale)
    words = _words(rng, _FIRST)
    while True:
        index, used = _kernels.exponential_index(words, gaps, t)
        if index >= 0:
            return int(index)
        words = _refilled(words[used:], rng, 2 * len(words))


def permute_and_flip_index(scores: ArrayLike, scale: int, rng: Generator) -> int:
    """First index accepted when candidates are met in random order.

    Candidate i is accepted with probability
    ``exp((scores[i] - max(scores)) / scale)``; parameters as in `exponential_index`.

    Notes
    -----
    **Guarantee.** Exact for independent uniform words. The distribution is that of
    Algorithm 1 of [1]_, at least as good as the exponential mechanism for the same
    ``scale``. The running time depends on the scores.

    References
    ----------
    .. [1] R. McKenna, D. Sheldon, "Permute-and-flip: a new mechanism for
       differentially private selection", NeurIPS 2020.
    """
    import tacit.mechanisms._kernels as _kernels  # noqa: PLC0415 - numba is slow

    gaps, t = _gaps(scores), _scale_word(scale)
    order, step = np.arange(len(gaps), dtype=np.int64), 0
    words = _words(rng, _FIRST)
    while True:
        index, step, used = _kernels.permute_and_flip_index(words, gaps, t, order, step)
        if index >= 0:
            return int(index)
        words = _refilled(words[used:], rng, 2 * len(words))


def float_normal(size: Size, rng: Generator) -> Floats:
    """Gaussian floats of scale 1, for research: rounding is not accounted for."""
    return rng.standard_normal(size)


def float_laplace(size: Size, rng: Generator) -> Floats:
    """Laplace floats of scale 1, for research: rounding is not accounted for."""
    return rng.laplace(size=size)


def float_gumbel(size: Size, rng: Generator) -> Floats:
    """Gumbel floats of scale 1, for research: rounding is not accounted for."""
    return rng.gumbel(size=size)


def gamma_norm(size: int, rng: Generator) -> Floats:
    """Vector of dimension ``size`` with density proportional to ``exp(-|x|_2)``.

    Notes
    -----
    **Bound.** The direction is uniform and the radius follows Gamma(size)
    (Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 1). In floats, for research:
    rounding is not accounted for.
    """
    direction = rng.standard_normal(size)
    radius = rng.standard_gamma(size)
    # an empty vector has norm zero and nothing to divide
    return direction * (radius / np.linalg.norm(direction)) if size else direction


def _fill(
    kernel: Callable[..., tuple[int, int]],
    size: Size,
    rng: Generator,
    *params: Any,
) -> Integers:
    """Call a filling kernel until it is done, keeping the words it has not used."""
    out = np.empty(size, dtype=np.int64)
    _fill_rows(kernel, out.reshape(-1), rng, *params)
    return out


def _fill_rows(
    kernel: Callable[..., tuple[int, int]],
    out: NDArray[Any],
    rng: Generator,
    *params: Any,
) -> None:
    words = np.empty(0, dtype=np.uint64)
    done = used = 0
    while done < len(out):
        wanted = _WORDS_PER_DRAW * (len(out) - done) + _FIRST
        words = _refilled(words[used:], rng, wanted)
        done, used = kernel(words, out, done, *params)


def _refilled(
    words: NDArray[np.uint64], rng: Generator, wanted: int
) -> NDArray[np.uint64]:
    return np.concatenate([words, _words(rng, min(_CHUNK, wanted))])


def _words(rng: Generator, n: int) -> NDArray[np.uint64]:
    # not random_raw, whose values have 32 bits for some bit generators (MT19937)
    return rng.integers(0, 2**64, size=n, dtype=np.uint64)


def _scale_word(scale: int) -> np.uint64:
    is_integer = isinstance(scale, Integral) and not isinstance(scale, bool)
    if not is_integer or not 1 <= scale <= MAX_SCALE:
        raise ValueError(f"scale must be an integer in [1, 2**48], got {scale!r}.")
    return np.uint64(scale)


def _gaps(scores: ArrayLike) -> NDArray[np.uint64]:
    """Distances to the best score, which may not fit in 63 bits."""
    array = np.asarray(scores)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind != "i":
        raise ValueError(
            "scores must be a non-empty vector of signed integers, got shape "
            f"{array.shape} and dtype {array.dtype}."
        )
    # differences modulo 2**64 are right even where int64 would overflow
    unsigned = np.ascontiguousarray(array, dtype=np.int64).view(np.uint64)
    gaps: NDArray[np.uint64] = unsigned[array.argmax()] - unsigned
    return gaps


def check_noise(noise: str) -> None:
    """Check that ``noise`` is ``"grid"`` or ``"float"``."""
    one_of(("grid", "float"), noise=noise)


def noise_assumptions(noise: str) -> tuple[str, ...]:
    """Return the assumptions that this kind of noise adds to the guarantee."""
    if noise == "grid":
        return ()
    return ("floating-point noise: its low-order bits may leak information",)


def enlarged(multiplier: float, sensitivity: float, norm_of_ones: float) -> float:
    """Return the scale for a sensitivity that includes rounding to the grid.

    Solves ``scale = multiplier (sensitivity + ROUNDING norm_of_ones scale / GRID)``,
    where ``norm_of_ones`` is the norm, in that of the sensitivity, of a vector of ones.
    """
    # [grid:rounding]
    rounding = multiplier * ROUNDING * norm_of_ones / GRID
    if rounding > 0.5:
        raise PlanError(
            f"A noise multiplier of {multiplier:.3g} is too large for the grid; raise "
            "epsilon or delta, or use noise='float'."
        )
    scale = multiplier * sensitivity / (1 - rounding)
    if not 1e-250 < scale < 1e250:
        raise PlanError(
            f"Noise of scale {scale:.3g} is out of the range of the grid; rescale the "
            "values."
        )
    return scale


def finite_scores(scores: Any) -> NDArray[np.float64]:
    """Return scores from -1e300 to 1e300; NaN counts as the lowest score.

    Scores are private, so that an exception would leak information, as would a choice
    by a number that compares with no other. Each score is read by itself, and clipping
    moves no two of them further apart.
    """
    # [selection:finite]
    values = np.asarray(scores, dtype=np.float64)
    return np.clip(
        np.where(np.isnan(values), -MOST_SCORE, values), -MOST_SCORE, MOST_SCORE
    )


def to_cells(
    value: NDArray[np.float64], scale: float | NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return ``value`` in whole cells of ``scale / GRID``, as integers of any size."""
    cell = scale / GRID
    with np.errstate(over="ignore"):  # infinity takes the second path
        cells = np.rint(value / cell)
    if np.all(np.abs(cells) < FLOAT_SAFE):
        return cells.astype(np.int64)
    exact = [round(Fraction(v) / Fraction(c)) for v, c in _pairs(value, cell)]
    return np.array(exact, dtype=object).reshape(value.shape)


def _pairs(
    values: NDArray[Any], cell: float | NDArray[np.float64]
) -> Iterator[tuple[Any, float]]:
    """Pair each value with the cell it is measured in."""
    cells = np.broadcast_to(np.asarray(cell), values.shape)
    return zip(values.ravel().tolist(), cells.ravel().tolist(), strict=True)


def on_grid(
    value: NDArray[np.float64],
    scale: float | NDArray[np.float64],
    noise: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the rounded value plus integer noise, back in the units of the value.

    ``scale`` is that of the noise, one for all numbers or one for each.
    """
    # an array again, as numpy turns the sum of two scalars into a plain integer
    total = np.asarray(to_cells(value, scale) + noise)
    cell = scale / GRID
    if total.dtype == object:
        exact = [float(t * Fraction(c)) for t, c in _pairs(total, cell)]
        return np.array(exact).reshape(total.shape)
    return np.asarray(total * cell, dtype=np.float64)
