"""Integer noise: exact units, the distribution, and privacy of neighbors."""

from fractions import Fraction
from math import isqrt, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.stat import P_FAIL, assert_detects, assert_follows

from tacit._random import as_generator
from tacit.audit import replay
from tacit.audit.bounds import clopper_pearson_bound, gaussian_bound
from tacit.exceptions import PlanError
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace
from tacit.mechanisms.integer_noise import MAX_INTEGER_ROWS, MOST_UNITS
from tacit.mechanisms.noise import GRID
from tacit.privacy import GaussianNoise, LaplaceNoise, Neighbors

KINDS = {DiscreteGaussian: stats.norm, DiscreteLaplace: stats.laplace}
N = 40_000

each_kind = pytest.mark.parametrize("kind", KINDS)
each_noise = pytest.mark.parametrize("noise", ["grid", "float"])


@given(st.floats(1e-6, 1e5), st.floats(0.1, 100.0))
def test_units_are_the_most_that_the_noise_covers(multiplier, sensitivity):
    units = DiscreteGaussian(multiplier, sensitivity).units
    ratio = Fraction(multiplier) * Fraction(sensitivity)
    assert ratio * units <= GRID
    assert units == DiscreteLaplace(multiplier, sensitivity).units
    # control: two more would be too many, or the kernels would not take them
    assert units == MOST_UNITS or ratio * (units + 2) > GRID


@given(st.integers(2, 10**7), st.floats(0.01, 10.0))
def test_units_are_safe_for_roots_that_were_rounded_down(p, multiplier):
    units = DiscreteGaussian(multiplier, sqrt(p)).units
    # the exact root of p: multiplier^2 * p * units^2 <= GRID^2
    assert Fraction(multiplier) ** 2 * p * units**2 <= GRID**2
    assert units > 0.999 * GRID / (multiplier * sqrt(p)) or units == MOST_UNITS


def test_units_at_the_edge_are_safe_for_roots_that_were_rounded_down():
    edges = 0
    for p in (3, 7, 11, 13):
        root = sqrt(p)
        for units in range(1000, 1400):
            multiplier = GRID / (units * root)
            taken = int(Fraction(GRID) / (Fraction(multiplier) * Fraction(root)))
            if Fraction(multiplier) ** 2 * p * taken**2 > GRID**2:
                edges += 1  # as if the rounded root were exact
                assert DiscreteGaussian(multiplier, root).units == taken - 1
    assert edges > 10


def test_a_root_rounded_down_would_be_taken_for_its_square():
    # control of the test above: some roots are below their true value
    assert any(Fraction(sqrt(p)) ** 2 < p for p in range(2, 20) if isqrt(p) ** 2 != p)


def test_sums_of_all_rows_provided_for_stay_within_64_bits():
    assert MAX_INTEGER_ROWS * MOST_UNITS + 20 * GRID < 2**63


@each_kind
@each_noise
@pytest.mark.statistical
def test_the_noise_follows_its_law(kind, noise, seed):
    mechanism = kind(0.7, 2.0, noise)
    drawn = mechanism.draws(N, as_generator(seed))
    assert drawn.dtype == np.int64
    added = mechanism(np.full(N, 12345), as_generator(seed + 1)) - 12345
    for values in (drawn, added):
        # half an integer off the continuous distribution, far below what can be seen
        assert_follows(values / mechanism.scale, KINDS[kind].cdf)
        assert_detects(2 * values / mechanism.scale, KINDS[kind].cdf)
        assert_detects(1.2 * values / mechanism.scale, KINDS[kind].cdf)


def shown(kind, mechanism, moved, seed):
    """Lower bound on epsilon from sums that neighbors move by ``moved`` units."""
    rng, n = as_generator(seed), 100_000
    far = np.full(n, moved * mechanism.units)
    first, second = mechanism(0 * far, rng), mechanism(far, rng)
    attack = gaussian_bound if kind is DiscreteGaussian else clopper_pearson_bound
    delta = 1e-5 if kind is DiscreteGaussian else 0.0
    found = attack(first / GRID, second / GRID, delta=delta, confidence=1 - P_FAIL)
    claim = mechanism.curve(Neighbors.REPLACE_ONE).epsilon(delta)
    return found.epsilon_lower, claim


