"""Sums by a few buffers: the table of designs, and rounding against exact numbers."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from scipy.linalg import toeplitz

from tacit._random import as_generator
from tacit.exceptions import PlanError
from tacit.mechanisms.continual import BLTSum, TreeSum, _kernels
from tacit.mechanisms.continual._blt import LONGEST
from tacit.mechanisms.continual._designs import DESIGNS
from tacit.mechanisms.noise import GRID

# Largest error over all steps for unit noise
LARGEST_ERRORS = {
    (2, 10): 3.330,
    (2, 14): 4.429,
    (2, 16): 5.081,
    (3, 10): 3.278,
    (3, 14): 4.203,
    (3, 16): 4.697,
    (4, 10): 3.273,
    (4, 14): 4.163,
    (4, 16): 4.617,
}
# the longest runs its recurrence for some seconds
LONG = [1000, 2**20, 2**22, pytest.param(LONGEST, marks=pytest.mark.slow)]


def columns(mechanism):
    """Return the first column of C, from its definition."""
    gaps, weights = (np.array(part) for part in mechanism._arrays())
    powers = (1 - gaps[:, None]) ** np.arange(mechanism.horizon - 1)
    return np.concatenate([[1.0], weights @ powers])


@pytest.mark.parametrize(("buffers", "exponent"), LARGEST_ERRORS)
def test_errors_are_as_expected(buffers, exponent):
    mechanism = BLTSum(2**exponent, 1.0, 1.0, buffers=buffers)
    expected = LARGEST_ERRORS[buffers, exponent]
    assert mechanism.std(1).max() == pytest.approx(expected, rel=1e-3)


def test_four_buffers_have_a_third_of_the_noise_of_the_tree():
    tree, blt = (kind(2**16, 1.0, 1.0).std(1).max() for kind in (TreeSum, BLTSum))
    assert 3.5 * blt < tree


@pytest.mark.parametrize("buffers", DESIGNS)
@pytest.mark.parametrize("exponent", range(0, 21, 2))
def test_every_design_is_sound(buffers, exponent):
    mechanism = BLTSum(2**exponent, 1.0, 1.0, buffers=buffers)
    gaps, weights = mechanism._arrays()
    assert len(gaps) == len(weights) == buffers
    assert np.all((gaps > 0) & (gaps < 1))
    assert np.all(weights > 0)
    # noise is never more than that of the tree, nor than with one buffer less
    error = mechanism.std_at(2**exponent, 1)
    assert error <= (1 + 1e-6) * max(TreeSum(2**exponent, 1.0, 1.0).std(1))
    if buffers > 1:
        fewer = BLTSum(2**exponent, 1.0, 1.0, buffers=buffers - 1)
        assert error <= 1.005 * fewer.std_at(2**exponent, 1)
    # the sensitivity is that of the first column, and of no other
    first = columns(mechanism)
    assert np.all(np.diff(first) <= 0)
    assert mechanism.column_norm == pytest.approx(np.linalg.norm(first), rel=1e-7)
    assert mechanism.column_norm >= np.linalg.norm(first) * (1 - 1e-9)


@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 33, 200])
def test_the_factors_multiply_to_all_prefix_sums(horizon):
    mechanism = BLTSum(horizon, 1.0, 1.0)
    c = toeplitz(columns(mechanism), np.zeros(horizon))
    b = toeplitz(mechanism.coefficients(), np.zeros(horizon))
    assert np.allclose(b @ c, np.tril(np.ones((horizon, horizon))), atol=1e-12)
    rows = np.linalg.norm(b, axis=1) * mechanism.scale(1)
    assert np.allclose(mechanism.std(1), rows, rtol=1e-12)


@pytest.mark.parametrize("horizon", [2, 30, 300])
def test_the_column_norm_is_not_below_the_exact_one(horizon):
    mechanism = BLTSum(horizon, 1.0, 1.0)
    powers = [Fraction(w) for w in mechanism._design.weights]
    gaps = [Fraction(gap) for gap in mechanism._design.gaps]
    total = Fraction(1)
    for _ in range(1, horizon):
        total += sum(powers) ** 2
        # far more digits than the sum needs
        powers = [
            Fraction(round(p * (1 - gap) * 2**300), 2**300)
            for p, gap in zip(powers, gaps, strict=True)
        ]
    assert Fraction(mechanism.column_norm) ** 2 >= total
    assert mechanism.column_norm == pytest.approx(sqrt(total), rel=1e-12)


def exact_memory(mechanism, numbers):
    """Return what ``C - 1`` makes of noise, in integers of 2**-400 cells."""
    gaps = [Fraction(gap) for gap in mechanism._design.gaps]
    weights = [Fraction(weight) for weight in mechanism._design.weights]
    buffers, correction = [0] * len(gaps), []
    for n in numbers:
        correction.append(sum(w * b for w, b in zip(weights, buffers, strict=True)))
        buffers = [
            b - (b * gap.numerator) // gap.denominator + (int(n) << 400)
            for b, gap in zip(buffers, gaps, strict=True)
        ]
    return [Fraction(s, 2**400) for s in correction]


def extremes(name, n, reach):
    rng = as_generator(0)
    if name == "normal":
        return (rng.standard_normal(n) * GRID).astype(np.int64)
    if name == "one sign":
        return np.full(n, int(reach / n), dtype=np.int64)
    return np.where(rng.random(n) < 0.5, 1, -1) * np.int64(14 * GRID)


@pytest.mark.parametrize("multiplier", [1e-6, 0.05, 1.0, 50.0])
@pytest.mark.parametrize("horizon", LONG)
@pytest.mark.parametrize("name", ["normal", "one sign", "wild"])
def test_rounding_of_the_buffers_is_within_its_bound(name, horizon, multiplier):
    mechanism = BLTSum(horizon, multiplier, 1.0)
    n = 1000
    noise = extremes(name, n, mechanism._reach(min(mechanism._design.gaps)) / 2)
    state = mechanism.init(())
    _, correction, _ = mechanism._run(state, noise[:, None], given_fresh=False)
    exact = exact_memory(mechanism, noise)
    off = [
        abs(int(found) - value)
        for found, value in zip(correction.ravel().tolist(), exact, strict=True)
    ]
    assert max(off) <= mechanism._rounding()
    # control: the bound is not so wide that a cell or two would go unnoticed
    if multiplier >= 0.05:
        assert max(off) + 3 > mechanism._rounding()


def test_buffers_without_fractions_would_be_noticed():
    mechanism = BLTSum(2**20, 1.0, 1.0)
    noise = extremes("normal", 1000, 0)
    buffers = np.zeros((4, 1), dtype=np.int64)
    correction = np.empty((1000, 1), dtype=np.int64)
    arrays = mechanism._arrays()
    _kernels.run_integer(
        *arrays, 2.0**-6, buffers, noise[:, None].copy(), correction, False
    )
    exact = exact_memory(mechanism, noise)
    off = [
        abs(int(s) - e) for s, e in zip(correction.ravel().tolist(), exact, strict=True)
    ]
    assert max(off) > mechanism._rounding()


@pytest.mark.parametrize("horizon", [1, *LONG])
@pytest.mark.parametrize("multiplier", [1e-6, 0.01, 1.0, 100.0])
def test_buffers_fit_64_bits(horizon, multiplier):
    mechanism = BLTSum(horizon, multiplier, 1.0)
    assert (
        max(map(mechanism._reach, mechanism._design.gaps)) * mechanism._unit() < 2**62
    )


@pytest.mark.parametrize("horizon", LONG)
def test_rounding_costs_little_at_any_horizon(horizon):
    mechanism = BLTSum(horizon, 5.0, 1.0)
    assert mechanism.scale(1000) < 1.01 * 5.0 * mechanism.column_norm


def test_fresh_noise_and_correlated_noise_lead_to_the_same_state():
    mechanism = BLTSum(100, 1.0, 1.0)
    fresh = as_generator(0).integers(-(2**34), 2**34, (100, 3))
    state = mechanism.init((3,))
    noise, correction, reached = mechanism._run(state, fresh, given_fresh=True)
    assert np.array_equal(noise + correction, fresh)
    again, same, also = mechanism._run(state, noise, given_fresh=False)
    assert np.array_equal(again, noise)
    assert np.array_equal(correction, same)
    assert np.array_equal(reached["_private_buffers"], also["_private_buffers"])


def test_the_kernel_does_what_plain_numpy_does():
    mechanism = BLTSum(50, 1.0, 1.0, "float")
    gaps, weights = mechanism._arrays()
    fresh = as_generator(0).standard_normal((50, 3))
    noise, _, reached = mechanism._run(mechanism.init((3,)), fresh, given_fresh=True)
    buffers = np.zeros((4, 3))
    for t in range(50):
        expected = fresh[t] - weights @ buffers
        buffers = (1 - gaps)[:, None] * buffers + expected
        assert np.allclose(noise[t], expected)
    assert np.allclose(reached["_private_buffers"], buffers)


def test_the_state_holds_one_array_a_buffer_and_one_more():
    mechanism = BLTSum(1000, 1.0, 1.0)
    state, _ = mechanism.steps(mechanism.init((7,)), np.ones((500, 7)), as_generator(0))
    assert state._private_buffers.shape == (4, 7)
    assert state.sums.shape == (7,)
    assert "private" not in repr(state)


def test_large_elements_keep_their_place_at_long_horizons():
    mechanism = BLTSum(2**22, 1.0, 1.0)
    _, sums = mechanism.steps(mechanism.init(()), np.full(100, 1e6), as_generator(0))
    assert np.allclose(sums, 1e6 * np.arange(1, 101), atol=50)


def test_a_horizon_beyond_the_table_is_refused():
    message = r"^BLTSum has buffers for at most 67108864 steps, .* use TreeSum\.$"
    with pytest.raises(PlanError, match=message):
        BLTSum(LONGEST + 1, 1.0, 1.0)
    assert TreeSum(LONGEST + 1, 1.0, 1.0).levels == 27


@pytest.mark.parametrize("bad", [0, 5, 2.5])
def test_a_bad_number_of_buffers_is_refused(bad):
    with pytest.raises(ValueError, match=r"^buffers must .*\.$"):
        BLTSum(10, 1.0, 1.0, buffers=bad)
