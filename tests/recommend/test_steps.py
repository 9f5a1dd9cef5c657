"""A user replays her own row from public steps."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from tests.recommend.doubles import some_ratings
from tests.stat import assert_detects, assert_follows

from tacit import _execution
from tacit._random import as_generator
from tacit._release import recording
from tacit.privacy import Neighbors
from tacit.recommend.items.steps import WalkItems
from tacit.recommend.ratings.table import Ratings
from tacit.recommend.solvers.frank_wolfe_sums import StepLength

N_ITEMS = 12


def side_of_steps(seed, *, n_steps=4, row_norm=None, length=0.8, max_ratings=N_ITEMS):
    rng = as_generator(seed)
    offsets = rng.uniform(-0.2, 0.2, N_ITEMS)
    side = WalkItems.start(offsets, 1.0, 5.0, 3.2, max_ratings, row_norm)
    for t in range(n_steps):
        vector = rng.standard_normal(N_ITEMS)
        vector /= np.linalg.norm(vector)
        side = side.moved(vector, 1 - 2 / (t + 2), length, 1.0)
    return side


def dense_walk(side, items, values):
    """Return level and whole row of one user, by matrices of all items."""
    rest = values.astype(np.float64) - side.offsets[items]
    level = side.prior_level + np.sum(rest - side.prior_level) / (3 + len(items))
    rest -= level
    if side.row_norm is not None:
        rest *= min(1.0, side.row_norm / np.linalg.norm(rest))
    radius = np.linalg.norm(rest) if side.row_norm is None else side.row_norm
    row = np.zeros(side.n_items)
    weight = min(1.0, side.max_ratings / len(items))
    for t in range(len(side.keeps)):
        vector = side.vectors[:, t]
        residual = np.zeros(side.n_items)
        residual[items] = row[items] - rest
        moved = weight * side.lengths[t] * (residual @ vector) * vector
        row = side.keeps[t] * row - moved
        row *= min(1.0, radius / max(np.linalg.norm(row[items]), 1e-300))
    return level, row


@pytest.mark.parametrize("row_norm", [None, 0.7])
@pytest.mark.parametrize("max_ratings", [N_ITEMS, 5])
def test_factors_and_whole_rows_agree(row_norm, max_ratings, seed):
    side = side_of_steps(seed, row_norm=row_norm, max_ratings=max_ratings)
    ratings = some_ratings(40, N_ITEMS, seed)
    users = side.local(ratings)
    for i in range(40):
        items, values = ratings.row(i)
        if len(items):
            level, row = dense_walk(side, items, values)
            found = side.vectors @ users._private_coefficients[i]
            assert users._private_means[i] == pytest.approx(level, abs=1e-12)
            np.testing.assert_allclose(found, row, atol=1e-10)


def test_predictions_of_ratings_are_those_of_the_coefficients(seed):
    side, ratings = side_of_steps(seed), some_ratings(20, N_ITEMS, seed)
    at = side.visited(ratings)
    users = np.repeat(np.arange(20), np.diff(ratings.indptr))
    rows = at.coefficients @ side.vectors.T
    np.testing.assert_allclose(at.predicted, rows[users, ratings.items], atol=1e-12)


def test_the_rated_part_of_a_row_stays_in_its_ball(seed):
    ratings = some_ratings(50, N_ITEMS, seed)
    for row_norm in (None, 0.5):
        side = side_of_steps(seed, row_norm=row_norm, length=5.0)
        at = side.visited(ratings)
        for i in range(50):
            own = slice(ratings.indptr[i], ratings.indptr[i + 1])
            radius = np.linalg.norm(at.values[own]) if row_norm is None else row_norm
            assert np.linalg.norm(at.predicted[own]) <= radius * (1 + 1e-12)


def test_a_single_user_gets_the_bits_she_has_among_others(seed, monkeypatch):
    side, ratings = side_of_steps(seed), some_ratings(30, N_ITEMS, seed)
    together = side.local(ratings)
    for workers in (1, 2):
        monkeypatch.setattr(_execution, "_workers", lambda workers=workers: workers)
        for i in range(30):
            single = side.local(Ratings.of_row(*ratings.row(i), N_ITEMS))
            assert single._private_means[0] == together._private_means[i]
            assert np.array_equal(
                single._private_coefficients[0], together._private_coefficients[i]
            )
            rows = side.complete(Ratings.of_row(*ratings.row(i), N_ITEMS))
            assert np.array_equal(rows[0], side.complete(ratings)[i])


def test_only_other_ratings_decide_the_left_out_prediction(seed):
    side = side_of_steps(seed, n_steps=1)
    ratings = Ratings.of_row([0, 3, 5], [4.0, 2.0, 5.0], N_ITEMS)
    at = side.visited(ratings)
    for position in range(3):
        rest = [p for p in range(3) if p != position]
        vector = side.vectors[:, 0]
        dot = -sum(at.values[p] * vector[at.items[p]] for p in rest)
        expected = -side.lengths[0] * dot * vector[at.items[position]]
        assert at.others[position] == pytest.approx(expected, abs=1e-12)


def test_a_user_without_ratings_gets_the_prior_level_and_no_steps(seed):
    side = side_of_steps(seed)
    users = side.local(Ratings.of_row([], [], N_ITEMS))
    assert users._private_means[0] == side.prior_level
    assert not users._private_coefficients.any()
    assert len(side.local(some_ratings(0, N_ITEMS, seed))._private_means) == 0


def residual_norms(side, ratings, bound):
    indptr, _, parts = side.unit_residuals(ratings, bound)
    return np.sqrt(np.add.reduceat(np.append(parts**2, 0), indptr[:-1]))


def test_residuals_are_within_the_unit_ball(seed):
    ratings = Ratings.of_row([0, 1], [1.0, 5.0], N_ITEMS)
    side = side_of_steps(seed)
    assert residual_norms(side, ratings, 1e-3)[0] == pytest.approx(1, abs=1e-12)
    assert residual_norms(side, ratings, 1e3)[0] < 0.01


def searched(side, ratings, vector, *, reach=2.0, multiplier=1e-4, seed=0):
    length = StepLength(multiplier, Neighbors.REPLACE_ONE)
    blocks = [lambda: side.visited(ratings)]
    return length.run(blocks, vector, reach, N_ITEMS, 4.0, as_generator(seed))


def test_a_length_is_the_best_for_ratings_left_out(seed):
    side, shape = side_of_steps(seed, n_steps=2), some_ratings(300, N_ITEMS, seed)
    vector = as_generator(seed + 1).standard_normal(N_ITEMS)
    vector /= np.linalg.norm(vector)
    users = np.repeat(np.arange(300), np.diff(shape.indptr))
    values = 3 + np.where(users % 2, 2, -2) * vector[shape.items]
    ratings = replace(shape, values=values.astype(np.float32))
    at = side.visited(ratings)
    residual = at.predicted - at.values
    dots = np.bincount(users, residual * vector[at.items], minlength=300)
    rest = dots[users] - residual * vector[at.items]
    along = -4.0 * rest * vector[at.items] - at.others
    best = np.clip(along @ (at.values - at.others) / (along @ along), 0, 1)
    found = searched(side, ratings, vector, reach=4.0)
    assert 0 < found < 1
    assert found == pytest.approx(best, rel=5e-3)


def test_a_direction_of_noise_gets_no_length(seed):
    rng = as_generator(seed)
    n_users = 4000
    items = np.tile(np.arange(N_ITEMS, dtype=np.int32), n_users)
    signs = rng.choice([-1.0, 1.0], (n_users, N_ITEMS))
    taste = rng.choice([-1.0, 1.0], (n_users, 1))
    vector = np.full(N_ITEMS, 1 / np.sqrt(N_ITEMS)) * np.where(
        np.arange(N_ITEMS) % 2, 1, -1
    )
    indptr = np.arange(n_users + 1) * N_ITEMS
    side = WalkItems.start(np.zeros(N_ITEMS), -2.0, 2.0, 0.0, N_ITEMS)
    lengths = []
    for values in (signs, signs + taste * np.sign(vector)):
        ratings = Ratings(indptr, items, values.ravel().astype(np.float32), N_ITEMS)
        lengths.append(searched(side, ratings, vector))
    # not zero, as the level that was taken off a rating knows it a little
    assert lengths[0] < 0.06
    # control: a direction that users have in common gets a long step
    assert lengths[1] > 0.2


@pytest.mark.parametrize("relation", list(Neighbors))
def test_a_user_moves_a_length_by_no_more_than_declared(relation, seed):
    side, rng = side_of_steps(seed), as_generator(seed)
    length = StepLength(1.0, relation)
    most = 0.0
    for _ in range(50):
        values = rng.uniform(1, 5, (2, N_ITEMS))
        vector = rng.standard_normal(N_ITEMS)
        vector /= np.linalg.norm(vector)
        moved = []
        for row in values:
            ratings = Ratings.of_row(np.arange(N_ITEMS), row, N_ITEMS)
            with recording() as tape:
                length.run(
                    [lambda ratings=ratings: side.visited(ratings)],
                    vector,
                    0.3,
                    N_ITEMS,
                    0.05,
                    rng,
                )
            (released,) = tape.releases
            moved.append(released.value.astype(float))
        far = moved[0] - moved[1] if relation is Neighbors.REPLACE_ONE else moved[0]
        most = max(most, float(np.linalg.norm(far)) / released.sensitivity)
    assert most <= 1.0
    # control: half the declared would not do
    assert most > 0.5


def test_noise_on_a_length_has_the_declared_scale(seed):
    length, rng = StepLength(3.0, Neighbors.REPLACE_ONE), as_generator(seed)
    found = []
    for _ in range(1000):
        with recording() as tape:
            length.run([], np.zeros(N_ITEMS), 1.0, N_ITEMS, 1.0, rng)
        found += list(tape.releases[0].output / tape.releases[0].sensitivity)
    assert_follows(found, norm(scale=3.0).cdf)
    assert_detects(found, norm(scale=4.0).cdf)