@each_kind
@pytest.mark.statistical
def test_an_audit_stays_below_the_claim_and_catches_half_the_noise(kind, seed):
    mechanism = kind(1.0, 2.0)
    lower, claim = shown(kind, mechanism, 2, seed)
    assert 0.5 * claim <= lower <= claim
    # sums that move twice as far have half the noise
    assert shown(kind, mechanism, 4, seed)[0] > claim


@each_kind
def test_neighbors_give_the_same_output_with_the_noise_that_makes_up_for_it(kind):
    # nothing is rounded: a sum moved by k is the same distribution moved by k, bit for
    # bit
    mechanism = kind(0.3, 1.0)
    for move in (1, -mechanism.units, 2**61):
        total = np.arange(5)
        near, far = (mechanism(t, as_generator(0)) for t in (total, total + move))
        assert np.array_equal(far - near, np.full(5, move))


def test_sums_beyond_64_bits_wrap_around_in_silence():
    most = np.full(50, 2**63 - 1)
    out = DiscreteGaussian(1.0)(most, as_generator(0))
    noise = DiscreteGaussian(1.0)(np.zeros(50, dtype=np.int64), as_generator(0))
    wrapped = [(2**63 - 1 + int(e) + 2**63) % 2**64 - 2**63 for e in noise]
    assert out.tolist() == wrapped


@each_kind
def test_the_event_is_that_of_the_multiplier(kind):
    events = {DiscreteGaussian: GaussianNoise, DiscreteLaplace: LaplaceNoise}
    assert kind(1.7).event == events[kind](1.7)


@each_kind
@each_noise
def test_draws_are_what_a_call_adds(kind, noise):
    mechanism, total = kind(2.0, 3.0, noise), np.arange(7)
    out = mechanism(total, as_generator(4))
    assert np.array_equal(out, total + mechanism.draws(7, as_generator(4)))
    assert out.dtype == np.int64
    assert np.array_equal(total, np.arange(7))
    assert mechanism(np.zeros((2, 3), dtype=np.int32), as_generator(0)).shape == (2, 3)
    assert len(mechanism.draws(0, as_generator(0))) == 0


@each_kind
def test_what_is_released_goes_over_the_tape(kind):
    mechanism = kind(2.0, 2.0)
    total, far = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    far[1] = 2 * mechanism.units

    def train(total):
        return mechanism(total, as_generator(1))

    report = replay(train, (total,), (far,))
    assert report.ok, str(report)
    assert report.entries[0].moved == report.entries[0].sensitivity
    far[1] += mechanism.units
    assert not replay(train, (total,), (far,)).ok


@each_kind
@pytest.mark.parametrize("multiplier", [2.0**24, 1e200])
def test_noise_too_large_for_whole_numbers_is_refused(kind, multiplier):
    with pytest.raises(PlanError, match="too large for integers"):
        kind(multiplier)


@each_kind
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", None, True], ids=repr)
@pytest.mark.parametrize("name", ["multiplier", "sensitivity"])
def test_bad_numbers_are_refused(kind, name, bad):
    with pytest.raises(ValueError, match=f"^{name} must"):
        kind(**({"multiplier": 1.0} | {name: bad}))


@each_kind
def test_an_unknown_noise_and_totals_that_are_not_whole_are_refused(kind):
    with pytest.raises(ValueError, match=r"^noise must be"):
        kind(1.0, noise="exact")
    for bad in (np.zeros(2), np.zeros(2, dtype=np.uint64), np.zeros(2, dtype=bool)):
        with pytest.raises(ValueError, match=r"^total must be"):
            kind(1.0)(bad, as_generator(0))
