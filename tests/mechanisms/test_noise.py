import os
import subprocess
import sys
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import permutations
from math import exp, floor
from pathlib import Path

import numpy as np
import pytest
from numpy.random import MT19937, Generator
from scipy import stats
from tests.stat import (
    assert_counts_detect,
    assert_counts_follow,
    assert_detects,
    assert_follows,
    assert_probability,
)

import tacit
from tacit._random import as_generator
from tacit.mechanisms import _kernels, noise

WORD = 2**64
FILLERS = [noise.rounded_normal, noise.discrete_laplace]
CHOOSERS = [noise.exponential_index, noise.permute_and_flip_index]
SCORES = [0, -7, -20, 3]


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Compile before the first test, so that no test is charged for it."""
    rng = as_generator(0)
    for fill in FILLERS:
        fill(1, rng)
    for choose in CHOOSERS:
        choose([0, 1], 1, rng)


class Deviate:
    """A uniform real number whose words are read when a comparison needs them."""

    def __init__(self, source, n_words=1):
        self.source = source
        self.words = [next(source) for _ in range(n_words)]

    def word(self, i):
        while len(self.words) <= i:
            self.words.append(next(self.source))
        return self.words[i]

    def __lt__(self, other):
        for i in range(2):
            if self.word(i) != other.word(i):
                return self.word(i) < other.word(i)
        return False


def cumulative():
    """P(K <= k) in units of 2**-128, for weights exp(-k**2 / 2), in decimals."""
    getcontext().prec = 120
    weights = [(Decimal(-k * k) / 2).exp() for k in range(25)]
    return [int(2**128 * sum(weights[: k + 1]) / sum(weights)) for k in range(13)]


CUMULATIVE = cumulative()


def twin_integer_part(source):
    u = Deviate(source)
    if any(u.word(0) == step >> 64 for step in CUMULATIVE):
        value = u.word(0) * WORD + u.word(1)
        return sum(value >= step for step in CUMULATIVE)
    return sum(u.word(0) > step >> 64 for step in CUMULATIVE)


def twin_choice(source, m):
    while True:
        value = (next(source) >> 32) * m
        # the first 2**32 mod m remainders would favor some values
        if value % 2**32 >= 2**32 % m:
            return value >> 32


def twin_accepts(source, k, x):
    y, run = x, 0
    while True:
        z = Deviate(source)
        if not z < y:
            break
        choice = next(source) >> 63 if k == 0 else twin_choice(source, 2 * k + 2)
        if choice > 2 * k or (choice == 2 * k and not Deviate(source) < x):
            break
        y, run = z, run + 1
    return run % 2 == 0


def twin_rounded_normal(words):
    """Karney's algorithm in rationals; all draws that the words suffice for."""
    source = iter(words)
    out = []
    try:
        while True:
            k = twin_integer_part(source)
            x = Deviate(source, n_words=2)
            sign = -1 if x.words[1] % 2 else 1
            x.words[1] -= x.words[1] % 2
            trials = k + 1
            while trials and twin_accepts(source, k, x):
                trials -= 1
            if not trials:
                value = k + Fraction(x.words[0] * WORD + x.words[1], WORD**2)
                out.append(sign * floor(2**32 * value + Fraction(1, 2)))
    except StopIteration:
        return out


def kernel_rounded_normal(words):
    out = np.zeros(len(words), dtype=np.int64)
    done, used = _kernels.rounded_normal(np.array(words, dtype=np.uint64), out, 0)
    assert used <= len(words)
    return out[:done].tolist()


def test_rounded_normal_agrees_with_big_integers(seed):
    words = as_generator(seed).integers(0, WORD, size=20_000, dtype=np.uint64).tolist()
    expected = twin_rounded_normal(words)
    assert len(expected) > 2_000
    assert kernel_rounded_normal(words) == expected


@pytest.mark.parametrize("n_values", [1, 2, 6])
def test_rounded_normal_agrees_with_big_integers_on_ties(seed, n_values):
    # few distinct words make ties common, in the table and between deviates
    rng = as_generator(seed)
    for _ in range(150):
        step = CUMULATIVE[rng.integers(0, len(CUMULATIVE))]
        values = rng.integers(0, WORD, size=n_values, dtype=np.uint64).tolist()
        # neighbors differ by the bit that is the sign of x and is not compared
        values += [values[0] ^ 1, 0, step >> 64, step % WORD]
        words = [values[i] for i in rng.integers(0, len(values), size=200)]
        assert kernel_rounded_normal(words) == twin_rounded_normal(words)


def test_table_of_integer_parts_is_right_to_the_last_bit():
    high, low = _kernels._HIGH.tolist(), _kernels._LOW.tolist()
    assert [h * WORD + b for h, b in zip(high, low, strict=True)] == CUMULATIVE


