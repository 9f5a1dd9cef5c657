"""Sums of one round: how far one user moves them, and what they are."""

from functools import partial
from math import sqrt

import numpy as np
import pytest
from scipy import stats
from tests.recommend.doubles import some_ratings
from tests.stat import assert_detects, assert_follows

from tacit._random import as_generator
from tacit.exceptions import PlanError
from tacit.privacy import GaussianNoise, Neighbors
from tacit.recommend.items.side import USUAL_PRIOR_COUNT, plain_arrays
from tacit.recommend.ratings import table
from tacit.recommend.solvers.als_round import ERROR_WEIGHT, ItemRound

PUBLIC = {"ridge": 0.7, "reach": 1e-6, "bound": 1.0}
N_ITEMS = 6


def round_of(n_items, neighbors="replace_one", multiplier=1.5, most=3, kind=ItemRound):
    return kind(n_items, most, multiplier, Neighbors.of(neighbors))


def user(items, values):
    """Return one user's ratings, less all that is public, as a block."""
    indptr = np.array([0, len(items)], dtype=np.int64)
    return lambda: (
        indptr,
        np.array(items, dtype=np.int32),
        np.array(values, dtype=np.float64),
    )


def parts(each, vectors, rows, public=PUBLIC):
    """Return one user's products and moments a row, in units of the mechanisms."""
    split = each.n_items * vectors.shape[1]
    # one thread without the search for libraries that each sum would begin with
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "in_order", lambda add, blocks, **_: map(add, blocks))
        found = [each._total([user(*row)], vectors, **public) for row in rows]
    totals = np.array(found, dtype=np.float64)
    return totals[:, :split] / each.products.units, totals[:, split:] / (
        each.moments.units
    )


def farthest(found, neighbors):
    """Return the largest distance of two users, or of a user from none."""
    squares = (found**2).sum(axis=1)
    if Neighbors.of(neighbors) is Neighbors.ADD_OR_REMOVE_ONE:
        return sqrt(squares.max())
    apart = squares[:, None] + squares - 2 * found @ found.T
    return sqrt(apart.max())


def loud_rows(rng, n_rows):
    """Return rows of ratings at both ends, which clipping has most to do with."""
    rows = []
    for _ in range(n_rows):
        n = int(rng.integers(2, N_ITEMS + 1))
        items = np.sort(rng.choice(N_ITEMS, n, replace=False))
        rows.append((items, 4.0 * rng.choice([-1.0, 1.0], n)))
    return rows


