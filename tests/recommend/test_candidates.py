"""The choice among candidate item vectors: gains of users, noise, what is chosen."""

import numpy as np
import pytest
from tests.recommend.doubles import some_ratings
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit.privacy import GaussianNoise, Neighbors
from tacit.recommend.items.linear import LinearItems
from tacit.recommend.items.side import plain_arrays
from tacit.recommend.solvers import _kernels as sum_kernels
from tacit.recommend.solvers.als_round import LARGEST_GAIN, CandidateGains

FACTORS = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]])


def gains_of(row, vectors, factors, largest=1e6):
    """Return one user's gains, in squares of a rating."""
    total = np.zeros(len(factors), dtype=np.int64)
    block = plain_arrays(row)
    sum_kernels.add_gains(*block, vectors, factors, 0.7, 3.0, largest, 1e15, total)
    return total / 1e15 * largest


def left_out_error(row, vectors):
    """Return the mean squared error of each rating, predicted from the others."""
    n_items, width = vectors.shape
    side = LinearItems(
        vectors, np.zeros(n_items), -1e9, 1e9, np.full(width, 0.7), 0.0, 3.0
    )
    items, values = row.row(0)
    errors = []
    for j, value in zip(items.tolist(), values.tolist(), strict=True):
        kept = items != j
        rest = type(row).of_row(items[kept], values[kept], n_items)
        errors.append(side.complete(rest)[0][j] - value)
    return float(np.mean(np.square(errors)))


def test_gains_are_differences_of_errors_without_the_rating(seed):
    vectors = as_generator(seed).normal(size=(12, 2))
    ratings = some_ratings(20, 12, seed)
    for i in range(20):
        row = type(ratings).of_row(*ratings.row(i), 12)
        if len(row.items) < 2:
            assert not gains_of(row, vectors, FACTORS).any()
            continue
        level_error = left_out_error(row, np.empty((12, 0)))
        wanted = [level_error - left_out_error(row, vectors * each) for each in FACTORS]
        found = gains_of(row, vectors, FACTORS)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@each_relation
def test_the_sensitivity_is_that_of_two_clipped_users(neighbors):
    gains = CandidateGains(3.0, neighbors)
    assert gains.event == GaussianNoise(3.0)
    assert gains.mechanism.sensitivity == neighbors.rows_changed
    expected = LARGEST_GAIN * 3.0 * neighbors.rows_changed / 50
    assert gains.scale(50) == pytest.approx(expected, rel=1e-6)


def chosen(signal, multiplier, seed):
    """Return the factors chosen for 400 users, who follow the vectors or do not."""
    rng = as_generator(seed)
    vectors = rng.normal(size=(30, 2))
    tastes = signal * rng.normal(size=(400, 2))
    values = tastes @ vectors.T + 0.5 * rng.normal(size=(400, 30))
    items = np.tile(np.arange(30, dtype=np.int32), 400)
    block = np.arange(401) * 30, items, values.ravel()
    return CandidateGains(multiplier, Neighbors.REPLACE_ONE).best(
        [lambda: block],
        vectors,
        np.array([[1.0, 1.0]]),
        ridge=0.5,
        bound=1.0,
        n_users=400.0,
        rng=rng,
    )


def test_vectors_are_chosen_where_users_follow_them_and_seen_to(seed):
    assert chosen(0.5, 0.1, seed).tolist() == [1.0, 1.0]
    # users who follow nothing, whose fits to the vectors only add errors
    assert chosen(0.0, 0.1, seed).tolist() == [0.0, 0.0]
    # noise that hides the gain, which is clipped at 0.1: one in six is chosen by chance
    unsure = [bool(chosen(0.5, 1e4, seed + i).any()) for i in range(12)]
    assert sum(unsure) < 9