def test_every_kernel_stops_on_a_short_buffer(seed):
    words = as_generator(seed).integers(0, WORD, size=60, dtype=np.uint64)
    out = np.empty(60, dtype=np.int64)
    gaps, order = np.array([0, 5, 2**63], dtype=np.uint64), np.arange(3)
    for n in range(60):
        short = words[:n]
        for done, used in (
            _kernels.rounded_normal(short, out, 0),
            _kernels.discrete_laplace(short, out, 0, np.uint64(3)),
        ):
            assert 0 <= done < 60
            assert 0 <= used <= n
        assert _kernels.exponential_index(short, gaps, np.uint64(3))[1] <= n
        _, step, used = _kernels.permute_and_flip_index(
            short, gaps, np.uint64(3), order, 0
        )
        assert step < 3
        assert used <= n


@pytest.mark.statistical
def test_rounded_normal_law(seed):
    x = noise.rounded_normal(200_000, as_generator(seed)) / noise.GRID
    assert_follows(x, stats.norm.cdf)
    assert_detects(x, stats.norm(scale=1.1).cdf)
    assert_detects(x, stats.norm(loc=0.03).cdf)


@pytest.mark.statistical
def test_rounded_normal_tail(seed):
    n = 2_000_000
    x = np.abs(noise.rounded_normal(n, as_generator(seed))) / noise.GRID
    for split in (3.0, 4.0):
        hits = int((x > split).sum())
        assert_probability(hits, n, 2 * stats.norm.sf(split))
        with pytest.raises(AssertionError):
            assert_probability(hits, n, 2 * stats.norm.sf(split / 1.1))
    assert x.max() < 9


@pytest.mark.statistical
def test_rounded_normal_fills_the_grid(seed):
    x = noise.rounded_normal(200_000, as_generator(seed))
    counts = np.bincount(x & 1023, minlength=1024)
    assert_counts_follow(counts, np.full(1024, 1 / 1024))
    assert_counts_detect(counts, np.tile([1.1, 0.9], 512) / 1024)


@pytest.mark.statistical
def test_words_of_a_32_bit_generator_are_whole(seed):
    x = noise.rounded_normal(50_000, Generator(MT19937(seed))) / noise.GRID
    assert_follows(x, stats.norm.cdf)
    assert_detects(x, stats.norm(scale=1.1).cdf)


def laplace_pmf(scale, reach):
    """Cells -reach, ..., reach, then all that is beyond."""
    q = exp(-1 / scale)
    inside = (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1))
    return np.append(inside, 1 - inside.sum())


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1, 3, 17])
def test_discrete_laplace_law_at_small_scales(seed, scale):
    reach = 8 * scale
    x = noise.discrete_laplace(200_000, as_generator(seed), scale=scale)
    cells = np.where(np.abs(x) <= reach, x + reach, 2 * reach + 1)
    counts = np.bincount(cells, minlength=2 * reach + 2)
    assert_counts_follow(counts, laplace_pmf(scale, reach))
    assert_counts_detect(counts, laplace_pmf(1.1 * scale, reach))


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [noise.GRID, noise.MAX_SCALE, 3**25])
def test_discrete_laplace_law_at_large_scales(seed, scale):
    x = noise.discrete_laplace(100_000, as_generator(seed), scale=scale) / scale
    assert_follows(x, stats.laplace.cdf)
    assert_detects(x, stats.laplace(scale=1.1).cdf)


def exponential_law(scores, scale):
    weights = np.exp(np.array(scores) / scale)
    return weights / weights.sum()


def permute_and_flip_law(scores, scale):
    accept = np.exp((np.array(scores) - max(scores)) / scale)
    distribution = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        reached = 1.0 / len(orders)
        for i in order:
            distribution[i] += reached * accept[i]
            reached *= 1 - accept[i]
    return distribution


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("choose", "distribution", "other"),
    [
        (noise.exponential_index, exponential_law, permute_and_flip_law),
        (noise.permute_and_flip_index, permute_and_flip_law, exponential_law),
    ],
)
@pytest.mark.parametrize("scale", [5, 12])
def test_selection_laws(seed, choose, distribution, other, scale):
    rng = as_generator(seed)
    picks = [choose(SCORES, scale, rng) for _ in range(25_000)]
    counts = np.bincount(picks, minlength=len(SCORES))
    assert_counts_follow(counts, distribution(SCORES, scale))
    assert_counts_detect(counts, distribution(SCORES, 1.1 * scale))
    assert_counts_detect(counts, other(SCORES, scale))


