"""What users make of item vectors at home, and what is made of noisy spectra."""

from math import sqrt

import numpy as np
import pytest
from tests.recommend.doubles import some_ratings
from tests.recommend.spectral import full, low_rank

from tacit._random import as_generator
from tacit.recommend.items.linear import LinearItems
from tacit.recommend.ratings.table import Ratings
from tacit.recommend.solvers.moments import directions, leading, strengths

N_ITEMS, RANK = 9, 3


def side(seed, *, step="ridge", penalties=0.7, rank=RANK):
    rng = as_generator(seed)
    return LinearItems(
        rng.normal(size=(N_ITEMS, rank)),
        rng.normal(size=N_ITEMS) / 5,
        -10.0,
        10.0,
        np.full(rank, penalties),
        prior_level=0.5,
        prior_count=2.0,
        step=step,
    )


def test_the_ridge_is_that_of_normal_equations(seed):
    items = side(seed)
    ratings = some_ratings(40, N_ITEMS, seed)
    found = items.local(ratings)
    for i in range(ratings.n_users):
        rated, values = ratings.row(i)
        design = np.column_stack([np.ones(len(rated)), items.vectors[rated]])
        gram = design.T @ design + np.diag([2.0, *items.penalties])
        right = design.T @ (values - items.offsets[rated] - 0.5)
        level, *coefficients = np.linalg.solve(gram, right)
        assert found._private_means[i] == pytest.approx(0.5 + level, rel=1e-9)
        assert found._private_coefficients[i] == pytest.approx(coefficients, rel=1e-8)


def test_the_projection_counts_each_rating_for_all_items(seed):
    items = side(seed, step="projection")
    ratings = some_ratings(40, N_ITEMS, seed)
    found = items.local(ratings)
    for i in range(ratings.n_users):
        rated, values = ratings.row(i)
        rest = values - items.offsets[rated]
        level = (rest.sum() + 2 * 0.5) / (len(rated) + 2)
        scale = N_ITEMS / max(len(rated), 1)
        wanted = scale * (rest - level) @ items.vectors[rated]
        assert found._private_means[i] == pytest.approx(level)
        assert found._private_coefficients[i] == pytest.approx(wanted, abs=1e-9)


def test_a_projection_has_the_scale_of_the_row_whatever_part_of_it_is_known(seed):
    # half of the items are known, all of the same kind: twice their sum is the whole
    vectors = np.full((N_ITEMS + 1, 1), 1 / sqrt(N_ITEMS + 1))
    items = LinearItems(
        vectors, np.zeros(10), -9.0, 9.0, np.ones(1), 0.0, 1e9, "projection"
    )
    row = Ratings.of_row(range(5), [2.0] * 5, N_ITEMS + 1)
    assert items.complete(row)[0] == pytest.approx(2.0, abs=1e-6)
    # without the scale half of it is lost
    assert 2 * vectors[:5, 0].sum() * vectors[0, 0] == pytest.approx(1.0)


@pytest.mark.parametrize("step", ["ridge", "projection"])
def test_a_single_user_gets_the_same_bits_as_among_others(step, seed):
    items = side(seed, step=step)
    ratings = some_ratings(50, N_ITEMS, seed)
    together = items.local(ratings)
    for i in (0, 17, 49):
        single = items.local(Ratings.of_row(*ratings.row(i), N_ITEMS))
        assert single._private_means[0] == together._private_means[i]
        one, all_ = single._private_coefficients[0], together._private_coefficients[i]
        assert one.tobytes() == all_.tobytes()


def test_without_a_ridge_directions_without_ratings_get_zero(seed):
    items = side(seed, penalties=0.0, rank=N_ITEMS)
    few = Ratings.of_row([1, 4], [3.0, -2.0], N_ITEMS)
    found = items.local(few)._private_coefficients[0]
    assert np.isfinite(found).all()
    assert np.count_nonzero(found) <= 2
    assert items.complete(few)[0, [1, 4]] == pytest.approx([3.0, -2.0], abs=1e-6)


def test_someone_without_ratings_has_the_prior_level(seed):
    nobody = Ratings.of_row([], [], N_ITEMS)
    for step in ("ridge", "projection"):
        items = side(seed, step=step)
        assert items.complete(nobody)[0] == pytest.approx(0.5 + items.offsets)


def symmetric_noise(size, scale, seed):
    draws = scale * as_generator(seed).normal(size=(size, size))
    return (draws + draws.T) / 2


def test_pure_noise_has_no_direction(seed):
    for trial in range(20):
        strong, vectors = directions(symmetric_noise(80, 3.0, seed + trial), 10, 3.0)
        assert len(strong) == vectors.shape[1] <= 1
    # with half of its scale declared, noise has directions
    strong, _ = directions(symmetric_noise(80, 3.0, seed), 10, 1.5)
    assert len(strong) > 1


def test_strengths_are_what_vectors_keep_of_the_signal(seed):
    size, scale = 300, 1.0
    vector = np.full(size, 1 / sqrt(size))
    signal = 3 * scale * sqrt(size / 2)
    noisy = signal * np.outer(vector, vector) + symmetric_noise(size, scale, seed)
    values, vectors = leading(noisy, 1)
    kept = signal * float(vectors[:, 0] @ vector) ** 2
    assert strengths(values, scale, size)[0] == pytest.approx(kept, rel=0.15)
    # the eigenvalue itself is too large
    assert values[0] > 1.1 * kept


def test_the_diagonal_does_not_pull_directions_to_items_that_are_rated_most(seed):
    matrix = low_rank(200, 30, 1, seed)
    moments = matrix.T @ matrix
    loud = moments + np.diag(np.linspace(0, 2 * np.trace(moments), 30))
    truth = leading(moments, 1)[1][:, 0]
    assert (directions(loud, 1, 0.0)[1][:, 0] @ truth) ** 2 > 0.98
    assert (leading(loud, 1)[1][:, 0] @ truth) ** 2 < 0.95


def test_completing_full_rows_gives_them_back(seed):
    matrix = low_rank(20, N_ITEMS, N_ITEMS, seed)
    items = LinearItems(
        np.linalg.qr(as_generator(seed).normal(size=(N_ITEMS, N_ITEMS)))[0],
        np.zeros(N_ITEMS),
        -1.0,
        1.0,
        np.zeros(N_ITEMS),
        0.0,
        step="projection",
    )
    assert items.complete(full(matrix)) == pytest.approx(matrix, abs=1e-6)
