"""Sums by the square root of the matrix of sums: blocks, coefficients, rounding."""

from fractions import Fraction
from math import log, pi

import numpy as np
import pytest
from scipy.linalg import toeplitz

from tacit._random import as_generator
from tacit.mechanisms.continual import _square_root as module
from tacit.mechanisms.continual._square_root import SquareRootSum, _added, _coefficients
from tacit.mechanisms.noise import GRID

LARGEST_ERRORS = {10: 3.273, 14: 4.155, 16: 4.596, 20: 5.479}


def convolved(noise):
    """Return what ``C - 1`` makes of noise, by its definition."""
    n = len(noise)
    matrix = toeplitz(_coefficients(n), np.zeros(n)) - np.eye(n)
    return matrix @ noise


@pytest.mark.parametrize("exponent", LARGEST_ERRORS)
def test_errors_are_those_found_before(exponent):
    n = 2**exponent
    largest = SquareRootSum(n, 1.0, 1.0).std(1).max()
    assert largest == pytest.approx(LARGEST_ERRORS[exponent], rel=1e-3)
    # the known limit of the constant
    assert largest == pytest.approx((log(n) + np.euler_gamma + log(16)) / pi, rel=2e-3)


def test_the_root_is_a_root():
    n = 300
    root = toeplitz(_coefficients(n), np.zeros(n))
    assert np.allclose(root @ root, np.tril(np.ones((n, n))), atol=1e-12)


@pytest.mark.parametrize("horizon", [1, 2, 3, 50, 400])
def test_the_column_norm_is_not_below_the_exact_one(horizon):
    mechanism = SquareRootSum(horizon, 1.0, 1.0)
    total = sum(Fraction(c) ** 2 for c in _coefficients(horizon).tolist())
    assert Fraction(mechanism.column_norm) ** 2 >= total
    assert mechanism.column_norm == pytest.approx(float(total) ** 0.5, rel=1e-12)


@pytest.mark.parametrize("horizon", [1, 5, 63, 64, 65, 200, 1000, 1024])
def test_blocks_convolve_as_the_definition_does(horizon):
    mechanism = SquareRootSum(horizon, 1.0, 1.0, "float")
    noise = as_generator(0).standard_normal((horizon, 3))
    state, correction = mechanism.init((3,)), []
    for part in np.array_split(noise, 7):
        if len(part):
            _, found, memory = mechanism._run(state, part, given_fresh=False)
            state = module.SquareRootState(
                state.n_steps + len(part), state.sums, **memory
            )
            correction.append(found)
    assert np.allclose(np.concatenate(correction), convolved(noise), atol=1e-12)


@pytest.mark.parametrize("name", ["normal", "wild"])
def test_rounding_is_within_its_bound(name):
    horizon, rng = 700, as_generator(0)
    mechanism = SquareRootSum(horizon, 1.0, 1.0)
    noise = (rng.standard_normal(horizon) * GRID).astype(np.int64)
    if name == "wild":
        noise = np.where(noise > 0, 14 * GRID, -14 * GRID)
    _, correction, _ = mechanism._run(
        mechanism.init(()), noise[:, None], given_fresh=False
    )
    coefficients = [Fraction(c) for c in _coefficients(horizon).tolist()]
    for t in range(0, horizon, 41):
        exact = sum(coefficients[t - i] * int(noise[i]) for i in range(t))
        assert abs(int(correction[t, 0]) - exact) <= mechanism._rounding()
        # control: a thousandth of a standard deviation would be noticed
        assert mechanism._rounding() < GRID / 1000


def test_transforms_by_parts_of_the_columns_are_the_same(monkeypatch):
    block = as_generator(0).standard_normal((64, 50))
    whole = _added(block, 64)
    monkeypatch.setattr(module, "AT_ONCE", 1000)
    assert np.allclose(_added(block, 64), whole, atol=1e-13)
    assert np.array_equal(_added(block, 20), _added(block, 64)[:20])


def test_the_state_grows_as_the_stream_does():
    mechanism = SquareRootSum(1000, 1.0, 1.0)
    state, _ = mechanism.steps(mechanism.init((2,)), np.ones((900, 2)), as_generator(0))
    rows = len(state._private_recent)
    rows += sum(len(block) for block, _ in state._private_past)
    assert rows == 900
    after = sum(len(added) for _, added in state._private_past)
    assert after <= 900


def test_rounding_costs_little_in_long_streams():
    mechanism = SquareRootSum(2**20, 1.0, 1.0)
    assert mechanism.scale(100) < 1.01 * mechanism.column_norm