@pytest.mark.parametrize("choose", CHOOSERS)
def test_selection_takes_the_whole_range_of_scores(seed, choose):
    rng = as_generator(seed)
    scores = np.array([-(2**63), 2**63 - 1, 0, -1])
    assert all(choose(scores, 2**40, rng) == 1 for _ in range(20))
    assert choose([-5], 1, rng) == 0


@pytest.mark.parametrize("choose", CHOOSERS)
def test_selection_does_not_depend_on_chunks(seed, choose, monkeypatch):
    # one candidate in 3000 is ever accepted, so buffers are refilled many times
    scores = np.full(3_000, -(2**20))
    scores[1234] = 0
    assert choose(scores, 1, as_generator(seed)) == 1234
    drawn = [choose(SCORES, 9, as_generator(seed + i)) for i in range(200)]
    monkeypatch.setattr(noise, "_FIRST", 1)
    monkeypatch.setattr(noise, "_CHUNK", 3)
    assert drawn == [choose(SCORES, 9, as_generator(seed + i)) for i in range(200)]


@pytest.mark.parametrize("fill", FILLERS)
def test_draws_do_not_depend_on_chunks(seed, fill, monkeypatch):
    drawn = fill(3_000, as_generator(seed))
    assert np.array_equal(fill(40, as_generator(seed)), drawn[:40])
    monkeypatch.setattr(noise, "_CHUNK", 7)
    assert np.array_equal(fill(3_000, as_generator(seed)), drawn)


@pytest.mark.parametrize("fill", FILLERS)
def test_same_seed_same_bits_and_fresh_entropy_differs(seed, fill):
    a, b = as_generator(seed), as_generator(seed)
    for _ in range(2):
        assert np.array_equal(fill(100, a), fill(100, b))
    assert not np.array_equal(fill(100, a), fill(100, a))
    assert not np.array_equal(fill(100, as_generator(None)), fill(100, a))
    assert not np.array_equal(
        fill(100, as_generator(None)), fill(100, as_generator(None))
    )


@pytest.mark.parametrize("fill", FILLERS)
def test_sizes_and_shapes(seed, fill):
    flat = fill(12, as_generator(seed))
    assert flat.dtype == np.int64
    square = fill((3, 4), as_generator(seed))
    assert np.array_equal(square, flat.reshape(3, 4))
    assert fill(0, as_generator(seed)).shape == (0,)
    assert fill((2, 0), as_generator(seed)).shape == (2, 0)
    assert fill((), as_generator(seed)) == flat[0]


@pytest.mark.parametrize("scale", [0, -1, 1.0, True, 2**48 + 1, "1"])
def test_bad_scales_are_refused_by_name(scale):
    with pytest.raises(ValueError, match=r"^scale must be an integer"):
        noise.discrete_laplace(1, as_generator(0), scale=scale)
    with pytest.raises(ValueError, match=r"^scale must be an integer"):
        noise.exponential_index([1, 2], scale, as_generator(0))


@pytest.mark.parametrize("scores", [[], [[1]], [0.5], np.array([1], dtype=np.uint64)])
@pytest.mark.parametrize("choose", CHOOSERS)
def test_bad_scores_are_refused_by_name(choose, scores):
    with pytest.raises(ValueError, match=r"^scores must be a non-empty vector"):
        choose(scores, 1, as_generator(0))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        (noise.float_normal, stats.norm),
        (noise.float_laplace, stats.laplace),
        (noise.float_gumbel, stats.gumbel_r),
    ],
)
def test_float_laws(seed, draw, distribution):
    x = draw((100, 500), as_generator(seed))
    assert x.shape == (100, 500)
    assert_follows(x.ravel(), distribution.cdf)
    assert_detects(x.ravel(), distribution(scale=1.1).cdf)


@pytest.mark.statistical
def test_gamma_norm_has_a_gamma_radius_and_a_uniform_direction(seed):
    rng = as_generator(seed)
    x = np.array([noise.gamma_norm(5, rng) for _ in range(20_000)])
    radius = np.linalg.norm(x, axis=1)
    assert_follows(radius, stats.gamma(5).cdf)
    assert_detects(radius, stats.gamma(5, scale=1.1).cdf)
    # a coordinate of a uniform direction in five dimensions is 2 Beta(2, 2) - 1
    assert_follows((x[:, 0] / radius + 1) / 2, stats.beta(2, 2).cdf)
    assert_detects((x[:, 0] / radius + 1) / 2, stats.beta(2.4, 2.4).cdf)
    assert noise.gamma_norm(0, rng).shape == (0,)


def test_importing_noise_does_not_load_the_compiler():
    script = "import sys, tacit.mechanisms.noise; sys.exit('numba' in sys.modules)"
    env = os.environ | {"PYTHONPATH": str(Path(tacit.__file__).parents[1])}
    found = subprocess.run([sys.executable, "-c", script], env=env, check=False)
    assert found.returncode == 0
