"""What is particular to each additive mechanism."""

from functools import cache
from math import sqrt

import numpy as np
import pytest
from scipy import stats
from tests.stat import assert_detects, assert_follows

from tacit._random import as_generator
from tacit._release import recording
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian, L2Laplace, Laplace
from tacit.mechanisms.additive import SymmetricGaussian
from tacit.privacy import GaussianNoise, LaplaceNoise
from tacit.privacy.events import L2LaplaceNoise

N_DRAWS = {1: 6000, 2: 5000, 7: 3000}
CONTROL = {1: 1.25, 2: 1.15, 7: 1.1}

dimensions = pytest.mark.parametrize("size", sorted(N_DRAWS))
kinds = pytest.mark.parametrize("noise", ["grid", "float"])


@cache
def vectors(size, noise, seed):
    """L2-Laplace noise in units of its scale, one vector a row."""
    mechanism, rng = L2Laplace(1.5, 2.0, size, noise), as_generator(seed)
    value = np.linspace(-1, 1, size)
    draws = [mechanism(value, rng) - value for _ in range(N_DRAWS[size])]
    return np.array(draws) / mechanism.scale()


@kinds
@dimensions
@pytest.mark.statistical
def test_the_norm_of_the_vector_follows_a_gamma_law(size, noise, seed):
    norms = np.linalg.norm(vectors(size, noise, seed), axis=1)
    assert_follows(norms, stats.gamma(size).cdf)
    assert_detects(norms, stats.gamma(size, scale=CONTROL[size]).cdf)
    assert_detects(norms, stats.gamma(size, scale=1 / CONTROL[size]).cdf)


def along(draws, way):
    """Share of each draw that lies along a direction, from 0 to 1."""
    cosines = draws @ way / np.linalg.norm(draws, axis=1) / np.linalg.norm(way)
    return (1 + cosines) / 2


@kinds
@pytest.mark.parametrize("size", [2, 7])
@pytest.mark.statistical
def test_the_direction_is_isotropic(size, noise, seed):
    draws, rng = vectors(size, noise, seed), as_generator(seed)
    distribution = stats.beta((size - 1) / 2, (size - 1) / 2).cdf
    for way in (np.eye(size)[0], np.ones(size), rng.standard_normal(size)):
        assert_follows(along(draws, way), distribution)
        # control: half as much again along that direction
        stretched = draws + 0.5 * np.outer(draws @ way, way) / (way @ way)
        assert_detects(along(stretched, way), distribution)


@kinds
@pytest.mark.statistical
def test_the_norm_does_not_depend_on_the_direction(noise, seed):
    draws = vectors(2, noise, seed)
    norms, distribution = np.linalg.norm(draws, axis=1), stats.gamma(2).cdf
    cosines = np.abs(draws[:, 0]) / norms
    for part in (cosines < sqrt(0.5), cosines >= sqrt(0.5)):
        assert_follows(norms[part], distribution)
    # control: independent Laplace coordinates reach further along the axes
    rng = as_generator(seed)
    draws = rng.laplace(size=(20_000, 2))
    norms = np.linalg.norm(draws, axis=1)
    cosines = np.abs(draws[:, 0]) / norms
    near = np.abs(cosines - sqrt(0.5)) < 0.2
    assert_detects(norms[near], distribution)


@kinds
def test_a_vector_of_another_size_is_refused(noise):
    mechanism = L2Laplace(1.0, 1.0, 3, noise)
    with pytest.raises(
        ValueError, match="value must have 3 entries, as planned, got 4"
    ):
        mechanism(np.zeros(4), as_generator(0))
    assert mechanism(np.zeros((3, 1)), as_generator(0)).shape == (3, 1)


def test_events_say_what_was_done():
    assert Gaussian(2.0, 3.0).event == GaussianNoise(2.0)
    assert Laplace(2.0, 3.0).event == LaplaceNoise(2.0)
    assert L2Laplace(2.0, 3.0, 5).event == L2LaplaceNoise(2.0, 5)
    assert SymmetricGaussian(2.0, 3.0).event == GaussianNoise(2.0)


def symmetric(size, seed):
    matrix = as_generator(seed).standard_normal((size, size))
    return matrix + matrix.T