def directions(rng):
    """Return item vectors in two groups at right angles, and some of neither."""
    yield np.repeat(np.eye(2), N_ITEMS // 2, axis=0)
    yield np.ones((N_ITEMS, 1))
    yield rng.standard_normal((N_ITEMS, 3))


@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
def test_no_two_users_are_further_apart_than_the_sensitivities(neighbors, seed):
    rng = as_generator(seed)
    each = round_of(N_ITEMS, neighbors)
    largest = np.zeros(2)
    for vectors in directions(rng):
        found = parts(each, vectors, loud_rows(rng, 400))
        largest = np.maximum(largest, [farthest(one, neighbors) for one in found])
    declared = np.array([each.products.sensitivity, each.moments.sensitivity])
    assert (largest <= declared * (1 + 1e-12)).all()
    # and some come close, so that no noise is wasted
    assert (largest > 0.98 * declared).all()


@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
def test_parts_that_are_longer_by_the_root_of_two_would_be_seen(neighbors, seed):
    class LoudProducts(ItemRound):
        @property
        def _product_units(self):
            return sqrt(2) * super()._product_units

    class LoudMoments(ItemRound):
        def _moment_units(self, size):
            return sqrt(2) * super()._moment_units(size)

    rng = as_generator(seed)
    rows, vectors = loud_rows(rng, 100), next(directions(rng))
    for at, kind in enumerate((LoudProducts, LoudMoments)):
        each = round_of(N_ITEMS, neighbors, kind=kind)
        found = farthest(parts(each, vectors, rows)[at], neighbors)
        declared = (each.products, each.moments)[at].sensitivity
        assert found > 1.3 * declared


def test_users_of_any_ratings_stay_within_the_norms_of_a_part(seed):
    rng = as_generator(seed)
    ratings = some_ratings(200, 30, seed)
    rows = [(items, values - 3.0) for items, values in map(ratings.row, range(200))]
    rows += [(np.arange(30), rng.uniform(-4, 4, 30)), ([7], [4.0]), ([], [])]
    for reach in (1e-6, 0.5, 10.0):
        each = round_of(30, most=4)
        public = {**PUBLIC, "reach": reach}
        vectors = rng.standard_normal((30, 4))
        products, moments = parts(each, vectors, rows, public)
        assert np.linalg.norm(products, axis=1).max() <= 1
        assert np.linalg.norm(moments, axis=1).max() <= sqrt(1 + ERROR_WEIGHT**2)
        assert not products[-1].any()
        assert not moments[-1].any()


def test_moments_of_two_users_are_never_more_than_at_right_angles(seed):
    rng = as_generator(seed)
    each = round_of(N_ITEMS, multiplier=1e5)  # coarse units, so that truncation is seen
    found = parts(each, rng.standard_normal((N_ITEMS, 3)), loud_rows(rng, 300))[1]
    assert each.moments.units < 2**14
    assert farthest(found, "replace_one") <= each.moments.sensitivity


def test_sums_are_exact_in_any_order_and_in_blocks_of_any_size(seed):
    rng = as_generator(seed)
    ratings = some_ratings(101, 20, seed)
    each, vectors = round_of(20), rng.standard_normal((20, 3))

    def total(blocks):
        return each._total(
            [partial(plain_arrays, b) for b in blocks], vectors, **PUBLIC
        )

    whole = total([ratings])
    assert whole.any()
    for users in (1, 7, 64):
        assert (total(list(ratings.blocks(users))[::-1]) == whole).all()


def leave_one_out(items, values, vectors, ridge):
    """Return rests and coefficients of each rating, from a ridge without it."""
    X = np.column_stack([np.ones(len(items)), vectors[items]])
    penalty = np.diag([USUAL_PRIOR_COUNT, *[ridge] * vectors.shape[1]])
    for t in range(len(items)):
        others = np.arange(len(items)) != t
        gram = X[others].T @ X[others] + penalty
        beta = np.linalg.solve(gram, X[others].T @ values[others])
        yield values[t] - beta[0], beta[1:], values[t] - X[t] @ beta


def test_products_are_of_coefficients_that_do_not_know_the_rating(seed):
    rng = as_generator(seed)
    items, values = np.arange(8), rng.uniform(-1, 1, 8)
    vectors = rng.standard_normal((8, 2))
    each = round_of(8, multiplier=0.01)
    public = {"ridge": 0.7, "reach": 5.0, "bound": 2.0}
    products, moments = parts(each, vectors, [(items, values)], public)
    expected = [
        rest / public["bound"] / sqrt(8) * coefficients / public["reach"]
        for rest, coefficients, _ in leave_one_out(items, values, vectors, 0.7)
    ]
    np.testing.assert_allclose(products.reshape(8, 2), expected, atol=1e-7)
    errors = [miss**2 for _, _, miss in leave_one_out(items, values, vectors, 0.7)]
    error = np.mean(errors) / 4 / public["bound"] ** 2
    assert moments[0, -1] == pytest.approx(ERROR_WEIGHT * error, abs=1e-6)


def test_released_sums_are_the_exact_ones_but_for_the_noise(seed):
    rng = as_generator(seed)
    ratings = some_ratings(500, 20, seed)
    vectors = rng.standard_normal((20, 3))
    each = round_of(20, multiplier=1e-4)

    def blocks():
        indptr, items, values = plain_arrays(ratings)
        return indptr, items, values - 3.0

    public = {"ridge": 0.7, "reach": 1.0, "bound": 1.0}
    sums = each.run([blocks], vectors, **public, n_users=500.0, rng=rng)
    exact = each._total([blocks], vectors, **public)[:60] / each._product_units
    np.testing.assert_allclose(
        sums.products.ravel(), exact, atol=0.4
    )  # six standard deviations
    assert np.linalg.eigvalsh(sums.moments).min() > 0
    assert np.trace(sums.moments) <= 1.001
    assert 0.2 <= sums.error <= 1.0


def test_noise_has_the_planned_distribution_and_charge(seed):
    each = round_of(4000, multiplier=2.0, most=2)
    nobody = user([], [])
    sums = each.run(
        [nobody], np.ones((4000, 1)), **PUBLIC, n_users=1.0, rng=as_generator(seed)
    )
    scale = 2.0 * 2.0 / sqrt(0.9)  # multiplier, sensitivity, share
    assert sums.scale == pytest.approx(scale, rel=1e-6)
    assert_follows(sums.products.ravel(), stats.norm(scale=scale).cdf)
    assert_detects(sums.products.ravel(), stats.norm(scale=1.25 * scale).cdf)
    events = each.event.events
    assert all(isinstance(event, GaussianNoise) for event in events)
    total = sum(event.multiplier**-2 for event in events)
    assert total == pytest.approx(2.0**-2, rel=1e-12)


def test_noise_that_leaves_no_room_for_moments_is_rejected():
    with pytest.raises(PlanError, match="smaller rank"):
        round_of(3, multiplier=3e6, most=400)
    assert round_of(3, multiplier=3e6, most=2).most == 2
