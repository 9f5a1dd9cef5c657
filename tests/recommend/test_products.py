"""Leading directions of a noisy matrix, and of noisy products."""

from math import sqrt

import numpy as np
import pytest
from tests.recommend.test_second_moments import block_of
from tests.stat import assert_detects, assert_follows

from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit.exceptions import PlanError
from tacit.privacy import GaussianNoise, Neighbors
from tacit.recommend.solvers import frank_wolfe_sums
from tacit.recommend.solvers._kernels import add_product
from tacit.recommend.solvers.frank_wolfe_sums import NoisyProducts
from tacit.recommend.solvers.moments import leading_pair

ALMOST_NONE = 1e-5


def spread_rows(n_users, n_items, seed):
    """Return unit rows with one direction that is stronger than all others."""
    rng = as_generator(seed)
    rows = rng.standard_normal((n_users, n_items)) * 0.7 ** np.arange(n_items)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_both_solvers_find_the_leading_pair(solver, seed):
    noise = as_generator(seed).standard_normal((30, 30))
    matrix = noise + noise.T
    value, vector = leading_pair(matrix, solver)
    values, vectors = np.linalg.eigh(matrix)
    assert value == pytest.approx(values[-1])
    assert abs(vector @ vectors[:, -1]) == pytest.approx(1)


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_small_and_empty_matrices_have_a_pair(solver, size):
    value, vector = leading_pair(np.zeros((size, size)), solver)
    assert value == 0
    assert np.linalg.norm(vector) == pytest.approx(1)


@pytest.mark.parametrize("method", ["oja", "power"])
def test_products_without_noise_find_the_leading_direction(method, seed):
    rows = spread_rows(200, 8, seed)
    products = NoisyProducts(8, 30, ALMOST_NONE, method)
    value, vector = products.run(lambda: [block_of(rows)], as_generator(seed))
    values, vectors = np.linalg.eigh(rows.T @ rows)
    assert abs(vector @ vectors[:, -1]) == pytest.approx(1, abs=1e-3)
    assert value == pytest.approx(values[-1], rel=1e-3)


@pytest.mark.parametrize("method", ["oja", "power"])
def test_every_product_is_with_a_unit_vector(method, seed, monkeypatch):
    norms = []

    def noted(kernel, blocks, size, vector, factor):
        norms.append(np.linalg.norm(vector))
        return summed(kernel, blocks, size, vector, factor)

    summed = frank_wolfe_sums.summed
    monkeypatch.setattr(frank_wolfe_sums, "summed", noted)
    rows = spread_rows(20, 8, seed)
    NoisyProducts(8, 4, 2.0, method).run(lambda: [block_of(rows)], as_generator(seed))
    np.testing.assert_allclose(norms, np.ones(5), rtol=1e-12)


def farthest(seed, length):
    """Return how far a replaced user moves a product, in units of the declared."""
    rng, products = as_generator(seed), NoisyProducts(3, 1, 1.0)
    most = 0.0
    for _ in range(500):
        pair = rng.standard_normal((2, 3))
        pair /= np.linalg.norm(pair, axis=1, keepdims=True)
        vector = pair[0] + 0.1 * rng.standard_normal(3)
        vector *= length / np.linalg.norm(vector)
        sums = np.zeros((2, 3), dtype=np.int64)
        for row, total in zip(pair, sums, strict=True):
            add_product(*block_of(row[None]), vector, products.factor, total)
        most = max(most, float(np.linalg.norm(sums[0] - sums[1])))
    return most / products.mechanism.units


def test_a_replaced_user_moves_a_product_by_no_more_than_one(seed):
    assert 0.95 < farthest(seed, 1.0) <= 1.0
    # control: a start that is not a unit long has no such bound
    assert farthest(seed, 3.0) > 1.0


def test_releases_move_as_far_as_they_declare(seed):
    rows = spread_rows(30, 5, seed)
    other = rows.copy()
    other[0] = -other[0][::-1]
    products = NoisyProducts(5, 3, 1.0)
    with recording() as tape:
        found = products.run(lambda: [block_of(rows)], as_generator(seed))
    with replaying(tape) as replay:
        again = products.run(lambda: [block_of(other)], as_generator(seed))
    assert found[0] == again[0]
    assert np.array_equal(found[1], again[1])
    assert len(tape.releases) == 4
    for one, two in zip(tape.releases, replay.releases, strict=True):
        assert np.linalg.norm((one.value - two.value).astype(float)) <= one.sensitivity


def test_products_and_the_eigenvalue_are_charged():
    products = NoisyProducts(5, 30, 7.0)
    neighbors = Neighbors.REPLACE_ONE
    found = products.event.curve(neighbors).epsilon(1e-6)
    expected = GaussianNoise(7.0 / sqrt(31)).curve(neighbors).epsilon(1e-6)
    assert found == pytest.approx(expected)


def test_noise_on_the_eigenvalue_has_the_stated_scale(seed):
    products, rng = NoisyProducts(2, 1, 5.0), as_generator(seed)
    nobody = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0)
    found = [products.run(lambda: [nobody], rng)[0] for _ in range(600)]

    def distribution(factor):
        from scipy.stats import norm  # noqa: PLC0415

        return norm(scale=factor * products.scale).cdf

    assert products.scale == pytest.approx(5.0, rel=1e-6)
    assert_follows(found, distribution(1.0))
    assert_detects(found, distribution(2.0))


def test_too_coarse_units_are_rejected():
    with pytest.raises(PlanError, match="make fewer products"):
        NoisyProducts(10**6, 1, 2.0**23)