@kinds
def test_the_noisy_matrix_is_symmetric_bit_for_bit(noise):
    out = SymmetricGaussian(1.0, 1.0, noise)(symmetric(9, 0), as_generator(1))
    assert np.array_equal(out, out.T)
    assert len(np.unique(out)) == 45


@kinds
@pytest.mark.statistical
def test_entries_off_the_diagonal_get_half_the_variance(noise, seed):
    mechanism, size = SymmetricGaussian(2.0, 3.0, noise), 8
    rng, value = as_generator(seed), symmetric(size, 1)
    draws = np.array([mechanism(value, rng) - value for _ in range(2000)])
    scale = Gaussian(2.0, 3.0, noise).scale(size * (size + 1) // 2)
    rows, columns = np.triu_indices(size)
    inside, outside = stats.norm(0, scale), stats.norm(0, scale / sqrt(2))
    on_diagonal = draws[:, rows, columns][:, rows == columns].ravel()
    off_diagonal = draws[:, rows, columns][:, rows != columns].ravel()
    assert_follows(on_diagonal, inside.cdf)
    assert_follows(off_diagonal, outside.cdf)
    assert_detects(np.abs(on_diagonal), stats.halfnorm(0, 1.1 * scale).cdf)
    assert_detects(off_diagonal, stats.norm(0, 1.1 * scale / sqrt(2)).cdf)


@kinds
def test_the_vector_released_has_the_frobenius_norm_of_the_matrix(noise):
    mechanism, matrix = SymmetricGaussian(1.0, 2.0, noise), symmetric(6, 3)
    with recording() as tape:
        mechanism(matrix, as_generator(0))
    (entry,) = tape.releases
    assert entry.shape == (21,)
    assert entry.norm == "l2"
    assert entry.sensitivity == 2.0
    assert np.linalg.norm(entry.value) == pytest.approx(np.linalg.norm(matrix))
    # control: the upper triangle without its weights is shorter
    assert np.linalg.norm(matrix[np.triu_indices(6)]) < 0.9 * np.linalg.norm(matrix)


@kinds
def test_huge_matrices_do_not_overflow(noise):
    matrix = np.array([[1e18, 1e300], [1e300, -1.0]])
    out = SymmetricGaussian(1.0, 1e-3, noise)(matrix, as_generator(0))
    assert np.array_equal(out, out.T)
    assert np.allclose(out, matrix, rtol=1e-15, atol=0.02)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 2, 2)])
def test_what_is_not_a_square_matrix_is_refused(shape):
    with pytest.raises(ValueError, match="value must be a square matrix"):
        SymmetricGaussian(1.0, 1.0)(np.zeros(shape), as_generator(0))


@pytest.mark.parametrize("noise", ["grid", "float"])
def test_scale_of_a_matrix_is_that_of_its_triangle(noise):
    vector = Gaussian(2.0, 3.0, noise)
    assert SymmetricGaussian(2.0, 3.0, noise).scale(9) == vector.scale(45)


def test_a_matrix_that_the_grid_cannot_hold_is_refused_by_its_scale():
    with pytest.raises(PlanError, match="too large for the grid"):
        SymmetricGaussian(2.0**30, 1.0).scale(10)


@pytest.mark.parametrize("kind", [Gaussian, Laplace, SymmetricGaussian])
def test_the_scale_is_the_multiplier_times_the_sensitivity(kind):
    assert kind(2.0, 3.0, "float").scale(5) == 6.0
    assert 6.0 < kind(2.0, 3.0).scale(5) < 6.0 * (1 + 1e-6)


def test_the_scale_of_a_gamma_law_is_the_multiplier_times_the_sensitivity():
    assert L2Laplace(2.0, 3.0, 5, "float").scale() == 6.0
    assert 6.0 < L2Laplace(2.0, 3.0, 5).scale() < 6.0 * (1 + 1e-6)


def test_a_matrix_that_is_not_symmetric_moves_no_further_than_its_norm(seed):
    one_sided = np.array([[0.0, 2.0], [0.0, 0.0]])
    with recording() as tape:
        SymmetricGaussian(1.0, 1.0)(one_sided, as_generator(seed))
    (release,) = tape.releases
    assert np.linalg.norm(release.value) <= np.linalg.norm(one_sided)
