"""Orders and subsets of rows: every outcome as likely as amplification assumes."""

from itertools import combinations, permutations
from math import comb, factorial

import numpy as np
import pytest
from scipy import stats
from tests.stat import (
    assert_counts_detect,
    assert_counts_follow,
    assert_probability,
)

from tacit._random import as_generator
from tacit.mechanisms.subsets import (
    RATE_CELLS,
    fixed_subset,
    permutation,
    poisson_subset,
    random_blocks,
)

N_DRAWS = 12_000


class ScriptedWords:
    """A generator whose integers were written down beforehand."""

    def __init__(self, *arrays):
        self.arrays = list(arrays)

    def integers(self, low, high, size, dtype):
        words = np.asarray(self.arrays.pop(0), dtype=np.uint64)
        assert len(words) == size
        assert low == 0
        assert all(int(word) < high for word in words)
        return words.astype(dtype)


@pytest.mark.statistical
def test_every_order_is_as_likely(seed):
    rng, orders = as_generator(seed), list(permutations(range(4)))
    drawn = [tuple(permutation(4, rng).tolist()) for _ in range(N_DRAWS)]
    counts = [drawn.count(order) for order in orders]
    uniform = np.full(len(orders), 1 / factorial(4))
    assert_counts_follow(counts, uniform)
    skewed = uniform.copy()
    skewed[:12] *= 1.2
    assert_counts_detect(counts, skewed / skewed.sum())


@pytest.mark.statistical
def test_every_subset_is_as_likely(seed):
    rng, subsets = as_generator(seed), list(combinations(range(6), 3))
    drawn = [tuple(fixed_subset(6, 3, rng).tolist()) for _ in range(N_DRAWS)]
    counts = [drawn.count(subset) for subset in subsets]
    uniform = np.full(len(subsets), 1 / comb(6, 3))
    assert_counts_follow(counts, uniform)
    skewed = uniform.copy()
    skewed[:10] *= 1.2
    assert_counts_detect(counts, skewed / skewed.sum())


@pytest.mark.parametrize(("n", "size"), [(5, 0), (5, 5), (20_000, 1000), (300, 7)])
def test_fixed_subset_has_its_size_and_no_row_twice(n, size, seed):
    drawn = fixed_subset(n, size, as_generator(seed))
    assert len(drawn) == len(set(drawn.tolist())) == size
    assert np.array_equal(drawn, np.sort(drawn))
    assert size == 0 or 0 <= drawn[0] <= drawn[-1] < n


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [0.003, 0.1, 0.5, 0.9])
def test_rows_come_in_independently_at_their_rate(rate, seed):
    rng, n, cells = as_generator(seed), 20, round(rate * RATE_CELLS)
    drawn = [poisson_subset(n, cells, rng) for _ in range(N_DRAWS)]
    sizes = np.bincount([len(rows) for rows in drawn], minlength=n + 1)
    distribution = stats.binom(n, rate).pmf(np.arange(n + 1))
    assert_counts_follow(sizes, distribution)
    assert_counts_detect(sizes, stats.binom(n, 0.75 * rate).pmf(np.arange(n + 1)))
    every = np.bincount(np.concatenate(drawn), minlength=n)
    for hits in every[[0, 7, 8, n - 1]]:
        assert_probability(int(hits), N_DRAWS, rate)
    both = sum(3 in rows and 11 in rows for rows in drawn)
    assert_probability(both, N_DRAWS, rate**2)


def test_the_first_byte_decides_unless_it_is_that_of_the_rate():
    # rows with bytes 1 2 3 2 0 2 against a rate that begins with 2
    first = int.from_bytes(bytes([1, 2, 3, 2, 0, 2, 0, 0]), "little")
    cells = (2 << 45) + 100
    rng = ScriptedWords([first], [99, 100, 2**45 - 1])
    assert poisson_subset(6, cells, rng).tolist() == [0, 1, 4]


@pytest.mark.parametrize("n", [0, 1, 8, 9, 1000])
def test_rates_of_zero_and_one_are_exact(n, seed):
    rng = as_generator(seed)
    assert len(poisson_subset(n, 0, rng)) == 0
    assert poisson_subset(n, RATE_CELLS, rng).tolist() == list(range(n))


@pytest.mark.parametrize("cells", [-1, RATE_CELLS + 1, 0.5])
def test_rates_that_are_none_are_refused(cells, seed):
    with pytest.raises(ValueError, match="cells"):
        poisson_subset(3, cells, as_generator(seed))


def test_same_seed_same_draws(seed):
    for draw in (
        lambda rng: permutation(50, rng),
        lambda rng: fixed_subset(50, 10, rng),
        lambda rng: poisson_subset(50, RATE_CELLS // 3, rng),
        lambda rng: random_blocks(50, 4, rng),
    ):
        first, again = draw(as_generator(seed)), draw(as_generator(seed))
        np.testing.assert_array_equal(first, again)
        assert first.dtype == np.intp


@pytest.mark.statistical
def test_blocks_are_uniform(seed):
    counts = np.bincount(random_blocks(N_DRAWS, 5, as_generator(seed)), minlength=5)
    assert_counts_follow(counts, np.full(5, 0.2))
    assert_counts_detect(counts, np.array([0.25, 0.1875, 0.1875, 0.1875, 0.1875]))
